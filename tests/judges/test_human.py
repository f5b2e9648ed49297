"""`python -m judges.human`: samples drawn blind, annotations read back as verdicts, agreement by hand."""

import csv
import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from generator.__main__ import COMMAND as generate
from generator.dialogs.marks import fingerprint
from generator.report import COMMAND as report
from generator.schema import Dialog, Verdict
from generator.statistics import COMMAND as statistics
from judges.__main__ import COMMAND as judge
from judges.human import COMMAND
from judges.people.forms import printable_text
from judges.people.measures import measure_judge
from judges.people.sample import Item, Key, Source
from judges.people.write import source_names
from taxonomy import read_criteria
from tests.judges.sheets import rows_of, run_of
from tests.support import runs
from tests.support.openai_server import OpenAIServer
from tests.support.records import load_dialogs, make_dialog, make_hits, make_passage, make_turn
from tests.support.runs import Site

command = partial(runs.command, program=COMMAND)

HOSTILE = '<script>alert("x")</script> & =HYPERLINK("http://x") \x1b[31m ]]>'
PACKAGES = ("krippendorff", "statsmodels")


@pytest.fixture(autouse=True)
def needs_packages() -> None:
    for package in PACKAGES:
        pytest.importorskip(package, reason="the extra agreement isn't installed")


def dialog(number: int, turns: int = 3, **fields: Any) -> Dialog:
    verdict = Verdict(judge="correctness", label="correct", explanation="", model="m", score=0.9)
    made = [
        make_turn(
            n,
            query=f"d{number} Q{n}?",
            answer=HOSTILE if (number, n) == (0, 1) else f"d{number} A{n}",
            question_type="direct" if n == 1 else "follow-up",
            answerability="unanswerable" if number % 4 == 3 else "answerable",
            hits=make_hits(f"p{n}"),
            verdicts=(verdict,),
        )
        for n in range(1, turns + 1)
    ]
    passages = [make_passage(f"p{n}", f"Passage {n} of {number}.") for n in range(1, turns + 1)]
    return make_dialog(*made, id=f"secret-{number}", passages=passages, lm="secret-model", **fields)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_of(tmp_path / "run", *(dialog(n) for n in range(8)))


def key_of(tmp_path: Path) -> dict[str, dict[str, Any]]:
    key = json.loads((tmp_path / "sample.key.json").read_text(encoding="utf-8"))
    return {item["id"]: item for item in key["items"]}


def fill(path: Path, rows: list[dict[str, str]], cells: Mapping[str, Mapping[str, str]], name: str = "") -> Path:
    """Write a sheet with these cells filled in, by id."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows({**row, **cells.get(row["id"], {}), **({"annotator": name} if name else {})} for row in rows)
    return path


def drawn(tmp_path: Path, *arguments: str | Path) -> Path:
    done = command("draw", *arguments, f"output={tmp_path / 'sample'}")
    assert (done.code, done.err) == (0, "")
    return tmp_path / "sample"


def verdicts_of(folder: Path) -> dict[tuple[str, int], dict[str, Verdict]]:
    read = load_dialogs(folder / "dialogs.jsonl")
    return {(d.id, t.turn): {v.judge: v for v in t.verdicts} for d in read for t in d.turns}


def test_a_sample_is_blind_and_only_the_key_tells(run: Path, tmp_path: Path) -> None:
    other = run_of(tmp_path / "other", *(dialog(n, 1) for n in range(100, 110)))
    sample = drawn(tmp_path, run, other, "items=10")
    key = key_of(tmp_path)
    assert Counter(item["source"] for item in key.values()) == {0: 5, 1: 5}
    texts = [path.read_text(encoding="utf-8") for path in sample.iterdir()]
    for secret in ("secret", str(tmp_path), "follow-up", "unanswerable"):
        assert not any(secret in text for text in texts), secret
    rows = rows_of(sample / "sheet.csv")
    assert [row["id"] for row in rows] == list(key), "the key is in the order of the sheet"
    for row in rows:
        item = key[row["id"]]
        turn = item["turn"]
        assert row["question"].endswith(f"Q{turn}?") and f"Passage {turn} of" in row["passages"]
        assert row["dialog"].count("User:") == turn - 1, "what comes before the pair, and nothing after it"
    assert "In a sheet, write one of these" in (sample / "instructions.txt").read_text(encoding="utf-8")
    again = tmp_path / "again"
    again.mkdir()
    drawn(again, run, other, "items=10")
    assert [i["dialog"] for i in key_of(again).values()] == [i["dialog"] for i in key.values()]
    assert "exists already" in command("draw", run, f"output={sample}").refused


def test_a_sample_that_could_not_be_written_is_drawn_by_the_same_command(run: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.mkdir()
    arguments = ("draw", run, f"output={tmp_path / 'sample'}", f"key={key}")
    assert f"{key}: can't be written" in command(*arguments).refused
    key.rmdir()
    assert command(*arguments).code == 0


def test_what_people_said_of_other_dialogs_leaves_a_folder_that_the_right_ones_go_into(
    run: Path, tmp_path: Path
) -> None:
    sample = drawn(tmp_path, run, "items=24")
    rows = rows_of(sample / "sheet.csv")
    filled = fill(tmp_path / "filled.csv", rows, {row["id"]: {"correctness": "yes"} for row in rows}, "ann")
    arguments = ("read", filled, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'people'}")
    other = run_of(tmp_path / "other", *(dialog(n) for n in range(1, 8)))
    assert "any more" in command(*arguments, f"input={other}").refused
    assert command(*arguments).code == 0
    assert len(load_dialogs(tmp_path / "people/dialogs.jsonl")) == 8


def test_of_two_dialogs_with_one_id_the_first_is_judged(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", dialog(1, 2), dialog(1, 1, context="own"))  # as judges.evaluate context=both writes
    done = command("draw", run, f"output={tmp_path / 'sample'}")
    assert done.code == 0 and f"{run}: 1 of 2 dialogs" in done.err and done.err.count("\n") == 1
    rows = rows_of(tmp_path / "sample" / "sheet.csv")
    assert sorted(row["question"] for row in rows) == ["d1 Q1?", "d1 Q2?"]
    sheet = fill(tmp_path / "ann.csv", rows, {row["id"]: {"correctness": "no"} for row in rows})
    assert command("read", sheet, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}").code == 0
    first, second = load_dialogs(tmp_path / "p/dialogs.jsonl")
    assert all(any(v.judge == "human:ann:correctness" for v in turn.verdicts) for turn in first.turns)
    assert not any(v.judge.startswith("human:") for turn in second.turns for v in turn.verdicts)


def test_of_a_model_under_test_people_judge_what_it_answered(tmp_path: Path) -> None:
    answered = dialog(1, context="golden")
    turns = [turn.model_copy(update={} if turn.turn == 2 else {"verdicts": ()}) for turn in answered.turns]
    run = run_of(tmp_path / "run", answered.model_copy(update={"turns": tuple(turns)}))
    rows = rows_of(drawn(tmp_path, run, "unit=dialogs", "criteria=mtrag") / "sheet.csv")
    assert [row["question"] for row in rows] == ["d1 Q2?"]
    sheet = fill(tmp_path / "ann.csv", rows, {rows[0]["id"]: {"faithfulness": "2"}})
    done = command("read", sheet, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0 and "pairs: 1 of 1 stay" in done.out
    found = {turn: verdicts.keys() for (_, turn), verdicts in verdicts_of(tmp_path / "p").items()}
    assert list(found) == [1, 2, 3] and not found[1] | found[3] and "human:ann:faithfulness" in found[2]


@pytest.mark.parametrize(("unit", "items"), [("pairs", [3]), ("dialogs", [3, None])])
def test_what_has_no_answer_is_not_drawn(unit: str, items: list[int | None], tmp_path: Path) -> None:
    """RAD-Bench's travel items have a reference in their last turn alone."""
    travel, other = dialog(1), dialog(2)
    turns = [turn.model_copy(update={"answer": turn.answer if turn.turn == 3 else ""}) for turn in travel.turns]
    none = [turn.model_copy(update={"answer": ""}) for turn in other.turns]
    whole = other.model_copy(update={"turns": tuple(none)})
    run = run_of(tmp_path / "run", travel.model_copy(update={"turns": tuple(turns)}), whole)
    drawn(tmp_path, run, f"unit={unit}")
    assert [item["turn"] for item in key_of(tmp_path).values()] == items
    refused = command("draw", run_of(tmp_path / "none", whole), f"output={tmp_path / 'nothing'}", f"unit={unit}")
    assert "has no answer to judge" in refused.refused


def test_strata_get_their_shares(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", *(dialog(n, 2) for n in range(40)))
    drawn(tmp_path, run, "items=20", "strata=[answerability,turn]")
    items = key_of(tmp_path).values()
    # A quarter of the dialogs are unanswerable, and each has two turns.
    unanswerable = [item["turn"] for item in items if int(item["dialog"].split("-")[1]) % 4 == 3]
    assert len(items) == 20 and len(unanswerable) == 5
    assert sum(item["turn"] == 1 for item in items) in (9, 10, 11), "each stratum's share is rounded up or down"


def test_whole_dialogs_come_with_their_turns_and_each_annotator_gets_a_share(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "unit=dialogs", "items=6", "annotators=[ann,ben,cem]", "each=2")
    sheets = {name: rows_of(sample / f"sheet-{name}.csv") for name in ("ann", "ben", "cem")}
    assert {name: len(rows) for name, rows in sheets.items()} == dict.fromkeys(sheets, 4 * 4)
    first = sheets["ann"][:4]
    assert [row["id"].partition("-")[2] for row in first] == ["1", "2", "3", ""]
    assert [row["correctness"] for row in first] == ["", "", "", "n/a"], "criteria of turns aren't asked of dialogs"
    assert [row["coherency"] for row in first] == ["n/a", "n/a", "n/a", ""]
    assert first[3]["dialog"].count("Agent:") == 3 and not first[3]["question"]


def test_hostile_text_stays_text_in_every_file(run: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: own\ncriteria:\n- {name: a, question: \"<Choice value='x'/> & $q?\"}\n", encoding="utf-8")
    sample = drawn(tmp_path, run, "items=100", "--criteria", own)
    config = ElementTree.parse(sample / "label_studio_turns.xml")
    assert [node.get("value") for node in config.iter("Choice")] == ["no", "yes"]
    assert {node.get("valueType") for node in config.iter("Text")} == {"text"}
    (row,) = [row for row in rows_of(sample / "sheet.csv") if "script" in row["response"]]
    assert "\x1b" not in row["response"] and row["question"] == "d0 Q1?"
    tasks = json.loads((sample / "label_studio_turns.json").read_text(encoding="utf-8"))
    assert {task["data"]["id"] for task in tasks} == set(key_of(tmp_path))


def test_people_read_texts_as_they_are_but_for_what_controls_a_page() -> None:
    kept = "10\N{NO-BREAK SPACE}000 km\n\t東京\N{IDEOGRAPHIC SPACE}駅 می\N{ZERO WIDTH NON-JOINER}خواهم"
    assert printable_text(kept) == kept
    assert printable_text("one\r\ntwo\rthree\x0cfour\N{LINE SEPARATOR}five") == "one\ntwo\nthree\nfour\nfive"
    assert printable_text("\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}\x00") == "\ufffd[31m\ufffd\ufffd"


def test_annotations_become_verdicts_and_filter_pairs(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "items=100", "annotators=[ann,ben,cem]")
    rows, key = rows_of(sample / "sheet-ann.csv"), key_of(tmp_path)
    wrong = next(name for name, item in key.items() if (item["dialog"], item["turn"]) == ("secret-2", 2))
    tied = next(name for name, item in key.items() if (item["dialog"], item["turn"]) == ("secret-5", 1))
    usual = {"answerability": "yes", "plausibility": "yes", "correctness": "Yes"}
    cells = dict.fromkeys(key, usual)
    sheets = [
        fill(tmp_path / "1.csv", rows, cells | {wrong: {**usual, "correctness": "no", "note": "=wrong"}}),
        fill(
            tmp_path / "2.csv", rows, cells | {wrong: {**usual, "correctness": "0"}, tied: {"correctness": "n"}}, "ben"
        ),
    ]
    folder = tmp_path / "people"
    arguments = [f"key={tmp_path / 'sample.key.json'}", f"run_dir={folder}"]
    done = command("read", *sheets, *arguments)
    assert (done.code, done.err) == (0, "")
    assert "ben: 24 (1 half-filled)" in done.out and "cem: 0 (24 missing)" in done.out
    assert "pairs: 23 of 24 stay" in done.out
    verdicts = verdicts_of(folder)
    of_wrong = verdicts["secret-2", 2]
    assert (of_wrong["human:ann:correctness"].label, of_wrong["human:ann:correctness"].explanation) == ("no", "=wrong")
    assert (of_wrong["human:all:correctness"].label, of_wrong["human:all:correctness"].decides) == ("incorrect", True)
    assert of_wrong["correctness"].label == "correct", "other judges' verdicts stay"
    tie = verdicts["secret-5", 1]["human:all:correctness"]
    assert (tie.label, tie.decides) == ("unjudged", False)
    drops = [json.loads(line) for line in (folder / "drops.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(d["dialog_id"], d["turn"], d["stage"]) for d in drops] == [("secret-2", 2, "human")]
    # The same command again replaces what it wrote; a filter names people's columns.
    done = command("read", *sheets, *arguments, "judge.filter=pairs and human:ben:correctness=yes")
    assert "pairs: 22 of 24 stay" in done.out
    report = json.loads((folder / "people.json").read_text(encoding="utf-8"))
    (correctness,) = [each for each in report["agreement"] if each["criterion"] == "correctness"]
    assert correctness["percent"]["value"] == round(23 / 24, 4)
    shown = runs.command(str(folder), "format=csv", program=statistics).out
    assert "human:all:correctness: incorrect" in shown


@pytest.mark.parametrize(
    ("scale", "good", "said", "label", "score"),
    [
        ("{1: cold, 2: plain, 3: friendly}", 2, "1 1 3", "incorrect", 1),
        ("{1: cold, 2: plain, 3: friendly}", 2, "1 2 3", "correct", 2),
        ("{1: cold, 2: plain, 3: friendly}", 2, "1 3", "unjudged", 2),
        ("{cold: '', rude: '', friendly: ''}", "friendly", "cold rude friendly", "incorrect", None),
        ("{cold: '', rude: '', friendly: ''}", "friendly", "cold rude friendly friendly", "unjudged", None),
    ],
)
def test_what_most_people_find_not_good_leaves_the_dataset(
    scale: str, good: object, said: str, label: str, score: float | None, tmp_path: Path
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "name: own\ncriteria:\n- {name: tone, about: response, adjective: friendly, question: Friendly, "
        f"scale: {scale}, good: {good}, decides: true}}\n",
        encoding="utf-8",
    )
    rows = rows_of(drawn(tmp_path, run_of(tmp_path / "run", dialog(1, 1)), f"criteria={own}") / "sheet.csv")
    sheets = [
        fill(tmp_path / f"{number}.csv", rows, {rows[0]["id"]: {"tone": value}}, f"person{number}")
        for number, value in enumerate(said.split())
    ]
    done = command("read", *sheets, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0 and f"pairs: {int(label != 'incorrect')} of 1 stay" in done.out
    verdict = verdicts_of(tmp_path / "p")["secret-1", 1]["human:all:tone"]
    assert (verdict.label, verdict.score, verdict.decides) == (label, score, label != "unjudged")


def test_a_judge_that_failed_on_every_turn_is_counted_too(tmp_path: Path) -> None:
    failed = Verdict(judge="idle", label="unjudged", explanation="no reply", model="m", decides=False)
    judged = dialog(1, 2)
    turns = [turn.model_copy(update={"verdicts": (*turn.verdicts, failed)}) for turn in judged.turns]
    run = run_of(tmp_path / "run", judged.model_copy(update={"turns": tuple(turns)}))
    rows = rows_of(drawn(tmp_path, run) / "sheet.csv")
    sheet = fill(tmp_path / "ann.csv", rows, {row["id"]: {"correctness": "yes"} for row in rows})
    done = command("read", sheet, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0 and "idle (m)" in done.out
    judges = json.loads((tmp_path / "p/people.json").read_text(encoding="utf-8"))["judges"]
    assert [(each["marks"], each["unjudged"]) for each in judges if each["judge"] == "idle"] == [(0, 2)]


def test_a_judge_of_another_question_is_not_compared_by_a_label_that_both_have(tmp_path: Path) -> None:
    judged = dialog(1)
    labels = {"idk": ("yes", "partial", "no"), "answerability": ("answerable", "partial", "conversational")}
    turns = []
    for turn in judged.turns:
        given = [
            Verdict(judge=name, label=each[turn.turn - 1], explanation="", model="m", decides=False)
            for name, each in labels.items()
        ]
        turns.append(turn.model_copy(update={"verdicts": tuple(given)}))
    run = run_of(tmp_path / "run", judged.model_copy(update={"turns": tuple(turns)}))
    rows = rows_of(drawn(tmp_path, run) / "sheet.csv")
    sheet = fill(tmp_path / "ann.csv", rows, {row["id"]: {"answerability": "yes"} for row in rows})
    done = command("read", sheet, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0, done.err
    judges = json.loads((tmp_path / "p/people.json").read_text(encoding="utf-8"))["judges"]
    assert [(each["judge"], each["criterion"], each["marks"]) for each in judges] == [
        ("answerability", "answerability", 2)
    ]


def test_tables_of_the_paper_by_hand(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", dialog(0, 1), dialog(1, 2))
    sample = drawn(tmp_path, run, "unit=dialogs", "items=2")
    key, rows = key_of(tmp_path), rows_of(sample / "sheet.csv")
    turns = {(i["dialog"], i["turn"]): name for name, i in key.items()}
    one, first, second = (turns[each] for each in (("secret-0", 1), ("secret-1", 1), ("secret-1", 2)))
    whole = turns["secret-1", None]

    def said(answerable: str, correct: str) -> dict[str, str]:
        return {"answerability": answerable, "plausibility": "yes", "correctness": correct}

    flows = {"diversity": "yes", "coherency": "no"}
    ann = {one: said("yes", "yes"), first: said("yes", "no"), second: said("no", "no"), whole: flows}
    ben = {one: said("yes", "yes"), first: said("yes", "yes"), second: said("no", "no")}
    paths = [fill(tmp_path / f"{name}.csv", rows, cells) for name, cells in (("ann", ann), ("ben", ben))]
    done = command("read", *paths, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'people'}")
    assert done.code == 0
    report = json.loads((tmp_path / "people/people.json").read_text(encoding="utf-8"))
    lengths = {line["name"]: line for line in report["lengths"]}
    assert lengths["1 turn"]["cells"]["correctness"]["good"] == 1
    assert lengths["2 turns"]["count"] == 1 and lengths["2 turns"]["cells"]["correctness"]["good"] == 0.25
    assert lengths["2 turns"]["cells"]["coherency"]["good"] == 0 and "coherency" not in lengths["1 turn"]["cells"]
    depths = {line["name"]: (line["count"], line["cells"]["correctness"]["good"]) for line in report["depths"]}
    assert depths == {"turn 1": (2, 0.75), "turn 2": (1, 0), "overall": (3, 0.5)}
    assert report["given"] == {"criterion": "correctness", "given": "answerability", "annotations": 4, "good": 3}
    (correctness,) = [each for each in report["agreement"] if each["criterion"] == "correctness"]
    assert [(p["one"], p["other"], p["agreed"], p["items"]) for p in correctness["pairs"]] == [("ann", "ben", 2, 3)]
    markdown = (tmp_path / "people/people.md").read_text(encoding="utf-8")
    assert "67% (2/3)" in markdown and "Of 4 annotations with answerable = yes, 3 (75.0%) are correct." in markdown
    assert "| correctness | 3 | 66.7% \\[0.0, 100.0\\] |" in markdown and "| – |" in markdown
    coherent = verdicts_of(tmp_path / "people")
    assert all(coherent["secret-1", n]["human:ann:coherency"].label == "no" for n in (1, 2))


def test_label_studios_export_and_the_reports_marks_are_read(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "items=5")
    tasks = json.loads((sample / "label_studio_turns.json").read_text(encoding="utf-8"))

    def result(name: str, value: str) -> dict[str, Any]:
        return {"from_name": name, "to_name": "response", "type": "choices", "value": {"choices": [value]}}

    notes = {"from_name": "note", "to_name": "response", "type": "textarea", "value": {"text": ["why"]}}
    export = [
        {
            "id": number,
            "data": task["data"],
            "annotations": [
                {"completed_by": 1, "result": [result("correctness", "yes"), notes], "was_cancelled": False},
                {"completed_by": {"id": 2, "email": "ben@x.org"}, "result": [], "was_cancelled": True},
            ],
        }
        for number, task in enumerate(tasks)
    ]
    (tmp_path / "export.json").write_text(json.dumps(export), encoding="utf-8")
    mark(sample / "marks.json", tmp_path / "marks.json", keep=False, criteria={"correctness": "no"})
    files = [tmp_path / "export.json", tmp_path / "marks.json"]
    done = command(
        "read", *files, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'p'}", "names=[1:ann,3:dora]"
    )
    assert done.code == 0 and "5 annotations skipped or empty" in done.err
    assert "names: nobody is called 3; the files have 1, cem" in done.err
    item = next(iter(key_of(tmp_path).values()))
    found = verdicts_of(tmp_path / "p")[item["dialog"], item["turn"]]
    assert (found["human:ann:correctness"].label, found["human:ann:correctness"].explanation) == ("yes", "why")
    assert (found["human:cem:correctness"].label, found["human:cem"].label) == ("no", "incorrect")
    assert found["human:all"].label == "incorrect" and "pairs: 19 of 24 stay" in done.out


def mark(empty: Path, path: Path, of: object = "any", **fields: Any) -> None:
    """Write Cem's marks on all items or on those `of` a turn, as the report that opens with the empty ones does."""
    marks = json.loads(empty.read_text(encoding="utf-8"))
    chosen = [each for each in marks["marks"] if of in ("any", each["turn"])]
    marks |= {"annotator": "cem", "marks": [{**each, **fields} for each in chosen]}
    path.write_text(json.dumps(marks), encoding="utf-8")


def test_items_that_nobody_judged_are_counted(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "items=5")
    kept = rows_of(sample / "sheet.csv")[1:]
    sheet = fill(tmp_path / "ann.csv", kept, {row["id"]: {"correctness": "yes"} for row in kept[1:]})
    done = command("read", sheet, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'p'}")
    assert "3 annotations of 3 items, 2 more of the sample by nobody. " in done.out


def test_notes_without_a_judgement_are_counted(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "items=2")
    (first, second), bare = key_of(tmp_path), {"note": "Why?"}
    cells = {first: {**bare, "correctness": "yes"}, second: bare}
    sheet = fill(tmp_path / "ann.csv", rows_of(sample / "sheet.csv"), cells)
    tasks = json.loads((sample / "label_studio_turns.json").read_text(encoding="utf-8"))
    note = {"from_name": "note", "value": {"text": ["Why?"]}}
    for task in tasks:
        task["annotations"] = [{"completed_by": 1, "result": [note]}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks), encoding="utf-8")
    mark(sample / "marks.json", tmp_path / "marks.json", **bare)
    files = [sheet, export, tmp_path / "marks.json"]
    done = command("read", *files, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0
    for file, count in zip(files, ("1 note", "2 notes", "2 notes"), strict=True):
        assert f"{file}: left out {count} without" in done.err


def test_whole_dialogs_are_marked_in_a_report_too(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "unit=dialogs", "items=2")
    assert (sample / "report.html").stat().st_size > 10_000
    shown = load_dialogs(sample / "dialogs.jsonl")
    assert [(d.lm, d.corpus, [t.verdicts for t in d.turns]) for d in shown] == [("", "sample", [()] * 3)] * 2
    mark(sample / "marks.json", tmp_path / "marks.json", criteria={"coherency": "no"})
    assert (
        "coherency: not asked of a turn"
        in command("read", tmp_path / "marks.json", f"key={tmp_path}/sample.key.json").refused
    )
    mark(sample / "marks.json", tmp_path / "marks.json", of=None, criteria={"coherency": "no"})
    done = command("read", tmp_path / "marks.json", f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'p'}")
    assert (done.code, done.err) == (0, "") and "cem: 2" in done.out
    name = next(item["dialog"] for item in key_of(tmp_path).values())
    assert all(verdicts_of(tmp_path / "p")[name, n]["human:cem:coherency"].label == "no" for n in (1, 2, 3))


def test_marks_of_a_runs_own_report_need_no_key(run: Path, tmp_path: Path) -> None:
    given = [
        {"dialog_id": "secret-1", "turn": 2, "criteria": {"correctness": "no"}},
        {"dialog_id": "secret-2", "keep": False, "criteria": {"coherency": "no"}},
        {"dialog_id": "secret-2", "turn": 3, "keep": True},
    ]
    marks = {"run": fingerprint(dialog(0)), "annotator": "ann", "marks": given}
    (tmp_path / "marks.json").write_text(json.dumps(marks), "utf-8")
    done = command("read", tmp_path / "marks.json", f"input={run}", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0 and "pairs: 21 of 24 stay" in done.out, "of the rejected dialog the pair that is kept stays"
    found = verdicts_of(tmp_path / "p")
    assert found["secret-1", 2]["human:all:correctness"].label == "incorrect"
    assert found["secret-2", 3]["human:ann:coherency"].label == "no"
    (tmp_path / "marks.json").write_text(json.dumps({**marks, "run": "0" * 16}), "utf-8")
    assert (
        "another run" in command("read", tmp_path / "marks.json", f"input={run}", f"run_dir={tmp_path / 'q'}").refused
    )


def test_marks_of_two_models_on_dialogs_with_the_same_ids_stay_apart(tmp_path: Path) -> None:
    answered = [dialog(1, 1), dialog(1, 1).model_copy(update={"lm": "other-model"})]
    sets = [run_of(tmp_path / f"run{place}", one) for place, one in enumerate(answered)]
    files = [tmp_path / f"marks{place}.json" for place in range(2)]
    for file, one, value in zip(files, answered, ("yes", "no"), strict=True):
        mark = {"dialog_id": one.id, "turn": 1, "criteria": {"correctness": value}}
        file.write_text(json.dumps({"run": fingerprint(one), "annotator": "ann", "marks": [mark]}), "utf-8")
    done = command("read", *files, f"input=[{sets[0]},{sets[1]}]", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0
    labels = [verdicts_of(tmp_path / "p" / one.name)["secret-1", 1]["human:ann:correctness"].label for one in sets]
    assert labels == ["yes", "no"]


@pytest.mark.parametrize(
    ("paths", "names"), [(["x/d.json", "x/d.jsonl"], ["d.json", "d.jsonl"]), (["x/a.jsonl", "run/"], ["a", "run"])]
)
def test_each_set_has_a_name_of_its_own(paths: list[str], names: list[str]) -> None:
    sources, items = tuple(Source(path=path) for path in paths), (Item(id="i", source=0, dialog="d"),)
    key = Key(unit="pairs", seed=0, strata=(), sources=sources, criteria=read_criteria(), items=items)
    assert source_names(key) == names


def test_what_people_said_goes_back_into_the_run(openai_server: OpenAIServer, tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.run(openai_server, "dialogs=2").code == 0
    pairs, first = len(site.rows()), Dialog.model_validate(site.dialogs()[0])
    given = [
        {"dialog_id": first.id, "turn": 1, "criteria": {"correctness": "no"}},
        {"dialog_id": first.id, "criteria": {"coherency": "no"}},
    ]
    marks = {"run": fingerprint(first), "annotator": "ann", "marks": given}
    (tmp_path / "marks.json").write_text(json.dumps(marks), "utf-8")
    people = tmp_path / "people"
    done = command("read", tmp_path / "marks.json", f"input={site.run_dir}", f"run_dir={people}")
    assert done.code == 0 and f"config.yaml marks={people}" in done.out
    assert site.run(openai_server, "dialogs=2", f"marks={people}").code == 0
    site.check_ledger()
    assert len(site.rows()) == pairs - 1 and site.summary()["dropped_pairs"] == {"human": {"rejected": 1}}
    for folder in (people, site.run_dir):
        assert runs.command(str(folder), program=report).code == 0
        shown = runs.command(str(folder), "format=csv", program=statistics).out
        assert "human:all:correctness: incorrect" in shown and "human:ann:coherency: no" in shown
        assert "human:ann:coherency" in (folder / "report.html").read_text(encoding="utf-8")
    judged = tmp_path / "judged"
    assert runs.command("judge=grounding", f"input={site.run_dir}", f"run_dir={judged}", program=judge).code == 0
    done = command("read", tmp_path / "marks.json", f"input={judged}", f"run_dir={tmp_path / 'again'}")
    assert done.code == 0 and "marks=" not in done.out, "a run of judging takes no marks"
    other = run_of(tmp_path / "other", dialog(0))
    before = site.data()
    ended = site.run(openai_server, "dialogs=2", f"marks={other}")
    assert ended.code == 2 and "another run" in ended.error and site.data() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "xdeadbeef"}, "row 2: the id 'xdeadbeef' is not in the sample"),
        ({"correctness": "perhaps"}, "row 2: correctness 'perhaps' must be one of no, yes"),
        ({"annotator": "zoe"}, "row 2: unknown annotator 'zoe'; the sample is for ann, ben"),
        ({"correctness": "", "answerability": "", "plausibility": ""}, "nothing is filled in yet"),
    ],
)
def test_annotations_that_are_wrong_are_one_line(change: dict[str, str], said: str, run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "items=1", "annotators=[ann,ben]")
    (row,) = rows_of(sample / "sheet-ann.csv")
    sheet = fill(tmp_path / "filled.csv", [{**row, "correctness": "yes", **change}], {})
    message = command("read", sheet, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'p'}").refused
    assert said in message and not (tmp_path / "p").exists()


def test_a_sheet_with_passages_of_any_length_is_read(run: Path, tmp_path: Path) -> None:
    (row,) = rows_of(drawn(tmp_path, run, "items=1") / "sheet.csv")
    sheet = fill(tmp_path / "ann.csv", [row], {row["id"]: {"passages": "words " * 40_000, "correctness": "yes"}})
    assert command("read", sheet, f"key={tmp_path / 'sample.key.json'}", f"run_dir={tmp_path / 'people'}").code == 0


def test_sheets_of_one_name_from_two_folders_are_of_two_people(run: Path, tmp_path: Path) -> None:
    rows = rows_of(drawn(tmp_path, run, "items=1") / "sheet.csv")
    for name in ("ann", "ben"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name / "sheet.csv", rows, {rows[0]["id"]: {"correctness": "yes"}})
    sheets = [tmp_path / name / "sheet.csv" for name in ("ann", "ben")]
    said = command("read", *sheets, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}").refused
    assert "column annotator" in said and "remove" not in said
    twice = fill(tmp_path / "twice.csv", rows * 2, {rows[0]["id"]: {"correctness": "yes"}})
    said = command("read", twice, f"key={tmp_path}/sample.key.json", f"run_dir={tmp_path / 'p'}").refused
    assert "row 3: twice judged" in said and "remove one" in said


def test_what_is_said_twice_or_about_something_else_is_one_line(run: Path, tmp_path: Path) -> None:
    sample = drawn(tmp_path, run, "items=2")
    rows, key = rows_of(sample / "sheet.csv"), f"key={tmp_path / 'sample.key.json'}"
    cells = {row["id"]: {"correctness": "yes"} for row in rows}
    sheet = fill(tmp_path / "ann.csv", rows, cells)
    twice = command("read", sheet, sheet, key).refused
    assert "ann judged" in twice and "already" in twice
    other = json.loads((sample / "marks.json").read_text(encoding="utf-8"))
    other["marks"][0]["criteria"] = {"nice": "yes"}
    (tmp_path / "marks.json").write_text(json.dumps(other), encoding="utf-8")
    assert "unknown criterion 'nice'" in command("read", tmp_path / "marks.json", key).refused
    assert "give the key of the sample" in command("read", sheet).refused
    header = tmp_path / "header.csv"
    header.write_text(sheet.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    assert "nothing is filled in yet" in command("read", header, key).refused
    assert "can't be read" in command("read", sheet, "key=none.json").refused
    assert "not a key" in command("read", sheet, f"key={tmp_path / 'marks.json'}").refused
    condition = "judge.filter=human:zoe:correctness=yes"
    assert "human:zoe:correctness is none of human:all:correctness" in command("read", sheet, key, condition).refused
    condition = "judge.filter=human:all:correctness>=3"
    assert "human:all:correctness has labels and no scores" in command("read", sheet, key, condition).refused
    run_of(run, dialog(99))
    assert "any more" in command("read", sheet, key, f"run_dir={tmp_path / 'p'}").refused
    assert "is or contains the input" in command("read", sheet, key, f"run_dir={run}").refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["criteria=nope"], "choose from lee2024, mtrag"),
        (["annotators=[a,a]"], "annotators: a is there twice"),
        (["each=2", "annotators=[a]"], "each=2: annotators names only 1"),
        (["strata=[colour]"], "strata"),
    ],
)
def test_settings_of_a_draw_that_are_wrong_are_one_line(arguments: list[str], said: str, run: Path) -> None:
    assert said in command("draw", run, *arguments).refused


def test_the_command_names_its_two_parts() -> None:
    assert "choose draw or read" in command("guess").refused
    assert "judges.human draw" in command("--help").out


@pytest.mark.parametrize(
    ("good", "scores"),
    [([True, True, False, False], [0.9, 0.8, 0.2, 0.1]), ([True, False, False], [0.94, 0.9, 0.88])],
)
def test_kappa_and_its_interval_end_at_1(good: list[bool], scores: list[float]) -> None:
    found = measure_judge("j", "m", "tone", good, scores, 0, 0)
    assert found.kappa.value is not None and found.kappa.value <= 1 and found.kappa.high == 1


def test_filters_of_a_run_may_name_people_who_judge_it_later() -> None:
    ended = runs.command("judge.filter=human:all:correctness=yes", "--cfg", "job", program=generate)
    assert ended.code == 0


@pytest.mark.slow
def test_mtrags_people_agree_as_published(data: Path, tmp_path: Path) -> None:
    file = data / "mtrag/evaluations/reference_subset_with_human_evaluations.json"
    done = command("read", file, "criteria=mtrag", f"run_dir={tmp_path / 'p'}")
    assert done.code == 0 and "1033 annotations of 348 items" in done.out
    report = json.loads((tmp_path / "p/people.json").read_text(encoding="utf-8"))
    agreement = {each["criterion"]: each for each in report["agreement"]}
    alphas = {name: round(each["alpha"]["value"], 2) for name, each in agreement.items()}
    # By `krippendorff.alpha` on the matrix of annotators and responses, ordinal.
    assert alphas == {"faithfulness": 0.49, "appropriateness": 0.05, "naturalness": 0.33, "completeness": 0.28}
    rl_f = next(j for j in report["judges"] if (j["judge"], j["criterion"]) == ("published:rl_f", "faithfulness"))
    assert rl_f["kappa"]["low"] > 0.4 and 0.2 < rl_f["threshold"]["value"] < 0.8
