"""Lines for the person at the keyboard, beside what the program gives out."""

from rich.console import Console


def note(text: str) -> None:
    """Print one line to standard error."""
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)
