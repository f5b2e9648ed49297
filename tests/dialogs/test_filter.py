"""Conditions of `judge.filter`: how they are read, what they remove, and what a run refuses."""

from collections import Counter
from pathlib import Path

import pytest

from generator.dialogs.filter import Filter, check_columns, filter_pairs, list_judges, loses_unjudged, parse_filter
from generator.errors import ConfigError
from generator.schema import Evidence, Label, Verdict
from judges.llm.idk import IdkJudge
from judges.llm.needs_documents import NeedsDocumentsJudge
from judges.llm.rl_f import FaithfulnessJudge
from judges.metrics.grounding import GroundingJudge
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_dialog, make_turn
from tests.support.runs import Site, command

SCORED = Verdict(judge="rl_f", label="scored", explanation="", model="m", score=0.4, decides=False)
REFUSAL = Verdict(judge="idk", label="yes", explanation="", model="m", decides=False)
WRONG_BY = "judged incorrect by j"
WRONG = Verdict(judge="j", label="incorrect", explanation="", model="m")
DIALOG = make_dialog(
    make_turn(1, query="dogs", evidence=(Evidence(passage_id="p", start=0, end=4, text="Dogs"),), verdicts=(SCORED,)),
    make_turn(2, question_type="factoid+how-to", answerability="unanswerable", verdicts=(REFUSAL,)),
    make_turn(3, rank_last_turn=12, verdicts=(WRONG,)),
)


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("pairs", [1, 2]),
        ("overlap<0.6", [2]),
        ("pairs and  overlap <= 1", [1, 2]),
        ("prefix and turn>1", [2]),
        ("rl_f>=0.5", [2]),
        ("rl_f=0.4 and idk!=yes", [1]),
        ("answerability!=unanswerable", [1]),
        ("question_type=how-to", [2]),
        ("question_type!=factoid", [1]),
        ("rank_last_turn<10 and difficulty!=easy", [2]),
        ("overlap<.6", [2]),
        ("verdict=none", [1, 2]),
        ("verdict=correct", []),
        ("user!=hurried", [1, 2]),
        ("user=hurried", []),
        ("user=plain", [1, 2]),
        ("lm=m", [1, 2]),
    ],
)
def test_a_condition_removes_the_pairs_that_have_the_column_and_do_not_meet_it(keep: str, kept: list[int]) -> None:
    turns, drops = filter_pairs(DIALOG, keep)
    assert [turn.turn for turn in turns] == kept
    assert sorted(kept + [drop.turn or 0 for drop in drops]) == [1, 2, 3]
    assert {drop.reason for drop in drops if drop.turn == 3} == {WRONG_BY}
    assert all(drop.stage == "filter" for drop in drops if drop.turn != 3)


@pytest.mark.parametrize(
    ("keep", "part"),
    [
        ("", ""),
        ("overlap", "overlap"),
        ("overlap<0.6 or turn>1", "overlap<0.6 or turn>1"),
        ("pairs and", "pairs and"),
        ("turn>1 and prefix", "prefix"),
        ("prefix and turn<ten", "turn<ten"),
    ],
)
def test_what_is_no_filter(keep: str, part: str) -> None:
    with pytest.raises(ValueError, match=f"^“{part}”"):
        parse_filter(keep)


@pytest.mark.parametrize("keep", ["overlaps<0.6", "idk>0.5", "overlap=low", "bert_recall>0.5", "seed=correct"])
def test_a_run_without_the_column_refuses_the_filter(keep: str) -> None:
    judges = [IdkJudge("m"), FaithfulnessJudge("m")]
    check_columns("rl_f>0.5 and idk!=yes and difficulty=hard and overlap<1", judges)
    with pytest.raises(ConfigError, match=rf"^judge\.filter: {keep}: .* that this run has: .*rl_f"):
        check_columns(keep, judges)


@pytest.mark.parametrize("keep", ["verified", "verdict=correct", "verdict!=unjudged", "pairs and grounding=correct"])
def test_who_keeps_no_unjudged_pair_loses_what_a_judge_fails_on(keep: str) -> None:
    assert loses_unjudged(keep, GroundingJudge())
    assert not loses_unjudged("pairs and verdict!=incorrect", GroundingJudge())


def test_scores_of_a_judge_that_decides_are_compared_with_numbers() -> None:
    check_columns("grounding>=0.8 and verdict=correct", [GroundingJudge()])
    with pytest.raises(ConfigError, match="right is no label of verdict"):
        check_columns("verdict=right", [GroundingJudge()])
    with pytest.raises(ConfigError, match="correct is no label of verdict; give one of none"):
        check_columns("verdict=correct", [IdkJudge("m")])
    with pytest.raises(ConfigError, match=r"^judge\.filter: overlap<60: overlap is 1 at most"):
        check_columns("turn>1 AND overlap<60", [])
    with pytest.raises(ConfigError, match=r"rl_f>=8: rl_f is 1 at most"):
        check_columns("rl_f>=8", [FaithfulnessJudge("m")])
    scored = make_turn(1, verdicts=(SCORED.model_copy(update={"judge": "rb_llm", "score": 9}),))
    check_columns("rb_llm>=8", list_judges([scored]))
    with pytest.raises(ConfigError, match="rank_query is none of the numbers"):
        check_columns("rank_query>1", [], ranked=False)
    with pytest.raises(ConfigError, match=r"^keep: needs_documents=yes: needs_documents is none of the labels"):
        check_columns("needs_documents=yes", list_judges([make_turn(1)]), setting="keep")


@pytest.mark.parametrize(
    "keep", ["difficulty=esay", "answerability!=answerabel", "needs_documents=true", "verdict=right"]
)
def test_a_label_that_a_column_never_has_is_refused(keep: str) -> None:
    with pytest.raises(ConfigError, match=r"is no label of .*; give one of "):
        check_columns(keep, [NeedsDocumentsJudge("m")])


@pytest.mark.parametrize("keep", ["user=plane", "multi_turn_type=followup", "correctness=corect"])
def test_a_label_that_the_run_never_gives_is_refused(keep: str, openai_server: OpenAIServer, tmp_path: Path) -> None:
    ended = Site(tmp_path).run(openai_server, "taxonomy=direct", f"judge.filter={keep}")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.error.startswith(f"judge.filter: {keep}: ")
    assert not openai_server.bodies


def test_a_type_that_no_classifier_gives_is_refused(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Where types are measured, a question planned as one type may turn out to be another one."""
    site = Site(tmp_path)
    ended = site.run(openai_server, "taxonomy=mtrag", "judge.filter=question_type!=howto")
    assert (ended.code, openai_server.bodies) == (2, [])
    assert ended.error.startswith("judge.filter: question_type!=howto: howto is no label of question_type; ")
    measured = ("taxonomy=direct", "taxonomy.measure=[question_type]", "judge.filter=question_type!=how-to")
    assert site.run(openai_server, *measured, "dialogs=1").code == 0


def test_a_run_filters_by_columns(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """With a judge that decides nothing, too; the columns stand in the dataset, and the ledger names the condition."""
    site = Site(tmp_path)
    settings = ("dialogs=3", "taxonomy=direct", "turns=2", "judge=k_precision")
    assert site.run(openai_server, *settings, "judge.filter=turn>1 and rank_query>0 and k_precision>=0").code == 0
    site.check_ledger()
    assert {row["turn"] for row in site.rows()} == {2}
    pairs = [drop for drop in site.drops() if drop["scope"] == "pair"]
    assert {(drop["stage"], drop["reason"]) for drop in pairs} == {("filter", "doesn't meet turn>1")}
    assert all(row["rank_query"] and row["overlap"] is not None and row["difficulty"] for row in site.rows())


def test_the_filter_of_a_finished_run_may_change(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """No model is asked; the dialogs stay, and what is derived from them is as if the filter had been there before."""
    site, first = Site(tmp_path), Site(tmp_path / "first")
    settings = ("dialogs=3", "taxonomy=direct", "turns=3", "judge=k_precision")
    assert first.run(openai_server, *settings, "judge.filter=turn>1").code == 0
    assert site.run(openai_server, *settings).code == 0
    before, calls = site.dialogs(), len(openai_server.bodies)
    done = site.run(openai_server, *settings, "judge.filter=turn>1")
    assert (done.code, len(openai_server.bodies), site.dialogs()) == (0, calls, before)
    assert "judge.filter=turn>1: " in done.err
    site.check_ledger()
    assert (site.rows(), site.drops()) == (first.rows(), first.drops()) and site.rows()[0]["turn"] == 2
    assert "filter: turn>1\n" in (site.run_dir / "config.yaml").read_text(encoding="utf-8")
    assert "judge.filter" not in site.run(openai_server, *settings, "judge.filter=turn>1").err, "nothing has changed"
    assert site.run(openai_server, *settings, "dialogs=4").code == 0
    assert Counter(row["turn"] for row in site.rows()) == {1: 4, 2: 4, 3: 4}, "it is taken back, and the run goes on"
    wrong = site.run(openai_server, *settings, "judge.filter=k_recall>0")
    assert (wrong.code, "k_recall" in wrong.error) == (2, True)


def test_the_card_names_the_settings_of_a_run_that_its_own_file_continues(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    site = Site(tmp_path)
    assert site.run(openai_server, "taxonomy=direct", "dialogs=1", "turns=3", "judge=none").code == 0
    for given in (["judge.filter=turn>1"], ["judge.filter=turn>2"], ["dialogs=2", "export=mtrag"]):
        assert command(site.run_dir / "config.yaml", *given).code == 0
    card = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
    (line,) = (line for line in card.splitlines() if " corpus.path=" in line)
    assert f" corpus.path={site.documents} " in line and "config.yaml" not in line
    assert line.endswith(""" turns=3 judge=none '++judge.filter="turn>2"' dialogs=2 export=mtrag""")


def test_dialogs_that_an_earlier_filter_dropped_are_counted(openai_server: OpenAIServer, tmp_path: Path) -> None:
    site = Site(tmp_path)
    settings = ("dialogs=1", "max_attempts=2", "turns=2", "judge=none")
    assert site.run(openai_server, *settings, "judge.filter=turn>2").code == 1
    done = site.run(openai_server, *settings, "judge.filter=turn>1")
    assert "dropped 2 dialogs whole" in done.err


def test_a_run_of_which_nothing_passes(openai_server: OpenAIServer, tmp_path: Path) -> None:
    site = Site(tmp_path)
    done = site.run(
        openai_server, "algorithm=single", "dialogs=1", "max_attempts=2", "turns=2", "judge=none", "judge.filter=turn>2"
    )
    assert done.code == 1
    assert site.summary()["dropped"] == {"filter": {"no pair passes the filter: doesn't meet turn>2": 2}}


def test_judging_removes_no_pair(tmp_path: Path) -> None:
    from judges.__main__ import COMMAND

    done = command("judge=k_precision", f"input={tmp_path}", "judge.filter=k_precision>0.5", program=COMMAND)
    assert (done.code, "judge.filter: removes no pair here" in done.error) == (2, True)


@pytest.mark.parametrize(
    ("keep", "kept", "reasons"),
    [
        ("pairs", [1, 3, 4], [WRONG_BY] * 2),
        ("prefix", [1], [WRONG_BY, *["follows an incorrect answer"] * 2, WRONG_BY]),
        ("dialog", [], ["in a dialog", WRONG_BY, "in a dialog", "in a dialog", WRONG_BY]),
        ("verified", [], ["in a dialog", WRONG_BY, "not judged by j", "in a dialog", WRONG_BY]),
    ],
)
def test_filter(keep: Filter, kept: list[int], reasons: list[str]) -> None:
    labels: list[Label | None] = ["correct", "incorrect", "unjudged", None, "incorrect"]
    verdicts = [(WRONG.model_copy(update={"label": label}),) if label else () for label in labels]
    judged = make_dialog(*(make_turn(number, verdicts=given) for number, given in enumerate(verdicts, start=1)))
    turns, drops = filter_pairs(judged, keep)
    assert [turn.turn for turn in turns] == kept
    assert [drop.reason.removesuffix(" with an incorrect answer") for drop in drops] == reasons
    assert {(drop.scope, drop.stage, drop.dialog_id) for drop in drops} == {("pair", "judge", "d")}
    assert sorted([turn.turn for turn in turns] + [drop.turn or 0 for drop in drops]) == [1, 2, 3, 4, 5]
    assert all(drop.text == f"A{drop.turn}." for drop in drops)
