"""Lines on the terminal, from any part of the program."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from generator.common.sanitize import printable

T = TypeVar("T")

# Between the lines that tell how far long work is.
PACE_S = 5.0
_sinks: list[Callable[[str], None]] = []


def continues(fresh: bool) -> str:
    """Return how to continue a stopped run: with `fresh=true` the same command would start over."""
    return f"the same command{' without fresh=true' if fresh else ''} continues"


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def send_notes(sink: Callable[[str], None]) -> None:
    """Send the lines of this process elsewhere, where somebody reads them."""
    _sinks[:] = [sink]


def note(text: str) -> None:
    """Print a line to standard error."""
    if _sinks:
        _sinks[0](text)
        return
    from rich.console import Console  # slow to import, and most commands print nothing

    Console(stderr=True).print(printable(text), highlight=False, markup=False, emoji=False, soft_wrap=True)


def paced() -> Callable[[str], None]:
    """Return a function that notes how far long work is: at most every five seconds, and first after five."""
    due = time.monotonic() + PACE_S

    def tell(text: str) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + PACE_S
            note(text)

    return tell


def counted(items: Iterable[T], told: str) -> Iterator[T]:
    """Yield items, and note every five seconds how many there were, as `told: 1200 so far`."""
    tell = paced()
    for number, item in enumerate(items, start=1):
        tell(f"{told}: {number} so far")
        yield item
