"""RAD-Bench's files: read in the publisher's layouts, and the same items again when they were written."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.corpora.base import CorpusSettings
from generator.corpora.human import DialogCorpus
from generator.errors import CorpusError, ExportError
from generator.output.base import ExportSource
from generator.output.chat import rows
from generator.output.rad_bench import RadBenchExport
from generator.schema import Dialog, SkippedRecord
from tests.support.corpora import corpus
from tests.support.records import make_dialog, make_hits, make_passage, make_turn, write_json_lines

FINANCE = {
    "question_id": "RR_finance_03",
    "category": "finance",
    "aspect": "RR",
    "turns": ["What did it cost?", "And before?", "Why?"],
    "contexts": ["It cost 5 in 2020.", ["It cost 5 in 2020.", "It cost 4 in 2019."], [{"Page": 7, "Text": "Wages."}]],
    "references": ["5", "4", ["Wages rose.", "So did rents."]],
    "evidence_text": ["cost 5", "nowhere", ""],
}
TRAVEL = {
    "question_id": "TR_travel_00",
    "category": "travel",
    "aspect": "TR",
    "turns": ["Plan it.", "Cheaper.", "Final."],
    "contexts": ["Flights", "Hotels", None],
    "references": ["", None, "Day 1: fly."],
    "required_temperature": 0.1,
}


def write(folder: Path, *items: dict[str, Any], name: str = "question.jsonl") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    return write_json_lines(file, *items)


@cache
def built() -> CorpusSettings:
    return corpus("rad_bench", path="question.jsonl")


def read(path: Path) -> list[Dialog | SkippedRecord]:
    found = built().model_copy(update={"path": str(path)})
    assert isinstance(found, DialogCorpus)
    return list(found.dialogs())


def test_contexts_are_the_hits_of_their_turn_and_answers_the_references(tmp_path: Path) -> None:
    finance, travel = read(write(tmp_path, FINANCE, TRAVEL))
    assert isinstance(finance, Dialog) and isinstance(travel, Dialog)
    assert [[p.text for p in finance.retrieved(n)] for n in (1, 2, 3)] == [
        ["It cost 5 in 2020."],
        ["It cost 5 in 2020.", "It cost 4 in 2019."],
        ["Page: 7\nText: Wages."],
    ]
    assert [[hit.new for hit in turn.hits] for turn in finance.turns] == [[True], [False, True], [True]]
    assert [turn.answer for turn in finance.turns] == ["5", "4", "Wages rose.\nSo did rents."]
    assert [span.text for span in finance.turns[0].evidence] == ["cost 5"]
    assert finance.turns[1].other_answers == ("nowhere",)  # it stands in no context word by word
    assert (finance.id, finance.task) == ("RR_finance_03", "finance")
    assert [turn.answer for turn in travel.turns] == ["", "", "Day 1: fly."] and not travel.turns[2].hits


def test_references_may_stand_in_a_file_of_reference_answers(tmp_path: Path) -> None:
    question = {key: value for key, value in FINANCE.items() if key != "references"}
    answer = {"question_id": "RR_finance_03", "choices": [{"index": 0, "turns": ["a", "b", "c"]}]}
    file = write(tmp_path, question)
    (skipped,) = read(tmp_path)
    assert isinstance(skipped, SkippedRecord) and "references: there are none" in skipped.reason
    write(tmp_path, answer, name="reference_answer/gpt-4.jsonl")
    for path in (tmp_path, file):
        (found,) = read(path)
        assert isinstance(found, Dialog) and [turn.answer for turn in found.turns] == ["a", "b", "c"]
    write(tmp_path, answer, name="reference_answer/other.jsonl")
    with pytest.raises(CorpusError, match="RR_finance_03 are there twice"):
        read(tmp_path)


def test_a_zip_archive_takes_no_answers_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZipFile(tmp_path / "rad.zip", "w") as archive:
        archive.writestr("question.jsonl", json.dumps({**FINANCE, "references": None}))
    answer = {"question_id": "RR_finance_03", "choices": [{"turns": ["a", "b", "c"]}]}
    write(tmp_path / "elsewhere", answer, name="reference_answer/gpt-4.jsonl")
    monkeypatch.chdir(tmp_path / "elsewhere")
    (found,) = read(tmp_path / "rad.zip")
    assert isinstance(found, SkippedRecord)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"contexts": ["a"]}, "contexts: has 1 for 3 turns"),
        ({"references": ["a", "b"]}, "references: has 2 for 3 turns"),
        ({"turns": ["a", "", "c"]}, "turn 2 has an empty question"),
        ({"turns": "a"}, "turns: "),
        ({"contexts": ["", "", ""]}, "it has no document"),
        ({"question_id": None}, "question_id: "),
    ],
)
def test_a_broken_item_is_skipped_with_the_reason(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    good, broken = read(write(tmp_path, TRAVEL, FINANCE | change))
    assert isinstance(good, Dialog) and isinstance(broken, SkippedRecord)
    assert broken.where.endswith("question.jsonl:2") and broken.reason.startswith(reason)


def test_a_folder_without_questions_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, FINANCE, name="gpt-4o.jsonl")
    write(tmp_path, FINANCE, name="other.jsonl")
    with pytest.raises(CorpusError, match=r"has no question.jsonl"):
        read(tmp_path)


def export(folder: Path, *dialogs: Dialog) -> Path:
    source = ExportSource("c", lambda: iter(dialogs), lambda: iter(()), "pairs", rewritten=False)
    RadBenchExport(path=None).write(source, folder)
    return folder


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1).filter(str.strip)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {
            "question_id": st.builds("RS_news_{:02}".format, st.integers(0, 10**6)),
            "turns": st.lists(TEXT, min_size=3, max_size=3),
            "contexts": st.lists(st.lists(TEXT, min_size=1, max_size=4) | TEXT, min_size=3, max_size=3),
            "references": st.lists(TEXT | st.just(""), min_size=3, max_size=3),
        },
        optional={"evidence_text": st.lists(st.lists(TEXT, max_size=2) | TEXT, min_size=3, max_size=3)},
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["question_id"],
)


@given(ITEMS)
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
def test_items_that_were_written_are_read_as_the_same_items(items: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        dialogs = read(write(Path(folder, "in"), *items))
        assert all(isinstance(dialog, Dialog) for dialog in dialogs)
        out = Path(folder, "out")
        out.mkdir()
        assert read(export(out, *dialogs)) == dialogs  # type: ignore[arg-type]


def test_generated_items_get_ids_of_the_publishers_form(tmp_path: Path) -> None:
    passages = [make_passage("a", "Salt is cheap.", title="Salt")]
    turns = [make_turn(n, hits=make_hits("a")) for n in (1, 2, 3)]
    dialogs = [
        make_dialog(*turns, passages=passages, id=f"x{n}", task=task) for n, task in enumerate(("news", "travel"))
    ]
    export(tmp_path, *dialogs)
    lines = [json.loads(line) for line in (tmp_path / "question.jsonl").read_text().splitlines()]
    assert [(line["question_id"], line["aspect"]) for line in lines] == [("RS_news_00", "RS"), ("TR_travel_00", "TR")]
    assert lines[0]["contexts"][0] == ["Salt\nSalt is cheap."]
    answers = [json.loads(line) for line in (tmp_path / "reference_answer/reference.jsonl").read_text().splitlines()]
    assert answers[1]["choices"][0]["turns"] == ["A1.", "A2.", "A3."]
    found = read(tmp_path)
    assert [each.task for each in found if isinstance(each, Dialog)] == ["news", "travel"]


def test_a_question_without_a_reference_and_those_after_it_are_no_pairs(tmp_path: Path) -> None:
    finance, travel = read(write(tmp_path, FINANCE | {"references": ["5", "4", ""]}, TRAVEL))
    assert isinstance(finance, Dialog) and isinstance(travel, Dialog)
    assert [row.turn for row in rows(finance, "pairs")] == [1, 2] and rows(travel, "pairs") == []


@pytest.mark.parametrize(("task", "message"), [("", "belongs to no task"), ("GR", "no file for the scenario 'GR'")])
def test_dialogs_of_no_scenario_can_not_be_written(tmp_path: Path, task: str, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        export(tmp_path, make_dialog(make_turn(1), task=task))
