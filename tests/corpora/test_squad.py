import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.corpora import broken, dialogs, good, read, read_dialogs

TEXT = "The mill at Orr burnt down twice, in 1804 and in 1811."


def asked(name: str, question: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    said = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": question, "answers": said} | more


def written(path: Path, *articles: object) -> str:
    path.write_text(json.dumps({"version": "v2.0", "data": articles}))
    return str(path)


def article(title: str, *paragraphs: object) -> dict[str, Any]:
    return {"title": title, "paragraphs": list(paragraphs)}


QUESTIONS = [
    asked("q1", "Where is the mill?", ("Orr", 12), ("at Orr", 9), ("Orr", 12), is_impossible=False),
    asked("q2", "Who lit it?", is_impossible=True, plausible_answers=[{"text": "Orr", "answer_start": 12}]),
    asked("q3", "When did it burn first?", ("1804", 37)),
]


def test_a_paragraph_is_a_document(tmp_path: Path) -> None:
    first, second = {"context": TEXT, "qas": QUESTIONS}, {"context": "It was never rebuilt.", "qas": []}
    path = written(tmp_path / "a.json", article("Orr_Mill", first, second), article("Orr", first))
    assert [(d.id, d.title, d.text) for d in good(read("squad", path=path))] == [
        ("Orr_Mill:0", "Orr Mill", TEXT),
        ("Orr_Mill:1", "Orr Mill", "It was never rebuilt."),
        ("Orr:0", "Orr", TEXT),
    ]


def test_a_question_is_a_dialog_of_one_turn(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", article("Orr_Mill", {"context": TEXT, "qas": QUESTIONS}))
    found = dialogs("squad", path=path, no_answer="No idea.")
    assert {(dialog.document_ids, dialog.passages[0].text) for dialog in found} == {(("Orr_Mill:0",), TEXT)}
    assert [(d.id, t.query, t.answer, t.other_answers, t.answerability) for d in found for t in d.turns] == [
        ("q1", "Where is the mill?", "Orr", ("at Orr",), "answerable"),
        ("q2", "Who lit it?", "No idea.", (), "unanswerable"),
        ("q3", "When did it burn first?", "1804", (), "answerable"),  # as in v1.1, which has no is_impossible
    ]
    assert [[(e.start, e.text) for e in d.turns[0].evidence] for d in found] == [[(12, "Orr")], [], [(37, "1804")]]


def test_what_cannot_be_read_is_told_by_place_and_field(tmp_path: Path) -> None:
    questions = [asked("q1", "Where?"), {"id": "q2"}, asked("q3", "Where?", ("Orr", 12))]
    paragraphs = ({"context": TEXT, "qas": questions}, {"context": ""}, {"context": " ", "qas": []}, 7)
    path = written(tmp_path / "a.json", article("Orr", *paragraphs), {"title": "Mell"})
    found, bad = read_dialogs("squad", path=path)
    assert [dialog.id for dialog in found] == ["q3"]
    assert bad == [
        ("data[0].paragraphs[0].qas[0]", "answers: there is none, and is_impossible isn't true"),
        ("data[0].paragraphs[0].qas[1]", "question: Field required"),
        ("data[0].paragraphs[1]", "qas: Field required"),
        ("data[0].paragraphs[2]", "it holds no text"),
        ("data[0].paragraphs[3]", "Input should be a valid dictionary"),
        ("data[1]", "paragraphs: Field required"),
    ]
    assert len(broken(read("squad", path=path))) == 4


def test_the_real_paragraphs_are_read(data: Path) -> None:
    documents = good(read("squad", path=str(data / "squad2")))
    assert len(documents) == len({d.id for d in documents}) == 224
    assert {"Normans:0", "1973_oil_crisis:13"} <= {d.id for d in documents}
    assert {d.title for d in documents} >= {"French and Indian War", "Computational complexity theory"}
    found = dialogs("squad", data / "squad2")
    assert Counter(d.turns[0].answerability for d in found) == {"unanswerable": 1201, "answerable": 1061}
    assert all(bool(d.turns[0].evidence) == (d.turns[0].answerability == "answerable") for d in found)
    (first, *_) = found
    assert (first.turns[0].query, first.turns[0].answer) == ("In what country is Normandy located?", "France")
