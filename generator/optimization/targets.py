"""Try, score and explain what can be optimised: the judges, and the steps of a dialog."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean, median
from typing import Any, NamedTuple, cast, get_args
from zlib import crc32

import dspy

from generator.common.console import note
from generator.common.refusals import drop_refusals
from generator.common.support import content_keys
from generator.config.conf_files import choices
from generator.config.parts import build_choice
from generator.config.settings import near_duplicates
from generator.dialogs.checks.evidence import support_of
from generator.dialogs.dedup import Repetition
from generator.dialogs.judging import JudgeSettings
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.query import Rewrite
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.steps import Answer, Ask, Asked
from generator.errors import ConfigError, Rejected
from generator.optimization.data import Example
from generator.prompts.adapter import P_YES, collect_tasks, is_plain
from generator.prompts.message_text import on_one_line
from generator.prompts.replies import SignatureType
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import FirstQuestion, NextQuestion
from generator.schema import Answerability, Judge, Retriever, Verdict
from taxonomy import QuestionType, read_types

_JUDGE = "judge."
LABELS = "labels"
UNJUDGED = "unjudged"


class Outcome(NamedTuple):
    """The result of an example.

    Attributes:
        score: 0 to 1.
        label: that a judge gave, or that an answer implies, `unjudged` without a usable reply; empty if there is none.
        feedback: what was asked, what was wrong, and what is right, for the reflection model.
        rating: a judge's score, 0 to 1; None if it gave none.
    """

    score: float
    label: str
    feedback: str
    rating: float | None = None


class Target(ABC):
    """Something whose instructions can be optimised.

    Attributes:
        name: as in the setting, and before its predictors in a program file.
        step: the module that has them.
        metrics: what can be scored.
        tasks: described at the start of its prompts, as in a run; none for judges, as in `python -m judges`.
        labels: what people may say of an example, to be compared with the outcome's.
        criterion: of people's verdicts on dialogs that are labels.
        agreement: with people, on the card beside the score: `kappa` of labels, `tau` of scores; empty for neither.
    """

    name: str
    step: dspy.Module
    metrics: tuple[str, ...]
    tasks: Mapping[str, SignatureType]
    labels: Sequence[str] = ()
    criterion: str = "answerability"
    agreement = ""

    def criteria(self, metrics: Sequence[str]) -> Sequence[str]:
        """Return the criteria of people's verdicts on dialogs that are compared."""
        return (self.criterion,)

    def select(self, examples: Sequence[Example], metrics: Sequence[str]) -> list[Example]:
        """Return the examples that can be used: where labels are compared, those with one.

        Raises:
            ConfigError: there are none, or their labels are not the target's.
        """
        if LABELS not in metrics:
            return list(examples)
        labelled = [example for example in examples if example.label and example.label != UNJUDGED]
        if tied := sum(example.label == UNJUDGED for example in examples):
            note(f"data: {tied} without a majority of people are left out")
        for example in labelled:
            if example.label not in self.labels:
                raise ConfigError(
                    f"data={example.source}: has the label {example.label}, and {self.name} gives "
                    f"{', '.join(self.labels)}; give data with these labels"
                )
        if not labelled:
            raise ConfigError(
                f"data: none of {len(examples)} examples has a label of people for {self.name}; give a set with human "
                "labels, or what `python -m judges.human read` wrote"
            )
        return labelled

    @abstractmethod
    async def attempt(self, step: dspy.Module, example: Example, metrics: Sequence[str]) -> Outcome:
        """Try an example with a step whose instructions may be others; DSPy's trace gets the calls that are made."""


class JudgeTarget(Target):
    """A judge that gives labels, compared with people's."""

    metrics = (LABELS,)
    agreement = "kappa"

    def __init__(self, name: str, judge: Any) -> None:
        self.name, self.criterion, self.tasks = f"{_JUDGE}{name}", name, {}
        self.step, self.labels = judge, _list_labels(judge)
        if any(P_YES in signature.output_fields for signature in self.step.signatures):
            self.criterion = "correctness"
        self._words: Judge | None = _grounding() if name == "correctness" else None

    async def attempt(self, step: dspy.Module, example: Example, metrics: Sequence[str]) -> Outcome:
        verdict = await cast(Judge, step).judge(example.passages, example.history, example.turn)
        lines = [_show(example), f"The response:\n{example.turn.answer}"]
        if verdict.label == UNJUDGED:
            lines += [f"There is no usable verdict: {verdict.explanation}"]
        else:
            lines += [f"The verdict: {verdict.label}. {verdict.explanation}"]
        score, said, rating = self._compare(verdict, example)
        lines += [said]
        if self._words and not score:
            found = await self._words.judge(example.passages, example.history, example.turn)
            lines += [f"A comparison of the words says {found.label}: {found.explanation}"]
        return Outcome(score, verdict.label, "\n".join(lines), rating)

    def _compare(self, verdict: Verdict, example: Example) -> tuple[float, str, float | None]:
        """Return how well a verdict agrees with people, 0 to 1, what to say of it, and its score, 0 to 1, if any."""
        right = verdict.label == example.label
        return float(right), f"People say {example.label}: the verdict is {'right' if right else 'wrong'}.", None


class ScoreTarget(JudgeTarget):
    """A judge that gives scores, compared with people's by a criterion, or with the mean of several."""

    metrics = ("faithfulness",)  # by default; any criterion will do
    agreement = "tau"

    def criteria(self, metrics: Sequence[str]) -> Sequence[str]:
        return metrics

    def select(self, examples: Sequence[Example], metrics: Sequence[str]) -> list[Example]:
        """Return the examples with a score of people that the model is asked about, labelled as low or high.

        People's lowest score among them becomes 0, their highest 1; low is below the median. Left out are references,
        and questions that the passages don't answer, whose answers claim nothing.
        """
        rated = [
            (example, example.rating)
            for example in examples
            if example.rating is not None
            and example.turn.answerability in ("answerable", "partial")
            and example.turn.answer not in example.turn.other_answers
            and cast(Any, self.step).judge_without_model(example.passages, example.turn) is None
        ]
        levels = sorted({rating for _, rating in rated})
        if len(levels) < 2:
            raise ConfigError(
                f"data: {len(examples)} examples have {len(levels)} different scores of people by {', '.join(metrics)} "
                f"for {self.name}, where two are needed; give what `python -m judges.human read` wrote, and as metric "
                "one of its criteria"
            )
        low, high, middle = levels[0], levels[-1], max(levels[1], median(rating for _, rating in rated))
        return [
            example._replace(rating=(rating - low) / (high - low), label="low" if rating < middle else "high")
            for example, rating in rated
        ]

    def _compare(self, verdict: Verdict, example: Example) -> tuple[float, str, float | None]:
        best = cast(Any, self.step).best
        least = float(best > 1)  # from 1 to 10, or from 0 to 1
        people = cast(float, example.rating)
        said = f"People's score, from {least:g} to {best:g}: {least + people * (best - least):.1f}."
        if verdict.score is None:
            return 0.0, said, None
        rating = (verdict.score - least) / (best - least)
        return 1 - abs(rating - people), f"The score: {verdict.score:.2g}. {said}", rating


class AnswerTarget(Target):
    """The agent's answer: whether its evidence covers it, documents say it, and it refuses where people would."""

    name = "answer"
    metrics = ("evidence", "grounding", LABELS)
    labels = get_args(Answerability)

    def __init__(self) -> None:
        self.step = Answer()
        self.tasks = collect_tasks(SingleDocumentDialog(_repetition()))
        self._words, self._type = _grounding(), read_types()["direct"]

    async def attempt(self, step: dspy.Module, example: Example, metrics: Sequence[str]) -> Outcome:
        passages, history, asked = example.passages, example.history, Asked(example.turn.query)
        try:
            turn = await step.acall(passages, history, asked, self._type)
        except Rejected as why:
            return Outcome(0.0, UNJUDGED, f"{_show(example)}\nThe reply was refused: {why.reason}: {why.text}")
        support = support_of(passages, history, turn)
        verdict = await self._words.judge(passages, history, turn)
        claims = any(c.isalnum() for c in drop_refusals(turn.answer))
        scores = {
            # A reply that only refuses needs no evidence: it counts where people say that there is no answer.
            "evidence": float(support.covered if claims else example.label == "unanswerable"),
            "grounding": verdict.score or 0.0,
            LABELS: float(turn.answerability == example.label),
        }
        lines = [_show(example), f"The answer:\n{turn.answer}"]
        lines += [f"Its evidence: {' '.join(e.text for e in turn.evidence) or 'none'}"]
        if not support.covered:
            lines += [f"The evidence doesn't tell: {', '.join(support.missing) or 'the answer'}"]
        if not claims:
            lines += ["It refuses."]
        lines += [f"It counts as {turn.answerability}{f'; people say {example.label}' if example.label else ''}."]
        lines += [f"A comparison with the documents' words says {verdict.label}: {verdict.explanation}"]
        return Outcome(fmean(scores[metric] for metric in metrics), turn.answerability, "\n".join(lines))


class RewriteTarget(Target):
    """The search query of a later question: whether it adds what people added to it, and keeps what they kept.

    Similarity with people's query alone would reward the question as it is: most of its words are there.
    """

    name = "rewrite"
    metrics = ("terms",)

    def __init__(self) -> None:
        self.step = Rewrite()
        self.tasks = collect_tasks(MultiDocumentDialog(_repetition(), cast(Retriever, None), 1, "rewrite"))

    def select(self, examples: Sequence[Example], metrics: Sequence[str]) -> list[Example]:
        usable = [example._replace(label="") for example in examples if example.query and example.history]
        if not usable:
            raise ConfigError(
                f"data: none of {len(examples)} examples is a later question that people rewrote to stand alone; give "
                "canard:FOLDER or orquac:PATH"
            )
        return usable

    async def attempt(self, step: dspy.Module, example: Example, metrics: Sequence[str]) -> Outcome:
        documents = Documents(passages=example.passages)
        try:
            query = await step.acall(documents, example.history, example.turn.query)
        except Rejected as why:
            return Outcome(0.0, UNJUDGED, f"{_show(example)}\nThe reply was refused: {why.reason}: {why.text}")
        written = on_one_line(dspy.settings.trace[-1][2].query)
        lines = [_show(example), f"The query written:\n{written}"]
        if written != query:
            lines += ["It was refused: it is empty, has facts that nobody said, more sentences, or is another message."]
        lines += [f"The query that people wrote:\n{example.query}"]
        return Outcome(compare_queries(example.turn.query, query, example.query), "", "\n".join(lines))


def compare_queries(question: str, query: str, people: str) -> float:
    """Return how well a query that stands alone agrees with people's, 0 to 1, by content words and numbers.

    It is the F1 of those that the two add to the question, times the share that the query has of those that people
    kept.
    """
    asked, given, wanted = map(content_keys, (question, query, people))
    added, needed, kept = given - asked, wanted - asked, wanted & asked
    alike = 2 * len(added & needed) / (len(added) + len(needed)) if added or needed else 1.0
    return alike * len(kept & given) / len(kept) if kept else alike


class AskTarget(Target):
    """A question: how many attempts it needs to pass the checks."""

    metrics = ("checks",)

    def __init__(self, name: str, types: Sequence[str]) -> None:
        self.name = name
        repetition, known = _repetition(), read_types()
        self.step = Ask(FirstQuestion if name == "ask_first" else NextQuestion, repetition)
        self.tasks = collect_tasks(SingleDocumentDialog(repetition))
        self._types = [known[each] for each in types]

    def select(self, examples: Sequence[Example], metrics: Sequence[str]) -> list[Example]:
        if self.name == "ask_first":
            return list({example.passages: example._replace(label="", history=()) for example in examples}.values())
        return [example._replace(label="") for example in examples if example.history]

    async def attempt(self, step: dspy.Module, example: Example, metrics: Sequence[str]) -> Outcome:
        question_type: QuestionType = self._types[crc32(example.id.encode()) % len(self._types)]
        documents = Documents(passages=example.passages)
        asked = f"{_show(example, False)}\nThe kind of question:\n{question_type.prompt()}"
        try:
            question = await step.acall(documents, example.history, question_type)
        except Rejected as why:
            return Outcome(0.0, UNJUDGED, f"{asked}\nNo question was kept: {why.reason}: {why.text}")
        trace = dspy.settings.trace
        refused = trace[-1][1].get("rejected", "")
        lines = [asked, *([f"Refused before:\n{refused}"] if refused else []), f"Kept: {question}"]
        return Outcome(1 / max(1, len(trace)), "", "\n".join(lines))


def find_target(name: str, model: str) -> Target:
    """Return the target with this name.

    Args:
        model: the name of the model that is asked.

    Raises:
        ConfigError: there is none.
    """
    steps: dict[str, Callable[[], Target]] = {
        "answer": AnswerTarget,
        "ask_first": partial(AskTarget, "ask_first", ("direct", "comparative", "aggregate")),
        "ask_next": partial(AskTarget, "ask_next", ("follow-up", "clarification", "correction")),
        "rewrite": RewriteTarget,
    }
    if name in steps:
        return steps[name]()
    wrong = "unknown"
    if name.startswith(_JUDGE) and (judge := name.removeprefix(_JUDGE)) in choices("judge"):
        built = build_choice("judge", judge).build(model)
        if found := _find_judge_target(built):
            return found(judge, built)
        why = "its model gives no label or score that people give, too"
        wrong = why if getattr(built, "asks_model", False) else "asks no model, so it has no instructions"
    raise ConfigError(f"target={name}: {wrong}; choose from: {', '.join([*steps, *_list_judges()])}")


def _list_labels(judge: Any) -> list[str]:
    """Return the labels that a judge's model chooses from; none if it chooses none."""
    outputs = [signature.output_fields for signature in judge.signatures]
    if any(P_YES in each for each in outputs):
        return ["correct", "incorrect"]
    return [label for each in outputs if "label" in each for label in get_args(each["label"].annotation)]


def _find_judge_target(judge: Any) -> type[JudgeTarget] | None:
    """Return the kind of target that a judge is, by what its model gives; None if it is none."""
    if judge is None or not judge.asks_model:
        return None
    if _list_labels(judge):
        return JudgeTarget
    plain = any(map(is_plain, judge.signatures))  # such as a closed-book answer, which people don't score
    return None if judge.best is None or judge.decides or plain else ScoreTarget


def _list_judges() -> list[str]:
    """Return the judges that are targets."""
    judges = {name: build_choice("judge", name).build("") for name in choices("judge")}
    return [f"{_JUDGE}{name}" for name, judge in judges.items() if _find_judge_target(judge)]


def find_metrics(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics of the setting, or the target's first.

    Raises:
        ConfigError: the target has no such metric.
    """
    for name in names:
        if name not in target.metrics and not isinstance(target, ScoreTarget):
            raise ConfigError(
                f"metric={name}: unknown for target={target.name}; choose from: {', '.join(target.metrics)}"
            )
    return tuple(names) or target.metrics[:1]


def _grounding() -> Judge:
    settings: JudgeSettings = build_choice("judge", "grounding")
    return cast(Judge, settings.build(""))


def _repetition() -> Repetition:
    return Repetition(near_duplicates().threshold)


def _show(example: Example, query: bool = True) -> str:
    parts = [Documents(passages=example.passages).render()]
    if example.history:
        parts.append(Conversation(turns=example.history).render())
    return "\n".join([*parts, *([f"The User says:\n{example.turn.query}"] if query else [])])
