import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.corpora import broken, dialogs, good, message, read, read_dialogs

PIECES = (
    "\n\nParking \n",
    "Parking is free on Sundays. ",
    "On weekdays a ticket costs two euros. ",
    "Buses need none. ",
)
OTHER = ("\n\nTickets \n", "The kiosk sells tickets. ", "So does the driver. ")


def page(name: str, pieces: tuple[str, ...], title: str = "Parking#2") -> dict[str, Any]:
    """A document, its spans numbered from 1."""
    spans, start = {}, 0
    for number, piece in enumerate(pieces, start=1):
        spans[str(number)] = {"id_sp": str(number), "start_sp": start, "end_sp": start + len(piece), "text_sp": piece}
        start += len(piece)
    return {"doc_id": name, "title": title, "domain": "dmv", "doc_text": "".join(pieces), "spans": spans}


DOCUMENTS = {
    "doc_data": {
        "dmv": {"Parking#2_0": page("Parking#2_0", PIECES), "Tickets#1_0": page("Tickets#1_0", OTHER, "Tickets")},
        "va": {"Claims#1_0": page("Claims#1_0", ("Claims take a week.",), "Claims")},
    }
}


def said(role: str, text: str, *references: dict[str, Any], da: str = "") -> dict[str, Any]:
    return {"turn_id": 0, "role": role, "da": da, "utterance": text, "references": list(references)}


def to(span: int, document: str, label: str = "solution") -> dict[str, Any]:
    return {"label": label, "id_sp": str(span), "doc_id": document}


def within(span: int, label: str = "solution") -> dict[str, Any]:
    return {"sp_id": str(span), "label": label}


def told(name: str, *turns: object, **more: Any) -> dict[str, Any]:
    return {"dial_id": name, "turns": list(turns)} | more


MULTI = told(
    "m1",
    said("agent", "Welcome!"),
    said("user", "Hello."),
    said("user", "Must I pay for parking?", to(2, "Parking#2_0", "precondition")),
    said("agent", "Not on Sundays. ", to(3, "Parking#2_0"), to(2, "Parking#2_0"), da="respond_solution"),
    said("agent", "Is it a bus?", to(4, "Parking#2_0", "precondition"), da="query_condition"),
    said("user", "No. Who sells tickets, by the way?", to(2, "Tickets#1_0")),
    said("agent", "The kiosk.", to(2, "Tickets#1_0"), to(2, "Parking#2_0"), da="respond_solution"),
    said("user", "And at night?"),
    said("agent", "I found nothing on that.", to(3, "Tickets#1_0", "precondition"), da="respond_no_solution"),
    said("user", "A pity."),
)


def folder(path: Path, documents: object = DOCUMENTS, **files: object) -> str:
    """A folder as published: the documents, and dialogue files by split."""
    path.mkdir(exist_ok=True)
    (path / "multidoc2dial_doc.json").write_text(json.dumps(documents))
    for split, content in files.items():
        (path / f"multidoc2dial_dial_{split}.json").write_text(json.dumps(content))
    return str(path)


def multi(*dialogs: object, domain: str = "dmv") -> dict[str, Any]:
    return {"dial_data": {domain: list(dialogs)}}


def test_a_page_is_a_document_and_a_dialogue_file_holds_none(tmp_path: Path) -> None:
    path = folder(tmp_path, train=multi(MULTI))
    found = good(read("multidoc2dial", path=path))
    assert [(d.id, d.title) for d in found] == [
        ("Parking#2_0", "Parking"),
        ("Tickets#1_0", "Tickets"),
        ("Claims#1_0", "Claims"),
    ]
    assert found[0].text == "".join(PIECES)
    assert [d.id for d in good(read("multidoc2dial", path=path, domain="va"))] == ["Claims#1_0"]


def test_a_dialog_on_several_pages(tmp_path: Path) -> None:
    (dialog,) = dialogs("multidoc2dial", folder(tmp_path, train=multi(MULTI)))
    assert (dialog.id, dialog.algorithm, dialog.document_ids) == ("m1", "multi", ("Parking#2_0", "Tickets#1_0"))
    assert [p.text for p in dialog.passages] == ["".join(PIECES), "".join(OTHER)]
    assert [(t.query, t.answer, t.answerability) for t in dialog.turns] == [
        ("Hello. Must I pay for parking?", "Not on Sundays. Is it a bus?", "answerable"),
        ("No. Who sells tickets, by the way?", "The kiosk.", "answerable"),
        ("And at night?", "I found nothing on that.", "unanswerable"),
    ]
    parking, tickets = (p.id for p in dialog.passages)
    assert [[(e.passage_id, e.text) for e in t.evidence] for t in dialog.turns] == [
        [(parking, "Parking is free on Sundays. On weekdays a ticket costs two euros. Buses need none.")],
        [(tickets, "The kiosk sells tickets."), (parking, "Parking is free on Sundays.")],
        [],
    ]


SINGLE = told(
    "s1",
    said("user", "Must I pay?", within(3)),
    said("agent", "Two euros.", within(3), da="respond_solution"),
    doc_id="Parking#2_0",
    domain="dmv",
)


def version(turns: list[dict[str, Any]], references: object) -> list[dict[str, Any]]:
    """`turns` with the references as v0.9 has them."""
    return [{k: v for k, v in turn.items() if k != "references"} | {"reference": references} for turn in turns]


def test_doc2dial_is_told_by_its_shape(tmp_path: Path) -> None:
    old = SINGLE | {"turns": version(SINGLE["turns"], {"3": ["solution"], "1": ["reference"]}), "doc_id": "Parking#2"}
    nothing = version([said("user", "Why?"), said("agent", "No idea.", da="respond/no_solution")], [])
    for dialog_data in (SINGLE, old):
        content = {"dial_data": {"dmv": {"Parking#2_0": [dialog_data, told("s2", *nothing)]}}}
        first, second = dialogs("multidoc2dial", path=folder(tmp_path, train=content))
        for dialog in (first, second):
            assert (dialog.algorithm, dialog.document_ids) == ("single", ("Parking#2_0",))
        assert [e.text for e in first.turns[0].evidence] == ["On weekdays a ticket costs two euros."]
        assert (second.turns[0].answerability, second.turns[0].evidence) == ("unanswerable", ())


def test_a_dialog_without_references_is_read_if_its_page_is_at_hand(tmp_path: Path) -> None:
    turns = [{"turn_id": n, "role": r, "utterance": r} for n, r in enumerate(("user", "agent", "user"))]
    content = {"dmv": {name: [told(name, *turns, doc_id=name)] for name in ("Parking#2_0", "Gone#1_0")}}
    path = folder(tmp_path, testdev=content)
    (known,), unknown = read_dialogs("multidoc2dial", path, split="test")
    assert [(t.answer, t.answerability, t.evidence) for t in known.turns] == [("agent", "answerable", ())]
    place = "multidoc2dial_dial_testdev.json: dmv.Gone#1_0[0]"
    assert unknown == [(place, "its document 'Gone#1_0' is missing")]


def test_a_split_is_what_the_names_of_files_say(tmp_path: Path) -> None:
    files = {name: multi(MULTI | {"dial_id": name}) for name in ("train", "validation", "test", "v2")}
    path = folder(tmp_path, **files)

    def ids(**settings: Any) -> list[str]:
        return [dialog.id for dialog in dialogs("multidoc2dial", path=path, **settings)]

    assert ids() == ["train", "v2"]
    assert ids(split="validation") == ["v2", "validation"]
    assert ids(split=None) == ["test", "train", "v2", "validation"]
    assert ids(domain="va") == []
    for name in ("train", "v2"):
        (tmp_path / f"multidoc2dial_dial_{name}.json").unlink()
    said = message(ids)
    assert said.startswith("corpus.split=train: ")
    assert "found multidoc2dial_dial_test.json, multidoc2dial_dial_validation.json;" in said
    for name in ("test", "validation"):
        (tmp_path / f"multidoc2dial_dial_{name}.json").unlink()
    assert "split" not in message(lambda: ids(split=None))


def test_what_cannot_be_read_is_told_by_place_and_field(tmp_path: Path) -> None:
    question = said("user", "Why?")
    documents = {
        "doc_data": {"dmv": DOCUMENTS["doc_data"]["dmv"] | {"Bad": {"title": "Bad"}, "Empty": page("Empty", ())}}
    }
    records = [
        told("a", said("agent", "Hello."), question),
        told("b", question, said("bot", "Why not?")),
        told("c", question, said("agent", "So.", to(9, "Parking#2_0"))),
        told("d", question, said("agent", "So.", to(1, "Bad"))),
        told("e", question, said("agent", "So.", to(1, "Empty"))),
        told("f", question, said("agent", "So.", {"id_sp": "1"})),
        told("g", question, said("agent", "So.")),
        told("h", question, said("agent", " ", to(2, "Parking#2_0"))),
        7,
    ]
    path = folder(tmp_path, documents, train=multi(*records))
    _, bad = read_dialogs("multidoc2dial", path)
    assert [(place.removeprefix("multidoc2dial_dial_train.json: "), reason) for place, reason in bad] == [
        ("dmv[0]", "it has no question with an answer"),
        ("dmv[1]", "turns.1.role: Input should be 'user' or 'agent'"),
        ("dmv[2]", "references: its document 'Parking#2_0' has no span '9'"),
        ("dmv[3]", "its document 'Bad' can't be read: doc_text: Field required"),
        ("dmv[4]", "its document 'Empty' can't be read: it holds no text"),
        ("dmv[5]", "turns.1.references.0.label: Field required"),
        ("dmv[6]", "it has no document"),
        ("dmv[7]", "turn 1 has an empty question or answer"),
        ("dmv[8]", "Input should be a valid dictionary"),
    ]
    assert broken(read("multidoc2dial", path=path)) == [
        (f"{path}/multidoc2dial_doc.json: dmv.Bad", "doc_text: Field required"),
        (f"{path}/multidoc2dial_doc.json: dmv.Empty", "it holds no text"),
    ]


@pytest.mark.parametrize("content", ["[]", '{"doc_data": {"dmv": []}}', '{"version": "1", "data": []}'])
def test_a_file_of_something_else_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    told = message(lambda: read("multidoc2dial", path=str(path)))
    assert told.startswith(f"{path}: has neither doc_data nor dial_data")


# On the real files


def test_the_real_pages_are_those_of_another_conversion(data: Path) -> None:
    converted = {}
    for file in (data / "multidoc2dial_docs").glob("*.jsonl"):
        converted |= {record["id"]: record for record in map(json.loads, file.read_text("utf-8").splitlines())}
    for version in ("v0.9", "v1.0.1"):
        (document,) = good(read("multidoc2dial", path=str(data / "doc2dial" / version)))
        other = converted[document.id]
        assert document.text == other["text"]
        assert document.title == other["title"].rpartition("#")[0]


def test_the_real_dialogs_of_doc2dial_are_read(data: Path) -> None:
    old = dialogs("multidoc2dial", data / "doc2dial" / "v0.9")
    dev = dialogs("multidoc2dial", data / "doc2dial" / "v0.9", split="validation")
    new = dialogs("multidoc2dial", data / "doc2dial" / "v1.0.1", split=None)
    assert (len(old), len(dev), len(new)) == (5, 1, 2)
    for dialog in (*old, *dev, *new):
        assert dialog.algorithm == "single"
        assert all(bool(t.evidence) == (t.answerability == "answerable") for t in dialog.turns)
    turns = [turn for dialog in (*old, *dev) for turn in dialog.turns]
    assert Counter(t.answerability for t in turns) == {"answerable": 34, "unanswerable": 4}
    assert {t.answer for t in turns if t.answerability == "unanswerable"} == {
        "Unfortunately, no relevant information is found."
    }
    update = next(d for d in new if d.id == "9f44c1539efe6f7e79b02eb1b413aa43")
    assert len(update.turns) == 1  # the user's last word has no reply
    (evidence,) = update.turns[0].evidence
    assert evidence.text.startswith("you must report a change of address to DMV within ten days of moving.")
    assert evidence.text.endswith("which may differ.")  # two spans that touch
