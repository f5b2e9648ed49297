"""Text that others wrote, as Markdown that it can't break."""

from collections.abc import Iterable, Sequence

from generator.common.sanitize import printable


def line(text: str) -> str:
    """Text as one line in which nothing is markup."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]|~$" else c for c in printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown already; the first column is text, the others stand to the right."""
    cells = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def block(text: str) -> str:
    """Text word for word, as an indented block, which nothing in it can end."""
    return "\n".join(f"    {printable(part)}" for part in text.splitlines())
