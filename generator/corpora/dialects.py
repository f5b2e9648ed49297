"""Turn what documentation tools add to Markdown into plain Markdown, so that no mark of theirs is taken for text.

Admonitions and tabs of MkDocs, directives of MyST, containers of Docusaurus and Quarto, alerts of GitHub, footnotes,
task lists, and the lines of GitBook and MDX that are no text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from generator.corpora.directives import NO_TEXT, PROGRAMS

_LONGEST = 300  # characters of a line that is more than text
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+>]|\d+[.)])[ \t]+)*(`{3,}|~{3,}|:{3,})[ \t]*(.*)$")
# A mark, and what stands below it, to the right.
_INDENTED = re.compile(r'( *)(?:(?:!!!|\?\?\?\+?) +([\w ,-]*?)|===[!+]?)(?: +"(.*)")?[ \t]*$')
_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}[ \t]*(.*)$")
_CONTAINER = re.compile(r"(?:\{[^}]*\}|[\w:.-]+)?[ \t]*(.*?)[ \t]*(?:\{[^}]*\})?$")
_OPTION = re.compile(r"[ \t]*:[\w-]+:(?: |$)")
_ALERT = re.compile(r"([ \t]*>[ \t]*)\[!(\w+)\][ \t]*$")
_ANCHOR = re.compile(r"(#{1,6} .*?)[ \t]*\{[#.:][^{}]*\}[ \t]*$")
_TASK = re.compile(r"^([ \t]*(?:[-*+]|\d+[.)])[ \t]+)\[[ xX]\][ \t]+")
# “{ref}`the boat <boat>`”, but not in code, which is taken first.
_ROLE = re.compile(r"(`[^`]*`)|\{[a-z][\w:.+-]*\}`[!~]?([^`<]{1,200}?)(?: ?<[^`<>]{1,200}>)?`")
_NO_LINE = re.compile(r"[ \t]*\{%[^%]*%\}$|import\s.+\sfrom\s+['\"].+['\"];?\s*$")
_NOTE, _MARK = re.compile(r"^\[\^([\w.-]+)\]:[ \t]*", re.MULTILINE), re.compile(r"(?<=\S)\[\^([\w.-]+)\](?!:)")
# Of MyST, beside those with a colon (`py:function`); any other fence with a name in braces is a program.
_TEXTS = frozenset(
    re.findall(
        r"\S+",
        "admonition attention card caution danger deprecated dropdown epigraph error exercise grid grid-item "
        "grid-item-card hint important margin note pull-quote seealso sidebar solution tab-item tab-set tip todo topic "
        "versionadded versionchanged warning",
    )
)


class _Block(NamedTuple):
    marks: str
    kind: str  # text, program or nothing


def to_plain_markdown(text: str) -> str:
    """Return a page in which documentation tools' own marks are gone, and what these hold is text."""
    return "\n".join(_lines(_NOTE.sub("", text), set(_NOTE.findall(text))))


def _lines(text: str, notes: set[str]) -> Iterator[str]:
    margins, blocks, may_have_options = [0], list[_Block](), False
    for whole in text.split("\n"):
        inside = blocks[-1].kind if blocks else "text"
        indent = len(whole) - len(whole.lstrip(" "))
        while inside == "text" and whole.strip() and indent < margins[-1]:
            margins.pop()
        line = whole[min(indent, margins[-1]) :]
        mark = line.rstrip() if len(line) <= _LONGEST else ""
        fence = _FENCE.match(mark)
        if may_have_options and _OPTION.match(mark):
            continue
        may_have_options = False
        if fence and blocks and not fence[2] and fence[1].startswith(blocks[-1].marks):
            yield line.replace(":", "~") if blocks.pop().kind == "program" else ""
        elif inside == "program":
            yield line
        elif inside == "nothing" or _NO_LINE.match(mark):
            continue
        elif fence:
            block, shown = _open(fence[1], fence[2])
            blocks += [block] if block else []
            may_have_options = bool(block) and fence[2].startswith("{")
            yield shown and f"{line[: fence.start(1)]}{shown}"
        elif indented := _INDENTED.match(mark):
            kind, title = indented[2] or "", indented[3]
            if title is None and not kind:  # an underline
                yield line
                continue
            margins.append(margins[-1] + len(indented[1]) + 4)
            yield _paragraph(kind.partition(" ")[0].title() if title is None else title)
        elif alert := _ALERT.match(mark):
            yield f"{alert[1]}{alert[2].title()}\n{alert[1]}"
        else:
            line = _ANCHOR.sub(r"\1", mark) if mark.startswith("#") else _TASK.sub(r"\1", line)
            line = _ROLE.sub(lambda found: found[1] or found[2], line)
            yield _MARK.sub(lambda found: "" if found[1] in notes else found[0], line)


def _open(marks: str, info: str) -> tuple[_Block | None, str]:
    """Return the block that a fence opens, None if it closes one that isn't known, and what is shown of it."""
    directive = _DIRECTIVE.match(info)
    name, rest = directive.groups() if directive else ("", "")
    last = name.rpartition(":")[2].lower()
    if last in NO_TEXT:
        return _Block(marks, "nothing"), ""
    is_text = marks[0] == ":" or last in _TEXTS or ":" in name
    if is_text and last not in PROGRAMS:
        if not info:
            return None, ""
        title = rest if directive else (_CONTAINER.match(info) or [""] * 2)[1]
        return _Block(marks, "text"), _paragraph(title.strip("[]\"'"))
    language = (rest if last in PROGRAMS else name) if directive else info
    return _Block(marks, "program"), f"{marks.replace(':', '~')}{language}"


def _paragraph(text: str) -> str:
    return f"\n{text}\n" if text else ""
