"""Draw several candidates for a question or an answer and choose the best; if none passes, ask again and say why.

Candidates have the same prompt, so that a prefix cache computes it once, and seeds of their own: the first is decoded
greedily, as a single one is, the others are sampled. They are drawn at once; nothing depends on which comes first.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, NamedTuple, TypeVar

import dspy

from generator.common.concurrency import together
from generator.common.context import bind
from generator.common.scripts import count_words
from generator.common.support import content_keys, coverage, read_terms, term_keys
from generator.dialogs.checks.evidence import support_of
from generator.dialogs.journal import charge, metered
from generator.dialogs.live import tell
from generator.errors import Rejected
from generator.models.lm import LanguageModel, Profile
from generator.prompts.calls import use_model
from generator.prompts.sections import Documents, said_in
from generator.schema import Cost, Judge, Passage, Turn

T = TypeVar("T")
ATTEMPTS = 3
NOT_BEST = "not the best candidate"
# People's questions have as many on average (docs/statistics.md).
USUAL_WORDS = 10
# Content words that a short answer has, and words that three sentences have.
FEW_TERMS = 4
LONG_ANSWER = 60
_WORTH = {"correct": 1, "incorrect": -1}


class Refused(Rejected):
    """A candidate that fails a check, so that its step is asked again; any other `Rejected` ends the step.

    Args:
        fault: the reason; what stands behind its first colon is told to the model alone, so that reasons group.
        details: what the next prompt says beside a reason without such a colon.
    """

    def __init__(self, stage: str, fault: str, text: str, details: str = "") -> None:
        reason, _, remedy = fault.partition(": ")
        super().__init__(stage, reason, text)
        self.details = remedy or details


@dataclass(frozen=True)
class Unused:
    """A candidate that isn't kept, for a turn, or for the whole dialog (`turn` is None)."""

    why: Rejected
    cost: Cost
    turn: int | None = None


class Attempt(NamedTuple):
    """Hold how a candidate is drawn: its decoding, those refused before it, and whether it is the last attempt."""

    profile: Profile
    refused: Sequence[Refused]
    last: bool

    @property
    def rejected(self) -> str:
        """Why those were refused, for the next prompt, and not what they said: small models copy that."""
        return "\n".join(dict.fromkeys(f"{r.reason}: {r.details}" if r.details else r.reason for r in self.refused))


@dataclass(frozen=True)
class _Passed(Generic[T]):
    value: T
    text: str = ""
    score: float = 0.0


_unused: ContextVar[list[Unused]] = ContextVar("unused")


def collect_unused() -> AbstractContextManager[list[Unused]]:
    """Return a context with a list that gets the candidates which its steps don't keep."""
    return bind(_unused, [])


def leave_out(why: Rejected, cost: Cost, turn: int) -> None:
    """Add a candidate for a turn to those that aren't kept."""
    _unused.get([]).append(Unused(why, cost, turn))


async def draw_best(
    count: int,
    stage: str,
    turn: int,
    draw: Callable[[Attempt], Awaitable[T]],
    rate: Callable[[T], Awaitable[tuple[str, float]]] | None = None,
) -> T:
    """Return the candidate with the highest score, the first of equals.

    If none of `count` passes, as many are drawn again, at most twice, and then all are sampled: told why, a small model
    that decodes greedily often writes the same again.

    Args:
        turn: the number of the turn that they are for.
        draw: returns one candidate.
        rate: returns a candidate's text and score; a single one needs none.

    Raises:
        Rejected: none can be used; why the first of the last ones can't.
    """
    refused: list[Refused] = []

    async def draw_one(number: int, lm: LanguageModel, last: bool) -> tuple[_Passed[T] | Rejected, Cost]:
        with use_model(lm, dspy.settings.adapter, dspy.settings.trace), metered() as meter:
            try:
                value = await draw(Attempt("sampled" if number or refused else "greedy", refused, last))
                return _Passed(value, *(await rate(value) if rate and count > 1 else ())), meter.cost
            except Rejected as why:
                return why, meter.cost

    for attempt in range(1, ATTEMPTS + 1):
        # Copied before any call: what a copy knows must not depend on how far the others are.
        models = [dspy.settings.lm.for_candidate(number) for number in range(count)]
        drawn = await together(draw_one(number, lm, attempt == ATTEMPTS) for number, lm in enumerate(models))
        passed = [each for each, _ in drawn if isinstance(each, _Passed)]
        faults = [each for each, _ in drawn if isinstance(each, Refused)]
        outcome: _Passed[T] | Rejected | None = None
        if passed:
            outcome = max(passed, key=lambda each: each.score)
        elif attempt == ATTEMPTS or not faults:
            outcome = drawn[0][0]
        for each, cost in drawn:
            if count == 1 or each is outcome:
                charge(cost)
            else:
                leave_out(each if isinstance(each, Rejected) else Rejected(stage, NOT_BEST, each.text), cost, turn)
        if isinstance(outcome, Rejected):
            raise outcome
        if outcome is not None:
            return outcome.value
        for each in faults:
            tell("refused", turn, each.text, each.reason)
        refused += faults
    raise AssertionError("the last attempt has an outcome")


def rate_question(question: str, documents: Documents, history: Sequence[Turn], focus: str) -> float:
    """Return how good a question is that passes the checks, 0 to 1; no model is asked.

    It is the mean of four: its content words are those of the documents or the dialog, it names something of the focus
    (without one, of the documents), it asks for what no single question before it has (a first one: it has a word of a
    document's title), and it has at most ten words, as people's have.
    """
    keys = content_keys(question)
    texts = [passage.titled for passage in documents.passages]
    about = set[str]().union(*(term_keys(text) for text in ([focus] if focus else texts)))
    titles = set[str]().union(*(term_keys(passage.title) for passage in documents.passages))
    known = max((len(keys & term_keys(turn.meant)) for turn in history), default=0) / max(1, len(keys))
    shares = (
        coverage(question, [*texts, *said_in(history)]),
        min(1, len(keys & about) / (1 if history else 2)),
        1 - known if history or not titles else float(bool(keys & titles)),
        min(1, USUAL_WORDS / count_words(question)),
    )
    return fmean(shares)


async def rate_answer(
    turn: Turn, passages: Sequence[Passage], history: Sequence[Turn], judges: Sequence[Judge]
) -> float:
    """Return how good an answer is that passes the checks; no model is asked.

    It is the mean of four, 0 to 1, and for each judge its score, with 1 more or less if it calls the answer correct or
    incorrect. The four: the passages have its content words and numbers, and so has its evidence; answer and evidence
    have those of the question; it says something, and in no more words than three sentences take.

    Args:
        judges: that decide and ask no model.
    """
    judged = 0.0
    for judge in judges:
        verdict = await judge.judge(passages, history, turn)
        judged += _WORTH.get(verdict.label, 0) + (verdict.score or 0) / (judge.best or 1)
    evidence = [each.text for each in turn.evidence]
    shares = (
        coverage(turn.answer, [turn.meant, *(passage.titled for passage in passages)]),
        support_of(passages, history, turn).share,
        coverage(turn.meant, [turn.answer, *evidence]),
        min(1, len(read_terms(turn.answer)) / FEW_TERMS, LONG_ANSWER / count_words(turn.answer)),
    )
    return fmean(shares) + judged
