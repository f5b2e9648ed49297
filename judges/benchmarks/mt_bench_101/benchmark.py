"""MT-Bench-101: 13 tasks of multi-turn dialogs, rated turn by turn (Bai et al. 2024, section 3.4 and appendix C)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from generator.common.console import count_noun
from generator.schema import Context, Dialog, Message, Turn
from judges.benchmarks.base import AnswerLine, RatedBenchmark, to_chat, with_passages
from judges.benchmarks.judgments import JudgmentLine
from judges.benchmarks.mt_bench_101.judgments import Answer, Judgment
from judges.benchmarks.mt_bench_101.scores import MtBenchScores, print_scores, score_dialogs
from judges.benchmarks.scores import Ratings
from judges.llm.task import Question
from taxonomy import Task, read_tasks


class MtBench101(RatedBenchmark):
    contexts: ClassVar[tuple[Context, ...]] = ("golden", "own")
    noun: ClassVar[str] = "task"
    # Tasks take up what the User tells (CM), and some only keep the talk going (PI).
    bound: ClassVar[str] = "What you say about the subject comes from this context, and from nothing else."
    answer_line: ClassVar[type[AnswerLine]] = Answer
    judgment_line: ClassVar[type[JudgmentLine]] = Judgment

    @cached_property
    def kinds(self) -> dict[str, Task]:
        """The tasks by name."""
        return read_tasks(self.path, "benchmark.path")

    def check(self, item: Dialog) -> str | None:
        if (fault := self.check_task(item.task)) is not None:
            return fault
        if self.judged(item):
            return None
        judged_from = self.kinds[item.task].judged_from
        return f"has {count_noun(len(item.turns), 'turn')}; {item.task} is judged from turn {judged_from} on"

    def judged(self, item: Dialog) -> Sequence[Turn]:
        return item.turns[self.kinds[item.task].judged_from - 1 :]

    def chat(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> tuple[Message, ...]:
        first, *others = (t.query for t in item.turns[: turn.turn])
        return to_chat([with_passages(self.bound, item.passages, first), *others], earlier)

    def question(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> Question:
        task = self.kinds[item.task]
        history = [t.model_copy(update={"answer": a}) for t, a in zip(item.turns, earlier, strict=False)]
        reference = item.turns[turn.turn - 1].answer if task.reference else ""
        return Question(task.rubric(), item.passages, history, reference)

    def score(self, ratings: Ratings, seed: int) -> dict[str, Any]:
        """Return the scores of a model: those of `golden`, or else `own`, and of `own` beside it under its name.

        Several models stand by name under `models`.
        """
        blocks = {}
        for model, by_context in ratings.items():
            first, *others = (
                (context, score_dialogs(rated, self.kinds, seed).model_dump(mode="json"))
                for context, rated in sorted(by_context.items())
            )
            blocks[model] = {"context": first[0], **first[1], **dict(others)}
        return blocks.popitem()[1] if len(blocks) == 1 else {"models": blocks}

    def show(self, scores: Mapping[str, Any]) -> None:
        for model, block in scores.get("models", {scores.get("model", ""): scores}).items():
            if "models" in scores:
                print(f"\n{model}")
            found = {block["context"]: block, **({"own": block["own"]} if "own" in block else {})}
            print_scores({context: MtBenchScores.read(part) for context, part in found.items()}, self.kinds)
