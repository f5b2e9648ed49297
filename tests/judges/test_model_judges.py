"""The judges that ask a model, with a model that replies as the test wants."""

import json
from collections.abc import Sequence

import dspy
import pytest
from dspy import lm15

from generator.errors import ConfigError, ModelError
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge
from judges.llm.answerability import AnswerabilityJudge
from judges.llm.correctness import CorrectnessJudge
from judges.llm.idk import IdkJudge
from judges.llm.mt_bench import MtBenchJudge
from judges.llm.rb_llm import ReferenceJudge
from judges.llm.rl_f import FaithfulnessJudge
from tests.support.scripted import Entry, Scripted, piece, said

TRAM, BUS = piece("tram", "The tram is green. It runs at night."), piece("bus", "The bus is red.")
FIRST, LAST = said(("Which colour is the tram?", "It is green."), ("And the bus?", "Red. It is slow."))
SAID = (FIRST, LAST.model_copy(update={"other_answers": ("The bus is red.", "It's red.")}))
DOCUMENTS = ("[1] The tram is green.\n[2] It runs at night.", "[3] The bus is red.")
HISTORY = "<dialog>\nUser: Which colour is the tram?\nAgent: It is green.\n</dialog>"
RESPONSE = ":\nRed. It is slow.\n"
LABELS = {
    CorrectnessJudge: ("correct", "incorrect"),
    IdkJudge: ("yes", "partial", "no"),
    AnswerabilityJudge: ("answerable", "partial", "unanswerable"),
}
RATING = (ReferenceJudge, MtBenchJudge)
JUDGES: tuple[type[ModelJudge], ...] = (*LABELS, *RATING, FaithfulnessJudge)


def judge(
    made: type[ModelJudge],
    replies: Sequence[Entry] | Scripted,
    turns: tuple[Turn, ...] = SAID,
    passages: tuple[Passage, ...] = (TRAM, BUS),
) -> Verdict:
    """Return the verdict on the last of `turns`."""
    model = replies if isinstance(replies, Scripted) else Scripted(judge=replies)
    return model.run(lambda: made("judging-model").judge(passages, turns[:-1], turns[-1]))


def label(name: str, *findings: str) -> Entry:
    statements = [{"text": "It is so.", "finding": finding} for finding in findings or ("correct",)]
    return {"statements": statements, "explanation": "Sentence 3 says red.", "label": name}


def labelled(made: type[ModelJudge], name: str) -> Entry:
    reply = dict(label(name))  # type: ignore[arg-type]
    return reply if made is CorrectnessJudge else {"explanation": reply["explanation"], "label": name}


def rating(score: object) -> Entry:
    return {"explanation": "Slow is in no document.", "score": score}


def claims(*texts: str) -> Entry:
    return {"claims": list(texts)}


def findings(*supported: bool) -> Entry:
    return {"findings": [{"reason": f"reason {n}", "supported": s} for n, s in enumerate(supported, start=1)]}


# --- labels and scores


@pytest.mark.parametrize(("made", "name"), [(made, name) for made, names in LABELS.items() for name in names])
def test_a_label_is_the_models_with_its_reasons_before_it(made: type[ModelJudge], name: str) -> None:
    model = Scripted(judge=[labelled(made, name)])
    assert judge(made, model) == Verdict(
        judge=made.name,
        label=name,
        explanation="Sentence 3 says red.",
        model="judging-model",
        decides=made is CorrectnessJudge,
    )
    (call,) = model.of("judge")
    assert list(call.schema["properties"])[-2:] == ["explanation", "label"]
    assert call.schema["properties"]["label"]["enum"] == list(LABELS[made])
    assert (call.turn, call.profile) == (2, "sampled")


@pytest.mark.parametrize("made", [each for each in JUDGES if "response" in each.signature.input_fields])
@pytest.mark.parametrize("answer", ["", " \n"])
def test_an_empty_response_is_unjudged_and_no_model_is_asked(made: type[ModelJudge], answer: str) -> None:
    model = Scripted(judge=[])
    verdict = judge(made, model, (FIRST, SAID[1].model_copy(update={"answer": answer})))
    assert (verdict.label, verdict.score, verdict.explanation) == ("unjudged", None, "empty response")
    assert not model.of("judge")


@pytest.mark.parametrize("made", LABELS)
def test_a_label_in_other_letters_costs_no_repair(made: type[ModelJudge]) -> None:
    """No schema holds a model to the form on many servers."""
    name = LABELS[made][-1]
    for text in (name.upper(), f" {name.title()}. "):
        model = Scripted(judge=[json.dumps({**dict(labelled(made, name)), "label": text})])  # type: ignore[arg-type]
        assert (judge(made, model).label, len(model.calls)) == (name, 1)
    model = Scripted(judge=[json.dumps(label("correct", "Correct", "UNSUPPORTED"))])
    assert judge(CorrectnessJudge, model).explanation == "contradicts itself: “It is so.” unsupported, yet correct"
    assert len(model.calls) == 1


@pytest.mark.parametrize("made", RATING)
@pytest.mark.parametrize(("given", "score"), [(" 8 ", 8), (7.5, 7.5), ("7.5", 7.5)])
def test_a_rating_in_quotes_or_by_halves_costs_no_repair(made: type[ModelJudge], given: object, score: float) -> None:
    model = Scripted(judge=[json.dumps(rating(given))])
    assert (judge(made, model).score, len(model.calls)) == (score, 1)


@pytest.mark.parametrize("made", RATING)
@pytest.mark.parametrize("score", [1, 10])
def test_a_rating_is_a_score_with_its_reasons_before_it(made: type[ModelJudge], score: int) -> None:
    model = Scripted(judge=[rating(score)])
    verdict = judge(made, model)
    assert (verdict.judge, verdict.label, verdict.score, verdict.decides) == (made.name, "scored", score, False)
    assert verdict.explanation == "Slow is in no document."
    (call,) = model.of("judge")
    assert list(call.schema["properties"]) == ["explanation", "score"]
    limits = call.schema["properties"]["score"]
    assert (limits["type"], limits["minimum"], limits["maximum"]) == ("integer", 1, 10)
    assert '- "score" (whole number from 1 to 10): the rating' in call.prompt  # for models that get no schema


@pytest.mark.parametrize(("finding", "name"), [("correct", "correct"), ("unsupported", "incorrect")])
def test_one_failing_statement_makes_a_response_incorrect(finding: str, name: str) -> None:
    assert judge(CorrectnessJudge, [label(name, "correct", finding)]).label == name
    if finding != "correct":
        verdict = judge(CorrectnessJudge, [label("correct", "correct", finding)])
        assert verdict.label == "unjudged"
        assert f"“It is so.” {finding}" in verdict.explanation


def test_faithfulness_is_the_share_of_claims_that_are_supported() -> None:
    model = Scripted(
        judge=[claims("The bus is red.", " ", "The bus is slow.", "The bus is old."), findings(True, False, False)]
    )
    verdict = judge(FaithfulnessJudge, model)
    assert (verdict.judge, verdict.label, verdict.decides) == ("rl_f", "scored", False)
    assert verdict.score == pytest.approx(1 / 3)
    assert verdict.explanation == (
        "1 of 3 claims supported; not supported: “The bus is slow.” (reason 2); “The bus is old.” (reason 3)"
    )
    limits = model.of("judge")[1].schema["properties"]["findings"]
    assert (limits["minItems"], limits["maxItems"]) == (3, 3)


def test_a_finding_for_each_claim_or_none_at_all() -> None:
    model = Scripted(judge=[claims("A.", "B."), findings(True), findings(True, True, True)])
    assert judge(FaithfulnessJudge, model).label == "unjudged"
    assert len(model.calls) == 3
    assert judge(FaithfulnessJudge, [claims("A.", "B."), findings(True), findings(True, False)]).score == 0.5


def test_a_long_reason_is_cut_and_loses_no_verdict() -> None:
    found = {"findings": [{"reason": "Sentence 3 says so. " * 20, "supported": True}]}
    model = Scripted(judge=[claims("The bus is red."), found])
    assert (judge(FaithfulnessJudge, model).score, len(model.calls)) == (1, 2)
    long = {"text": "The bus is red. " * 60, "finding": "correct"}
    model = Scripted(judge=[{"statements": [long], "explanation": "Sentence 3 says red.", "label": "correct"}])
    assert (judge(CorrectnessJudge, model).label, len(model.calls)) == ("correct", 1)


def test_more_than_was_asked_for_loses_no_verdict() -> None:
    """A model that no schema holds numbers its findings, gives reasons for statements, and numbers for a text."""
    found = [{"claim": 1, "reason": [3, 4], "supported": True}, {"claim": 2, "reason": 3, "supported": False}]
    model = Scripted(judge=[claims("The bus is red.", "It is slow."), {"findings": found}])
    verdict = judge(FaithfulnessJudge, model)
    assert (verdict.score, len(model.calls)) == (0.5, 2) and "“It is slow.” (3)" in verdict.explanation
    more = {"text": "The bus is red.", "finding": "correct", "reason": "[3]"}
    model = Scripted(judge=[{"statements": [more], "explanation": "Sentence 3 says red.", "label": "correct"}])
    assert (judge(CorrectnessJudge, model).label, len(model.calls)) == ("correct", 1)


# --- prompts


@pytest.mark.parametrize(
    ("made", "shown", "hidden"),
    [
        (CorrectnessJudge, (*DOCUMENTS, HISTORY, RESPONSE, "Judge the Agent's response"), ()),
        (IdkJudge, (HISTORY, RESPONSE, "Decide whether the Agent's response says"), ("The bus is red.",)),
        (AnswerabilityJudge, (*DOCUMENTS, HISTORY, "Decide how much of what the User"), ("It is slow.",)),
        (ReferenceJudge, (*DOCUMENTS, HISTORY, RESPONSE, ":\n1. The bus is red.\n2. It's red.\n"), ()),
        (MtBenchJudge, (*DOCUMENTS, HISTORY, RESPONSE, "there is no answer to compare it with."), ("It's red.",)),
    ],
)
def test_a_judge_sees_what_it_judges_by_and_no_more(
    made: type[ModelJudge], shown: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    model = Scripted()
    judge(made, model)
    prompt = model.prompts("judge")[0]
    assert all(text in prompt for text in (*shown, ":\nAnd the bus?\n"))
    assert not any(text in prompt for text in (*hidden, "SECRET REASONING"))


def test_claims_are_taken_from_the_response_and_checked_by_the_documents_alone() -> None:
    model = Scripted(judge=[claims("The bus is red.", "The bus is slow."), findings(True, False)])
    judge(FaithfulnessJudge, model)
    taken, checked = model.prompts("judge")
    assert RESPONSE in taken and HISTORY in taken and DOCUMENTS[0] not in taken
    assert DOCUMENTS[1] in checked and "1. The bus is red.\n2. The bus is slow.\n" in checked
    assert "And the bus?" not in checked


# --- no call, or no verdict


def test_what_needs_no_model_is_no_call() -> None:
    model = Scripted()
    (thanks,) = said(("Thanks!", "You're welcome."))
    asks_nothing = thanks.model_copy(update={"answerability": "conversational"})
    assert judge(IdkJudge, model, (asks_nothing,)).label == "no"
    assert judge(AnswerabilityJudge, model, (asks_nothing,)).label == "conversational"
    two_readings = thanks.model_copy(update={"answerability": "underspecified"})
    assert judge(AnswerabilityJudge, model, (two_readings,)).label == "underspecified"
    assert judge(AnswerabilityJudge, model, passages=()).label == "unanswerable"
    verdict = judge(ReferenceJudge, model, (FIRST, LAST))
    assert (verdict.label, verdict.explanation) == ("unjudged", "no reference answer")
    assert model.calls == []
    assert judge(IdkJudge, [labelled(IdkJudge, "yes")], passages=()).label == "yes"
    model = Scripted(judge=[claims("The bus is red."), claims()])
    assert judge(FaithfulnessJudge, model, passages=()).score == 0
    verdict = judge(FaithfulnessJudge, model)
    assert (verdict.label, verdict.score) == ("no claims", None)
    assert len(model.calls) == 2


UNUSABLE: list[tuple[type[ModelJudge], Entry]] = [
    *((made, "It is so.") for made in JUDGES),
    *((made, '{"label": "yes"}') for made in LABELS),
    *((made, {"label": "maybe"}) for made in LABELS),
    (CorrectnessJudge, {"statements": [], "label": "correct"}),
    (CorrectnessJudge, '{"statements": [{"text": "a", "finding": "correct"}], "explanation": "Fi'),
    *((MtBenchJudge, rating(score)) for score in (0, 11, 10.5, "good", "11", "8/10", None, True)),
    *(
        (made, f"{json.dumps(labelled(made, first))} Wait: {json.dumps(labelled(made, last))}")
        for made, (first, *_, last) in LABELS.items()
    ),
    (MtBenchJudge, f"{json.dumps(rating(3))} Wait: {json.dumps(rating(9))}"),
]


@pytest.mark.parametrize(("made", "entry"), UNUSABLE)
def test_an_unusable_reply_is_repaired_once_and_then_no_verdict(made: type[ModelJudge], entry: Entry) -> None:
    model = Scripted(judge=[entry, entry])
    verdict = judge(made, model)
    assert (verdict.judge, verdict.label, verdict.score, verdict.model) == (
        made.name,
        "unjudged",
        None,
        "judging-model",
    )
    assert verdict.explanation.startswith("unusable reply")
    assert len(model.calls) == 2
    assert judge(made, Scripted(judge=[entry])).label != "unjudged"


@pytest.mark.parametrize("made", JUDGES)
def test_a_call_that_fails_leaves_the_turn_unjudged_and_a_server_that_is_gone_stops(made: type[ModelJudge]) -> None:
    for error in (lm15.ContextLengthError("too long", status=400), lm15.ServerError("oops", status=500)):
        verdict = judge(made, [error])
        assert (verdict.judge, verdict.label, verdict.score) == (made.name, "unjudged", None)
        assert verdict.explanation
    with pytest.raises(ModelError):
        judge(made, [lm15.TransportError("gone")])


def test_an_input_that_no_judge_gets_is_an_error() -> None:
    class Mistyped(IdkJudge):
        signature = IdkJudge.signature.append("answer", dspy.InputField(), type_=str)

    with pytest.raises(ConfigError, match=r"answer; there are documents, dialog, query, response, reference"):
        judge(Mistyped, [label("yes")])
