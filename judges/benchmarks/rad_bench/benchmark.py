"""RAD-Bench: three questions a dialog, each with contexts of its own, in six scenarios (Kuo et al. 2025)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from generator.common.console import count_noun
from generator.schema import Context, Dialog, Message, Turn
from judges.benchmarks.base import AnswerLine, RatedBenchmark, golden_item, to_chat, with_passages
from judges.benchmarks.judgments import JudgmentLine
from judges.benchmarks.rad_bench.judgments import Answers, Judgment
from judges.benchmarks.rad_bench.scores import RadScores, print_scores, score_model
from judges.benchmarks.scores import Ratings
from judges.llm.task import Question
from taxonomy import Scenario, read_scenarios


class RadBench(RatedBenchmark):
    # The references are knowledge points and evidence, which a model can't have said.
    contexts: ClassVar[tuple[Context, ...]] = ("own",)
    noun: ClassVar[str] = "scenario"
    answer_line: ClassVar[type[AnswerLine]] = Answers
    judgment_line: ClassVar[type[JudgmentLine]] = Judgment

    @cached_property
    def kinds(self) -> dict[str, Scenario]:
        """The scenarios by name."""
        return read_scenarios(self.path, "benchmark.path")

    @property
    def prompts(self) -> Sequence[str]:
        seen = (f"{name} {turn.judge}" for name, kind in sorted(self.kinds.items()) for turn in kind.turns)
        return [*super().prompts, *seen]

    def check(self, item: Dialog) -> str | None:
        if (fault := self.check_task(item.task)) is not None:
            return fault
        expected = self.kinds[item.task].turns
        if len(item.turns) != len(expected):
            return f"has {count_noun(len(item.turns), 'turn')}; {item.task} has {len(expected)}"
        for turn, seen in zip(golden_item(item, item.turns).turns, expected, strict=True):
            if "reference" in seen.judge and not turn.answer:
                return f"turn {turn.turn} has no reference, which answers in {item.task} are judged by"
        return None

    def judged(self, item: Dialog) -> Sequence[Turn]:
        return item.turns

    def chat(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> tuple[Message, ...]:
        before = (t.query for t in item.turns[: turn.turn - 1])
        return to_chat([*before, with_passages(self.bound, item.retrieved(turn.turn), turn.query)], earlier)

    def question(self, item: Dialog, turn: Turn, earlier: Sequence[str]) -> Question:
        """Return what a judge is given; its history are references, never the model's answers (figures 15 to 20)."""
        scenario = self.kinds[item.task]
        shown = [
            t if "reference" in seen.judge else t.model_copy(update={"answer": ""})
            for t, seen in zip(item.turns, scenario.turns, strict=True)
        ]
        *history, current = shown[: turn.turn]
        sees_context = "context" in scenario.turns[turn.turn - 1].judge
        passages = item.retrieved(turn.turn) if sees_context else ()
        return Question(scenario.rubric(), passages, history, current.answer)

    def score(self, ratings: Ratings, seed: int) -> dict[str, Any]:
        """Return the scores by model, under `models`."""
        scores = {model: score_model(found["own"], self.kinds, seed) for model, found in ratings.items()}
        return {"models": {model: found.model_dump(mode="json") for model, found in scores.items()}}

    def show(self, scores: Mapping[str, Any]) -> None:
        models = {model: RadScores.model_validate(found) for model, found in scores["models"].items()}
        print_scores(models, self.kinds)
