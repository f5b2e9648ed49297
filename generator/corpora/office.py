"""Read office files, books, notebooks, pages and PDFs with their tables as Markdown rows, by the extra `office`.

Kreuzberg makes pages of office files, and pdfplumber finds the tables with lines in PDFs. Neither needs a model.
"""

import io
import json
import logging
import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from generator.common.console import count_noun
from generator.corpora.base import FormatError
from generator.corpora.formats import (
    FORMATS,
    LOCKED,
    Reader,
    decode_html,
    read_book,
    read_html,
    read_pdf,
    take_heading,
)
from generator.corpora.office_parts import as_shown, count_unknown_values, is_locked, restore_signs
from generator.corpora.pages import LONGEST_ROW, parse_html, read_page, spread_cells
from generator.errors import CorpusError, describe

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_OFFICE = "application/vnd.openxmlformats-officedocument."
MIME_TYPES = {
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".rtf": "application/rtf",
    ".ipynb": "application/x-ipynb+json",
    ".org": "text/x-org",
}
# A wider gap between letters is a space, in shares of their size. LaTeX' spaces can be 0.2 wide; pdfplumber's own limit
# is fixed, and glued half of the words of such PDFs together.
_SPACE = 0.12
_FENCE = 8 * "~"
_NUMBER = re.compile(r"(?<=>)-?\d+\.\d{9,}(?=<)")
_FAULT = re.compile(r"(?<=>)#ERR: (\w+)(?=<)")
_FAULTS = {"Div0": "#DIV/0!", "NA": "#N/A", "Name": "#NAME?"}
_FAULTS |= {name: f"#{name.upper()}!" for name in ("Null", "Num", "Ref", "Value")}
# What a reader of an .org file isn't shown: its settings, comments, properties and when tasks are due; blocks stay.
_ORG_HIDDEN = re.compile(
    rb"^[ \t]*(?:#\+begin_(\w+)(?s:.*?)^[ \t]*#\+end_\1\b|#\+title:(.*)|#\+\w+(?:\[.*?\])?:.*|#(?:[ \t].*)?\r?$"
    rb"|:[\w-]+:[ \t]*\r?\n(?:(?!\*+ ).*\n){,99}?[ \t]*:end:|(?-i:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[].*)",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r"<h2>(.*[.!?。！？])</h2>")
_NOTE_MARK = re.compile(r"\[\^\d+\](?:: )?")
_MOMENT = re.compile(r"(?<=>)(\d{4}-\d\d-\d\d) (\d\d:\d\d)(?::00|(:\d\d))(?=<)")


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
            "--inexact --extra office), or set corpus.reader=plain"
        ) from error
    office = {suffix: partial(_office, suffix) for suffix in MIME_TYPES}
    pages = dict.fromkeys((".html", ".htm"), lambda data: read_html(decode_html(data), _read_with_rows))
    book, pdf = partial(read_book, read=_read_with_rows), partial(read_pdf, with_rows=_pages_with_tables)
    return {**FORMATS, **office, **pages, ".epub": book, ".pdf": pdf}


def _office(suffix: str, data: bytes) -> tuple[str, str] | tuple[str, str, str]:
    import kreuzberg

    if not data:
        raise FormatError("the file is empty")
    if is_locked(data):
        raise FormatError(LOCKED)
    if suffix == ".ipynb":
        from generator.corpora.dialects import render_markdown

        return take_heading("", _read_with_rows(parse_html(render_markdown(_read_notebook(data)))))
    config = kreuzberg.ExtractionConfig(output_format="html", disable_ocr=True, use_cache=False)
    try:
        shown = _ORG_HIDDEN.sub(_show_title, data) if suffix == ".org" else as_shown(data)
        found = kreuzberg.extract_bytes_sync(shown, MIME_TYPES[suffix], config=config)
    except BaseException as error:  # its errors have no common base that it documents; those of Rust are no `Exception`
        if isinstance(error, KeyboardInterrupt):
            raise
        why = describe(error).removeprefix("ParsingError: ")
        raise FormatError(f"not a readable {suffix} file: {why}") from error
    page = restore_signs(found.content)
    if suffix == ".pptx":  # of a slide without a title the first paragraph, which is text if it is a sentence
        page = _SENTENCE.sub(r"<p>\1</p>", page)
    if suffix in (".docx", ".odt", ".rtf"):
        page = _NOTE_MARK.sub("", page)
    if suffix == ".xlsx":
        page = _NUMBER.sub(_write_number, _MOMENT.sub(_write_moment, page))
        page = _FAULT.sub(lambda found: _FAULTS.get(found[1], found[0]), page)
    title, text = take_heading(found.metadata.get("title") or "", _read_with_rows(parse_html(page)))
    if suffix == ".xlsx" and (unknown := count_unknown_values(data)):
        return title, text, f"{count_noun(unknown, 'formula')} without a value; save it in a spreadsheet program"
    return title, text


def _show_title(hidden: re.Match[bytes]) -> bytes:
    """Return a block as it is, a title as a heading, and nothing for what else isn't shown."""
    return hidden[0] if hidden[1] else b"* " + hidden[2] if hidden[2] else b""


def _read_notebook(data: bytes) -> str:
    """Return a notebook as Markdown: Kreuzberg makes one line of each of its tables."""
    parts = []
    try:
        for cell in json.loads(data)["cells"]:
            if cell["cell_type"] == "markdown":
                parts.append("".join(cell["source"]))
            elif cell["cell_type"] == "code":
                shown = (each.get("text") or each.get("data", {}).get("text/plain", "") for each in cell["outputs"])
                codes = filter(None, map("".join, (cell["source"], *shown)))
                parts += (f"{_FENCE}\n{code}\n{_FENCE}" for code in codes)
    except ValueError as error:
        raise FormatError(f"not a readable .ipynb file: {describe(error)}") from error
    except (LookupError, TypeError, AttributeError) as error:
        raise FormatError("not a readable .ipynb file: its cells aren't those of a notebook") from error
    return "\n\n".join(parts)


def _write_number(found: re.Match[str]) -> str:
    """Return a number with the 15 digits that spreadsheets show: 6.6 for 6.600000000000001."""
    shown = f"{float(found[0]):.15g}"
    return shown if repr(float(found[0])) == found[0] and "e" not in shown else found[0]


def _write_moment(found: re.Match[str]) -> str:
    """Return a day without the midnight, a time without the first day, and a longer one (30:15) in hours."""
    day, time, seconds = found.groups("")
    if time + seconds == "00:00" and not day.startswith("1899"):
        return day
    if day < "1901":  # spreadsheets count days from there
        days = max(0, (date.fromisoformat(day) - date(1899, 12, 31 if day < "1900-03" else 30)).days)
        return f"{24 * days + int(time[:2]):02}{time[2:]}{seconds}"
    return f"{day} {time}{seconds}"


def _read_with_rows(soup: "BeautifulSoup") -> str:
    """Return the text of a page, with its tables as lines that are Markdown rows, unless they lay it out."""
    for table in soup.select("table:not(:has(table))"):
        cells = ([_cell(cell.get_text(" ")) for cell in row] for _, row in spread_cells(table))
        rows = [row for row in cells if any(row)]
        if rows and max(map(len, map(" | ".join, rows))) <= LONGEST_ROW:
            lines = soup.new_tag("pre")
            lines.string = "\n".join(_markdown_rows(rows))
            table.replace_with(*([table.caption] if table.caption else []), lines)
    return read_page(soup)


def _cell(text: str) -> str:
    """Return the text of a cell in one line, without Kreuzberg's marks of bold print."""
    return " ".join(re.sub(r"\*\*(.+?)\*\*", r"\1", text).split()).replace("|", "\\|")


def _pages_with_tables(data: bytes) -> dict[int, str]:
    """Return the texts of the pages of a PDF that have tables, by their number from 0."""
    import pdfplumber

    logging.getLogger("pdfminer").setLevel(logging.ERROR)  # it warns of fonts whose text it reads all the same
    try:
        with pdfplumber.open(io.BytesIO(data)) as pdf:
            found = {page.page_number - 1: "\n\n".join(filter(str.strip, _parts(page))) for page in pdf.pages}
    except Exception as error:  # it has no common base of what malformed files raise
        raise FormatError(f"not a readable PDF: {error!r}") from error
    return {number: text for number, text in found.items() if text}


def _parts(page: Any) -> Iterator[str]:
    """Yield the text and the tables of a page with tables, in the order in which the file has their letters.

    PDFium reads the others like that: column by column. A frame or a figure has text in one of its columns alone.
    """
    found = ((table.bbox, table.extract(x_tolerance_ratio=_SPACE)) for table in page.find_tables())
    tables = {box: rows for box, rows in found if sum(map(any, zip(*rows, strict=True))) > 1}

    def find_table(char: dict[str, Any]) -> tuple[float, ...] | None:
        x, y = (char["x0"] + char["x1"]) / 2, (char["top"] + char["bottom"]) / 2
        return next((box for box in tables if box[0] <= x <= box[2] and box[1] <= y <= box[3]), None)

    for box, chars in groupby(page.chars if tables else (), find_table):
        if box is None:
            yield _read_lines(list(chars))
        elif rows := tables[box]:
            yield "\n".join(_markdown_rows([[_cell(cell or "") for cell in row] for row in rows]))
            tables[box] = []  # its other letters


def _read_lines(letters: Sequence[dict[str, Any]]) -> str:
    """Return letters as lines: one ends where the next word doesn't stand to the right of the last."""
    from pdfplumber.utils import extract_words

    text, last = "", None
    for word in extract_words(letters, use_text_flow=True, x_tolerance_ratio=_SPACE):
        if last:
            beside = last["x1"] <= word["x1"] and last["top"] < word["bottom"] and word["top"] < last["bottom"]
            text += " " if beside else "\n"
        text, last = text + word["text"], word
    return text


def _markdown_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield f"| {' | '.join('---' for _ in row)} |"
