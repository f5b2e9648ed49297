"""Have a model answer the questions of an item, and judges and metrics say what its answers are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from generator.common.concurrency import together
from generator.dialogs.journal import Journal
from generator.errors import Rejected
from generator.execution.store import Outcome
from generator.models.lm import ChatReply, Clients, LanguageModel
from generator.prompts.calls import chat
from generator.prompts.replies import FILTERED
from generator.schema import Context, Dialog, Turn, Verdict
from judges.base import SCORED, UNJUDGED
from judges.benchmarks.base import Benchmark, RatedBenchmark, golden_item
from judges.benchmarks.scores import NO_ANSWER
from judges.llm.task import RatingJudge
from judges.panel import Member, median_of


@dataclass(frozen=True)
class Evaluator:
    """The benchmark, the model under test, and the judges of its answers.

    Attributes:
        model: name of the model under test.
        tested: reaches it; None: the items have its answers.
        members: judges that ask a model; metrics are the benchmark's own.
        seed: of decoding.
    """

    benchmark: Benchmark
    model: str
    tested: Clients | None
    members: Sequence[Member[RatingJudge]]
    seed: int

    async def evaluate(self, item: Dialog, context: Context, journal: Journal) -> Outcome:
        """Return an item with the model's answers and the verdicts on them; golden answers stand in `other_answers`.

        Args:
            context: the earlier answers that the model is shown.
        """
        judged = self.benchmark.judged(item)
        golden = golden_item(item, judged)
        if self.tested is None:
            answers = {turn.turn: turn for turn in judged}
            missing = {turn.turn: why for turn in judged if (why := why_missing(turn)) is not None}
        else:
            with self.tested.for_dialog(item.id) as client:
                lm = LanguageModel(client, journal, self.seed)
                answers, missing = await self._answer(golden, self.benchmark.asked(item, context), context, lm)
        found = await together(
            self._judge(golden, context, answers, missing, member, journal) for member in self.members
        )
        turns, scored = [], {turn.turn for turn in judged}
        for turn in golden.turns:
            if turn.turn not in answers:
                turns.append(turn.model_copy(update={"verdicts": ()}))  # verdicts on the golden answers are no scores
                continue
            verdicts = [verdicts[turn.turn] for verdicts in found]
            if len(verdicts) > 1:
                verdicts.append(median_of(verdicts))
            update = {
                "answer": answers[turn.turn].answer,
                "other_answers": (turn.answer, *turn.other_answers),
                "truncated": answers[turn.turn].truncated,
                "usage": journal.cost(turn.turn),
            }
            answered = turn.model_copy(update=update)
            for metric in self.benchmark.judges if turn.turn in scored else ():
                if (why := missing.get(turn.turn)) is not None:
                    verdicts.append(
                        Verdict(judge=metric.name, label=UNJUDGED, explanation=why, model="", decides=False)
                    )
                else:
                    verdicts.append(await metric.judge((), (), self.benchmark.compared(answered)))
            turns.append(answered.model_copy(update={"verdicts": tuple(verdicts)}))
        model = item.lm if self.tested is None else self.model
        dialog = golden.model_copy(update={"turns": tuple(turns), "context": context, "lm": model})
        return Outcome(dialog=dialog, drops=(), usage=journal.by_stage())

    async def _answer(
        self, item: Dialog, asked: Sequence[Turn], context: Context, lm: LanguageModel
    ) -> tuple[dict[int, Turn], dict[int, str]]:
        """Return the turns with the model's answers, and why some answers didn't come, both by number."""
        answers, missing = dict[int, Turn](), dict[int, str]()

        async def answer(turn: Turn) -> None:
            reply: ChatReply | None = None
            if context == "own" and missing:
                missing[turn.turn] = f"{NO_ANSWER}: one before it is missing"
            else:
                earlier = _earlier(item, turn, context, answers)
                try:
                    reply = await chat(lm, self.benchmark.chat(item, turn, earlier), "respond", turn.turn)
                except Rejected as failure:
                    missing[turn.turn] = f"{NO_ANSWER}: {failure.reason}\n{failure.text}".strip()
            if reply is not None and reply.finish_reason == "content_filter":  # its beginning is no answer either
                missing[turn.turn], reply = f"{NO_ANSWER}: {FILTERED}", None
            text = reply.text.strip() if reply else ""
            cut = reply is not None and reply.finish_reason == "length"
            answers[turn.turn] = turn.model_copy(update={"answer": text, "truncated": cut})

        if context == "golden":
            await together(map(answer, asked))
        else:
            for turn in asked:
                await answer(turn)
        return answers, missing

    async def _judge(
        self,
        item: Dialog,
        context: Context,
        answers: Mapping[int, Turn],
        missing: Mapping[int, str],
        member: Member[RatingJudge],
        journal: Journal,
    ) -> dict[int, Verdict]:
        """Return the verdicts of one judge on all answers, requested concurrently, by turn."""
        judge, benchmark = member.judge, self.benchmark
        assert isinstance(benchmark, RatedBenchmark)

        async def verdict(turn: Turn) -> Verdict:
            if not turn.answer:
                return judge.verdict(UNJUDGED, missing.get(turn.turn, NO_ANSWER))
            question = benchmark.question(item, turn, _earlier(item, turn, context, answers))
            try:
                rating = await judge.rate(question, turn)
            except Rejected as failure:
                return judge.unjudged(failure)
            return judge.verdict(SCORED, rating.explanation, rating.score)

        with member.asking(item.id, journal, self.seed):
            given = await together(map(verdict, answers.values()))
        return dict(zip(answers, given, strict=True))


def _earlier(item: Dialog, turn: Turn, context: Context, answers: Mapping[int, Turn]) -> list[str]:
    """Return the answers that stand before a turn."""
    before = item.turns[: turn.turn - 1]
    return [(t if context == "golden" else answers.get(t.turn, t)).answer for t in before]


def why_missing(turn: Turn) -> str | None:
    """Return why a turn has no answer, as an earlier evaluation says; None if it has one, or one that came empty."""
    if turn.answer or any(verdict.score is not None for verdict in turn.verdicts):
        return None
    unjudged = (v.explanation for v in turn.verdicts if v.label == UNJUDGED and v.explanation.startswith(NO_ANSWER))
    return next(unjudged, None) if turn.verdicts else NO_ANSWER
