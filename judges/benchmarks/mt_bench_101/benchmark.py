"""MT-Bench-101: 13 tasks of multi-turn dialogs, rated turn by turn (Bai et al. 2024, section 3.4 and appendix C)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from generator.models.lm import Message
from generator.schema import Context, Dialog, LocalPath, Operational, Turn
from judges.benchmarks.base import Benchmark, Ratings, with_passages
from judges.benchmarks.mt_bench_101.judgments import read_judgments
from judges.benchmarks.mt_bench_101.scores import MtBenchScores, print_scores, score_dialogs
from judges.llm.task import Question
from taxonomy import Task, read_tasks


class MtBench101(Benchmark):
    """Settings of `benchmark=mt_bench_101`."""

    context: ClassVar[Context] = "golden"
    corpus: ClassVar[str] = "mt_bench_101"

    path: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of your own tasks (`*.yaml`), added to ours; one with the name of one of ours replaces it."
    )

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The tasks by name."""
        return read_tasks(self.path, "benchmark.path")

    @property
    def prompts(self) -> Sequence[str]:
        return [self.tasks[name].rubric() for name in sorted(self.tasks)]

    def check(self, item: Dialog) -> str | None:
        if (fault := self.check_task(item.task)) is not None:
            return fault
        least = self.tasks[item.task].judged_from
        return (
            f"has {len(item.turns)} turns; {item.task} is judged from turn {least} on"
            if not self.judged(item)
            else None
        )

    def check_task(self, name: str) -> str | None:
        """Return the reason why there is no such task, or None."""
        known = ", ".join(sorted(self.tasks))
        return (
            None
            if name in self.tasks
            else f"no file for the task {name!r}; benchmark.path=FOLDER adds yours to {known}"
        )

    def judged(self, item: Dialog) -> Sequence[Turn]:
        return item.turns[self.tasks[item.task].judged_from - 1 :]

    def chat(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> tuple[Message, ...]:
        messages = []
        for before, answer in zip(item.turns, earlier, strict=False):
            messages += [Message(role="user", content=before.query), Message(role="assistant", content=answer)]
        messages.append(Message(role="user", content=turn.query))
        messages[0] = Message(role="user", content=with_passages(item.passages, messages[0].content))
        return tuple(messages)

    def question(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> Question:
        task = self.tasks[item.task]
        history = [t.model_copy(update={"answer": a}) for t, a in zip(item.turns, earlier, strict=False)]
        reference = item.turns[turn.turn - 1].answer if task.reference else ""
        return Question(task.rubric(), item.passages, history, reference)

    def judgments(self, path: Path) -> Ratings:
        return read_judgments(path, self.check_task)

    def score(self, ratings: Ratings, seed: int) -> dict[str, Any]:
        """Return the scores of a model: those of its first context, and of another one under its name.

        Several models stand by name under `models`.
        """
        blocks = {}
        for model, by_context in ratings.items():
            first, *others = (
                (context, score_dialogs(rated, self.tasks, seed).model_dump(mode="json"))
                for context, rated in by_context.items()
            )
            blocks[model] = {"context": first[0], **first[1], **dict(others)}
        return blocks.popitem()[1] if len(blocks) == 1 else {"models": blocks}

    def show(self, scores: Mapping[str, Any]) -> None:
        for model, block in scores.get("models", {scores.get("model", ""): scores}).items():
            if "models" in scores:
                print(f"\n{model}")
            found = {block["context"]: block, **({"own": block["own"]} if "own" in block else {})}
            print_scores({context: MtBenchScores.read(part) for context, part in found.items()}, self.tasks)
