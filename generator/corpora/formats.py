"""From a file to its title and text, for every kind of file that a document can be."""

import io
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

import yaml

from generator.corpora.base import located
from generator.corpora.files import File, reason
from generator.errors import YAML_SLIPS
from generator.schema import Document, SkippedRecord

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import PageElement

# YAML is read slowly, and what is longer is no front matter.
_FRONT_MATTER = re.compile(r"\A---\n(.{0,20000}?\n)---\n", re.DOTALL)
_FIRST_HEADING = re.compile(r"\s*# +(.+)\n?")

# What a page has beside its text.
_BOILERPLATE = (
    "head, title, script, style, noscript, template, svg, nav, footer, aside, [hidden], "
    "[role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
_BLOCKS = (
    "p, div, section, article, main, header, h1, h2, h3, h4, h5, h6, ul, ol, li, dl, dt, dd, table, caption, tr, br, "
    "hr, blockquote, pre, figure, figcaption, details, summary, fieldset, form, address"
)
_BREAK, _CELL_END = "\x1f", " | "


class _Unreadable(Exception):
    """Why a file has no text; one line."""


def read_document(file: File) -> Document | SkippedRecord:
    """The document in `file`, its id the file's name in the corpus, its title the name's stem if it has none."""
    read = FORMATS[file.path.suffix.lower()]
    try:
        title, text = read(file.path.read_bytes())
    except OSError as error:
        return SkippedRecord(where=file.where, reason=reason(error))
    except _Unreadable as error:
        return SkippedRecord(where=file.where, reason=str(error))
    return located(file.where, file.name, text, " ".join(title.split()) or PurePosixPath(file.name).stem)


def _decoded(data: bytes, encoding: str = "utf-8") -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Unreadable(f"line {line} isn't {encoding} (byte 0x{data[error.start]:02x}); save it as UTF-8") from error
    except (LookupError, UnicodeError) as error:
        raise _Unreadable(f"it names an unknown encoding, {encoding}; save it as UTF-8") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _plain(data: bytes) -> tuple[str, str]:
    return "", _decoded(data)


def _markdown(data: bytes) -> tuple[str, str]:
    """The text as it stands, without front matter; the title from there, or else a heading that opens the text."""
    text = _decoded(data)
    if front := _FRONT_MATTER.match(text):
        try:
            settings = yaml.safe_load(front[1])
        except (yaml.YAMLError, *YAML_SLIPS):
            settings = None
        if isinstance(settings, dict):
            text = text[front.end() :]
            # A list could hold itself many times over, by references.
            if (title := settings.get("title")) and not isinstance(title, list | dict):
                return str(title), text
    if heading := _FIRST_HEADING.match(text):
        return heading[1], text[heading.end() :]
    return "", text


def _html(data: bytes) -> tuple[str, str]:
    """The text, a block a paragraph and a table's row a line; the title from `title` or else the first `h1`."""
    from bs4 import BeautifulSoup
    from bs4.dammit import EncodingDetector
    from bs4.exceptions import ParserRejectedMarkup

    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    try:
        soup = BeautifulSoup(_decoded(data, declared or "utf-8"), "html.parser")
    except ParserRejectedMarkup as error:
        raise _Unreadable(f"not HTML: {reason(error)}") from error
    heading = soup.title or soup.h1
    title = heading.get_text() if heading else ""
    paragraphs = (" ".join(block.split()).strip(" |") for block in "".join(_strings(soup)).split(_BREAK))
    return title, "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _strings(soup: "BeautifulSoup") -> Iterator[str]:
    """What a page shows, in order, with marks where blocks begin and end and where cells end.

    The tree is not changed: each change would be searched through whatever is nested in it.
    """
    from bs4.element import CData, NavigableString, Tag

    hidden, blocks = ({id(tag) for tag in soup.select(those)} for those in (_BOILERPLATE, _BLOCKS))
    ahead: list[PageElement | str] = [soup]  # what comes next, last first
    while ahead:
        piece = ahead.pop()
        if isinstance(piece, Tag):
            if id(piece) in hidden:
                continue
            mark = _BREAK if id(piece) in blocks else ""
            yield mark
            ahead.append(_CELL_END if piece.name in ("td", "th") else mark)
            ahead.extend(reversed(piece.contents))
        elif type(piece) in (str, NavigableString, CData):  # and no comment
            yield str(piece)


def _pdf(data: bytes) -> tuple[str, str]:
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every oddity of a file that it reads well
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        text = "\n\n".join(page.extract_text() for page in reader.pages)
        title = (reader.metadata and reader.metadata.title) or ""
    except Exception as error:  # a malformed PDF trips pypdf in more ways than it has exceptions for
        raise _Unreadable(f"not a readable PDF: {reason(error) or type(error).__name__}") from error
    if not text.strip():
        raise _Unreadable("its pages hold no text, only images; run OCR on it")
    return title, text


FORMATS: MappingProxyType[str, Callable[[bytes], tuple[str, str]]] = MappingProxyType(
    {".txt": _plain, ".md": _markdown, ".html": _html, ".htm": _html, ".pdf": _pdf}
)
