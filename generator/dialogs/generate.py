"""One dialog: generated, judged, and what it lost. Depends on nothing but its plan and the replies of the models.

So a dialog is the same wherever it is made, in this process or in another (`generator.execution`).
"""

from contextlib import nullcontext
from dataclasses import dataclass

from generator.common.concurrency import together
from generator.dialogs.adapter import SharedPrefixAdapter
from generator.dialogs.calls import asking
from generator.dialogs.filter import Filter, filter_pairs
from generator.dialogs.journal import Calls, Journal
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.plan import Plan, Planner
from generator.dialogs.relabel import relabelled
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.steps import Draft
from generator.errors import ModelError
from generator.models.lm import Client, Clients, LanguageModel
from generator.schema import Dialog, Drop, Judge, Record, Turn, Usage, Verdict


@dataclass(frozen=True)
class Judging:
    """Judges and where the model they ask is; None: it is the one that writes the dialogs."""

    judges: tuple[Judge, ...]
    clients: Clients | None
    adapter: SharedPrefixAdapter


class GeneratedDialog(Record):
    """A dialog as generated and judged, before it is compared with others; None if nothing of it was kept."""

    dialog_id: str
    dialog: Dialog | None
    drops: tuple[Drop, ...]
    usage: tuple[tuple[str, Usage], ...]


class DialogGenerator:
    """Makes the dialogs of one run, many at a time.

    Args:
        corpus: its name, for the records.
        prompt_version: of everything the model is told.
        judging: None leaves every pair without a verdict.
        keep: which pairs are kept, as in `judge.filter`.
        min_turns: a dialog with fewer is dropped, unless it was planned so.
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
        keep: Filter,
        min_turns: int,
        prompt_version: str,
    ) -> None:
        self.corpus, self.program, self.planner, self.clients, self.adapter = corpus, program, planner, clients, adapter
        self.judging, self.keep, self.min_turns, self.prompt_version = judging, keep, min_turns, prompt_version

    async def make(self, plan: Plan, calls: Calls) -> GeneratedDialog:
        """The dialog of a plan, generated and judged.

        Args:
            calls: where its finished calls are.

        Raises:
            ModelError, RetrieverError, RunError: no other dialog would fare better.
        """
        with self.clients.for_dialog(plan.about) as client:
            return await self.made(plan, client, Journal(calls, plan.dialog_id))

    async def made(self, plan: Plan, client: Client, journal: Journal) -> GeneratedDialog:
        """The same, with the client and the journal for it."""
        lm = LanguageModel(client, journal, plan.seed)
        with asking(lm, self.adapter):
            draft = await self.generate(plan)
        drops = tuple(self.cut(plan, draft))
        dialog = None
        if not any(drop.scope == "dialog" for drop in drops):
            dialog = self.dialog(plan, draft)
            verdicts = await self.verdicts(dialog, journal, lm)
            turns = [t.model_copy(update={"verdicts": v}) for t, v in zip(dialog.turns, verdicts, strict=True)]
            turns = [relabelled(t.model_copy(update={"usage": journal.cost(t.turn)})) for t in turns]
            dialog = dialog.model_copy(update={"turns": tuple(turns)})
            if unkept := self.unkept(dialog):
                dialog, drops = None, (*drops, unkept)
        return GeneratedDialog(dialog_id=plan.dialog_id, dialog=dialog, drops=drops, usage=journal.by_stage())

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
        if draft.turns and len(draft.turns) < min(self.min_turns, len(plan.kinds)):
            reason = f"fewer than min_turns={self.min_turns} turns"
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

    async def verdicts(self, dialog: Dialog, journal: Journal, lm: LanguageModel) -> list[tuple[Verdict, ...]]:
        """The verdicts on each turn of a dialog, all asked for at once; none on a turn that asks for nothing.

        Args:
            lm: what made the dialog; it judges too, unless the judge has a model of its own.
        """
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
                return Verdict(
                    judge=judge.name,
                    label="unjudged",
                    explanation=str(error),
                    model=judging.clients.model,
                    decides=judge.decides,
                )

        own = judging.clients and judging.clients.for_dialog(dialog.document_ids[0])
        with (
            own or nullcontext() as client,
            asking(LanguageModel(client, journal, dialog.seed) if client else lm, judging.adapter),
        ):
            # Judge by judge: what one sees of a turn begins like what it sees of the next, and a server with one slot
            # remembers only the last.
            verdicts = await together(judged_by(judge, turn) for judge in judging.judges for turn in asked)
        of_turn = {t.turn: tuple(verdicts[place :: len(asked)]) for place, t in enumerate(asked)}
        return [of_turn.get(turn.turn, ()) for turn in dialog.turns]

    def unkept(self, dialog: Dialog) -> Drop | None:
        """Why the judge's verdicts leave nothing of a dialog, if they do."""
        kept, removed = filter_pairs(dialog, self.keep)
        if kept:
            return None
        reason = "an answer judged incorrect" if self.keep == "dialog" else "no answer judged correct"
        return Drop(dialog_id=dialog.id, scope="dialog", stage="judge", reason=reason, text=removed[0].text)
