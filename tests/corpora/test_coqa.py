import json
from pathlib import Path
from typing import Any

from tests.support.corpora import broken, dialogs, good, read, read_dialogs

STORY = "Ada keeps bees on the roof.\n\nHer brother Tom is afraid of them."


def record(name: str, *turns: tuple[str, str, str, int], **more: Any) -> dict[str, Any]:
    """A conversation about `STORY`; a turn is a question, an answer, and the text and start of its span."""
    asked = [{"input_text": turn[0], "turn_id": number} for number, turn in enumerate(turns, start=1)]
    said = [answer(number, *turn[1:]) for number, turn in enumerate(turns, start=1)]
    story = {"source": "mctest", "id": name, "filename": "mc1.test.2", "story": STORY}
    return {**story, "questions": asked, "answers": said, "name": "mc1.test.2"} | more


def answer(number: int, text: str, span: str, start: int) -> dict[str, Any]:
    return {"turn_id": number, "input_text": text, "span_text": span, "span_start": start}


def written(path: Path, *records: object) -> str:
    path.write_text(json.dumps({"version": "1.0", "data": records}))
    return str(path)


TURNS = (
    ("What does she keep?", "some bees", "keeps bees ", 4),
    ("Who fears them?", "Tom", " Tom is afraid of them", 40),
    ("Why?", "unknown", "unknown", -1),
    ("Is he old?", "perhaps", "", -1),
)


def test_the_conversation_is_told_in_order_with_the_answers_of_others_or_their_rationales(tmp_path: Path) -> None:
    others = {
        "0": [answer(1, "bees", "bees on the roof", 10), answer(3, "unknown", "unknown", -1)],
        "1": [answer(1, "some bees", "keeps bees", 4), answer(3, "He just is", "is afraid", 46)],
    }
    told = record("one", *TURNS, additional_answers=others)
    told["questions"].reverse()
    (dialog,) = dialogs("coqa", path=written(tmp_path / "a.json", told), no_answer="No idea.")
    assert (dialog.id, dialog.document_ids, dialog.algorithm) == ("one", ("one",), "single")
    assert [(t.query, t.answer, t.other_answers, t.answerability) for t in dialog.turns] == [
        ("What does she keep?", "some bees", ("bees",), "answerable"),
        ("Who fears them?", "Tom", (), "answerable"),
        ("Why?", "No idea.", ("He just is",), "unanswerable"),
        ("Is he old?", "No idea.", (), "unanswerable"),
    ]
    assert [[(e.start, e.text) for e in t.evidence] for t in dialog.turns] == [
        [(4, "keeps bees")],
        [(41, "Tom is afraid of them")],
        [],
        [],
    ]
    (dialog,) = dialogs("coqa", path=written(tmp_path / "a.json", told), answers="rationale", no_answer="No.")
    assert [t.answer for t in dialog.turns] == ["keeps bees", "Tom is afraid of them", "No.", "No."]
    assert dialog.turns[0].other_answers == ("bees on the roof",)


def test_what_cannot_be_read_is_told_by_place_and_field(tmp_path: Path) -> None:
    unanswered = record("e", *TURNS)
    del unanswered["answers"][1]
    path = written(
        tmp_path / "a.json",
        record("a"),
        record("b", *TURNS, story=" "),
        {"id": "c"},
        record("d", ("What?", " ", "bees", 10)),
        unanswered,
        record("f", *TURNS, answers=[{"turn_id": 1}]),
        record("g", *TURNS),
    )
    (last,), bad = read_dialogs("coqa", path=path)
    assert last.id == "g"
    assert bad == [
        ("data[0]", "it has no question with an answer"),
        ("data[1]", "it holds no text"),
        ("data[2]", "story: Field required"),
        ("data[3]", "turn 1 has an empty question or answer"),
        ("data[4]", "answers: there is none with the turn_id 2"),
        ("data[5]", "answers.0.input_text: Field required"),
    ]
    assert [reason for _, reason in broken(read("coqa", path=path))] == ["it holds no text", "story: Field required"]
    wikipedia = record("two", source="wikipedia", filename="Bee_keeping_(sport).txt")
    (document,) = good(read("coqa", path=written(tmp_path / "b.json", wikipedia)))
    assert (document.id, document.title, document.text) == ("two", "Bee keeping (sport)", STORY)


def test_the_real_stories_are_read(data: Path) -> None:
    train, dev = (dialogs("coqa", data / "coqa" / f"coqa-{part}-v1.0.sample.json")[0] for part in ("train", "dev"))
    assert (len(train.turns), len(dev.turns)) == (20, 12)
    assert train.passages[0].title == "Vatican Library"
    assert "\n\n" in train.passages[0].text
    assert [t.turn for t in train.turns if t.answerability == "unanswerable"] == [14]  # `unknown`, with span -1
    assert all(t.evidence or t.answerability == "unanswerable" for t in (*train.turns, *dev.turns))
    assert [t.answer for t in dev.turns][:3] == ["white", "in a barn", "no"]
    assert dev.turns[4].other_answers == ("orange with white tiger stripes", "orange")
