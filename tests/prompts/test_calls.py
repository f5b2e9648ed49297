"""Calls that fail: which stop the run, and which lose their turn only."""

from typing import Any

import dspy
import pytest
from dspy import lm15

from generator.dialogs.steps import Answer, Asked
from generator.errors import ModelError, Rejected
from generator.prompts.calls import TOO_LONG, use_model
from generator.schema import Verdict
from judges.llm.correctness import CorrectnessJudge
from tests.support.records import make_passage
from tests.support.scripted import KINDS, Scripted, said
from tests.support.trams import BUS, TRAM, answer


@pytest.mark.parametrize(
    "error",
    [
        lm15.TransportError("the model server is gone: connection refused"),
        lm15.AuthError("HTTP 401: no key", status=401),
        lm15.BillingError("HTTP 402: no money", status=402),
        lm15.UnsupportedModelError("HTTP 404: no such model", status=404),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_endpoint_that_can_not_be_used_stops_the_run_in_one_line(error: Exception) -> None:
    with pytest.raises(ModelError) as caught:
        answer(Scripted(answer=[error]))
    assert str(error.args[0]).partition("\n")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (lm15.ContextLengthError("about 9 tokens"), "context", "the next prompt does not fit its model's context"),
        (lm15.ContextLengthError("HTTP 400: too long", status=400), "context", TOO_LONG),
        (lm15.InvalidRequestError("HTTP 400: no", status=400), "model", "the server answers HTTP 400"),
        (lm15.RateLimitError("HTTP 429: slow down", status=429), "model", "the server answers HTTP 429"),
        (lm15.ServerError("HTTP 500: oops", status=500), "model", "the server answers HTTP 500"),
        (lm15.TimeoutError("no answer within 60 s"), "model", "no reply in time"),
        (lm15.ServerError("connection reset"), "model", "no complete reply"),
    ],
    ids=["context", "server's context", "400", "429", "500", "timeout", "half a reply"],
)
def test_a_request_that_fails_loses_its_turn_only(error: Exception, stage: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        answer(Scripted(answer=[error]))
    assert (caught.value.stage, caught.value.reason) == (stage, reason)
    assert str(error.args[0]).partition("\n")[0] in caught.value.text


def test_a_prompt_that_can_not_fit_is_not_sent() -> None:
    """The server's count of an earlier prompt decides; without one, the server is asked."""
    model = Scripted()
    model.context = 400

    async def answer_twice() -> None:
        for _ in range(2):
            await Answer().acall((TRAM, BUS), (), Asked("Is it late?"), KINDS["direct"])

    with pytest.raises(Rejected) as caught:
        model.run(answer_twice)
    assert (caught.value.stage, len(model.calls)) == ("context", 1)


def test_a_bug_of_ours_is_no_drop() -> None:
    with pytest.raises(KeyError, match="bug"):
        answer(Scripted(answer=[KeyError("bug")]))


def test_unusable_replies_are_in_the_trace() -> None:
    judge, model, trace = CorrectnessJudge("m"), Scripted(judge=["no", "no"]), list[Any]()

    async def attempt() -> Verdict:
        with use_model(dspy.settings.lm, dspy.settings.adapter, trace):
            return await judge.judge((make_passage("p", "It is."),), (), said(("When?", "In May."))[0])

    assert model.run(attempt).label == "unjudged"
    assert trace[0][0] is judge.predict and trace[0][2].unusable == "no"
