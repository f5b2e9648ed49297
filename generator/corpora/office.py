"""Read office files, books, pages and PDFs with their tables as Markdown rows, by the packages of the extra `office`.

Kreuzberg reads all but PDFs, in which pdfplumber finds the tables with lines. Neither needs a model.
"""

import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from generator.corpora.formats import FORMATS, FormatError, Reader, clean_html, take_heading
from generator.corpora.lines import join_lines
from generator.errors import CorpusError, describe

_OFFICE = "application/vnd.openxmlformats-officedocument."
_MIME = {
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".rtf": "application/rtf",
    ".epub": "application/epub+zip",
}
# Office files with a password are of the older container format, with this entry.
_CONTAINER, _ENCRYPTED = b"\xd0\xcf\x11\xe0", "EncryptedPackage".encode("utf-16-le")
_LOCKED = "it is password-protected; save it without a password"


def office_formats() -> dict[str, Reader]:
    """Return the readers by suffix, those of plain text among them.

    Raises:
        CorpusError: the packages aren't installed.
    """
    try:
        import kreuzberg  # noqa: F401
        import pdfplumber  # noqa: F401
    except ImportError as error:
        raise CorpusError(
            f"corpus.reader=office: a package is missing ({describe(error)}); install the extra 'office' (uv sync "
            "--extra office), or set corpus.reader=plain"
        ) from error
    office = {suffix: partial(_office, suffix) for suffix in _MIME}
    return {**FORMATS, **office, ".html": _page, ".htm": _page, ".pdf": _pdf}


def _office(suffix: str, data: bytes) -> tuple[str, str]:
    if not data:
        raise FormatError("the file is empty")
    if data.startswith(_CONTAINER) and _ENCRYPTED in data:
        raise FormatError(_LOCKED)
    title, text = _extract(data, _MIME[suffix], suffix)
    return take_heading(title, join_lines(text))  # the lines of a book's pages may be wrapped


def _page(data: bytes) -> tuple[str, str]:
    """Return title and text of a page, without what isn't its text, such as menus."""
    title, page = clean_html(data)
    return title, _extract(page.encode(), "text/html", ".html")[1]


def _extract(data: bytes, mime: str, suffix: str) -> tuple[str, str]:
    import kreuzberg

    config = kreuzberg.ExtractionConfig(output_format="markdown", disable_ocr=True, use_cache=False)
    try:
        found = kreuzberg.extract_bytes_sync(data, mime, config=config)
    except Exception as error:  # its errors have no common base that it documents
        why = describe(error).removeprefix("ParsingError: ")
        raise FormatError(f"not a readable {suffix} file: {why}") from error
    return found.metadata.get("title") or "", re.sub(r"^\|.*\|$", _plain_row, found.content, flags=re.MULTILINE)


def _plain_row(row: re.Match[str]) -> str:
    """Return a row of a table without what aligns its columns."""
    return re.sub(r"-{3,}", "---", re.sub(r" {2,}", " ", row[0]))


def _pdf(data: bytes) -> tuple[str, str]:
    import pdfplumber

    try:
        with pdfplumber.open(io.BytesIO(data)) as pdf:
            parts = [part for page in pdf.pages for part in _parts(page)]
            scanned = any(page.images for page in pdf.pages)
            title = str((pdf.metadata or {}).get("Title") or "")
    except Exception as error:  # it has no common base of what malformed files raise
        if "Password" in repr(error):
            raise FormatError(_LOCKED) from error
        raise FormatError(f"not a readable PDF: {error!r}" if data else "the file is empty") from error
    text = join_lines("\n\n".join(part for part in parts if part.strip()))
    if not text and scanned:
        raise FormatError("its pages have no text, only images; run OCR on it")
    return title, text


def _parts(page: Any) -> Iterator[str]:
    """Yield the text above the first table, its rows, the text between it and the second one, and so on."""
    top = 0.0
    for table in sorted(page.find_tables(), key=lambda table: table.bbox[1]):
        _, start, _, end = table.bbox
        if start > top:
            yield page.crop((0, top, page.width, start), strict=False).extract_text()
        rows = [[" ".join((cell or "").split()).replace("|", "\\|") for cell in row] for row in table.extract()]
        yield "\n".join(_markdown_rows(rows))
        top = max(top, end)
    if top < page.height:
        yield page.crop((0, top, page.width, page.height), strict=False).extract_text()


def _markdown_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield f"| {' | '.join('---' for _ in row)} |"
