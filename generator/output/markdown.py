"""Untrusted text as Markdown that it can't break."""

from collections.abc import Iterable, Sequence

from generator.common.sanitize import printable


def line(text: str) -> str:
    """Return text on one line with all markup escaped."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]|~$" else c for c in printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; all columns but the first are aligned right."""
    cells = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def block(text: str) -> str:
    """Return text as an indented code block, which nothing in it can end."""
    return "\n".join(f"    {printable(part)}" for part in text.splitlines())
