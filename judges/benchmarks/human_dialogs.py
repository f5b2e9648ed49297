"""Human dialogs as a benchmark: a model answers their questions, and metrics compare with people's answers.

The measure of table 4 of Lee et al. 2024: golden history, and the passages that the dialog is grounded on.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from generator.common.language import dialog_language
from generator.common.refusals import drop_refusals
from generator.common.sentences import sentences
from generator.config.choices import compose_choice
from generator.config.conf_files import choices
from generator.dialogs.judging import JudgeSettings
from generator.errors import ConfigError, CorpusError, MissingSplit
from generator.output.chat import GROUNDING, to_messages
from generator.output.excerpts import excerpts
from generator.output.tables import print_table
from generator.schema import Context, Dialog, Judge, Message, SkippedRecord, Turn
from generator.sets import dialog_set
from judges.benchmarks.base import Benchmark
from judges.benchmarks.scores import Rated, Ratings, Score, bootstrap
from judges.metrics.words import words

# Whose files, which lie in one folder, name the split of their dialogs.
_SPLIT_BY_FILE = {"multidoc2dial", "orquac"}
_SPLITS = ("test", "validation", "train")
# What the publishers write where a question can't be answered.
_MARKS = (["unknown"], ["cannotanswer"])


class HumanDialogs(Benchmark):
    """Settings of `benchmark=coqa`, `quac`, `multidoc2dial`, `orquac` and `mtrag`."""

    contexts: ClassVar[tuple[Context, ...]] = ("golden", "own")

    metrics: dict[str, JudgeSettings | None] = Field(
        description="Judges that compare an answer with people's and ask no model, by name; null leaves one out."
    )
    questions: int | None = Field(ge=1, description="Draw so many questions of each dialog; null: all.")
    split: Literal["train", "validation", "test"] | None = Field(
        description="Split of MultiDoc2Dial or OR-QuAC, whose files lie in one folder; null: `test`, or else "
        "`validation`, or else `train`."
    )
    passage_tokens: int | None = Field(
        ge=1,
        description="Show so many words and punctuation marks of a question's passages, around the evidence of "
        "people's answer; null: all of them.",
    )

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, value: dict[str, JudgeSettings | None]) -> dict[str, JudgeSettings | None]:
        if not any(value.values()):
            raise ValueError("all of them are null; leave one in")
        return value

    @property
    def prompts(self) -> Sequence[str]:
        return [GROUNDING]

    @cached_property
    def judges(self) -> list[Judge]:
        return [judge for metric in self.metrics.values() if metric and (judge := metric.build("")) is not None]

    def items(self, path: Path) -> Iterator[Dialog | SkippedRecord]:
        name, _, rest = str(path).partition(":")
        if rest and name in choices("corpus"):  # quac:FOLDER
            if name != self.name:
                raise ConfigError(
                    f"input={path}: benchmark={self.name} has no dialogs of {name}; give its files or another benchmark"
                )
            path = Path(rest)
        if self.name not in _SPLIT_BY_FILE:
            if self.split:
                raise ConfigError(f"benchmark.split={self.split}: {self.name} has a file for each split; give the file")
            return super().items(path)
        corpus = compose_choice("corpus", self.name)
        for split in (self.split,) if self.split else _SPLITS:
            records = dialog_set(str(path), {**corpus, "split": split}).records()
            with suppress(MissingSplit):
                first = next(records, None)
                return chain([first] if first else [], records)
        raise CorpusError(f"{path}: has no file of the split {self.split or ' or '.join(_SPLITS)} of {self.name}")

    def check(self, item: Dialog) -> str | None:
        if item.corpus != self.name and item.corpus in choices("benchmark"):
            return f"is of {item.corpus}, which has rules of its own; set benchmark={item.corpus}"
        return None if self.judged(item) else "has no question with an answer"

    def judged(self, item: Dialog) -> Sequence[Turn]:
        turns = [turn for turn in _answerable(item) if turn.answerability != "conversational"]  # as in mtRAG's paper
        if self.questions is None or self.questions >= len(turns):
            return turns
        drawn = random.Random(item.id).sample(range(len(turns)), self.questions)
        return [turns[number] for number in sorted(drawn)]

    def asked(self, item: Dialog, context: Context) -> Sequence[Turn]:
        judged = self.judged(item)
        if context == "golden":
            return judged
        return [turn for turn in _answerable(item) if turn.turn <= judged[-1].turn]

    def chat(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> tuple[Message, ...]:
        passages = excerpts(item.grounding(turn.turn), turn.evidence, self.passage_tokens)
        shown = [
            before.model_copy(update={"answer": answer})
            for before, answer in zip(item.turns[: turn.turn], [*earlier, ""], strict=True)
        ]
        return to_messages(shown, passages)[:-1]

    @cached_property
    def no_answer(self) -> str:
        """The answer that stands where the publisher marks a question as unanswerable; empty if none does."""
        return str(compose_choice("corpus", self.name).get("no_answer") or "")

    def compared(self, turn: Turn) -> Turn:
        """Return an answered turn whose refusal, in whatever words, equals the publisher's mark, and nothing else does.

        So a refusal is right or wrong. It is right with the nearest that is known behind it, too, as generated dialogs
        have it. QuAC's own script asks for a majority of marks; here one is enough.
        """
        spoken = {tuple(words(text)) for text in turn.other_answers if text != self.no_answer}
        said = words(turn.answer)
        if not self.no_answer or tuple(said) in spoken:  # people, too, write of what was “unknown”
            return turn
        marked = self.no_answer in turn.other_answers
        rest = drop_refusals(turn.answer)
        mark = said in (*_MARKS, words(self.no_answer)) or (said and not words(rest))
        if mark or (marked and not _begins(turn.answer, rest)):
            return turn.model_copy(
                update={"answer": self.no_answer, "other_answers": (self.no_answer,)} if marked else {"answer": ""}
            )
        answered = tuple(text for text in turn.other_answers if text != self.no_answer)
        return turn.model_copy(update={"other_answers": answered} if answered else {"answer": ""})

    def rated(self, dialog: Dialog) -> list[Rated]:
        return rated_by_metric(dialog)

    def score(self, ratings: Ratings, seed: int) -> dict[str, Any]:
        """Return the mean of each metric over all questions, under `models`, by model and context."""
        return {
            "models": {
                model: {
                    context: {
                        metric: mean_of_questions([one for one in rated if one.task == metric], seed).model_dump()
                        for metric, chosen in self.metrics.items()
                        if chosen
                    }
                    for context, rated in by_context.items()
                }
                for model, by_context in ratings.items()
            }
        }

    def show(self, scores: Mapping[str, Any]) -> None:
        rows = [
            [model, context, metric, f"{score['score']:.3f}", _interval(score)]
            for model, by_context in scores["models"].items()
            for context, by_metric in by_context.items()
            for metric, score in by_metric.items()
            if score["score"] is not None
        ]
        print_table(rows, ["model", "earlier answers", "metric", "score", "95%"], ["score"])


def _answerable(item: Dialog) -> list[Turn]:
    return [turn for turn in item.own_turns if turn.answer or turn.other_answers]


def _begins(answer: str, rest: str) -> bool:
    """Return True if an answer begins with what is left of it without its refusals, by a sentence or three words."""
    _, end = next(iter(sentences(rest, dialog_language().code)), (0, 0))
    return answer.startswith(rest[:end]) or words(answer)[:3] == words(rest)[:3]


def rated_by_metric(dialog: Dialog) -> list[Rated]:
    """Return a score for each turn and metric of an answered dialog; the metric is the `task`."""
    return [Rated.of(verdict, verdict.judge, dialog, turn) for turn in dialog.turns for verdict in turn.verdicts]


def mean_of_questions(rated: Sequence[Rated], seed: int) -> Score:
    """Return the mean over questions, with an interval of 9,999 resamples of whole dialogs; see `Score`."""
    dialogs: dict[str, list[float]] = {}
    for one in rated:
        if one.score is not None:
            dialogs.setdefault(one.item, []).append(one.score)
    if not dialogs:
        return Score(score=None, low=None, high=None)
    sums = np.array([sum(values) for values in dialogs.values()])
    counts = np.array([len(values) for values in dialogs.values()])

    def mean(total: Any, count: Any, axis: int) -> Any:
        return total.sum(axis=axis) / count.sum(axis=axis)

    return bootstrap([sums, counts], mean, seed, paired=True)


def _interval(score: Mapping[str, Any]) -> str:
    return "" if score["low"] is None else f"{score['low']:.3f} to {score['high']:.3f}"
