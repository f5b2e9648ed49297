"""Lines for the person at the terminal, from whatever part of the program has something to say."""

from rich.console import Console


def note(text: str) -> None:
    """A line for the person, beside what the program gives out."""
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)
