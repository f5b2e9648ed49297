"""Office files, pages and PDFs, written by other libraries: tables are rows, and what can't be read is told."""

import html
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.common.sentences import sentences
from generator.corpora.library import Library
from generator.schema import Document
from tests.support.corpora import SPANS, SPREAD, broken, good, message, read, write_epub

pytest.importorskip("kreuzberg", reason="the extra 'office' isn't installed")
docx = pytest.importorskip("docx", reason="python-docx isn't installed")
openpyxl = pytest.importorskip("openpyxl", reason="openpyxl isn't installed")
pptx = pytest.importorskip("pptx", reason="python-pptx isn't installed")
pytest.importorskip("reportlab", reason="reportlab isn't installed")

ROWS = [["Line", "Fare"], ["Tram 4", "2.50 euros"], ["Bus 7 | night", "3 euros"]]
MARKDOWN = ["| Line | Fare |", "| --- | --- |", "| Tram 4 | 2.50 euros |", "| Bus 7 \\| night | 3 euros |"]


def write_docx(path: Path) -> None:
    made = docx.Document()
    made.add_heading("Fares", 1)
    made.add_paragraph("Trams run daily.")
    table = made.add_table(len(ROWS), 2)
    for cells, row in zip(table.rows, ROWS, strict=True):
        for cell, text in zip(cells.cells, row, strict=True):
            cell.text = text
    made.save(path)


def write_list(path: Path) -> None:
    made = docx.Document()
    made.styles.add_style("Steps", 1).base_style = made.styles["List Number"]
    for text, style in (("Ask.", "List Number"), ("Pay.", "Steps"), ("Dogs", "List Bullet"), ("The end", "Heading 1")):
        made.add_paragraph(text, style=style)
    made.save(path)


def write_pptx(path: Path) -> None:
    """Write a slide; without the bar in a cell, which Kreuzberg 4.10 takes for the cell's end there."""
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "Trams run daily."
    table = slide.shapes.add_table(len(ROWS), 2, 0, 0, 3_000_000, 1_000_000).table
    for number, row in enumerate(ROWS):
        for column, text in enumerate(row):
            table.cell(number, column).text = text.replace("|", "at")
    made.save(path)


def write_xlsx(path: Path) -> None:
    made = openpyxl.Workbook()
    made.active.title = "Trams run daily."
    for row in ROWS:
        made.active.append(row)
    made.create_sheet("Nothing")
    made.save(path)


def write_html(path: Path) -> None:
    rows = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in ROWS)
    page = f"<title>Fares</title><nav>Menu</nav><p>Trams run daily.</p><table>{rows}</table>"
    path.write_text(page, encoding="utf-8")


def write_pdf(path: Path, paragraphs: Sequence[str] = ("Ask at the desk.",)) -> None:
    from reportlab.lib import colors
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

    style = getSampleStyleSheet()["Normal"]
    lines = TableStyle([("GRID", (0, 0), (-1, -1), 1, colors.black)])
    story = [Paragraph("Trams run daily.", style), Table(ROWS, style=lines)]
    story += [Paragraph(text, style) for text in paragraphs]
    SimpleDocTemplate(str(path), title="Fares").build(story)


WRITE = {"docx": write_docx, "pptx": write_pptx, "xlsx": write_xlsx, "html": write_html, "pdf": write_pdf}


@pytest.mark.parametrize("kind", WRITE)
def test_the_rows_of_a_table_are_lines_that_can_be_cited(kind: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    WRITE[kind](tmp_path / "files" / f"a.{kind}")
    (document,) = good(read("folder", path=str(tmp_path / "files"), reader="office"))
    assert document.title == ("Fares" if kind in ("docx", "html", "pdf") else "a")
    assert "Trams run daily." in document.text
    assert "Menu" not in document.text
    rows = [row.replace("\\|", "at") if kind == "pptx" else row for row in MARKDOWN]
    assert [line for line in document.text.splitlines() if line.startswith("|")] == rows
    library = Library.open("c", "f" * 64, lambda: [document], tmp_path / "cache", 512, 100)
    text = library.passage(0).text
    assert set(rows) <= {text[start:end] for start, end in sentences(text)}
    if kind == "pdf":
        assert document.text.index("daily") < document.text.index("Bus 7") < document.text.index("Ask at the desk.")


def test_a_web_page_has_the_title_that_it_has_without_the_extra(tmp_path: Path) -> None:
    page = "<title>Fares | City of Bern</title><h1>Fares</h1><p>Trams run daily.</p>"
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert (document.title, document.text) == ("Fares", "Trams run daily.")


def test_a_cell_that_spans_rows_or_columns_stands_in_each(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(SPANS, encoding="utf-8")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert [line.strip("| ") for line in document.text.splitlines() if "---" not in line] == SPREAD


def test_a_day_of_a_sheet_has_no_time_and_a_time_no_day(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    made.active.append(["Day", "Opens", "Last entry", "Race"])
    opens, end = datetime(2025, 3, 4, 9, 15), time(10, 5, 30)
    made.active.append([date(2025, 3, 4), time(8, 30), opens, end])
    made.save(tmp_path / "a.xlsx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text.splitlines()[-1] == "| 2025-03-04 | 08:30 | 2025-03-04 09:15 | 10:05:30 |"


def test_a_time_of_more_than_a_day_is_hours_and_a_formula_without_a_value_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = openpyxl.Workbook()
    times = [timedelta(hours=hours, minutes=15, seconds=seconds) for hours, seconds in ((3, 0), (30, 0), (1700, 5))]
    made.active.append(["Hours", *times, date(1900, 3, 4)])
    made.active.append(["Sum", "=B1+C1", "=SUM(B1:D1)"])
    made.save(tmp_path / "a.xlsx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert "| Hours | 03:15 | 30:15 | 1700:15:05 | 1900-03-04 |" in document.text
    assert "a.xlsx: 2 formulas without a value; save it in a spreadsheet program" in capsys.readouterr().err


def anchor_box(text: str, runs: str, old: bool = False) -> Any:
    """Return a paragraph of Word with a text box and runs beside it, as Word and as old versions of it write it."""
    names = {"w": "wordprocessingml/2006/main", "wp": "drawingml/2006/wordprocessingDrawing"}
    declared = " ".join(f'xmlns:{key}="http://schemas.openxmlformats.org/{name}"' for key, name in names.items())
    declared += ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = f"<w:txbxContent><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:txbxContent>"
    choice = f"<mc:Choice Requires='wps'><w:drawing><wp:anchor>{box}</wp:anchor></w:drawing></mc:Choice>"
    drawing = f"<mc:AlternateContent>{choice}<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent>"
    drawing = f"<w:pict>{box}</w:pict>" if old else drawing
    return docx.oxml.parse_xml(f"<w:p {declared}><w:r>{drawing}</w:r>{runs}</w:p>")


def test_words_of_word_files_stay_apart_and_paragraphs_beside_boxes_stay(tmp_path: Path) -> None:
    made = docx.Document()
    made.add_paragraph("Monday\t9-17").add_run("\tuntil May")
    hyphen = made.add_paragraph("self").add_run("service")
    hyphen._r.insert(0, docx.oxml.OxmlElement("w:noBreakHyphen"))
    made.add_paragraph("12 Main Street\nPort Ada")  # a line break
    made.add_paragraph("Trams run.").paragraph_format.tab_stops.add_tab_stop(914_400)
    moved = "<w:moveFrom w:id='1' w:author='a'><w:r><w:t>Gone.</w:t></w:r></w:moveFrom>"
    for text in (" if you must", "!"):
        made.paragraphs[0].add_run(text).font.hidden = text != "!"
    made.paragraphs[-1]._p.addnext(anchor_box("Keep out!", f"{moved}<w:r><w:t>Dogs are free.</w:t></w:r>"))
    made.paragraphs[-1]._p.addnext(anchor_box("Ring!", "<w:r><w:t>Cats pay.</w:t></w:r>", old=True))
    made.save(tmp_path / "a.docx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    told = ["Monday 9-17 until May!", "self-service", "12 Main Street", "Port Ada"]
    told += ["Trams run.", "Keep out!", "Dogs are free.", "Ring!", "Cats pay."]
    assert document.text.split("\n\n") == told


def test_signs_that_xml_writes_as_references_are_read(tmp_path: Path) -> None:
    texts = ["R&D costs 3 < 5 euros – “café”.", 'Write <b> & "quotes" to ada@example.org.']
    made = docx.Document()
    made.core_properties.title = "R&D"
    for text in texts:
        made.add_paragraph(text)
    made.add_table(1, 1).cell(0, 0).text = "AT&T"
    made.save(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "a.docx") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    content = files["word/document.xml"].decode().replace("–", "&#8211;").replace("é", "&#xE9;")
    zip_of(tmp_path / "a.docx", files | {"word/document.xml": content})
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.title == "R&D"
    assert document.text.split("\n\n") == [*texts, "| AT&T |\n| --- |"]


def test_a_table_of_contents_of_a_word_file_is_not_read(tmp_path: Path) -> None:
    made = docx.Document()
    space = f'xmlns:w="{docx.oxml.ns.nsmap["w"]}"'
    mark = "<w:r><w:fldChar w:fldCharType='{}'/></w:r>"
    begin, instruct = mark.format("begin"), "<w:r><w:instrText>{}</w:instrText></w:r>" + mark.format("separate")
    page = f"{begin}{instruct.format(' PAGEREF _Toc1 ')}<w:r><w:t>3</w:t></w:r>{mark.format('end')}"
    entry = f"<w:r><w:t>Fares</w:t><w:tab/></w:r>{page}"
    opened = f"{begin}{instruct.format(' TOC ')}"
    for content in (
        f"{opened}{entry}",
        entry,
        mark.format("end"),
        f"<w:hyperlink w:anchor='_Toc1'>{entry}</w:hyperlink>",
        f"<w:r><w:t>Prices are on page </w:t></w:r><w:hyperlink w:anchor='_Toc1'>{page}</w:hyperlink>",
    ):
        made.element.body.insert(-1, docx.oxml.parse_xml(f"<w:p {space}>{content}</w:p>"))
    gallery = "<w:sdtPr><w:docPartObj><w:docPartGallery w:val='Table of Contents'/></w:docPartObj></w:sdtPr>"
    listed = f"{gallery}<w:sdtContent><w:p><w:r><w:t>Contents</w:t></w:r></w:p></w:sdtContent>"
    for content in (listed, "<w:sdtContent><w:p><w:r><w:t>Sign here.</w:t></w:r></w:p></w:sdtContent>"):
        made.element.body.insert(-1, docx.oxml.parse_xml(f"<w:sdt {space}>{content}</w:sdt>"))
    made.add_paragraph("Dogs are free.")
    made.save(tmp_path / "a.docx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text.split("\n\n") == ["Prices are on page 3", "Sign here.", "Dogs are free."]


ORG = """\
#+TITLE: The harbour
#+OPTIONS: toc:nil
# A comment.
#
* Fares
:PROPERTIES:
:ID: f
:END:
Dogs are #1 here.
#+BEGIN_SRC sh
# make
#+X: y
#+END_SRC
#+CAPTION: Lines
** TODO Hours
SCHEDULED: <2026-01-01 Thu>
*Note*: closed in May.

:smile:
** A drawer
:X:
:END:
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_an_org_file_does_not_show_is_not_read(end: str, tmp_path: Path) -> None:
    (tmp_path / "a.org").write_text(ORG, newline=end)
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.title == "The harbour"
    code = ("```text", "# make", "#+X: y", "```")
    shown = ["# Fares", "Dogs are #1 here.", *code, "## Hours", "Note: closed in May.", ":smile:", "## A drawer"]
    assert [line for line in document.text.splitlines() if line] == shown


def add_notes(path: Path) -> None:
    """Add a footnote and an endnote, both with the id 1, to the Word file at `path`."""
    with zipfile.ZipFile(path) as archive:
        files: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    marks, links, types = "", "", ""
    for kind in ("footnote", "endnote"):
        text = f"<w:p><w:r><w:t>The {kind}.</w:t></w:r></w:p>"
        files[f"word/{kind}s.xml"] = f'<w:{kind}s {names}><w:{kind} w:id="1">{text}</w:{kind}></w:{kind}s>'
        marks += f'<w:r><w:{kind}Reference w:id="1"/></w:r>'
        base = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
        links += f'<Relationship Id="{kind}" Type="{base}{kind}s" Target="{kind}s.xml"/>'
        type_ = f"application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}s+xml"
        types += f'<Override PartName="/word/{kind}s.xml" ContentType="{type_}"/>'
    for name, end, more in (
        ("word/document.xml", "</w:p>", marks),
        ("word/_rels/document.xml.rels", "</Relationships>", links),
        ("[Content_Types].xml", "</Types>", types),
    ):
        content = files[name]
        assert isinstance(content, bytes)
        files[name] = content.decode().replace(end, more + end, 1)
    zip_of(path, files)


def test_notes_are_read_without_their_marks(tmp_path: Path) -> None:
    made = docx.Document()
    made.add_paragraph("Eight people at most.")
    made.save(tmp_path / "a.docx")
    add_notes(tmp_path / "a.docx")
    note = "<t:note t:note-class='footnote'><t:note-citation>1</t:note-citation><t:note-body><t:p>Not in May.</t:p>"
    write_odt(tmp_path / "b.odt", f"<t:p>Trams run{note}</t:note-body></t:note> daily.</t:p>")
    (tmp_path / "c.rtf").write_text(r"{\rtf1\ansi\pard Trams run{\footnote Not in May.} daily.\par}")
    page = "<p>Trams run daily.</p><ol><li><p>Not in May. <a href=#r1 class=footnote-backref>↩</a></p></ol>"
    (tmp_path / "d.html").write_text(page, encoding="utf-8")
    word, *others = good(read("folder", path=str(tmp_path), reader="office"))
    assert word.text == "Eight people at most.\n\n1. The footnote.\n\n2. The endnote."
    texts = [document.text.replace("1. ", "").split("\n\n") for document in others]
    assert texts == 3 * [["Trams run daily.", "Not in May."]]


def test_lists_that_a_style_makes_keep_their_numbers_and_dots(tmp_path: Path) -> None:
    write_list(tmp_path / "steps.docx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert isinstance(document, Document)
    assert document.text == "1. Ask.\n\n2. Pay.\n\n- Dogs\n\n# The end"


def test_hidden_sheets_and_slides_are_not_read(tmp_path: Path) -> None:
    book, deck = openpyxl.Workbook(), pptx.Presentation()
    for number, state in enumerate(("visible", "hidden", "veryHidden")):
        sheet = book.create_sheet(state)
        sheet.append([f"sheet {number}"])
        sheet.sheet_state = state
    for text in ("shown", "not shown"):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = text
    slide._element.set("show", "0")
    book.save(tmp_path / "a.xlsx")
    deck.save(tmp_path / "b.pptx")
    sheets, slides = good(read("folder", path=str(tmp_path), reader="office"))
    assert "sheet 0" in sheets.text
    assert "sheet 1" not in sheets.text and "sheet 2" not in sheets.text
    assert slides.text.split() == ["##", "shown"]


def test_a_sentence_of_a_slide_without_a_title_is_no_heading(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    for text in ("Dogs are free.", "Fares"):
        deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_textbox(0, 0, 900, 900).text_frame.text = text
    deck.save(tmp_path / "a.pptx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text == "Dogs are free.\n\n## Fares"


def test_bold_text_and_line_breaks_of_slides_are_read_without_marks(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    title, body = (shape.text_frame for shape in slide.placeholders)
    title.text, body.text = "Fares", "Dogs are free."
    added = body.add_paragraph()
    added.text = "12 Main Street\vPort Ada"
    body.paragraphs[0].runs[0].font.bold = added.runs[0].font.italic = True
    deck.save(tmp_path / "a.pptx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text.split("\n\n") == ["## Fares", "Dogs are free.", "12 Main Street", "Port Ada"]


def test_spaces_and_hyphens_of_rtf_files_that_do_not_break_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text(r"{\rtf1\ansi\pard It costs 5\~euros, self\_service in C:\\~tmp.\par}")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text == "It costs 5 euros, self-service in C:\\~tmp."


def test_a_number_of_a_sheet_has_the_digits_that_are_shown(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    faults = ["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"]
    made.active.append(faults)
    made.active.append(["Sum", "Third", "Pi, as text"])
    made.active.append([6 * 1.1, -1 / 3, "3.14159265358979323846"])
    made.save(tmp_path / "a.xlsx")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text.splitlines()[-1] == f"| 6.6 | -0.333333333333333 | 3.14159265358979323846 |{'  |' * 4}"
    assert f"| {' | '.join(faults)} |" in document.text


def zip_of(path: Path, files: Mapping[str, str | bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


PARAGRAPHS = "<t:h t:outline-level='1'>Fares</t:h><t:p>Trams run daily.</t:p><t:p>Ask at the desk.</t:p>"


def write_odt(path: Path, text: str = PARAGRAPHS) -> None:
    names = "urn:oasis:names:tc:opendocument:xmlns:"
    spaces = f"xmlns:o='{names}office:1.0' xmlns:t='{names}text:1.0' xmlns:c='{names}table:1.0'"
    content = f"<o:document-content {spaces}><o:body><o:text>{text}"
    closing = "</o:text></o:body></o:document-content>"
    zip_of(path, {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content + closing})


def write_rtf(path: Path) -> None:
    path.write_text(r"{\rtf1\ansi\pard Trams run daily.\par Ask at the desk.\par}")


@pytest.mark.parametrize("write", [write_odt, write_rtf])
def test_other_word_processors_files_are_read(write: Callable[..., None], tmp_path: Path) -> None:
    kind = write.__name__.removeprefix("write_")
    write(tmp_path / f"a.{kind}")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.title == ("a" if kind == "rtf" else "Fares")
    assert [document.text[slice(*span)] for span in sentences(document.text)] == [
        "Trams run daily.",
        "Ask at the desk.",
    ]


def test_text_in_spans_links_and_cells_of_odt_files_is_read(tmp_path: Path) -> None:
    """Kreuzberg 4.10 reads of a span or a link only what stands before the first mark in it."""
    spans = "<t:p>Trams <t:span>run<t:s/>daily<t:tab/>until <t:span>May</t:span> 2</t:span>.<t:line-break/>Pay.</t:p>"
    link = "<t:p>See <t:a><t:span>the site</t:span> of</t:a> the <t:span>ci<t:bookmark/>ty</t:span>.</t:p>"
    ruby = "<t:p>Ask at <t:ruby><t:ruby-base>駅</t:ruby-base><t:ruby-text>eki</t:ruby-text></t:ruby>.</t:p>"
    two = "<c:table-cell><t:p>two</t:p><t:p>lines</t:p></c:table-cell>"
    listed = "<c:table-cell><t:list><t:list-item><t:p>Bus</t:p></t:list-item></t:list></c:table-cell>"
    table = f"<c:table><c:table-row>{two}{listed}</c:table-row></c:table>"
    write_odt(tmp_path / "a.odt", spans + link + ruby + table)
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    texts = ["Trams run daily until May 2.", "Pay.", "See the site of the city.", "Ask at 駅."]
    assert document.text.split("\n\n") == [*texts, "| two lines | Bus |\n| --- | --- |"]


def test_marks_of_print_and_links_are_no_text(tmp_path: Path) -> None:
    made = docx.Document()
    paragraph = made.add_paragraph("Pay 5*3 euros ")
    paragraph.add_run("daily").bold = True
    cell = made.add_table(2, 1).rows[1].cells[0].paragraphs[0]
    cell.add_run("Tram").bold = True
    made.save(tmp_path / "a.docx")
    (tmp_path / "b.org").write_text("* Park\nSee *all* of [[https://a.example][the site]].\n- Dogs are free.\n")
    (tmp_path / "c.html").write_text("<table><caption>Fares</caption><tr><td><b>Tram</b> <a href=x>4</a></table>")
    cells = [{"cell_type": "markdown", "source": ["# Pool\n", "It is *warm*."], "metadata": {}}]
    cells.append({"cell_type": "code", "source": ["swim()"], "metadata": {}, "outputs": [], "execution_count": 1})
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "d.ipynb").write_text(json.dumps(notebook))
    found = good(read("folder", path=str(tmp_path), reader="office"))
    assert [(document.title, document.text.split("\n\n")) for document in found] == [
        ("a", ["Pay 5*3 euros daily", "| Tram |\n| --- |"]),
        ("Park", ["See all of the site.", "- Dogs are free."]),
        ("c", ["Fares", "| Tram 4 |\n| --- |"]),
        ("Pool", ["It is warm.", "```text\nswim()\n```"]),
    ]


def test_notebooks_keep_their_tables_and_the_lines_of_what_they_print(tmp_path: Path) -> None:
    printed = {"output_type": "stream", "text": ["a  b\n", "1  2\n"]}
    shown = {"output_type": "execute_result", "data": {"text/plain": "3", "text/html": "<b>3</b>"}}
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[31mTrace"]}
    cells = [
        {"cell_type": "markdown", "source": "# Fares\nOf `trams`:\n\n| Line | Fare |\n|---|---|\n| 4 | 2 euros |"},
        {"cell_type": "code", "source": ["print(1)\n", "x"], "outputs": [printed, shown, failed]},
        {"cell_type": "raw", "source": "Not shown."},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "b.ipynb").write_text('{"cells": [{"source": 1}]}')
    (tmp_path / "c.ipynb").write_text('{"cells": [')
    found = read("folder", path=str(tmp_path), reader="office")
    (document,) = good(found[:1])
    table, code = "| Line | Fare |\n| --- | --- |\n| 4 | 2 euros |", "```text\nprint(1)\nx\n```"
    results = ["```text\na  b\n1  2\n```", "```text\n3\n```"]
    assert (document.title, document.text.split("\n\n")) == ("Fares", ["Of trams:", table, code, *results])
    assert [why.partition(": ")[0] for _, why in broken(found[1:])] == ["not a readable .ipynb file"] * 2


LANGUAGES = Path(__file__).parents[1] / "data" / "languages"


@pytest.mark.parametrize("code", ["en", "de", "fr", "es", "ar", "hi", "ja", "zh"])
def test_text_of_every_language_comes_back_as_it_was_written(code: str, tmp_path: Path) -> None:
    first, second, *_ = (LANGUAGES / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
    paragraphs = [json.loads(line)["text"].strip().replace("\n", " ") for line in (first, second)]
    word, deck, book = docx.Document(), pptx.Presentation(), openpyxl.Workbook()
    for text in paragraphs:
        word.add_paragraph(text)
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = text
        book.active.append([text])
    word.save(tmp_path / "a.docx")
    deck.save(tmp_path / "a.pptx")
    book.save(tmp_path / "a.xlsx")
    page = f"<meta charset=utf-8><p>{'</p><p>'.join(map(html.escape, paragraphs))}</p>"
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    kinds = ["a.docx", "a.html", "a.pptx", "a.xlsx"]
    if code in ("en", "de", "fr", "es"):  # the PDF fonts that every reader has know Latin letters
        write_pdf(tmp_path / "a.pdf", paragraphs)
        kinds.append("a.pdf")
    found = {document.id: document for document in good(read("folder", path=str(tmp_path), reader="office"))}
    assert sorted(found) == sorted(kinds)
    for name, document in found.items():
        read_back = " ".join(document.text.split())
        assert all(" ".join(text.split()) in read_back for text in paragraphs), name


def test_pdfs_with_narrow_gaps_for_spaces_have_their_words_without_what_stands_on_each_page(tmp_path: Path) -> None:
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"))

    def write(text: str, left: float, bottom: float) -> None:
        for word in text.split():
            canvas.drawString(left, bottom, word)
            left += stringWidth(word, "Helvetica", 12) + 0.2 * 12

    texts = ["An adult pays a fare.", "A child pays half.", "Dogs are free of charge."]
    for text in texts:
        canvas.drawString(72, 800, "City ferries")
        write(text, 72, 700)
        canvas.showPage()
    for page in range(1, 6):
        canvas.drawString(72, 800 - 20 * page, f"{texts[page % 3]} . . . . . . . {page}")
    canvas.grid([72, 200, 300], [600, 620])
    write("The red line", 75, 605)
    write("7 to 9", 205, 605)
    canvas.save()
    for reader, row in (("plain", "The red line 7 to 9"), ("office", "| The red line | 7 to 9 | | --- | --- |")):
        (document,) = good(read("folder", path=str(tmp_path), reader=reader))
        assert " ".join(document.text.split()) == " ".join([*texts, row])


@pytest.mark.parametrize("reader", ["plain", "office"])
def test_a_pdf_is_read_column_by_column(reader: str, tmp_path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas, columns = Canvas(str(tmp_path / "a.pdf")), ("An adult pays a fare.", "Dogs are free of charge.")
    for left, text in zip((72, 320), columns, strict=True):
        for place, line in enumerate([text] * 3):
            canvas.drawString(left, 700 - 15 * place, line)
    canvas.save()
    (document,) = good(read("folder", path=str(tmp_path), reader=reader))
    assert document.text.split("\n") == [columns[0]] * 3 + [columns[1]] * 3


def test_a_page_of_a_pdf_with_tables_and_frames_is_read_column_by_column(tmp_path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"))
    canvas.rect(60, 590, 200, 160)
    for left, *texts in ((72, "An adult pays.", "Cats pay."), (322, "Dogs are", "free.")):
        canvas.drawString(left, 720, texts[0])
        canvas.grid([left, left + 78, left + 158], [660, 680, 700])
        for number, row in enumerate([("Line", "Fare"), ("Red", "7")]):
            for column, cell in enumerate(row):
                canvas.drawString(left + 3 + 78 * column, 685 - 20 * number, cell)
        canvas.drawString(left, 630, texts[1])
    canvas.save()
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    rows = ["| Line | Fare |", "| --- | --- |", "| Red | 7 |"]
    told = ["An adult pays.", *rows, "Cats pay.", "Dogs are", *rows, "free."]
    assert [line for line in document.text.splitlines() if line] == told


def test_a_table_over_several_pages_of_a_pdf_keeps_its_heads(tmp_path: Path) -> None:
    from reportlab.lib import colors
    from reportlab.platypus import SimpleDocTemplate, Table

    rows = [["Number", "Name", "Amount"], *([f"{number}", f"Ship {number}", "3 euros"] for number in range(180))]
    grid = [("GRID", (0, 0), (-1, -1), 1, colors.black)]
    SimpleDocTemplate(str(tmp_path / "a.pdf")).build([Table(rows, repeatRows=1, style=grid)])
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    found = document.text.split("\n")
    assert found[:2] == [lines[0], "| --- | --- | --- |"]
    assert [line for line in found if line not in found[:2]] == lines[1:]
    assert found.count(lines[0]) == 5  # pages


def test_books_keep_their_tables(tmp_path: Path) -> None:
    write_epub(tmp_path / "a.epub", "<table><tr><td>Tram</td><td>4</td></tr></table>")
    (document,) = good(read("folder", path=str(tmp_path), reader="office"))
    assert document.text.endswith("| Tram | 4 |\n| --- | --- |")


def test_what_kreuzberg_stumbles_over_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicError(BaseException):
        """As Rust's panics are in Python."""

    def stumble(error: BaseException) -> Callable[..., None]:
        def extract(*_: object, **__: object) -> None:
            raise error

        return extract

    write_rtf(tmp_path / "a.rtf")
    monkeypatch.setattr("kreuzberg.extract_bytes_sync", stumble(PanicError("byte index 1 is not a char boundary")))
    ((_, reason),) = broken(read("folder", path=str(tmp_path), reader="office"))
    assert reason == "not a readable .rtf file: byte index 1 is not a char boundary"
    monkeypatch.setattr("kreuzberg.extract_bytes_sync", stumble(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        list(read("folder", path=str(tmp_path), reader="office"))


def test_the_plain_readers_stay_the_default(tmp_path: Path) -> None:
    for kind, write in WRITE.items():
        write(tmp_path / f"a.{kind}")
    found = good(read("folder", path=str(tmp_path)))
    assert [document.id for document in found] == ["a.html", "a.pdf"]
    assert "Line | Fare" in found[0].text


@pytest.mark.parametrize("reader", ["office", "plain"])
def test_what_cannot_be_read_is_listed_with_its_reason(reader: str, tmp_path: Path) -> None:
    import pypdf
    from PIL import Image

    for kind in ("docx", "pptx", "xlsx", "pdf"):
        WRITE[kind](tmp_path / f"whole.{kind}")
        data = (tmp_path / f"whole.{kind}").read_bytes()
        (tmp_path / f"broken.{kind}").write_bytes(data[:700])
        (tmp_path / f"empty.{kind}").write_bytes(b"")
        (tmp_path / f"text.{kind}").write_text("Hello.")
    docx.Document().save(tmp_path / "blank.docx")
    openpyxl.Workbook().save(tmp_path / "blank.xlsx")
    # The container that Word and Excel put a file with a password in.
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(480)
    (tmp_path / "locked.docx").write_bytes(container)
    manifest = "<manifest:encryption-data manifest:checksum='x'>"
    zip_of(tmp_path / "locked.odt", {"META-INF/manifest.xml": manifest, "content.xml": b"\x80\x81"})
    locked = pypdf.PdfWriter(clone_from=tmp_path / "whole.pdf")
    locked.encrypt("secret")
    locked.write(tmp_path / "locked.pdf")
    page = Image.new("RGB", (300, 300), "white")
    page.save(tmp_path / "scan.pdf", save_all=True, append_images=[page])
    found = read("folder", path=str(tmp_path), reader=reader)
    reasons = {where.rpartition("/")[2]: why for where, why in broken(found)}
    assert {"broken.pdf", "empty.pdf", "text.pdf", "locked.pdf", "scan.pdf"} <= reasons.keys()
    assert reasons["locked.pdf"] == "it is password-protected; save it without a password"
    assert reasons["scan.pdf"] == "its pages have no text; run OCR on it"
    if reader == "office":
        assert len([r for r in found if isinstance(r, Document)]) == 4
        assert reasons["locked.docx"] == reasons["locked.odt"] == reasons["locked.pdf"]
        for kind in ("docx", "pptx", "xlsx"):
            assert reasons[f"empty.{kind}"] == "the file is empty"
            assert reasons[f"broken.{kind}"].startswith(f"not a readable .{kind} file: ")
            assert reasons[f"text.{kind}"].startswith(f"not a readable .{kind} file: ")
        assert reasons["blank.docx"] == "it holds no text"
        assert "blank.xlsx" in reasons
    assert all("\n" not in why for why in reasons.values())


@pytest.mark.parametrize("reader", ["plain", "office"])
def test_pages_that_are_images_among_pages_with_text_are_told(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pypdf
    from PIL import Image

    WRITE["pdf"](tmp_path / "a.pdf")
    Image.new("RGB", (300, 300), "white").save(tmp_path / "scan.pdf")
    merged = pypdf.PdfWriter(clone_from=tmp_path / "a.pdf")
    merged.append(tmp_path / "scan.pdf")
    merged.add_blank_page()
    (tmp_path / "scan.pdf").unlink()
    merged.write(tmp_path / "a.pdf")
    assert len(good(read("folder", path=str(tmp_path), reader=reader))) == 1
    assert f"a.pdf: 1 of {len(merged.pages)} pages" in capsys.readouterr().err


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kreuzberg", None)
    (tmp_path / "a.txt").write_text("Hello.")
    assert "install the extra 'office'" in message(lambda: read("folder", path=str(tmp_path), reader="office"))
