"""Lines for the person at the terminal, from whatever part of the program has something to say."""

import re
from collections.abc import Iterable

from generator.common.sanitize import printable


def continues(fresh: bool) -> str:
    """How a run goes on that was stopped; with `fresh` the same command would begin it anew."""
    return f"the same command{' without fresh=true' if fresh else ''} continues"


def begins_anew(arguments: Iterable[str]) -> bool:
    """Whether a command line holds `fresh=true`."""
    return any(re.match(r"\+*fresh=(?!false)", argument) for argument in arguments)


def note(text: str) -> None:
    """A line for the person, beside what the program gives out."""
    from rich.console import Console  # most commands that end at once have nothing to say

    Console(stderr=True).print(printable(text), highlight=False, markup=False, emoji=False, soft_wrap=True)
