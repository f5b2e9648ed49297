"""The benchmark of judges against human labels: its data sets, its figures, and a whole run."""

import csv
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from generator.schema import Verdict
from tests.support.openai_server import Body, OpenAIServer, prompt

pytest.importorskip("sklearn", reason="scikit-learn, which computes kappa, isn't installed")
from benchmarks.judgements import draw, read_ratings
from benchmarks.judges import agreement, main
from generator.optimization.labels import SETS

COUNTS = {
    "q2_wow": {"consistent": 300, "inconsistent": 300},
    "faithdial_audit": {"hallucination": 288, "partial hallucination": 174, "entailment": 127},
    "squad2": {"answerable": 1061, "unanswerable": 1201},
    "clapnq": {"answerable": 300, "unanswerable": 300},
    "mtrag": {"answerable": 532, "partial": 57, "unanswerable": 41},
    "mtrag_idk": {"answerable": 532, "partial": 57, "unanswerable": 41},
    "canard": {"": 2940},
}
YES_NO = {"inconsistent": "incorrect", "consistent": "correct"}


def verdict(label: str, score: float | None = None) -> Verdict:
    return Verdict(judge="any", label=label, explanation="", model="m", score=score, decides=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_a_data_set_is_read_and_drawn_from(name: str, data: Path) -> None:
    items = list(SETS[name].read(data))
    assert Counter(item.human for item in items) == COUNTS[name]
    assert len({item.dialog.id for item in items}) == len(items)
    assert all(item.dialog.own_turns == item.dialog.turns[-1:] for item in items)
    assert SETS[name].meaning.keys() == COUNTS[name].keys()
    chosen = draw(name, data, 12, seed=3)
    verdicts = Counter(SETS[name].meaning[item.human] for item in chosen)
    assert set(verdicts.values()) == {12 // len(verdicts)}
    assert draw(name, data, 12, seed=3) == chosen


def test_the_judge_sees_what_people_saw(data: Path) -> None:
    with (data / "q2_wow" / "dodeca_consistent.csv").open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    first = next(SETS["q2_wow"].read(data)).dialog
    shown = (first.turns[0].query, first.turns[0].answer, first.grounding(1)[0].text)
    assert shown == (row["message"], row["response"], row["knowledge"])
    later = next(item.dialog for item in SETS["mtrag"].read(data) if len(item.dialog.turns) == 3)
    assert 1 <= len(later.grounding(3)) <= 11  # the turn's own passages, not those of the turns before too
    assert [turn.turn for turn in later.turns] == [1, 2, 3]


def test_the_human_evaluation_is_compared_with_what_its_authors_measured(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_ratings(data)
    assert len(found) == 218
    assert {scored.dialog.lm for scored, _ in found} == {"gpt-4o", "llama-3.1-405b-instruct"}
    assert all(1 <= value <= 4 for scored, _ in found for name, value in scored.human.items() if name != "win rate")
    monkeypatch.setattr(sys, "argv", ["judges", "--data", str(data)])
    main()
    assert "| rl_f | 0.67 |" in capsys.readouterr().out


def test_agreement_by_hand() -> None:
    # Of 10 judged, 7 right. By chance: 6/10 * 5/10 + 4/10 * 5/10 = 0.5, so kappa is (0.7 - 0.5) / 0.5.
    labels = [("consistent", "correct")] * 4 + [("consistent", "incorrect")] * 2
    labels += [("inconsistent", "incorrect")] * 3 + [("inconsistent", "correct")] + [("consistent", "unjudged")] * 2
    row = agreement("correctness", YES_NO, [(human, verdict(label)) for human, label in labels])
    assert row == ["12", "2", "0.70", "0.40 to 0.89", "0.40", "0.41", "5 correct, 5 incorrect"]

    row = agreement("correctness", YES_NO, [(human, verdict("correct")) for human in [*YES_NO] * 5])
    assert (row[2], row[4], row[5]) == ("0.50", "0.00", "–"), "a constant verdict agrees by chance"
    row = agreement("correctness", YES_NO, [("consistent", verdict("unjudged"))])
    assert row[:2] == ["1", "1"] and set(row[2:]) <= {"", "–"}


def test_scores_only_have_a_rank_correlation() -> None:
    pairs = [("inconsistent", verdict("scored", 0.1)), ("consistent", verdict("scored", 0.9))]
    assert agreement("rl_f", YES_NO, [*pairs, ("consistent", verdict("no claims"))]) == [
        *("3", "1", "", "", "", "1.00", "mean 0.50")
    ]


def answerability(body: Body) -> str:
    """Reply that every question but one can be answered."""
    label = "unanswerable" if "the moon" in prompt(body) else "answerable"
    return json.dumps({"explanation": "Sentence 1.", "label": label})


@pytest.mark.slow
def test_a_model_is_asked_and_compared(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [("How far is the moon?", True), ("Who sells cheese?", True), ("Where is it?", False), ("When?", False)]
    questions = [{"question": question, "is_impossible": impossible} for question, impossible in asked]
    paragraphs = [{"context": "The market is on Saturday, in the square.", "qas": questions}]
    (tmp_path / "squad2").mkdir()
    (tmp_path / "squad2" / "dev.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    with OpenAIServer(responder=answerability) as server:
        arguments = ["--data", str(tmp_path), "--items", "4", "--out", str(tmp_path / "out")]
        model = [*server.settings(), "lm.api_key_env=NONE"]
        monkeypatch.setattr(sys, "argv", ["judges", *arguments, "--pairs", "squad2:answerability", *model])
        main()
        assert len(server.bodies) == 4
    row = capfd.readouterr().out.splitlines()[-1]
    assert (
        row == "| squad2 | answerability | 4 | 0 | 0.75 | 0.30 to 0.95 | 0.50 | 0.58 | 3 answerable, 1 unanswerable |"
    )
