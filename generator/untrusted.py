"""Text that others wrote (documents, models, servers), before it is shown to a person or put into a page."""

import os

# What is shorter is a word that stands for a key, such as `EMPTY`.
_SHORTEST_SECRET = 8


def printable(text: str) -> str:
    """Text on one line, with nothing in it that steers a terminal or turns its direction."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def without_secrets(text: str, *variables: str | None) -> str:
    """What a server said, without the secrets in these environment variables: some repeat the key that they refuse."""
    for secret in (os.environ.get(variable or "", "").strip() for variable in variables):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "…")
    return text
