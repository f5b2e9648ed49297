"""Make untrusted text (documents, replies, messages of servers) fit for a terminal, a log or a page."""

import os
import re
from urllib.parse import quote

from generator.errors import ConfigError

# A shorter value is a word that stands for a key, such as `EMPTY`.
_SHORTEST_SECRET = 7
_LONGEST_MESSAGE = 300
# What a reasoning model writes before its reply, where the server leaves it there; some begin it in the prompt.
_THOUGHTS = re.compile(r"\A(?:\s*<think>|(?!\s*\{))(?:(?!<think>).)*?</think>\s*|\A\s*<think>.*\Z", re.DOTALL)


def drop_thoughts(reply: str) -> str:
    """Return what a model says without what it thought aloud before."""
    return _THOUGHTS.sub("", reply)


def printable(text: str) -> str:
    """Return the text on one line, with U+FFFD for every character that could control a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def server_message(text: str, *key_variables: str | None) -> str:
    """Return the beginning of a server's text on one line, without the secrets in these environment variables.

    Args:
        key_variables: names of the variables that hold keys and passwords; some servers repeat the key they refuse.
    """
    line = without_secrets(printable(text), *key_variables)
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"


def without_secrets(text: str, *variables: str | None) -> str:
    """Replace the values of these environment variables, plain or URL-quoted, by an ellipsis.

    Call it before the text is cut: half a secret isn't recognised.
    """
    for variable in variables:
        secret = os.environ.get(variable or "", "").strip()
        if len(secret) >= _SHORTEST_SECRET:
            for form in (secret, quote(secret, safe="", errors="replace")):
                text = text.replace(form, "…")
    return text


def read_key(variable: str | None) -> str:
    """Return the API key in an environment variable; empty if there is none.

    Raises:
        ConfigError: no header can hold it.
    """
    key = os.environ.get(variable or "", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the environment variable {variable} is not a valid API key; set it to your key")
    return key
