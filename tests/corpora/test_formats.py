"""Files as documents: Markdown, PDF, EPUB, and files without text."""

import io
import zipfile
from pathlib import Path

import pypdf
import pytest

from generator.corpora.formats import TEXT_FORMATS
from generator.schema import Document
from tests.support.corpora import broken, good, read, write_epub


@pytest.mark.parametrize(
    ("markdown", "title", "text"),
    [
        ("---\ntitle: 'Fees: 2024'\ntags: [a]\n---\n# Fees\nText.", "Fees: 2024", "# Fees\n\nText."),
        ("---\ntitle: Fees\n---\n# Fees\nText.", "Fees", "Text."),
        ("---\ntags: [a]\n---\n# Fees\nText.", "Fees", "Text."),
        ("---\ntitle: Fees: a guide\ntags: [a\n  - b\n---\nText.", "Fees: a guide", "Text."),  # tools read it, too
        ("--- \ntitle:\tFees\n...\nText.", "Fees", "Text."),
        ('+++\ntitle = "Fees: 2024"\ndate = 2024-05-01\n[extra]\n+++\nText.', "Fees: 2024", "Text."),
        ("---\n\n- a: b\n- c\n\n---\nText.", "", "- a: b\n\n- c\n\nText."),
        ("---\nOnly a rule above.\n---\nText.", "", "## Only a rule above.\n\nText."),
        ("Text.\n# Later heading\n", "", "Text.\n\n# Later heading"),
        ("## Second level\nText.", "", "## Second level\n\nText."),
        (
            "An adult of\nBerlin *pays* a\n[fee](f.md).![logo](l.png)\n<!-- secret -->",
            "",
            "An adult of Berlin pays a fee.",
        ),
        ("1. One\n   Two\n\n7. Three\n   * Four\n*\n\nFive", "", "1. One Two\n\n2. Three\n\n  - Four\n\nFive"),
        ("| Who | Fare |\n| --- | --- |\n| *Adult* | 7 |", "", "Who | Fare\n\nAdult | 7"),
        ("Run:\n```sh\nif a:\n    b\n```\n", "", "Run:\n\n```sh\nif a:\n    b\n```"),
    ],
)
def test_markdown_gives_its_title_and_the_text_that_a_reader_of_its_page_reads(
    markdown: str, title: str, text: str
) -> None:
    assert TEXT_FORMATS["markdown"](markdown) == (title, text)


def pdf(text: str, title: str = "The title") -> bytes:
    """Return a PDF of one page that shows `text`."""
    lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
    content = f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Title (%s) >>" % title.encode(),
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % numbered for numbered in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + body + b"trailer\n<< /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n0\n%%EOF"


def test_pdfs_are_read_if_they_hold_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Hello from a page."))
    (tmp_path / "b.pdf").write_bytes(pdf("Hello")[:200])
    scanned, locked = pypdf.PdfWriter(), pypdf.PdfWriter()
    for writer in (scanned, locked):
        writer.add_blank_page(100, 100)
    scanned.write(tmp_path / "c.pdf")
    locked.encrypt("secret", algorithm="RC4-128")
    locked.write(tmp_path / "d.pdf")
    found = read("folder", path=str(tmp_path))
    (document,) = good(found[:1])
    assert (document.title, document.text) == ("The title", "Hello from a page.")
    (tmp_path / "a.pdf").write_bytes(pdf("The boats that sail from Vaumarcus to York are docu-\nmented there."))
    (document,) = good(read("folder", path=str(tmp_path))[:1])
    assert document.text == "The boats that sail from Vaumarcus to York are documented there."
    outlined = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Chapter 2. Boats\nIn short\n2.1  Fares\nIt is free.\nFares")))
    chapter = outlined.add_outline_item(title="Boats", page_number=0)
    for title in ("Fares", "Dogs"):
        outlined.add_outline_item(title=title, page_number=0, parent=chapter)
    outlined.write(tmp_path / "a.pdf")
    (document,) = good(read("folder", path=str(tmp_path))[:1])
    assert document.text == "# Chapter 2. Boats\nIn short\n## 2.1 Fares\nIt is free.\nFares"
    contents = "\n".join(
        f"{name} . . . . . . {page}" for page, name in enumerate(["Boats", "Cars", "Dogs", "Fares", "Tea"])
    )
    (tmp_path / "a.pdf").write_bytes(pdf(f"{contents}\nBoats\nCars\nDogs"))
    (tmp_path / "a.txt").write_text(f"{contents}\nBoats\nCars\nDogs")
    assert [document.text for document in good(read("folder", path=str(tmp_path))[:2])] == ["Boats\nCars\nDogs"] * 2
    (tmp_path / "a.txt").unlink()
    for title in ("Microsoft Word - lease v3.docx", "\\(anonymous\\)"):
        (tmp_path / "a.pdf").write_bytes(pdf("Hello", title))
        assert good(read("folder", path=str(tmp_path))[:1])[0].title == "a"
    reasons = [reason for _, reason in broken(found)]
    assert reasons[1] == "its pages have no text; run OCR on it"
    assert reasons[0].startswith("not a readable PDF: ")
    assert reasons[2] == "it is password-protected; save it without a password"


def test_books_are_read_page_by_page(tmp_path: Path) -> None:
    note = "<aside epub:type='footnote'><p>Not in May.</p></aside><aside><p>Buy more.</p></aside>"
    write_epub(tmp_path / "a.epub", f"<p>Ask at the desk.</p>{note}")
    (tmp_path / "b.epub").write_bytes((tmp_path / "a.epub").read_bytes()[:300])
    (tmp_path / "c.epub").write_bytes((tmp_path / "a.epub").read_bytes().replace(b"META-INF", b"META_INF"))
    write_epub(tmp_path / "d.epub", "")
    with zipfile.ZipFile(tmp_path / "d.epub", "a") as archive:
        archive.writestr("META-INF/rights.xml", "")
    document, *others = list(read("folder", path=str(tmp_path)))
    assert isinstance(document, Document)
    assert (document.title, document.text.split("\n\n")) == ("Fares", ["첫 문장.", "Ask at the desk.", "Not in May."])
    *reasons, encrypted = [reason for _, reason in broken(others)]
    assert len(reasons) == 2 and all(reason.startswith("not a readable EPUB: ") for reason in reasons)
    assert encrypted == "not a readable EPUB: its pages are encrypted (DRM)"


def test_a_file_without_text_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("One.\nTwo.\nKöln.".encode("latin-1"))
    (tmp_path / "b.md").write_text("# Nothing but a heading\n \n")
    (tmp_path / "c.txt").write_bytes("One.\nTwo.".encode("utf-16-le"))
    (tmp_path / "d.txt").write_bytes("One.\rTwo.".encode("utf-16"))  # with a mark, and lines of old Macs
    *found, last = read("folder", path=str(tmp_path))
    assert isinstance(last, Document) and last.text == "One.\nTwo."
    assert broken(found) == [
        (f"{tmp_path}/a.txt", "line 3 isn't utf-8 (byte 0xf6); save it as UTF-8"),
        (f"{tmp_path}/b.md", "it holds no text"),
        (f"{tmp_path}/c.txt", "it seems to be UTF-16; save it as UTF-8"),
    ]


def test_a_soft_hyphen_is_seen_at_the_end_of_a_line_alone(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<title>Fähr&shy;preise</title><p>Der Fähr&shy;preis ist im Som\u00admer höher.</p>"
    )
    line = "Der Fährmann fährt jeden Tag über den breiten Fluss und ver"
    (tmp_path / "b.txt").write_text(
        f"{line}\u00ad\nkauft dort seine Kar\u00adten an alle Gäste, die mit ihm fahren wollen."
    )
    page, text = good(read("folder", path=str(tmp_path)))
    assert (page.title, page.text) == ("Fährpreise", "Der Fährpreis ist im Sommer höher.")
    assert text.text == f"{line}kauft dort seine Karten an alle Gäste, die mit ihm fahren wollen."
