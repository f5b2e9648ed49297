"""Define a benchmark of dialogs: how its items are read, asked, judged and scored.

An item is a `Dialog` whose answers are the golden ones. Answered by a model, it keeps them in `other_answers`, and
names in `context` which earlier answers the model was shown. `evaluator.py` and `run.py` do the rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from generator.schema import (
    Context,
    Dialog,
    Judge,
    LocalPath,
    Message,
    Operational,
    Passage,
    Record,
    SkippedRecord,
    Turn,
)
from generator.sets import dialog_set
from judges.benchmarks.judgments import JudgmentLine, read_judgments
from judges.benchmarks.scores import Rated, Ratings, rated_turns
from judges.llm.task import Question
from taxonomy import ItemKind


class AnswerLine(BaseModel, ABC):
    """A line of a file with a model's answers; each benchmark has its own form of one."""

    @abstractmethod
    def answers(self) -> tuple[str, Mapping[int, str]]:
        """Return the id of an item, and answers to it by number of the turn."""


class Benchmark(Record, ABC):
    """The settings of `conf/benchmark/<name>.yaml`."""

    # The earlier answers that the model under test can be shown; by default the first.
    contexts: ClassVar[tuple[Context, ...]]

    # The corpus that reads the publisher's files; None: the one of the benchmark's name.
    corpus: ClassVar[str | None] = None

    name: str = Field(description="Name of the benchmark, in the run folder's name and the scores.")

    @property
    def prompts(self) -> Sequence[str]:
        """The texts that decide what models are asked, for the prompts' version."""
        return ()

    @property
    def judges(self) -> Sequence[Judge]:
        """The judges that ask no model and score every answer."""
        return ()

    def items(self, path: Path) -> Iterator[Dialog | SkippedRecord]:
        """Yield the dialogs of a run folder, a file of dialogs, or the publisher's file.

        Raises:
            CorpusError, RunError: they can't be read.
        """
        return dialog_set(str(path), self.corpus or self.name).records()

    def compared(self, turn: Turn) -> Turn:
        """Return an answered turn as `judges` are to see it."""
        return turn

    def rated(self, dialog: Dialog) -> list[Rated]:
        """Return the scores of an answered item's turns."""
        return rated_turns(dialog)

    @abstractmethod
    def check(self, item: Dialog) -> str | None:
        """Return the reason why an item isn't one of this benchmark, or None."""

    @abstractmethod
    def judged(self, item: Dialog) -> Sequence[Turn]:
        """Return the turns of an item that are answered and judged."""

    def asked(self, item: Dialog, context: Context) -> Sequence[Turn]:
        """Return the turns that the model under test answers: those judged, and any before them that it is shown."""
        return self.judged(item)

    @abstractmethod
    def chat(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> tuple[Message, ...]:
        """Return the chat whose last message is the question of `turn`.

        Args:
            item: with the golden answers.
            earlier: the answers that the model is shown to the questions before, one for each.
        """

    @abstractmethod
    def score(self, ratings: Ratings, seed: int) -> dict[str, Any]:
        """Return the scores as in `scores.json`."""

    @abstractmethod
    def show(self, scores: Mapping[str, Any]) -> None:
        """Print the tables of what `score` returned."""


class RatedBenchmark(Benchmark):
    """A benchmark whose answers a model rates, by the criteria of a task or scenario."""

    # What its kinds of items are called.
    noun: ClassVar[str]
    # What binds an answer to the passages below it.
    bound: ClassVar[str] = "Answer from this context, and from nothing else."
    # The forms of answers and of judgments that exist.
    answer_line: ClassVar[type[AnswerLine]]
    judgment_line: ClassVar[type[JudgmentLine]]

    path: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of your own tasks or scenarios (`*.yaml`), added to the benchmark's; one with the name of "
        "one of those replaces it."
    )

    @property
    @abstractmethod
    def kinds(self) -> Mapping[str, ItemKind]:
        """The kinds of items by name."""

    @abstractmethod
    def question(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> Question:
        """Return what a judge is given for the answer to `turn`; arguments as of `chat`."""

    @property
    def prompts(self) -> Sequence[str]:
        return [self.bound, *(kind.rubric() for _, kind in sorted(self.kinds.items()))]

    def check_task(self, name: str) -> str | None:
        """Return the reason why there is no such kind of items, or None."""
        if name in self.kinds:
            return None
        known = ", ".join(sorted(self.kinds))
        return f"no file for the {self.noun} {name!r}; benchmark.path=FOLDER adds yours to {known}"

    def judgments(self, path: Path) -> Ratings:
        """Return the ratings of judgments that exist; see `read_judgments`."""
        return read_judgments(path, self.judgment_line, self.check_task)


def golden_item(dialog: Dialog, judged: Iterable[Turn]) -> Dialog:
    """Return an item with its golden answers, from one that a model has answered; items as they are otherwise."""
    if dialog.context is None:
        return dialog
    answered = {turn.turn for turn in judged}
    turns = [
        t.model_copy(update={"answer": t.other_answers[0], "other_answers": t.other_answers[1:]})
        if t.turn in answered and t.other_answers
        else t
        for t in dialog.turns
    ]
    return dialog.model_copy(update={"turns": tuple(turns), "context": None})


def to_chat(questions: Sequence[str], answers: Sequence[str]) -> tuple[Message, ...]:
    """Return the chat of questions and the answers to all of them but the last."""
    messages = [Message(role="user", content=questions[0])]
    for answer, question in zip(answers, questions[1:], strict=True):
        messages += [Message(role="assistant", content=answer), Message(role="user", content=question)]
    return tuple(messages)


def with_passages(bound: str, passages: Sequence[Passage], question: str) -> str:
    """Return a question under the passages that its answer must rest on, as a model under test gets it."""
    if not passages:
        return question
    texts = "\n\n".join(p.titled for p in passages)
    return f"{bound}\n<context>\n{texts}\n</context>\n\n{question}"
