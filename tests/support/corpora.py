"""Corpora for the tests: built as `conf/corpus/` has them, and what is looked at in what they give."""

import random
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from generator.common.passages import passage, windows
from generator.common.sentences import sentences
from generator.config.choices import compose_choice
from generator.corpora.base import CorpusSettings
from generator.corpora.human import DialogCorpus
from generator.errors import CorpusError
from generator.schema import Dialog, Document, Passage, SkippedRecord
from tests.support.records import write_json_lines

ALPHABET = ["word", "naïve", "Köln", "😀", ",", ".", "?", " ", "  ", "\n", "\n\n", "\t", "-", ") ", "Then", "…"]
# A table with cells that span rows or columns, and the rows that are read of it.
SPANS = """<table><tr><th>Branch</th><th>Day</th><th colspan="2">Hours</th></tr>
    <tr><td rowspan="2">Harbour</td><td>Monday</td><td>9-13</td><td>14-18</td></tr>
    <tr><td>Tuesday</td><td colspan="2">9-13</td></tr>
    <tr><td colspan="4">Closed on Sunday.</td></tr>
    <tr><td rowspan="2"><img src="note.png"></td><th>Note</th></tr>
    <tr><td colspan="2">Ring the bell.</td></tr>
    <tr><td>Castle</td><td rowspan="0">Friday</td><td colspan="x">9-13</td></tr></table>"""
SPREAD = [
    "Branch | Day | Hours | Hours",
    "Harbour | Monday | 9-13 | 14-18",
    "Harbour | Tuesday | 9-13 | 9-13",
    "Closed on Sunday.",
    "Note",
    "Ring the bell.",
    "Castle | Friday | 9-13",
]


def random_text(seed: int, length: int) -> str:
    """Return so many words, marks and gaps, drawn by a seed."""
    return "".join(random.Random(seed).choices(ALPHABET, k=length))


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentences(text)]


def corpus(name: str, /, **settings: Any) -> CorpusSettings:
    """Return the corpus as `conf/corpus/<name>.yaml` has it, but for `settings`."""
    configured = compose_choice("corpus", name) | settings
    module, _, part = configured.pop("_target_").rpartition(".")
    built = getattr(import_module(module), part)(**configured)
    assert isinstance(built, CorpusSettings)
    return built


def read(name: str, /, **settings: Any) -> list[Document | SkippedRecord]:
    return list(corpus(name, **settings).read())


def good(found: list[Document | SkippedRecord]) -> list[Document]:
    assert not [record for record in found if isinstance(record, SkippedRecord)]
    return [record for record in found if isinstance(record, Document)]


def broken(found: Iterable[object]) -> list[tuple[str, str]]:
    return [(record.where, record.reason) for record in found if isinstance(record, SkippedRecord)]


def message(action: Callable[[], object]) -> str:
    with pytest.raises(CorpusError) as error:
        action()
    text = str(error.value)
    assert "\n" not in text
    return text


def write_lines(path: Path, *records: object) -> str:
    """Write a file as `write_json_lines` does, and return its path as a setting."""
    return str(write_json_lines(path, *records))


def read_dialogs(name: str, /, path: object, **settings: Any) -> tuple[list[Dialog], list[tuple[str, str]]]:
    """Return the human dialogs, and what was skipped: the place below `path`, and the reason."""
    where = corpus(name, path=path and str(path), **settings)
    assert isinstance(where, DialogCorpus)
    found = list(where.dialogs())
    read = [record for record in found if isinstance(record, Dialog)]
    for dialog in read:
        holds(dialog)
    return read, [(place.removeprefix(str(path)).lstrip(":/ "), reason) for place, reason in broken(found)]


def dialogs(name: str, /, path: object = None, **settings: Any) -> list[Dialog]:
    """Return the human dialogs of a corpus that is without fault."""
    found, skipped = read_dialogs(name, path, **settings)
    assert skipped == []
    return found


def holds(dialog: Dialog) -> None:
    """Assert what holds for every human dialog, whoever led it."""
    passages = {p.id: p for p in dialog.passages}
    assert [t.turn for t in dialog.turns] == list(range(1, len(dialog.turns) + 1))
    assert dialog.document_ids == tuple(dict.fromkeys(p.document_id for p in dialog.passages))
    assert dialog.lm == "human"
    for turn in dialog.turns:
        assert turn.query.strip() and turn.answer.strip()
        assert turn.answer not in turn.other_answers
        for evidence in turn.evidence:
            assert evidence.text == passages[evidence.passage_id].text[evidence.start : evidence.end] != ""
        assert {hit.passage_id for hit in turn.hits} <= passages.keys()
    assert Dialog.model_validate_json(dialog.model_dump_json()) == dialog


def split(document: Document, size: int = 512, overlap: int = 100) -> list[Passage]:
    """Return the passages of a document, in order."""
    return [passage(document, start, end) for start, end in windows(document.text, size, overlap)]


class Quiet(SimpleHTTPRequestHandler):
    """Serve a folder without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files of a folder, and yield the address under which they can be fetched."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_epub(path: Path, body: str) -> None:
    """Write a book whose pages aren't in the order of their names, with a table of contents."""
    opf, container = "http://www.idpf.org/2007/opf", "urn:oasis:names:tc:opendocument:xmlns:container"
    root = f"<container xmlns='{container}'><rootfiles><rootfile full-path='in/c.opf'/></rootfiles></container>"
    title = "<metadata xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>Fares</dc:title></metadata>"
    kind = "media-type='application/xhtml+xml'"
    items = f"<item id='b' href='text/b%201.html' {kind}/><item id='a' href='a.html' {kind}/>"
    contents = f"<item id='n' href='n.html' properties='nav' {kind}/>"
    order = "".join(f"<itemref idref='{item}'/>" for item in "nba")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/container.xml", root)
        manifest = f"{title}<manifest>{items}{contents}</manifest><spine>{order}</spine>"
        archive.writestr("in/c.opf", f"<package xmlns='{opf}' version='3.0'>{manifest}</package>")
        pages = {"n": "<p>Chapter 1</p>", "text/b 1": "<h1>Fares</h1><p>첫 문장.</p>", "a": body}
        for name, page in pages.items():
            archive.writestr(
                f"in/{name}.html", f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{page}</body></html>"
            )
