"""People's marks: which run they are of, what they make of its pairs, and what is refused."""

import json
from pathlib import Path

import pytest

from generator.dialogs.columns import deciding_verdict
from generator.dialogs.marks import Mark, Marks, apply_judged, apply_marks, fingerprint, read_marks
from generator.errors import ConfigError
from generator.schema import Verdict
from tests.support.records import make_dialog, make_turn

WRONG = Verdict(judge="correctness", label="incorrect", explanation="", model="m")
DIALOG = make_dialog(make_turn(1), make_turn(2, verdicts=(WRONG,)), make_turn(3))


def marks(*given: Mark, annotator: str = "ada") -> Marks:
    return Marks(run=fingerprint(DIALOG), annotator=annotator, marks=given)


def test_people_outrank_judges_and_what_they_reject_is_dropped_at_the_stage_human() -> None:
    given = marks(
        Mark(dialog_id="d", turn=1, keep=False, note="not in the passage"),
        Mark(dialog_id="d", turn=2, keep=True, criteria={"correctness": "yes"}),
    )
    dialog, drops = apply_marks(given, [DIALOG], "pairs", "marks=m.json")["d"]
    assert [(drop.turn, drop.stage, drop.reason) for drop in drops] == [(1, "human", "rejected")]
    verdict = deciding_verdict(dialog.turns[0])
    assert verdict is not None
    assert (verdict.judge, verdict.explanation) == ("human:ada", "not in the passage")
    assert [v.judge for v in dialog.turns[1].verdicts] == ["correctness", "human:ada", "human:ada:correctness"]


def test_a_rejection_takes_the_rest_of_the_dialog_along_where_the_filter_says_so() -> None:
    given = marks(Mark(dialog_id="d", turn=1, keep=False), Mark(dialog_id="d", turn=2, keep=True))
    _, drops = apply_marks(given, [DIALOG], "prefix", "marks=m.json")["d"]
    assert [(drop.turn, drop.stage) for drop in drops] == [(1, "human"), (2, "human"), (3, "human")]


def test_marks_replace_earlier_ones_of_the_same_person_and_may_take_them_back() -> None:
    first, _ = apply_marks(marks(Mark(dialog_id="d", keep=False)), [DIALOG], "pairs", "")["d"]
    again = marks(*(Mark(dialog_id="d", turn=turn) for turn in (1, 2, 3)))
    back, drops = apply_marks(again, [first], "pairs", "")["d"]
    assert back == DIALOG
    assert [drop.stage for drop in drops] == ["judge"]
    other = marks(Mark(dialog_id="d", turn=1, keep=True), annotator="bob")
    both, drops = apply_marks(other, [first], "pairs", "")["d"]
    assert [v.judge for v in both.turns[0].verdicts] == ["human:ada", "human:bob"]
    assert len(drops) == 3


def test_a_mark_on_a_whole_dialog_stands_at_each_turn_unless_the_turn_has_its_own() -> None:
    given = marks(
        Mark(dialog_id="d", keep=False, criteria={"coherency": "no", "flow": "2"}, note="jumps"),
        Mark(dialog_id="d", turn=2, keep=True, criteria={"correctness": "yes"}),
        Mark(dialog_id="d", turn=3, criteria={"correctness": "yes"}),
    )
    dialog, drops = apply_marks(given, [DIALOG], "pairs and human:ada:flow>=2", "")["d"]
    assert [(drop.turn, drop.stage, drop.reason) for drop in drops] == [(t, "human", "rejected") for t in (1, 3)]
    for turn in dialog.turns:
        said = {verdict.judge: verdict for verdict in turn.verdicts}
        assert (said["human:ada:coherency"].label, said["human:ada:coherency"].decides) == ("no", False)
        assert (said["human:ada:flow"].score, said["human:ada:flow"].explanation) == (2, "jumps")
    _, drops = apply_marks(given, [DIALOG], "pairs and human:ada:flow>=3", "")["d"]
    assert [(drop.turn, drop.stage) for drop in drops] == [(1, "human"), (2, "filter"), (3, "human")]
    back, _ = apply_marks(marks(Mark(dialog_id="d")), [dialog], "pairs", "")["d"]
    assert [v.judge for v in back.turns[0].verdicts] == []


def test_a_run_is_the_same_with_more_dialogs_and_other_verdicts() -> None:
    judged = DIALOG.model_copy(update={"turns": tuple(t.model_copy(update={"verdicts": ()}) for t in DIALOG.turns)})
    assert fingerprint(DIALOG) == fingerprint(judged)
    assert fingerprint(DIALOG) != fingerprint(make_dialog(make_turn(1, answer="Another."), make_turn(2), make_turn(3)))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Marks(run="0" * 16, annotator="ada", marks=()), "another run"),
        (marks(Mark(dialog_id="e", turn=1)), "no dialog e"),
        (marks(Mark(dialog_id="d", turn=4)), "no turn 4"),
        (marks(annotator=""), "no annotator"),
    ],
)
def test_marks_of_other_dialogs_are_refused(given: Marks, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        apply_marks(given, [DIALOG], "pairs", "marks=m.json")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text[: len(text) // 2], "not a complete file"),
        (lambda text: text.replace('"keep"', '"keeep"'), "keeep"),
        (lambda text: text.replace("ada", "a/d a"), "annotator"),
        (lambda text: text.replace("[{", '[{"dialog_id":"d","turn":1},{'), "marked twice"),
    ],
)
def test_a_file_that_holds_no_marks_is_one_line(tmp_path: Path, change: object, problem: str) -> None:
    file = tmp_path / "marks.json"
    text = json.dumps(marks(Mark(dialog_id="d", turn=1, keep=True)).model_dump(), separators=(",", ":"))
    file.write_text(change(text), encoding="utf-8")  # type: ignore[operator]
    with pytest.raises(ConfigError, match=problem) as error:
        read_marks(file)
    assert "\n" not in str(error.value)


def test_a_folder_without_anything_that_people_judged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dialogs\.jsonl"):
        apply_judged(tmp_path, [DIALOG], "pairs", "marks")
    (tmp_path / "dialogs.jsonl").write_text(DIALOG.model_dump_json() + "\n")
    with pytest.raises(ConfigError, match=r"judges\.human read"):
        apply_judged(tmp_path, [DIALOG], "pairs", "marks")
