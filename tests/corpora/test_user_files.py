import gzip
import hashlib
import json
import os
import random
import re
import socketserver
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pypdf
import pytest
from pydantic import ValidationError

from generator.corpora import quac, reading
from generator.corpora.base import CorpusSettings
from generator.corpora.human import DialogCorpus
from generator.corpora.reading import documents
from generator.schema import Dialog, Document, SkippedRecord
from tests.support.corpora import CONF, broken, corpus, dialogs, good, holds, lines, message, read


def quac_file(path: Path, *paragraphs: dict[str, Any], **article: str) -> str:
    data = [{"title": "Pell", "section_title": "Early years", **article, "paragraphs": [p]} for p in paragraphs]
    path.write_text(json.dumps({"data": data}))
    return str(path)


def paragraph(name: str, context: str) -> dict[str, Any]:
    return {"id": name, "context": context, "qas": [{"question": "Who?", "id": f"{name}_q#0"}]}


# What every corpus does


@pytest.mark.parametrize("name", sorted(path.stem for path in CONF.glob("*.yaml")))
def test_every_corpus_is_described_in_its_first_line_and_refuses_settings_it_does_not_know(name: str) -> None:
    assert re.match(r"# \S.{20,}\n_target_: ", (CONF / f"{name}.yaml").read_text())
    built = corpus(name)
    assert built.name == name
    assert built.licence and built.source
    for wrong in ({"colour": "red"}, {"max_broken": 1.5}, {"strict": "perhaps"}):
        with pytest.raises(ValidationError):
            corpus(name, **wrong)


@pytest.mark.parametrize("name", ["coqa", "folder", "jsonl", "mtrag", "multidoc2dial", "orquac", "quac", "squad"])
def test_a_path_that_leads_nowhere_is_an_error(name: str, tmp_path: Path) -> None:
    assert "corpus.path isn't set" in message(lambda: read(name, path=" "))
    nowhere = str(tmp_path / "nowhere")
    assert f"corpus.path={nowhere} doesn't exist" in message(lambda: read(name, path=nowhere))
    assert message(lambda: corpus(name, path=nowhere).fingerprint()) == message(lambda: read(name, path=nowhere))
    assert message(lambda: read(name, path="long" * 100)).endswith(": File name too long")
    assert "found nothing" in message(lambda: read(name, path=str(tmp_path)))
    for other in ("a.docx", "b.docx", "c"):
        (tmp_path / other).touch()
    assert message(lambda: read(name, path=str(tmp_path))).endswith("found 2 .docx, 1 without an ending")


def test_a_path_is_relative_to_the_current_directory_or_to_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(tmp_path / "a.jsonl", {"id": "a", "text": "Hello."})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert len(good(read("jsonl", path="~/a.jsonl"))) == len(good(read("jsonl", path="a.jsonl"))) == 1
    assert "doesn't exist" in message(lambda: read("jsonl", path="b.jsonl"))


def test_the_fingerprint_is_that_of_names_contents_and_settings_alone(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "sub").mkdir(parents=True)
        lines(tmp_path / place / "sub" / "a.jsonl", {"id": "a", "text": "Hello."})
        lines(tmp_path / place / "b.jsonl", {"id": "b", "text": "Hello."})
    os.utime(tmp_path / "there" / "b.jsonl", (0, 0))

    def fingerprint(**settings: Any) -> str:
        return corpus("jsonl", **({"path": str(tmp_path / "here")} | settings)).fingerprint()

    before = fingerprint()
    assert before == fingerprint(path=str(tmp_path / "there"), licence="CC0-1.0", source="me", name="mine")
    others = {fingerprint(title_field=None), fingerprint(strict=True), fingerprint(path=str(tmp_path / "here/b.jsonl"))}
    (tmp_path / "here" / "b.jsonl").rename(tmp_path / "here" / "c.jsonl")
    others.add(fingerprint())
    lines(tmp_path / "there" / "b.jsonl", {"id": "b", "text": "Hullo."})
    others.add(fingerprint(path=str(tmp_path / "there")))
    assert len(others | {before}) == 6


@pytest.mark.parametrize("name", ["coqa", "jsonl", "quac", "squad"])
def test_a_large_file_is_not_held_in_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    records = [paragraph(f"p{n}", f"{n} " + "word " * 1000) for n in range(1000)]
    match name:
        case "coqa":
            path.write_text(
                json.dumps({"data": [{"id": record["id"], "story": record["context"]} for record in records]})
            )
        case "jsonl":
            lines(path, *records)
        case "quac":
            quac_file(path, *records)
        case "squad":
            path.write_text(json.dumps({"data": [{"title": r["id"], "paragraphs": [r]} for r in records]}))
    settings = {"text_field": "context"} if name == "jsonl" else {}
    assert sum(1 for _ in read(name, path=str(path), **settings)) == 1000  # imports happen before we measure
    tracemalloc.start()
    try:
        count = sum(1 for _ in corpus(name, path=str(path), **settings).read())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1000
    assert peak < path.stat().st_size / 4


# What broken records and double ids lead to


def listed(
    where: CorpusSettings, strict: bool = False, max_broken: float = 0.1
) -> tuple[list[str], list[SkippedRecord]]:
    skipped: list[SkippedRecord] = []
    return [document.id for document in documents(where, strict, max_broken, skipped.append)], skipped


def test_a_broken_record_among_many_is_skipped_and_told(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", *({"id": n, "text": "Hello."} for n in range(9)), "{")
    ids, skipped = listed(corpus("jsonl", path=path))
    assert ids == [str(n) for n in range(9)]
    assert [record.where for record in skipped] == [f"{path}:10"]
    told = message(lambda: listed(corpus("jsonl", path=path), strict=True))
    assert told.startswith(f"{path}:10: not JSON: ") and "corpus.strict=false" in told
    told = message(lambda: listed(corpus("jsonl", path=path), max_broken=0.09))
    assert told.startswith(f"corpus jsonl: 1 of 10 records are broken, the first {path}:10: not JSON")
    assert "corpus.max_broken" in told


def test_a_corpus_without_a_readable_document_is_an_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", "", "  ")
    assert "corpus jsonl holds no record" in message(lambda: listed(corpus("jsonl", path=path)))
    lines(tmp_path / "a.jsonl", "{")
    told = message(lambda: listed(corpus("jsonl", path=path), max_broken=1))
    assert told.startswith("corpus jsonl: 1 of 1 records are broken") and "max_broken" not in told


def test_two_documents_with_one_id_are_an_error_that_names_both(tmp_path: Path) -> None:
    first = lines(tmp_path / "a.jsonl", {"id": "x", "text": "One."}, {"id": "y", "text": "Two."})
    second = lines(tmp_path / "b.jsonl", {"id": "z", "text": "Three."}, {"id": "y", "text": "Four."})
    told = message(lambda: listed(corpus("jsonl", path=str(tmp_path))))
    assert told.startswith(f"{second}:2: a second document with the id 'y', which {first}:2 has; ")


def test_a_corpus_of_someone_elses_is_read_by_the_same_rules() -> None:
    class Fixed:
        name = licence = source = "fixed"

        def fingerprint(self) -> str:
            return ""

        def read(self) -> Iterator[Document | SkippedRecord]:
            for name in "abcb":
                yield Document(id=name, text="Hello.")

    told = message(lambda: list(documents(Fixed(), False, 0.1, lambda record: None)))
    assert told.startswith("record 4: a second document with the id 'b', which record 2 has")


def test_ids_are_told_apart_also_after_they_were_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading._Ids, "_RECENT", 7)
    ids, known = reading._Ids(), set[str]()
    draw = random.Random(0)
    for _ in range(500):
        name = str(draw.randrange(200))
        assert ids.add(name) == (name not in known)
        known.add(name)


def test_two_ids_with_one_hash_are_two_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading._Ids, "add", lambda ids, name: False)
    path = lines(tmp_path / "a.jsonl", {"id": "a", "text": "Hello."}, {"id": "b", "text": "Hello."})
    assert listed(corpus("jsonl", path=path)) == (["a", "b"], [])


def test_where_a_document_was_read_stays_out_of_its_serialised_form(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"id": "a", "text": "Hello.", "url": "https://example.org/"})
    (document,) = documents(corpus("jsonl", path=path), True, 0, lambda record: None)
    told = {"id": "a", "text": "Hello.", "title": "", "url": "https://example.org/", "collection": ""}
    assert document.model_dump() == told


# sample


def test_the_sample_has_documents_of_all_lengths_in_groups() -> None:
    sample = good(read("sample"))
    assert len(sample) == 15
    lengths = {document.id: len(document.text.split()) for document in sample}
    assert all(300 <= length <= 1500 for length in lengths.values()), lengths
    assert sum(length >= 1200 for length in lengths.values()) == 2
    groups = ("brennick|heat-pump", "ferries|orrinmouth", "library", "water-watch")
    members = [sum(bool(re.match(group, document.id)) for document in sample) for group in groups]
    assert members == [4, 4, 4, 3]
    assert all(document.title and not document.text.lstrip().startswith("# ") for document in sample)


# folder


def test_a_folder_is_read_in_the_order_of_its_paths_whatever_the_kind_of_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "z.TXT").write_bytes(b"\xef\xbb\xbfFirst line.\r\nSecond line.")
    (tmp_path / "b" / "deep" / "a.md").write_text("\n# A *title*\n\nText with a # sign.\n")
    (tmp_path / "a.htm").write_text("<p>Hello.")
    for ignored in ("c.docx", ".hidden.txt", ".git/x.txt", "d.docx", "README"):
        (tmp_path / ignored).write_text("ignored")
    found = good(read("folder", path=str(tmp_path)))
    told = f"corpus.path={tmp_path}: 3 files of other kinds are left out: 2 .docx, 1 without an ending\n"
    assert capsys.readouterr().err == told
    assert [(document.id, document.title, document.text) for document in found] == [
        ("a.htm", "a", "Hello."),
        ("b/deep/a.md", "A *title*", "\nText with a # sign.\n"),
        ("z.TXT", "z", "First line.\nSecond line."),
    ]
    assert "isn't a folder" in message(lambda: read("folder", path=str(tmp_path / "z.TXT")))


@pytest.mark.parametrize(
    ("markdown", "title", "text"),
    [
        ("---\ntitle: 'Fees: 2024'\ntags: [a]\n---\n# Fees\nText.", "Fees: 2024", "# Fees\nText."),
        ("---\ntags: [a]\n---\n# Fees\nText.", "Fees", "Text."),
        ("---\na: b: c\n---\nText.", "x", "---\na: b: c\n---\nText."),
        ("---\nOnly a rule above.\n---\nText.", "x", "---\nOnly a rule above.\n---\nText."),
        ("Text.\n# Later heading\n", "x", "Text.\n# Later heading\n"),
        ("## Second level\nText.", "x", "## Second level\nText."),
    ],
)
def test_markdown_gives_its_title_and_keeps_its_text(tmp_path: Path, markdown: str, title: str, text: str) -> None:
    (tmp_path / "x.md").write_text(markdown)
    (document,) = good(read("folder", path=str(tmp_path)))
    assert (document.title, document.text) == (title, text)


def test_html_gives_what_a_reader_of_the_page_reads(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        """<html><head><title>Ferry
        fares</title><style>p {color: red}</style></head><body>
        <header><div role="banner">Logo</div><nav><a href="/">Home</a></nav></header>
        <main><h1>Fares &amp; times</h1><!-- secret -->
        <p>A <b>single</b> costs
           7.20<sup>1</sup>.</p>Loose text.
        <table><tr><th>Who</th><th>Fare</th></tr><tr><td><p>Adult</p></td><td>7.20</td></tr></table>
        <ul><li>One</li><li>Two<br>lines</li></ul></main>
        <script>var x = "hidden";</script><aside>Advert</aside><footer>Imprint</footer></body></html>"""
    )
    (tmp_path / "plain.html").write_text("<h1>Only a heading</h1><p>Text.</p>")
    page, plain = good(read("folder", path=str(tmp_path)))
    assert page.title == "Ferry fares"
    assert page.text.split("\n\n") == [
        "Fares & times",
        "A single costs 7.201.",
        "Loose text.",
        "Who | Fare",
        "Adult",
        "7.20",
        "One",
        "Two",
        "lines",
    ]
    assert plain.title == "Only a heading"


def test_html_is_decoded_as_it_says_it_is_encoded(tmp_path: Path) -> None:
    page = '<meta charset="{}"><p>Köln</p>'
    (tmp_path / "a.html").write_bytes(page.format("iso-8859-1").encode("latin-1"))
    (tmp_path / "b.html").write_bytes("<p>Köln</p>".encode())
    (tmp_path / "c.html").write_bytes("<p>Köln</p>".encode("latin-1"))
    (tmp_path / "d.html").write_bytes(page.format("klingon").encode())
    *fine, c, d = read("folder", path=str(tmp_path))
    assert [document.text for document in good(fine)] == ["Köln", "Köln"]
    assert broken([c, d]) == [
        (f"{tmp_path}/c.html", "line 1 isn't utf-8 (byte 0xf6); save it as UTF-8"),
        (f"{tmp_path}/d.html", "it names an unknown encoding, klingon; save it as UTF-8"),
    ]


def pdf(text: str) -> bytes:
    """A PDF of one page that shows `text`."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Title (The title) >>",
    ]
    file, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<< /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF" % len(file)
    return file + b"xref\n0 6\n0000000000 65535 f \n" + table + trailer


def test_pdfs_are_read_if_they_hold_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Hello from a page."))
    (tmp_path / "b.pdf").write_bytes(pdf("Hello")[:200])
    (tmp_path / "c.pdf").write_bytes(b"")
    scanned, locked = pypdf.PdfWriter(), pypdf.PdfWriter()
    for writer in (scanned, locked):
        writer.add_blank_page(100, 100)
    scanned.write(tmp_path / "d.pdf")
    locked.encrypt("secret", algorithm="RC4-128")
    locked.write(tmp_path / "e.pdf")
    found = read("folder", path=str(tmp_path))
    (document,) = good(found[:1])
    assert (document.title, document.text) == ("The title", "Hello from a page.")
    reasons = dict(broken(found))
    assert [Path(where).name for where in reasons] == ["b.pdf", "c.pdf", "d.pdf", "e.pdf"]
    assert all(reasons[f"{tmp_path}/{name}.pdf"].startswith("not a readable PDF: ") for name in "bce")
    assert reasons[f"{tmp_path}/d.pdf"] == "its pages hold no text, only images; run OCR on it"


def test_files_that_cannot_be_read_are_broken(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("One.\nTwo.\nKöln.".encode("latin-1"))
    (tmp_path / "b.md").write_text("# Nothing but a heading\n \n")
    (tmp_path / "c.txt").symlink_to(tmp_path / "gone.txt")
    where = corpus("folder", path=str(tmp_path))
    assert broken(list(where.read())) == [
        (f"{tmp_path}/a.txt", "line 3 isn't utf-8 (byte 0xf6); save it as UTF-8"),
        (f"{tmp_path}/b.md", "it holds no text"),
        (f"{tmp_path}/c.txt", "No such file or directory"),
    ]
    before = where.fingerprint()
    (tmp_path / "gone.txt").write_text("Now it is here.")
    assert where.fingerprint() != before


def test_a_file_name_that_is_no_unicode_still_gives_a_document(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("Hello.")
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.id == "caf\N{REPLACEMENT CHARACTER}.txt"
    document.model_dump_json()


# jsonl


def test_jsonl_is_read_plain_and_gzipped_with_any_field_names(tmp_path: Path) -> None:
    records = [{"_id": 7, "body": "Hello.", "name": "A", "link": "https://example.org"}, {"_id": "x", "body": "Hi."}]
    lines(tmp_path / "b.jsonl", *records)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "c.jsonl.gz").write_bytes(
        gzip.compress(b'\xef\xbb\xbf{"_id": "y", "body": "Hey.", "name": null}\n')
    )
    fields = {"id_field": "_id", "text_field": "body", "title_field": "name", "url_field": "link"}
    found = good(read("jsonl", path=str(tmp_path), **fields))
    assert [(d.id, d.title, d.text, d.url) for d in found] == [
        ("y", "", "Hey.", None),
        ("7", "A", "Hello.", "https://example.org"),
        ("x", "", "Hi.", None),
    ]
    numbered = good(read("jsonl", path=str(tmp_path), **fields | {"id_field": None, "title_field": None}))
    assert [(d.id, d.title) for d in numbered] == [("a/c.jsonl.gz:1", ""), ("b.jsonl:1", ""), ("b.jsonl:2", "")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "a", "text": "b"', "not JSON: Expecting ',' delimiter (column 24)"),
        (b'{"id": "a", "text": "b", "x": NaN}', "not JSON: NaN is no JSON value"),
        (b'{"id": "a", "text": "b", "x": -Infinity}', "not JSON: -Infinity is no JSON value"),
        (b'{"id": "a", "text": "K\xf6ln"}', "not JSON: 'utf-8' codec can't decode byte 0xf6 in position 22"),
        (b"[" * 100_000, "not JSON: maximum recursion depth exceeded"),
        (b'["a", "b"]', "not a JSON object"),
        (b'{"text": "b"}', "it has no `id`, only text"),
        (b'{"id": "a", "body": "b"}', "it has no `text`, only body, id"),
        (b"{}", "it has no `text`, only nothing"),
        (b'{"id": true, "text": "b"}', "its `id` is no string but true"),
        (b'{"id": " ", "text": "b"}', "its id is empty"),
        (b'{"id": "a", "text": 12.5}', "its `text` is no string but 12.5"),
        (b'{"id": "a", "text": " \\n\\u00a0"}', "it holds no text"),
        (b'{"id": "a", "text": "b", "title": ["c"]}', 'its `title` is no string but ["c"]'),
        (b'{"id": "a", "text": "half \\ud83d"}', "not valid Unicode (surrogates not allowed)"),
    ],
)
def test_a_bad_line_is_broken_and_the_next_one_is_read(tmp_path: Path, line: bytes, reason: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n" + line + b'\n{"id": "fine", "text": "Hello."}')
    bad, fine = read("jsonl", path=str(tmp_path))
    ((where, told),) = broken([bad])
    assert where == f"{tmp_path}/a.jsonl:2"
    assert told.startswith(reason)
    assert good([fine])[0].id == "fine"


def test_a_damaged_gzip_file_is_an_error_that_says_how_far_it_goes(tmp_path: Path) -> None:
    draw = random.Random(0)
    text = "".join(json.dumps({"id": n, "text": str(draw.random())}) + "\n" for n in range(5000)).encode()
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(text)[:-9000])
    told = message(lambda: read("jsonl", path=str(path)))
    assert re.match(re.escape(f"{path}: can't be read after line ") + r"\d{3,4}: Compressed file ended", told)
    damaged = bytearray(gzip.compress(text))
    damaged[2000:2040] = bytes(40)
    path.write_bytes(damaged)
    assert "can't be read after line" in message(lambda: read("jsonl", path=str(path)))


def test_the_documents_of_multidoc2dial_are_read_whole(data: Path) -> None:
    ids, skipped = listed(corpus("jsonl", path=str(data / "multidoc2dial_docs")), strict=True)
    assert (len(ids), skipped) == (486, [])


# quac


def test_quac_gives_each_section_once_without_its_end_mark(tmp_path: Path) -> None:
    quac_file(
        tmp_path / "train.json",
        paragraph("C_1_0", "He was born in Pell. CANNOTANSWER"),
        paragraph("C_2_1", "CANNOTANSWER is what the town answered."),
        paragraph("C_1_1", "He was born in Pell. CANNOTANSWER"),
    )
    other = quac_file(tmp_path / "val.json", paragraph("C_3_0", "He was born in Pell. CANNOTANSWER"), title="Mell")
    Path(other).rename(tmp_path / "val")
    (tmp_path / "val.json.gz").write_bytes(gzip.compress((tmp_path / "val").read_bytes()))
    found = good(read("quac", path=str(tmp_path)))
    assert [(d.id, d.title, d.text) for d in found] == [
        ("C_1_0", "Pell: Early years", "He was born in Pell."),
        ("C_2_1", "Pell: Early years", "CANNOTANSWER is what the town answered."),
        ("C_3_0", "Mell: Early years", "He was born in Pell."),
    ]


def test_quac_needs_no_section_title(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"title": "Pell", "paragraphs": [paragraph("C_1_0", "Text. CANNOTANSWER")]}]}))
    assert [d.title for d in good(read("quac", path=str(path)))] == ["Pell"]


def test_a_broken_record_of_quac_is_told_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    fine = paragraph("C_1_0", "Text. CANNOTANSWER")
    articles = [
        {"title": "A", "paragraphs": [fine, {"id": "C_2_0"}, paragraph("C_3_0", " CANNOTANSWER"), "x"]},
        {"paragraphs": []},
        7,
    ]
    path.write_text(json.dumps({"data": articles}))
    found = read("quac", path=str(path))
    assert len(good(found[:1])) == 1
    assert [(where.removeprefix(f"{path}: "), reason) for where, reason in broken(found[1:])] == [
        ("data[0].paragraphs[1]", "context: Field required"),
        ("data[0].paragraphs[2]", "it holds no text"),
        ("data[0].paragraphs[3]", "Input should be a valid dictionary or instance of _Paragraph"),
        ("data[1]", "title: Field required"),
        ("data[2]", "Input should be a valid dictionary or instance of _Article"),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"data": [\n{"title": ]}', "not JSON: Expecting value (line 2, column 11)"),
        (b'{"data": [{"title": "A"', "not JSON: Expecting ',' delimiter (line 1, column 24)"),
        (b'{"data": [{"title": NaN}]}', "not JSON: lexical error: invalid char in json text. "),
        (b'{"data": [{"title": "K\xf6ln"}]}', "not JSON: byte 22 isn't UTF-8"),
        (b"", "not JSON: Expecting value (line 1, column 1)"),
        (b"[1]", "it has no records in a list `data`, so it isn't QuAC's own format"),
        (b'{"data": []}', "it has no records in a list `data`, so it isn't QuAC's own format"),
        (gzip.compress(b'{"data": []}')[:-4], "can't be read after data["),
    ],
)
def test_a_file_that_is_not_quac_is_an_error_that_says_where(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert message(lambda: read("quac", path=str(path))).startswith(f"{path}: {told}")


def test_the_real_quac_records_are_read(data: Path) -> None:
    where = corpus("quac", path=str(data / "quac"))
    found = list(documents(where, True, 0, lambda record: None))
    assert len(found) == 11
    assert found[0].title == "The break"
    assert all(re.fullmatch(r"C_[0-9a-f]{32}_\d", d.id) and not d.text.endswith("CANNOTANSWER") for d in found)


# quac, fetched

CONTENT = json.dumps({"data": [{"title": "Pell", "paragraphs": [paragraph("C_1_0", "Text. CANNOTANSWER")]}]}).encode()


class Publisher(BaseHTTPRequestHandler):
    """Serves `train_v0.2.json` as the first part of the path asks for it."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        case, _, name = self.path.lstrip("/").partition("/")
        body = {"good": CONTENT, "short": CONTENT[:40], "other": b"{}"}.get(case)
        if name != "train_v0.2.json" or body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) if case == "short" else len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    published = {"train": ("train_v0.2.json", f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")}
    monkeypatch.setattr(quac.QuacCorpus, "published", published)
    monkeypatch.setattr(Publisher, "asked", [], raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_quac_is_fetched_once_and_kept(publisher: str, tmp_path: Path) -> None:
    settings = {"cache_dir": str(tmp_path / "cache"), "base_url": f"{publisher}/good/"}
    assert [document.id for document in good(read("quac", **settings))] == ["C_1_0"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["train_v0.2.json"]
    corpus("quac", **settings).fingerprint()
    assert Publisher.asked == ["/good/train_v0.2.json"]
    # A file that was damaged since is fetched again.
    (tmp_path / "cache" / "train_v0.2.json").write_bytes(CONTENT[:50])
    assert len(good(read("quac", **settings))) == 1
    assert len(Publisher.asked) == 2


@pytest.mark.parametrize(
    ("case", "reason"),
    [("short", r"IncompleteRead"), ("other", r"does not match the known hash"), ("gone", r"404 Client Error")],
)
def test_a_fetch_that_fails_says_what_to_do_and_leaves_nothing(
    publisher: str, tmp_path: Path, case: str, reason: str
) -> None:
    told = message(lambda: read("quac", cache_dir=str(tmp_path), base_url=f"{publisher}/{case}"))
    assert told.startswith(f"can't fetch {publisher}/{case}/train_v0.2.json: ")
    assert re.search(reason, told)
    assert told.endswith(f"get train_v0.2.json another way and put it into {tmp_path}, or set corpus.path to it")
    assert list(tmp_path.iterdir()) == []


def test_a_publisher_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as free:
        port = free.server_address[1]
    told = message(lambda: read("quac", cache_dir=str(tmp_path), base_url=f"http://127.0.0.1:{port}"))
    assert "Connection refused" in told


def test_a_cache_that_cannot_be_written_is_an_error(publisher: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = message(lambda: read("quac", cache_dir=str(tmp_path / "file"), base_url=f"{publisher}/good"))
    assert told.startswith(f"can't fetch {publisher}/good/train_v0.2.json: ")


# zip archives


def test_the_files_in_an_archive_are_read_in_place(tmp_path: Path) -> None:
    line = json.dumps({"id": "a", "text": "One."}).encode()
    path = tmp_path / "docs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("v1/b.jsonl", line.replace(b'"a"', b'"b"'))
        archive.writestr("v1/a.jsonl.gz", gzip.compress(line))
        archive.writestr("__MACOSX/v1/._a.jsonl", b"\x00\x05")
        archive.writestr("v1/.hidden.jsonl", b"nothing")
        archive.writestr("v1/readme.md", b"# About")
        archive.writestr("../outside.jsonl", line.replace(b'"a"', b'"c"'))
    assert [d.id for d in good(read("jsonl", path=str(path)))] == ["c", "a", "b"]
    assert [file.where for file in corpus("jsonl", path=str(tmp_path)).files()] == [
        f"{path}/../outside.jsonl",
        f"{path}/v1/a.jsonl.gz",
        f"{path}/v1/b.jsonl",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["docs.zip"]


def test_an_archive_that_is_none_or_holds_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    path.write_bytes(b"PK no archive")
    assert message(lambda: read("jsonl", path=str(path))) == (
        f"{path}: can't be read as a zip archive: File is not a zip file"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.md", b"# About")
    assert "no file ends in .jsonl, .jsonl.gz; found 1 .md" in message(lambda: read("jsonl", path=str(path)))


def test_a_damaged_member_of_an_archive_is_an_error_that_says_how_far_it_goes(tmp_path: Path) -> None:
    lines = b"".join(json.dumps({"id": f"{n}", "text": f"Line {n}."}).encode() + b"\n" for n in range(9))
    path = tmp_path / "docs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", lines)
    path.write_bytes(path.read_bytes().replace(b"Line 8.", b"Line 9."))
    assert re.match(
        rf"{re.escape(str(path))}/a\.jsonl: can't be read after line \d: Bad CRC-32",
        message(lambda: read("jsonl", path=str(path))),
    )


# dialogs of people


def question(text: str, answer: str, start: int, *others: str) -> dict[str, Any]:
    answers = [{"text": other, "answer_start": 0} for other in (answer, *others)]
    return {"question": text, "orig_answer": {"text": answer, "answer_start": start}, "answers": answers}


def test_quac_gives_its_dialogs_on_the_documents_that_it_gives(tmp_path: Path) -> None:
    text = "He was born in Pell. He left Pell. CANNOTANSWER"
    asked = [
        question("Where was he born?", "in Pell", 12, "Pell", "CANNOTANSWER", "in Pell"),
        question("Did he leave?", "He left Pell.", 3),
        question("Why?", "CANNOTANSWER", 35, "He left Pell."),
        question("Where is he now?", "in Mell", 12),
    ]
    quac_file(
        tmp_path / "train.json",
        {"id": "C_1_0", "context": text, "qas": asked},
        {"id": "C_1_1", "context": text, "qas": asked[1:2]},
    )
    where = corpus("quac", path=str(tmp_path / "train.json"), no_answer="No idea.")
    first, second = dialogs(where)
    for found in (first, second):
        holds(found)
    assert [d.id for d in good(list(where.read()))] == ["C_1_0"]
    assert (first.id, first.document_ids, second.id, second.document_ids) == ("C_1_0", ("C_1_0",), "C_1_1", ("C_1_0",))
    assert [t.answer for t in first.turns] == ["in Pell", "He left Pell.", "No idea.", "in Mell"]
    assert [t.answerability for t in first.turns] == ["answerable", "answerable", "unanswerable", "answerable"]
    assert [t.other_answers for t in first.turns] == [("Pell", "No idea."), (), ("He left Pell.",), ()]
    assert [[(e.start, e.text) for e in t.evidence] for t in first.turns] == [
        [(12, "in Pell")],
        [(21, "He left Pell.")],  # its offset was wrong
        [],
        [],  # it isn't in the text at all
    ]


def test_a_dialog_of_quac_that_cannot_be_read_is_told_by_place_and_field(tmp_path: Path) -> None:
    path = quac_file(
        tmp_path / "a.json",
        {"id": "C_1_0", "context": "Text.", "qas": []},
        {"id": "C_2_0", "context": "Text.", "qas": [{"question": "Who?"}]},
        {"id": "C_3_0", "context": " CANNOTANSWER", "qas": [question("Who?", "CANNOTANSWER", 1)]},
        {"id": "C_4_0", "context": "Text.", "qas": [question("Who?", "Text.", 0)]},
    )
    where = corpus("quac", path=path)
    assert isinstance(where, DialogCorpus)
    *bad, last = where.dialogs()
    assert isinstance(last, Dialog)
    assert [(b.where.removeprefix(f"{path}: "), b.reason) for b in bad if isinstance(b, SkippedRecord)] == [
        ("data[0].paragraphs[0]", "it has no question with an answer"),
        ("data[1].paragraphs[0]", "qas.0.orig_answer: Field required"),
        ("data[2].paragraphs[0]", "it holds no text"),
    ]


def test_the_real_quac_dialogs_are_read(data: Path) -> None:
    found = dialogs(corpus("quac", path=str(data / "quac")))
    for found_dialog in found:
        holds(found_dialog)
    turns = [turn for found_dialog in found for turn in found_dialog.turns]
    assert (len(found), len(turns)) == (11, 86)
    assert all(turn.evidence or turn.answerability == "unanswerable" for turn in turns)


def test_the_rewrites_of_canard_stand_at_the_questions_that_they_rewrite(tmp_path: Path) -> None:
    text = "He was born in Pell. CANNOTANSWER"
    asked = [question(each, "in Pell", 12) for each in ("Where  was he born?", "Did he leave?", "Why?")]
    path = quac_file(tmp_path / "train.json", {"id": "C_1_0", "context": text, "qas": asked})
    rewrites = tmp_path / "canard"
    rewrites.mkdir()

    def rewrite(number: int, question: str, **more: object) -> dict[str, object]:
        return {"QuAC_dialog_id": "C_1_0", "Question_no": number, "Question": question, "Rewrite": f"R{number}"} | more

    records = [rewrite(1, "Where was he born? "), rewrite(3, "When?"), rewrite(2, "Who?", QuAC_dialog_id="C_2_0"), 7]
    (rewrites / "dev.json").write_text(json.dumps(records))
    (rewrites / "multiple_refs.json").write_text('[["One?", "Another?"]]')
    where = corpus("quac", path=path, rewrites=str(rewrites))
    assert isinstance(where, DialogCorpus)
    *bad, dialog = where.dialogs()
    assert isinstance(dialog, Dialog)
    assert [t.retrieval_query for t in dialog.turns] == ["R1", "", ""]
    assert broken([record for record in bad if isinstance(record, SkippedRecord)]) == [
        (f"{rewrites}/dev.json: [3]", "Input should be a valid dictionary or instance of _Rewrite"),
        (f"{rewrites}/dev.json: [1]", "Question: isn't question 3 of C_1_0"),
    ]
    assert where.fingerprint() == corpus("quac", path=path, no_answer="No idea.").fingerprint()
    nowhere = corpus("quac", path=path, rewrites=str(tmp_path / "nowhere"))
    assert isinstance(nowhere, DialogCorpus)
    assert message(lambda: list(nowhere.dialogs())).startswith(f"corpus.rewrites={tmp_path}/nowhere doesn't exist")


def test_the_real_canard_is_read_whole(data: Path, tmp_path: Path) -> None:
    records = json.loads((data / "canard" / "dev.json").read_bytes())
    name = records[0]["QuAC_dialog_id"]
    own = [record for record in records if record["QuAC_dialog_id"] == name]
    # The questions of a dialog that we have, with a text and answers of our own.
    asked = [question(record["Question"], "Text.", 0) for record in own]
    path = quac_file(tmp_path / "dev.json", {"id": name, "context": "Text. CANNOTANSWER", "qas": asked})
    (dialog,) = dialogs(corpus("quac", path=path, rewrites=str(data / "canard")))
    assert [t.retrieval_query for t in dialog.turns] == [record["Rewrite"] for record in own]
    dialogs(corpus("quac", path=str(data / "quac"), rewrites=str(data / "canard" / "dev.json")))
