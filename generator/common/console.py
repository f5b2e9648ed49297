"""Lines on the terminal, from any part of the program."""

from generator.common.sanitize import printable


def continues(fresh: bool) -> str:
    """Return how to continue a stopped run: with `fresh=true` the same command would start over."""
    return f"the same command{' without fresh=true' if fresh else ''} continues"


def note(text: str) -> None:
    """Print a line to standard error."""
    from rich.console import Console  # slow to import, and most commands print nothing

    Console(stderr=True).print(printable(text), highlight=False, markup=False, emoji=False, soft_wrap=True)
