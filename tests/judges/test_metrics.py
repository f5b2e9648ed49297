"""Metrics against numbers worked out by hand, and against those that mtRAG's authors published."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.errors import ConfigError
from generator.schema import Answerability, Passage, Turn, Verdict
from judges.metrics import bert
from judges.metrics import words as metrics
from judges.metrics.bert import BertMetric
from judges.metrics.conditioning import answerability_accuracy, conditioned
from judges.metrics.words import Metric, WordMetric, k_precision, rb_alg, rouge_l, token_f1, token_recall, words
from tests.support.scripted import piece, said

STORED = "mtrag/evaluations/reference_subset_with_human_evaluations.json"


def test_words_are_those_of_squads_evaluation() -> None:
    text = "The U.S.-based  Tram isn't an  Äther,\n“up” – tram!"
    assert words(text) == ["usbased", "tram", "isnt", "äther", "“up”", "tram"]


@pytest.mark.parametrize(
    ("response", "reference", "f1", "recall"),
    [
        ("The tram is green.", "A tram: green!", 2 * (2 / 3 * 1) / (2 / 3 + 1), 1),
        ("green green green", "green green tram bus", 4 / 7, 2 / 4),  # a word counts as often as both have it
        ("red", "green", 0, 0),
        ("green", "", 0, 0),
        ("– … the", "green", 0, 0),
    ],
)
def test_f1_and_recall(response: str, reference: str, f1: float, recall: float) -> None:
    assert token_f1(response, reference) == pytest.approx(f1)
    assert token_recall(response, reference) == pytest.approx(recall)


def test_k_precision_takes_the_passages_together() -> None:
    assert k_precision("the tram and bus are green green", ["A tram is green.", "The bus is."]) == pytest.approx(3 / 6)


def test_rouge_l_is_unstemmed_and_counts_articles() -> None:
    pytest.importorskip("rouge_score", reason="rouge-score isn't installed (extra metrics)")
    # In common, in order: the, runs. Precision 2/4, recall 2/3.
    assert rouge_l("the green tram runs", "the bus runs") == pytest.approx(2 * (2 / 4 * 2 / 3) / (2 / 4 + 2 / 3))
    assert rouge_l("trams", "tram") == 0


def test_rb_alg_is_a_harmonic_mean_of_what_is_brought_to_0_to_1() -> None:
    assert rb_alg(0.5, 0.0, 0.5) == pytest.approx(3 / (1 / 0.5 + 1 / 0.5 + 1 / 0.75))
    assert rb_alg(1, 1, 1) == 1
    assert rb_alg(0, 1, 1) == 0
    assert rb_alg(1, -1, 1) == 0
    assert rb_alg(1, -1.01, 1) == 0


@pytest.fixture
def stored(data: Path) -> dict[str, Any]:
    file = data / STORED
    if not file.exists():
        pytest.skip(f"{STORED} isn't there")
    return dict(json.loads(file.read_text(encoding="utf-8")))


def values(evaluation: dict[str, Any]) -> dict[str, float]:
    """Return a response's published metrics by name."""
    kinds = ("system", "composite")
    found = evaluation["annotations"].items()
    return {name: by[kind]["value"] for name, by in found for kind in kinds if kind in by}


def test_rouge_l_is_the_published_one_of_every_response(stored: dict[str, Any]) -> None:
    pytest.importorskip("rouge_score", reason="rouge-score isn't installed (extra metrics)")
    targets = {task["task_id"]: [target["text"] for target in task["targets"]] for task in stored["tasks"]}
    assert len(stored["evaluations"]) == 348
    for evaluation in stored["evaluations"]:
        found = WordMetric("rouge_l").score(evaluation["model_response"], targets[evaluation["task_id"]], [])
        assert found == pytest.approx(values(evaluation)["RougeL"], abs=1e-9), evaluation["task_id"]


def test_rb_alg_is_the_published_one_of_every_response(stored: dict[str, Any]) -> None:
    """`conditional_idk`: does the I-don't-know label predict the answerability? So the label follows from both."""
    answerability = {task["task_id"]: task["Answerability"][0].lower() for task in stored["tasks"]}
    settled, labels = 0, []
    for evaluation in stored["evaluations"]:
        published, kind = values(evaluation), answerability[evaluation["task_id"]]
        own = rb_alg(published["RougeL"], published["Bert-Rec"], published["Bert-KPrec"])
        idk = "yes" if (kind == "unanswerable") == bool(published["conditional_idk"]) else "no"
        score = conditioned(own, kind, idk)
        assert score == pytest.approx(published["rb_agg"], abs=1e-9), evaluation["task_id"]
        settled += abs(own - published["rb_agg"]) > 1e-3
        labels.append((kind, idk))
    assert (len(stored["evaluations"]), settled) == (348, 26)
    assert answerability_accuracy(labels) == pytest.approx((345 - 15) / 345)


# conditioning

# Section 6.3.3, a cell each, and what isn't in it.
CELLS: dict[tuple[Answerability, str], float | None] = {
    ("answerable", "no"): 0.4,
    ("answerable", "partial"): 0.4,
    ("answerable", "yes"): 0,
    ("partial", "no"): 0.4,
    ("partial", "partial"): 0.4,
    ("partial", "yes"): 0,
    ("unanswerable", "no"): 0,
    ("unanswerable", "partial"): 0,
    ("unanswerable", "yes"): 1,
    ("conversational", "no"): 1,  # as published
    ("conversational", "partial"): 1,
    ("conversational", "yes"): 0,
    ("underspecified", "no"): None,
    ("underspecified", "yes"): None,
}


@pytest.mark.parametrize(("answerability", "idk"), CELLS)
def test_each_cell_of_the_table(answerability: Answerability, idk: str) -> None:
    assert conditioned(0.4, answerability, idk) == CELLS[answerability, idk]


def test_answerability_accuracy_counts_what_can_be_right() -> None:
    # Of the table without conversational turns: three of `no` and `partial`, and two of `yes`.
    assert answerability_accuracy(CELLS) == 5 / 9
    assert answerability_accuracy([("conversational", "no")]) is None


# judges


class FakeBert:
    """Compares by words; counts the texts that it is asked about."""

    def recall(self, response: str, reference: str) -> float:
        return token_recall(response, reference)

    def precision(self, response: str, reference: str) -> float:
        return token_recall(reference, response)


JUDGES: list[Metric] = [
    *map(WordMetric, ("token_f1", "token_recall", "k_precision", "rouge_l")),
    *(BertMetric(name, "some/encoder", None, None, True) for name in ("bert_recall", "bert_k_precision", "rb_alg")),
]
EACH = pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
RIGHT = ("The tram is green.", "It runs at night.")
PASSAGES = (piece("tram", "The tram is green."), piece("bus", "The bus is red."))
AGAINST_REFERENCES = {"token_f1", "token_recall", "rouge_l", "bert_recall", "rb_alg"}


@pytest.fixture
def fake_bert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bert, "_load", lambda *_: FakeBert())


def judged(judge: Metric, answer: str, references: Sequence[str], passages: Sequence[Passage] = PASSAGES) -> Verdict:
    if judge.name in ("rouge_l", "rb_alg"):
        pytest.importorskip("rouge_score", reason="rouge-score isn't installed (extra metrics)")
    turn: Turn = said(("Which colour?", answer))[0].model_copy(update={"other_answers": tuple(references)})
    return asyncio.run(judge.judge(passages, (), turn))


@pytest.mark.usefixtures("fake_bert")
@EACH
def test_a_judge_gives_a_score_and_decides_nothing(judge: Metric) -> None:
    verdict = judged(judge, "The tram is green.", RIGHT)
    assert verdict == Verdict(judge=judge.name, label="scored", explanation="", model="", score=1, decides=False)
    wordless = judged(judge, "…?!", RIGHT)
    assert (wordless.label, wordless.score) == ("scored", 0)


@pytest.mark.usefixtures("fake_bert")
@pytest.mark.parametrize("judge", [j for j in JUDGES if j.name in AGAINST_REFERENCES], ids=lambda judge: judge.name)
def test_of_several_references_the_best_counts(judge: Metric) -> None:
    alone = judged(judge, "The tram is green.", RIGHT[:1])
    assert judged(judge, "The tram is green.", RIGHT[::-1]) == alone
    assert judged(judge, "The tram is green.", [" ", *RIGHT]) == alone
    assert (judged(judge, "The tram is green.", RIGHT[1:]).score or 0) < (alone.score or 0)


@pytest.mark.usefixtures("fake_bert")
@EACH
def test_without_what_it_is_compared_with_a_response_is_unjudged(judge: Metric) -> None:
    bare = judged(judge, "The tram is green.", ["  "])
    assert bare.explanation == ("no reference answer" if judge.name in AGAINST_REFERENCES else "")
    ungrounded = judged(judge, "The tram is green.", RIGHT, ())
    needs_passages = judge.name in ("k_precision", "bert_k_precision", "rb_alg")
    assert ungrounded.explanation == ("no passages" if needs_passages else "")
    for verdict in (bare, ungrounded):
        assert (verdict.label == "unjudged") == (verdict.score is None) == bool(verdict.explanation)


@pytest.mark.parametrize(("package", "judge"), [("rouge_score", JUDGES[3]), ("bert_score", JUDGES[4])])
def test_a_missing_package_is_named_with_its_extra(
    package: str, judge: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics._rouge.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.rouge_scorer", None)
    with pytest.raises(ConfigError, match=r"extra 'metrics' \(uv sync --inexact --extra metrics\)") as error:
        judge.score("Green.", RIGHT, [])
    assert package.replace("_", "-") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["rouge_l", "rb_alg"])
def test_rouge_l_gives_no_score_where_it_sees_no_words(name: str, fake_bert: None) -> None:
    judge = {judge.name: judge for judge in JUDGES}[name]
    answers = ("Паром отходит в шесть.", "The ferry leaves at 6.")
    assert [judged(judge, answer, [answer]).label for answer in answers] == ["unjudged", "scored"]


def test_an_encoder_is_no_t5_for_its_path(tmp_path: Path) -> None:
    pytest.importorskip("bert_score", reason="bert-score isn't installed (extra metrics)")
    folder = tmp_path / "gpt5"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(ConfigError, match="rename the folder"):
        BertMetric("bert_recall", str(folder), None, 6, False).score("a", ["b"], [])
