"""`python -m judges.review`: a sheet of contexts and references, filled in by people, and the items that stay."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from generator.schema import Dialog, Verdict
from judges.review import COMMAND
from tests.judges.sheets import rows_of, run_of
from tests.support import runs
from tests.support.records import load_dialogs, make_dialog, make_hits, make_passage, make_turn

command = partial(runs.command, program=COMMAND)


def item(name: str, *references: str, label: str = "correct") -> Dialog:
    verdict = Verdict(judge="sufficiency", label=label, explanation="", model="m")
    turns = [
        make_turn(n, query=f"{name} question {n}?", answer=text, hits=make_hits(f"p{n}"), verdicts=(verdict,))
        for n, text in enumerate(references, start=1)
    ]
    passages = [make_passage(f"p{n}", f"Context {n}.") for n in range(1, len(references) + 1)]
    return make_dialog(*turns, id=name, passages=passages, task="news", algorithm="progressive")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    items = [item("a", "A1", "A2"), item("b", "B1", "B2"), item("c", "", "C2"), item("d", "D1", label="incorrect")]
    return run_of(tmp_path / "run", *items)


def filled(path: Path, answers: Mapping[str, str]) -> Path:
    path.write_text("id,suffices\n" + "".join(f"{n},{answer}\n" for n, answer in answers.items()), encoding="utf-8")
    return path


def test_the_sheet_has_each_turn_with_a_reference_and_its_own_contexts(run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert command(run, f"sheet={sheet}").code == 0
    rows = rows_of(sheet)
    assert [row["id"] for row in rows] == ["a/1", "a/2", "b/1", "b/2", "c/2", "d/1"]
    assert rows[1] == {
        "id": "a/2",
        "scenario": "news",
        "earlier questions": "a question 1?",
        "question": "a question 2?",
        "contexts": "Context 2.",
        "reference": "A2",
        "suffices": "",
    }


def test_items_stay_that_a_majority_found_sufficient_in_every_turn(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="statsmodels isn't installed (extra agreement)")
    one = filled(tmp_path / "1.csv", {"a/1": "yes", "a/2": "yes", "b/1": "Yes", "b/2": "no", "c/2": "y", "d/1": "no"})
    two = filled(tmp_path / "2.csv", {"a/1": "yes", "a/2": "yes", "b/1": "yes", "b/2": "no", "c/2": "no", "d/1": "no"})
    three = filled(tmp_path / "3.csv", {"a/1": "no", "a/2": "1", "b/1": "yes", "b/2": "yes"})
    output = tmp_path / "kept.jsonl"
    done = command(run, f"sheets=[{one},{two},{three}]", f"output={output}")
    assert done.code == 0
    kept = load_dialogs(output)
    assert [each.id for each in kept] == ["a"], "c has two votes that differ"
    shown = dict(line.rsplit(None, 1) for line in done.out.splitlines() if line.strip())
    assert shown["turns reviewed"] == "6" and shown["sufficient by majority"] == "3"
    assert shown["without a majority"] == "1" and shown["items kept"] == "1"
    # Of the turns with two votes or more: 1/3, 1, 1, 1/3, 0 and 1 of the pairs agree.
    assert shown["agreement of two people"] == "61.1%"
    # The judge passed a/1, a/2, b/1 and refused d/1 as people do, and passed b/2.
    assert shown["judge with the majority"] == "80.0%"


def test_a_turn_that_nobody_reviewed_keeps_its_item_out(run: Path, tmp_path: Path) -> None:
    sheet, output = filled(tmp_path / "1.csv", {"a/1": "yes", "c/2": "yes"}), tmp_path / "kept.jsonl"
    assert command(run, f"sheets={sheet}", f"output={output}").code == 0
    (kept,) = output.read_text(encoding="utf-8").splitlines()
    assert Dialog.model_validate_json(kept).id == "c", "its first turn has no reference to review"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "sheet, sheets: give one of them"),
        (["sheet=x.csv", "output=y.jsonl"], "output: is written from filled-in sheets"),
        (["sheets=bad.csv"], "bad.csv: row 2: suffices 'perhaps' must be one of no, yes"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], said: str, run: Path, here: Path) -> None:
    filled(here / "bad.csv", {"a/1": "perhaps"})
    assert command(run, *arguments).refused.startswith(said)


def test_dialogs_without_contexts_of_their_own_have_nothing_to_review(tmp_path: Path) -> None:
    assert "no turn has its own contexts" in command(run_of(tmp_path, make_dialog(make_turn(1))), "sheet=x.csv").error
