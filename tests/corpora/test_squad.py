import json
from collections import Counter
from pathlib import Path
from typing import Any

from generator.corpora.human import DialogCorpus
from generator.schema import Dialog, SkippedRecord
from tests.support.corpora import broken, corpus, dialogs, good, holds, read

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
    found = dialogs(corpus("squad", path=path, no_answer="No idea."))
    for dialog in found:
        holds(dialog)
        assert (dialog.document_ids, dialog.passages[0].text) == (("Orr_Mill:0",), TEXT)
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
    where = corpus("squad", path=path)
    assert isinstance(where, DialogCorpus)
    bad = [b for b in where.dialogs() if isinstance(b, SkippedRecord)]
    assert sum(isinstance(found, Dialog) for found in where.dialogs()) == 1
    assert [(b.where.removeprefix(f"{path}: data"), b.reason) for b in bad] == [
        ("[0].paragraphs[0].qas[0]", "answers: there is none, and is_impossible isn't true"),
        ("[0].paragraphs[0].qas[1]", "question: Field required"),
        ("[0].paragraphs[1]", "qas: Field required"),
        ("[0].paragraphs[2]", "it holds no text"),
        ("[0].paragraphs[3]", "Input should be a valid dictionary or instance of _Questions"),
        ("[1]", "paragraphs: Field required"),
    ]
    assert [place.removeprefix(f"{path}: data") for place, _ in broken(list(where.read()))] == [
        "[0].paragraphs[1]",
        "[0].paragraphs[2]",
        "[0].paragraphs[3]",
        "[1]",
    ]


def test_the_real_paragraphs_are_read(data: Path) -> None:
    where = corpus("squad", path=str(data / "squad2"))
    documents = good(list(where.read()))
    assert len(documents) == len({d.id for d in documents}) == 224
    assert {"Normans:0", "1973_oil_crisis:13"} <= {d.id for d in documents}
    assert {d.title for d in documents} >= {"French and Indian War", "Computational complexity theory"}
    found = dialogs(where)
    for dialog in found:
        holds(dialog)
    assert Counter(d.turns[0].answerability for d in found) == {"unanswerable": 1201, "answerable": 1061}
    assert all(bool(d.turns[0].evidence) == (d.turns[0].answerability == "answerable") for d in found)
    (first, *_) = found
    assert (first.turns[0].query, first.turns[0].answer) == ("In what country is Normandy located?", "France")
