"""Read a file's title and text, for every file type that a document can have."""

import io
import posixpath
import re
import zipfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, lookup
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.etree import ElementTree

import yaml

from generator.common.console import note
from generator.corpora.base import FormatError, make_document
from generator.corpora.files import File, open_file
from generator.corpora.lines import drop_contents, join_lines, join_pages, mark_headings, mark_outline
from generator.corpora.pages import parse_html, read_page, read_title
from generator.errors import YAML_SLIPS, describe
from generator.schema import Document, SkippedRecord

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

READING = "23"  # raised when a change gives files another text; then caches are made anew

# Longer is no front matter, and YAML is slow to parse.
_FRONT_MATTER = re.compile(r"\A(?:---|(\+\+\+))[ \t]*\n(.{0,20000}?\n)(?(1)\+\+\+|(?:---|\.\.\.))[ \t]*\n", re.DOTALL)
# What is front matter though it is no YAML: “title: Boats: a guide”, a value with a tab, and Hugo's “title = "Boats"”.
_KEY = re.compile(r"""\s*["']?[\w.-]+["']?\s*(?::\s|=)""")
_SETTING = re.compile(rf"{_KEY.pattern}|[\s#\[\]{{}}-]|$")
_TITLE = re.compile(r"""^title\s*[:=]\s*["']?(?![\s\[{!&*|>])(.*?)["']?\s*$""", re.MULTILINE)
_ROLE = re.compile(r":[a-z][\w:.+-]*:`[!~]?([^`<]{1,200}?)(?:\s{0,40}<[^`<>]{1,200}>)?`")  # “:ref:`the boat <boat>`”
_REFERENCE = re.compile(r":(?:std:)?ref:`([^`<>]{1,200})`")  # “:ref:`boats`”, which shows the title behind “.. _boats:”
_LABEL = re.compile(r"\.\. _`?([^`:]{1,200})`?:\s*$")
_UNDERLINE = re.compile(r"""([=~^"'#*+`_<>-])\1+\s*$""")
_FIRST_HEADING = re.compile(r"\s*# +(.+)\n*")
_SITE = re.compile(r"\s+[|–—·•»:/-]+\s")  # stands before it in a page's title: “Fares | City of Bern”

# What programs write into PDFs where nobody named them: “Microsoft Word - lease_v3.docx”, ReportLab's “(anonymous)”.
_NO_TITLE = re.compile(
    r"\s*(?:Microsoft \w+ - |(?:untitled|\(anonymous\))\s*$|.+\.(?:docx?|pptx?|odt|indd|tex|dvi)\s*$)", re.IGNORECASE
)

# It is invisible inside a line, and cuts words for whatever compares them.
_SOFT_HYPHEN = "\u00ad"
# What a checkout has in place of a large file that was not fetched.
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# What browsers read in place of an encoding that pages name, since most of those pages are in the wider one.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
# What Python doesn't know by the names that pages have for them, beside “x-sjis” and the like.
_ALIASES = {"windows-31j": "cp932", "windows-874": "cp874", "iso-8859-8-i": "iso-8859-8"}
_DRM = frozenset({"META-INF/rights.xml", "META-INF/license.lcpl"})
LOCKED = "it is password-protected; save it without a password"

# Returns title and text of a file's bytes, and what it lacks where not all could be read; or raises `FormatError`.
Reader = Callable[[bytes], tuple[str, str] | tuple[str, str, str]]


def read_document(file: File, formats: Mapping[str, Reader] | None = None) -> Document | SkippedRecord:
    """Return the document in `file`: its id is the file's name in the corpus, its title by default the name's stem.

    Args:
        formats: the readers by suffix; None: `FORMATS`.
    """
    try:
        with open_file(file, unpack=False) as stream:
            data = stream.read()
        if data.startswith(_LFS_POINTER):
            raise FormatError("a pointer of Git LFS in place of the file; fetch it with git lfs pull")
        title, text, *lacks = (formats or FORMATS)[file.suffix](data)
    except (OSError, FormatError) as error:
        return SkippedRecord(where=file.where, reason=describe(error))
    for what in lacks:
        note(f"{file.where}: {what}")
    title = "" if _NO_TITLE.match(title) else " ".join(title.split())
    return make_document(file.where, file.name, text, title or PurePosixPath(file.name).stem)


def _decode(data: bytes, encoding: str = "utf-8") -> str:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        raise FormatError(f"line {line} isn't {encoding} ({byte}); save it as UTF-8") from error
    except (LookupError, UnicodeError) as error:
        raise FormatError(f"unknown encoding {encoding}; save it as UTF-8") from error
    if text.count("\0") > len(text) // 4:  # of plain English every second byte
        raise FormatError("it seems to be UTF-16; save it as UTF-8")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _plain(text: str) -> tuple[str, str]:
    return take_heading("", join_lines(mark_headings(drop_contents(_show_hyphens(text)))))


def _show_hyphens(text: str) -> str:
    """Return a text with its soft hyphens where a reader sees them, at the ends of lines, as hyphens."""
    return text.replace(f"{_SOFT_HYPHEN}\n", "-\n").replace(_SOFT_HYPHEN, "")


def read_labels(file: File) -> dict[str, str]:
    """Return the titles behind the labels of a file of reStructuredText; none if it can't be read."""
    try:
        with open_file(file, unpack=False) as stream:
            lines = _decode(stream.read()).splitlines()
    except (OSError, FormatError):
        return {}
    labels, waiting = dict[str, str](), list[str]()
    for line, below in pairwise([*lines, ""]):
        if label := _LABEL.match(line):
            waiting.append(_normalise(label[1]))
        elif line.strip() and not _UNDERLINE.match(line):
            if _UNDERLINE.match(below):
                labels.update(dict.fromkeys(waiting, line.strip()))
            waiting = []
    return labels


def _normalise(label: str) -> str:
    return " ".join(label.split()).lower()


def read_restructured(data: bytes, labels: Mapping[str, str] = MappingProxyType({})) -> tuple[str, str]:
    """Return the title and the text of the page that is made of reStructuredText, which reads no other file.

    Args:
        labels: the titles that `:ref:` shows.
    """
    from docutils.core import publish_string

    from generator.corpora.directives import know_directives

    settings = {
        "report_level": 5,  # faults are left out
        "halt_level": 5,
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "embed_stylesheet": False,
        "stylesheet_path": None,
        "syntax_highlight": "none",
        "math_output": "LaTeX",
        "output_encoding": "unicode",
        "initial_header_level": 2,
        "line_length_limit": 1_000_000,
        "_disable_config": True,
    }
    text = _REFERENCE.sub(lambda found: labels.get(_normalise(found[1]), found[1]), _decode(data))
    text = _ROLE.sub(r"\1", text)
    know_directives(text)
    try:
        page = publish_string(text, writer="html4css1", settings_overrides=settings)
    except Exception as error:  # what is nested too deeply, and what Docutils stumbles over
        raise FormatError(f"not reStructuredText: {describe(error)}") from error
    soup = parse_html(page)
    return take_heading(soup.h1.get_text() if soup.h1 else "", read_page(soup))


def _markdown(text: str) -> tuple[str, str]:
    """Return the title (of the front matter, or a heading at the start) and the text of the page that is made of it."""
    from generator.corpora.dialects import render_markdown

    title, text = _read_front_matter(text)
    return take_heading(title, read_page(parse_html(render_markdown(text))))


def _read_front_matter(text: str) -> tuple[str, str]:
    """Return the title in a page's front matter, empty if it has none, and the page without it."""
    if not (front := _FRONT_MATTER.match(text)):
        return "", text
    try:
        settings = yaml.safe_load(front[2])
    except (yaml.YAMLError, *YAML_SLIPS):
        settings = None
    if not isinstance(settings, dict):
        if not (_KEY.match(front[2]) and all(map(_SETTING.match, front[2].split("\n")))):
            return "", text
        settings = {"title": named[1]} if (named := _TITLE.search(front[2])) else {}
    # A list can be made of YAML references that multiply.
    title = settings.get("title")
    return str(title) if title and not isinstance(title, list | dict) else "", text[front.end() :]


def take_heading(title: str, text: str) -> tuple[str, str]:
    """Return the title, by default the heading that a Markdown text begins with, and the text without it.

    Neither has soft hyphens.
    """
    title, text = (part.replace(_SOFT_HYPHEN, "") for part in (" ".join(title.split()), text))
    if (heading := _FIRST_HEADING.match(text)) and title in ("", heading[1]):
        return heading[1], text[heading.end() :]
    return title, text


def read_html(page: str, read: Callable[["BeautifulSoup"], str] = read_page) -> tuple[str, str]:
    """Return the title (`title` or `h1`; the heading, if `title` is that with a site) and the text of a page.

    Args:
        read: returns its text.
    """
    soup = parse_html(page)
    title, text = " ".join(read_title(soup).split()), read(soup)
    if (heading := _FIRST_HEADING.match(text)) and title.startswith(heading[1]) and _SITE.match(title, len(heading[1])):
        title = ""
    return take_heading(title, text)


def decode_html(data: bytes) -> str:
    """Return a page as browsers decode it, or as UTF-8 where it is that but names Latin-1, UTF-16 or none."""
    from bs4.dammit import EncodingDetector

    named = (EncodingDetector.find_declared_encoding(data, is_html=True) or "utf-8").removeprefix("x-")
    encoding, known = _ALIASES.get(named, named), ""
    with suppress(LookupError):  # which decoding reports
        known = lookup(encoding).name
        encoding = _WIDER.get(known, encoding)
    if encoding == "cp1252" or not known or known.startswith("utf-16"):
        with suppress(UnicodeDecodeError):
            data.decode()
            encoding = "utf-8"
    return _decode(data, encoding)


def read_book(data: bytes, read: Callable[["BeautifulSoup"], str] = read_page) -> tuple[str, str]:
    """Return the title of an EPUB, and the texts of its pages in their order, but for its own table of contents.

    Args:
        read: returns a page's text.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            if not _DRM.isdisjoint(book.namelist()):
                raise FormatError("its pages are encrypted (DRM)")
            container = ElementTree.fromstring(book.read("META-INF/container.xml"))
            path = next(container.iterfind(".//{*}rootfile")).get("full-path", "")
            package = ElementTree.fromstring(book.read(path))
            items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
            order = [items[reference.get("idref")] for reference in package.iterfind(".//{*}spine/{*}itemref")]
            links = [item.get("href", "") for item in order if "nav" not in item.get("properties", "").split()]
            pages = [book.read(posixpath.normpath(posixpath.join(path, "..", unquote(link)))) for link in links]
    except Exception as error:  # of zip, XML, and what isn't where it should be
        raise FormatError(f"not a readable EPUB: {describe(error)}") from error
    text = "\n\n".join(filter(None, (read(parse_html(decode_html(page))) for page in pages)))
    return take_heading(package.findtext(".//{*}metadata/{*}title", ""), text)


def read_pdf(
    data: bytes, with_rows: Callable[[bytes], Mapping[int, str]] = lambda _: {}
) -> tuple[str, str] | tuple[str, str, str]:
    """Return the title and the text of a PDF, and how many pages lack where some are images without text.

    Args:
        with_rows: returns the texts of pages, by their number from 0, that aren't to be read as the others are.

    Raises:
        FormatError: it can't be read, or no page has text.
    """
    import pypdfium2

    images = [pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]
    try:
        with pypdfium2.PdfDocument(data) as pdf:
            pages = [page.get_textpage().get_text_bounded() for page in pdf]
            blank = (page for page, text in zip(pdf, pages, strict=True) if not text.strip())
            scanned = sum(any(page.get_objects(filter=images)) for page in blank)
            title = pdf.get_metadata_value("Title")
            outline = defaultdict[int, list[tuple[str, int]]](list)
            for entry in pdf.get_toc():
                if place := entry.get_dest():
                    outline[place.get_index()].append((entry.get_title(), entry.level))
    except pypdfium2.PdfiumError as error:
        if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise FormatError(LOCKED) from error
        raise FormatError(f"not a readable PDF: {describe(error)}" if data else "the file is empty") from error
    # PDFium gives line ends of Windows, and a mark in place of a hyphen that ends a line.
    texts = dict(enumerate(_show_hyphens(page.replace("\r\n", "\n").replace("\2", "-\n")) for page in pages))
    texts |= with_rows(data)
    text = join_pages([mark_outline(page, outline[number]) for number, page in texts.items()])
    if not text.strip():
        raise FormatError("its pages have no text; run OCR on it")
    if not scanned:
        return title, text
    return title, text, f"{scanned} of {len(pages)} pages have no text, only images; run OCR on it"


# The readers of a record's text, by what a setting calls its format.
TEXT_FORMATS: MappingProxyType[str, Callable[[str], tuple[str, str]]] = MappingProxyType(
    {"txt": _plain, "markdown": _markdown, "html": read_html}
)

FORMATS: MappingProxyType[str, Reader] = MappingProxyType(
    {
        ".txt": lambda data: _plain(_decode(data)),
        **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd", ".rmd"), lambda data: _markdown(_decode(data))),
        ".rst": read_restructured,
        **dict.fromkeys((".html", ".htm"), lambda data: read_html(decode_html(data))),
        ".epub": read_book,
        ".pdf": read_pdf,
    }
)
