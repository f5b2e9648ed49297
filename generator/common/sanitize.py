"""Text that others wrote (documents, models, servers), before it is shown to a person or put into a page."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

# What is shorter is a word that stands for a key, such as `EMPTY`.
_SHORTEST_SECRET = 7


def printable(text: str) -> str:
    """Text on one line, with nothing in it that steers a terminal or turns its direction."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def without_secrets(text: str, *variables: str | None) -> str:
    """What a server said, without the secrets in these environment variables: some repeat the key that they refuse.

    A secret is known as it is and in the forms that it is sent in. To be given before the text is cut: half a secret
    isn't known.
    """
    for secret in (os.environ.get(variable or "", "").strip() for variable in variables):
        if forms := "|".join(_forms(secret)):
            text = re.sub(forms, "…", text, flags=re.IGNORECASE)
    return text


def _forms(secret: str) -> Iterator[str]:
    """Regular expressions for a secret, alone or in base64, also in JSON or in an address."""
    for form in (secret, printable(secret)):
        yield from _written(form)
    sent = secret.encode(errors="surrogateescape")
    # In base64 what stands before it, such as a user's name, shifts it by 0 to 2 bytes. Its first and last character
    # may hold bits of its neighbours, so they are no part of what is looked for.
    for before, first in enumerate((0, 2, 3)):
        coded = b64encode(bytes(before) + sent).decode()[first : (before + len(sent)) * 8 // 6]
        for form in (coded, coded.replace("+", "-").replace("/", "_")):
            yield from (rf"[\w+/-]?{written}[\w+/-]?" for written in _written(form))


def _written(form: str) -> Iterator[str]:
    if len(form) >= _SHORTEST_SECRET:
        quoted = (quote(form, safe, errors="surrogateescape") for safe in ("/", ""))
        forms = {form, json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1], *quoted}
        yield from map(re.escape, sorted(forms | {quote_plus(form, errors="surrogateescape")}))
