"""Lines for the person at the terminal, from whatever part of the program has something to say."""

import os

# What is shorter is a word that stands for a key, such as `EMPTY`.
_SHORTEST_SECRET = 8


def printable(text: str) -> str:
    """Text that others wrote, on one line, with nothing in it that steers a terminal or turns its direction."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def without_secrets(text: str, *variables: str | None) -> str:
    """What a server said, without the secrets in these environment variables: some repeat the key that they refuse."""
    for secret in (os.environ.get(variable or "", "").strip() for variable in variables):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "…")
    return text


def note(text: str) -> None:
    """A line for the person, beside what the program gives out."""
    from rich.console import Console  # most commands that end at once have nothing to say

    Console(stderr=True).print(printable(text), highlight=False, markup=False, emoji=False, soft_wrap=True)
