"""Plan, dialog, judge, dedup, store: many dialogs at once, their outcomes written down in plan order.

Dialogs finish in any order; an outcome waits until those of all plans before it are written, since what is a duplicate
depends on what came first. So a run's data doesn't depend on timing or concurrency. A plan is only begun while the
run would need its dialog even if all those under way were accepted: nothing is generated to be thrown away.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Any

from generator.adapter import SharedPrefixAdapter
from generator.calls import asking
from generator.dedup import Deduplicator
from generator.engine import Client, Clients, language_model
from generator.errors import ModelError
from generator.export.chat import Filter, pairs
from generator.modules import Draft
from generator.multi import MultiDocumentDialog
from generator.ordered import in_order
from generator.plan import Plan, Planner
from generator.relabel import relabelled
from generator.schema import Dialog, Drop, Judge, Record, Turn, Usage, Verdict
from generator.single import SingleDocumentDialog
from generator.store import Journal, Outcome, Store


@dataclass(frozen=True)
class Limits:
    """When a run is done, and how many dialogs it works on at a time."""

    dialogs: int
    max_attempts: int
    min_turns: int
    at_once: int


@dataclass(frozen=True)
class Judging:
    """Judges and where the model they ask is; None: it is the one that writes the dialogs."""

    judges: tuple[Judge, ...]
    clients: Clients | None
    adapter: SharedPrefixAdapter


@dataclass(frozen=True)
class Progress:
    """How far a run is, for whoever shows it."""

    accepted: int
    attempted: int
    dialogs: int
    completion: int


class Made(Record):
    """A dialog as generated and judged, before it is compared with others; None if nothing of it was kept."""

    dialog_id: str
    dialog: Dialog | None
    drops: tuple[Drop, ...]
    usage: tuple[tuple[str, Usage], ...]


class Pipeline:
    """Generates one run.

    Args:
        corpus: its name, for the records.
        prompt_version: of everything the model is told.
        judging: None leaves every pair without a verdict.
        keep: which pairs are kept, as in `judge.filter`.
        on_progress: called after every outcome.
    """

    def __init__(
        self,
        *,
        corpus: str,
        program: SingleDocumentDialog | MultiDocumentDialog,
        planner: Planner,
        clients: Clients,
        adapter: SharedPrefixAdapter,
        judging: Judging | None,
        dedup: Deduplicator,
        keep: Filter,
        store: Store,
        limits: Limits,
        prompt_version: str,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.corpus, self.program, self.planner, self.clients, self.adapter = corpus, program, planner, clients, adapter
        self.judging, self.dedup, self.keep, self.store, self.limits = judging, dedup, keep, store, limits
        self.prompt_version, self.on_progress = prompt_version, on_progress

    async def run(self, stop: asyncio.Event) -> None:
        """Make dialogs until enough are accepted, too many were tried, or `stop` is set.

        Raises:
            ModelError, RetrieverError, RunError: the run can't go on; what was finished is kept.
        """
        for dialog in self.store.dialogs():
            self.dedup.add(dialog)
        accepted, last = self.store.accepted, time.monotonic()

        def make(number: int) -> Coroutine[Any, Any, Made] | None:
            return self.make(self.planner.plan(number)) if number < self.limits.max_attempts else None

        def wanted(under_way: int, waiting: Collection[Made]) -> bool:
            hoped = accepted + under_way + sum(made.dialog is not None for made in waiting)
            return hoped < self.limits.dialogs

        first = self.store.attempted
        async with aclosing(in_order(make, first, self.limits.at_once, stop, wanted)) as results:
            async for number, made in results:
                outcome, now = self.compared(made), time.monotonic()
                self.store.add(number, made.dialog_id, outcome, now - last)
                last = now
                accepted += outcome.dialog is not None
                completion = sum(usage.completion for usage in self.store.usage().values())
                self.on_progress(Progress(accepted, number + 1, self.limits.dialogs, completion))

    async def make(self, plan: Plan) -> Made:
        """Generate and judge one dialog. Depends on nothing but the plan and the replies of the models."""
        with self.clients.for_dialog(plan.about) as client:
            return await self.made(plan, client)

    async def made(self, plan: Plan, client: Client) -> Made:
        """The same, with the client for it."""
        journal = Journal(self.store, plan.dialog_id)
        with asking(language_model(client, journal, plan.seed), self.adapter):
            draft = await self.generate(plan)
        drops = tuple(self.cut(plan, draft))
        dialog = None
        if not any(drop.scope == "dialog" for drop in drops):
            dialog = self.dialog(plan, draft)
            verdicts = await self.verdicts(dialog, journal, client)
            turns = [t.model_copy(update={"verdicts": v}) for t, v in zip(dialog.turns, verdicts, strict=True)]
            turns = [relabelled(t.model_copy(update={"usage": journal.cost(t.turn)})) for t in turns]
            dialog = dialog.model_copy(update={"turns": tuple(turns)})
            if unkept := self.unkept(dialog):
                dialog, drops = None, (*drops, unkept)
        return Made(dialog_id=plan.dialog_id, dialog=dialog, drops=drops, usage=journal.by_stage())

    async def generate(self, plan: Plan) -> Draft:
        """Run the algorithm of this run on a plan."""
        if isinstance(self.program, MultiDocumentDialog):
            return await self.program.acall(plan.source, plan.kinds, plan.focus, plan.split)
        return await self.program.acall(plan.source, plan.kinds, plan.focus)

    def cut(self, plan: Plan, draft: Draft) -> list[Drop]:
        """What a draft lost: turns without a question, what ended it early, and the dialog if too little is left."""
        ended = () if draft.end is None else ((len(draft.turns) + 1, draft.end),)
        drops = [
            Drop(
                dialog_id=plan.dialog_id,
                scope="turn" if draft.turns else "dialog",
                turn=turn,
                stage=lost.stage,
                reason=lost.reason,
                text=lost.text,
            )
            for turn, lost in (*draft.passed, *ended)
        ]
        if draft.turns and len(draft.turns) < min(self.limits.min_turns, len(plan.kinds)):
            reason = f"fewer than min_turns={self.limits.min_turns} turns"
            drops.append(Drop(dialog_id=plan.dialog_id, scope="dialog", stage="turns", reason=reason))
        return drops

    def dialog(self, plan: Plan, draft: Draft) -> Dialog:
        """The record of a draft, without verdicts."""
        asked_of = () if isinstance(plan.source, str) else (plan.source.document_id,)
        documents = (*asked_of, *(p.document_id for p in draft.passages))
        return Dialog(
            id=plan.dialog_id,
            corpus=self.corpus,
            algorithm="multi" if isinstance(self.program, MultiDocumentDialog) else "single",
            split=plan.split,
            document_ids=tuple(dict.fromkeys(documents)),
            turns=draft.turns,
            passages=draft.passages,
            ended="complete" if draft.end is None else f"{draft.end.stage}: {draft.end.reason}",
            lm=self.clients.model,
            prompt_version=self.prompt_version,
            seed=plan.seed,
        )

    async def verdicts(self, dialog: Dialog, journal: Journal, client: Client) -> list[tuple[Verdict, ...]]:
        """The verdicts on each turn of a dialog, all asked for at once; none on a turn that asks for nothing."""
        if self.judging is None:
            return [() for _ in dialog.turns]
        judging = self.judging

        asked = [turn for turn in dialog.turns if turn.answerability != "conversational"]

        async def judged_by(judge: Judge, turn: Turn) -> Verdict:
            history = dialog.turns[: turn.turn - 1]
            try:
                return await judge.judge(dialog.grounding(turn.turn), history, turn)
            except ModelError as error:
                # A judge of its own that is gone leaves its pairs unjudged; if it is the generator's model that is
                # gone, the run stops, and goes on later with nothing lost.
                if judging.clients is None:
                    raise
                decides = getattr(judge, "decides", True)
                model = judging.clients.model
                return Verdict(judge=judge.name, label="unjudged", explanation=str(error), model=model, decides=decides)

        own = judging.clients and judging.clients.for_dialog(dialog.document_ids[0])
        with own or nullcontext(client) as used, asking(language_model(used, journal, dialog.seed), judging.adapter):
            # Judge by judge: what one sees of a turn begins like what it sees of the next, and a server with one slot
            # remembers only the last.
            verdicts = await asyncio.gather(*(judged_by(judge, turn) for judge in judging.judges for turn in asked))
        of_turn = {t.turn: tuple(verdicts[place :: len(asked)]) for place, t in enumerate(asked)}
        return [of_turn.get(turn.turn, ()) for turn in dialog.turns]

    def unkept(self, dialog: Dialog) -> Drop | None:
        """Why the judge's verdicts leave nothing of a dialog, if they do."""
        rows, removed = pairs(dialog, self.keep)
        if rows:
            return None
        reason = "an answer judged incorrect" if self.keep == "dialog" else "no answer judged correct"
        return Drop(dialog_id=dialog.id, scope="dialog", stage="judge", reason=reason, text=removed[0].text)

    def compared(self, made: Made) -> Outcome:
        """The outcome of a plan, once all plans before it have theirs."""
        dialog, drops = made.dialog, made.drops
        if dialog is not None and (duplicate := self.dedup.check(dialog)):
            text = f"{duplicate.text} (as in {duplicate.of})"
            drops = (
                *drops,
                Drop(dialog_id=dialog.id, scope="dialog", stage="dedup", reason=duplicate.reason, text=text),
            )
            dialog = None
        if dialog is not None:
            self.dedup.add(dialog)
            drops = (*drops, *pairs(dialog, self.keep)[1])
        return Outcome(dialog=dialog, drops=drops, usage=made.usage)
