import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.corpora import broken, dialogs, good, message, read, read_dialogs


def quac_file(path: Path, *paragraphs: dict[str, Any], **article: str) -> str:
    data = [{"title": "Pell", "section_title": "Early years", **article, "paragraphs": [p]} for p in paragraphs]
    path.write_text(json.dumps({"data": data}))
    return str(path)


def paragraph(name: str, context: str) -> dict[str, Any]:
    return {"id": name, "context": context, "qas": [{"question": "Who?", "id": f"{name}_q#0"}]}


def test_quac_gives_each_section_once_without_its_end_mark(tmp_path: Path) -> None:
    untitled = tmp_path / "a.json"
    untitled.write_text(json.dumps({"data": [{"title": "Pell", "paragraphs": [paragraph("C_0_0", "Text.")]}]}))
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
        ("C_0_0", "Pell", "Text."),
        ("C_1_0", "Pell: Early years", "He was born in Pell."),
        ("C_2_1", "Pell: Early years", "CANNOTANSWER is what the town answered."),
        ("C_3_0", "Mell: Early years", "He was born in Pell."),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"data": [\n{"title": ]}', "not JSON: Expecting value (line 2, column 11)"),
        (b"[1]", "has no list `data`"),
        (b'{"data": []}', "has no list `data`"),
        (gzip.compress(b'{"data": []}', mtime=0)[:-4], "can't be read: Compressed file ended"),
    ],
)
def test_a_file_that_is_not_quac_is_an_error_that_says_where(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert message(lambda: read("quac", path=str(path))).startswith(f"{path}: {told}")


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
    path = tmp_path / "train.json"
    first, second = dialogs("quac", path, no_answer="No idea.")
    assert [d.id for d in good(read("quac", path=str(path)))] == ["C_1_0"]
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


def test_what_cannot_be_read_is_told_by_place_and_field(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    paragraphs = [
        {"id": "C_1_0", "context": "Text.", "qas": []},
        {"id": "C_2_0", "context": "Text.", "qas": [{"question": "Who?"}]},
        {"id": "C_3_0", "context": " CANNOTANSWER", "qas": [question("Who?", "CANNOTANSWER", 1)]},
        {"id": "C_4_0", "context": "Text.", "qas": [question("Who?", "Text.", 0)]},
        {"id": "C_5_0"},
        "x",
    ]
    path.write_text(json.dumps({"data": [{"title": "A", "paragraphs": paragraphs}, {"paragraphs": []}, 7]}))
    (dialog,), bad = read_dialogs("quac", path)
    assert dialog.id == "C_4_0"
    assert bad == [
        ("data[0].paragraphs[0]", "it has no question with an answer"),
        ("data[0].paragraphs[1]", "qas.0.orig_answer: Field required"),
        ("data[0].paragraphs[2]", "it holds no text"),
        ("data[0].paragraphs[4]", "context: Field required"),
        ("data[0].paragraphs[5]", "Input should be a valid dictionary"),
        ("data[1]", "title: Field required"),
        ("data[2]", "Input should be a valid dictionary"),
    ]
    assert len(broken(read("quac", path=str(path)))) == 5


def test_the_real_quac_is_read(data: Path) -> None:
    documents, found = good(read("quac", path=str(data / "quac"))), dialogs("quac", data / "quac")
    assert len(documents) == 11 and documents[0].title == "The break"
    assert all(re.fullmatch(r"C_[0-9a-f]{32}_\d", d.id) and not d.text.endswith("CANNOTANSWER") for d in documents)
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
    (dialog,), bad = read_dialogs("quac", path, rewrites=str(rewrites))
    assert [t.retrieval_query for t in dialog.turns] == ["R1", "", ""]
    assert bad == [
        (f"{rewrites}/dev.json: [3]".lstrip("/"), "Input should be a valid dictionary"),
        (f"{rewrites}/dev.json: [1]".lstrip("/"), "Question: isn't question 3 of C_1_0"),
    ]
    told = message(lambda: dialogs("quac", path, rewrites=str(tmp_path / "nowhere")))
    assert told.startswith(f"corpus.rewrites={tmp_path}/nowhere: doesn't exist")


def test_the_real_canard_is_read_whole(data: Path, tmp_path: Path) -> None:
    records = json.loads((data / "canard" / "dev.json").read_bytes())
    name = records[0]["QuAC_dialog_id"]
    own = [record for record in records if record["QuAC_dialog_id"] == name]
    # The questions of a dialog that we have, with a text and answers of our own.
    asked = [question(record["Question"], "Text.", 0) for record in own]
    path = quac_file(tmp_path / "dev.json", {"id": name, "context": "Text. CANNOTANSWER", "qas": asked})
    (dialog,) = dialogs("quac", path=path, rewrites=str(data / "canard"))
    assert [t.retrieval_query for t in dialog.turns] == [record["Rewrite"] for record in own]
    dialogs("quac", path=str(data / "quac"), rewrites=str(data / "canard" / "dev.json"))
