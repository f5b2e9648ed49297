"""Generate one dialog, judge it, and list what it lost. Depends only on its plan and the models' replies.

So a dialog is the same whichever process generates it (`generator.execution`).
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

from generator.common.concurrency import together
from generator.common.language import Languages, use_languages
from generator.dialogs.columns import EvidenceRanker, rank_turns
from generator.dialogs.filter import Filter, filter_pairs, loses_unjudged, parse_filter
from generator.dialogs.journal import Calls, Journal
from generator.dialogs.language_checks import SLIP, find_slip
from generator.dialogs.live import following, tell, tell_turn
from generator.dialogs.plan import Plan, Planner
from generator.dialogs.program import Draft, Program
from generator.dialogs.relabel import relabel_turn
from generator.errors import ModelError, Rejected
from generator.models.lm import Clients, LanguageModel
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import Model, use_model
from generator.schema import Cost, Dialog, Drop, Judge, Record, Scope, Turn, Usage, Verdict
from taxonomy import PLAIN

_WHY_DROPPED = {
    "prefix": "the first answer judged incorrect",
    "dialog": "an answer judged incorrect",
    "verified": "an answer that its judge did not pass",
}


@dataclass(frozen=True)
class Connected:
    """A model beside the run's own: its clients, and the adapter that lays out its prompts."""

    clients: Clients
    adapter: SharedPrefixAdapter


@dataclass(frozen=True)
class Judging:
    """The judges of a run, and their model's clients; None if they ask the model that writes the dialogs."""

    judges: tuple[Judge, ...]
    clients: Clients | None
    adapter: SharedPrefixAdapter


class GeneratedDialog(Record):
    """A dialog as generated and judged, before it is compared with others; None if nothing of it is kept."""

    dialog_id: str
    dialog: Dialog | None
    drops: tuple[Drop, ...]
    usage: tuple[tuple[str, Usage], ...]


@dataclass(frozen=True, kw_only=True)
class DialogGenerator:
    """Generates the dialogs of one run, many at a time.

    Attributes:
        corpus: the corpus's name, for the records.
        others: models that the program asks beside the run's own, by the names of their settings.
        judging: None leaves every pair without a verdict.
        ranker: gives the ranks of evidence; None leaves them out.
        keep: which pairs are kept, as in `judge.filter`.
        min_turns: a dialog with fewer turns is dropped, unless it was planned so.
        prompt_version: a hash of the prompts.
        languages: of documents and dialogs.
    """

    corpus: str
    program: Program
    planner: Planner
    clients: Clients
    adapter: SharedPrefixAdapter
    others: Mapping[str, Connected]
    judging: Judging | None
    ranker: EvidenceRanker | None
    keep: Filter
    min_turns: int
    prompt_version: str
    languages: Languages

    def plan(self, number: int) -> Plan:
        """Return plan `number`, from 0."""
        with use_languages(self.languages):
            return self.planner.plan(number)

    async def generate(self, plan: Plan, calls: Calls) -> GeneratedDialog:
        """Return the dialog of a plan, generated and judged.

        Args:
            calls: holds the calls that an earlier run finished, and gets the new ones.

        Raises:
            ModelError, RetrieverError, RunError: every other dialog would fail, too.
        """
        with ExitStack() as stack:
            stack.enter_context(use_languages(self.languages))
            journal = Journal(calls, plan.dialog_id)
            stack.enter_context(following(plan.dialog_id))

            def open_model(clients: Clients) -> LanguageModel:
                return LanguageModel(stack.enter_context(clients.for_dialog(plan.affinity)), journal, plan.seed)

            lm = open_model(self.clients)
            others = {name: Model(open_model(each.clients), each.adapter) for name, each in self.others.items()}
            with use_model(lm, self.adapter):
                draft = await self.program.write(plan, others)
            for turn in draft.turns:
                tell_turn(turn)
            drops, dialog = self._list_losses(plan, draft), None
            if not any(drop.scope == "dialog" for drop in drops):
                dialog = await self._finish(self._make_record(plan, draft), journal, lm)
                if lost := self._find_loss(dialog):
                    drops.append(lost)
                    dialog = None
            tell("end", 0, "" if dialog else next(f"{d.stage}: {d.reason}" for d in drops if d.scope == "dialog"))
            return GeneratedDialog(
                dialog_id=plan.dialog_id, dialog=dialog, drops=tuple(drops), usage=journal.by_stage()
            )

    def _list_losses(self, plan: Plan, draft: Draft) -> list[Drop]:
        """Return drops: unused candidates, skipped turns, what ended the dialog early, a dialog with too few turns."""
        losses = [*draft.skipped, *([(len(draft.turns) + 1, draft.end)] if draft.end else [])]

        def drop(scope: Scope, turn: int | None, why: Rejected, cost: Cost | None = None) -> Drop:
            return Drop(
                dialog_id=plan.dialog_id,
                scope=scope,
                turn=turn,
                stage=why.stage,
                reason=why.reason,
                text=why.text,
                cost=cost,
            )

        drops = [drop("candidate", each.turn, each.why, each.cost) for each in draft.unused]
        if slip := None if draft.end and draft.end.stage == SLIP else find_slip(draft.turns):
            losses.append(slip)
        for turn, why in losses:
            drops.append(drop("turn" if draft.turns and why.stage != SLIP else "dialog", turn, why))
        drops.sort(key=lambda each: each.turn or 0)
        lost = any(each.scope == "dialog" for each in drops)
        if draft.turns and not lost and len(draft.turns) < min(self.min_turns, plan.turns):
            reason = f"fewer than min_turns={self.min_turns} turns"
            drops.append(drop("dialog", None, Rejected("turns", reason, _write_out(draft.turns))))
        return drops

    def _make_record(self, plan: Plan, draft: Draft) -> Dialog:
        """Return the record of a draft, without verdicts."""
        source = () if isinstance(plan.source, str) else (plan.source.document_id,)
        return Dialog(
            id=plan.dialog_id,
            corpus=self.corpus,
            algorithm=self.program.algorithm,
            split=plan.split,
            document_ids=tuple(dict.fromkeys((*source, *(p.document_id for p in draft.passages)))),
            turns=draft.turns,
            passages=draft.passages,
            task=plan.task.name if plan.task else "",
            user="" if plan.user.name == PLAIN.name else plan.user.name,
            ended="complete" if draft.end is None else f"{draft.end.stage}: {draft.end.reason}",
            lm=self.clients.model,
            prompt_version=self.prompt_version,
            seed=plan.seed,
        )

    async def _finish(self, dialog: Dialog, journal: Journal, lm: LanguageModel) -> Dialog:
        """Return a dialog with verdicts, the labels that these give its turns, costs, and ranks of the evidence."""
        turns = []
        for turn, given in zip(dialog.turns, await self._judge(dialog, journal, lm), strict=True):
            turn = relabel_turn(turn.model_copy(update={"verdicts": given, "usage": journal.cost(turn.turn)}))
            for verdict in turn.verdicts[len(given) :]:
                tell("verdict", turn.turn, f"{verdict.label}: {verdict.explanation}", verdict.judge)
            turns.append(turn)
        dialog = dialog.model_copy(update={"turns": tuple(turns)})
        return await rank_turns(dialog, self.ranker) if self.ranker else dialog

    def _find_loss(self, dialog: Dialog) -> Drop | None:
        """Return the drop of a finished dialog of which no pair is kept; None if one is."""
        kept, removed = filter_pairs(dialog, self.keep)
        if kept:
            return None
        reason = _WHY_DROPPED.get(parse_filter(self.keep)[0], "no answer judged correct")
        first = min(removed, key=lambda drop: drop.stage == "judge")
        if first.stage == "filter":
            reason = f"no pair passes the filter: {first.reason}"
        lost = {"scope": "dialog", "turn": None, "reason": reason, "text": _write_out(dialog.turns)}
        return first.model_copy(update=lost)

    async def _judge(self, dialog: Dialog, journal: Journal, lm: LanguageModel) -> list[tuple[Verdict, ...]]:
        """Return the verdicts on each turn of a dialog, all asked at once; a conversational turn has none.

        Args:
            lm: the model that wrote the dialog; it judges too, unless the judges have their own.

        Raises:
            ModelError: `lm` can't be used, or the judges' own model and the filter leaves out what isn't judged; the
                run can be continued later.
        """
        judging = self.judging
        if judging is None:
            return [() for _ in dialog.turns]
        judged = [turn for turn in dialog.turns if turn.answerability != "conversational"]

        async def judge_turn(judge: Judge, turn: Turn) -> Verdict:
            history = dialog.turns[: turn.turn - 1]
            try:
                verdict = await judge.judge(dialog.grounding(turn.turn), history, turn)
                tell("verdict", turn.turn, f"{verdict.label}: {verdict.explanation}", judge.name)
                return verdict
            except ModelError as error:
                if judging.clients is None or loses_unjudged(self.keep, judge):
                    raise  # or every dialog would be lost
                # The judges' own model is gone: their pairs stay unjudged, and the run goes on.
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
            use_model(LanguageModel(client, journal, dialog.seed) if client else lm, judging.adapter),
        ):
            # Judge by judge: a judge's prompts on two turns begin alike, and a server with one slot caches only the
            # last prompt.
            verdicts = await together(judge_turn(judge, turn) for judge in judging.judges for turn in judged)
        by_turn = {turn.turn: tuple(verdicts[place :: len(judged)]) for place, turn in enumerate(judged)}
        return [by_turn.get(turn.turn, ()) for turn in dialog.turns]


def _write_out(turns: Iterable[Turn]) -> str:
    """Return the questions and answers of a dialog, and what judges found wrong with them."""
    lines = list[str]()
    for turn in turns:
        lines += [f"User: {turn.query}", f"Agent: {turn.answer}"]
        lines += [
            f"{v.judge}: {v.label}: {v.explanation}" for v in turn.verdicts if v.label in ("incorrect", "unjudged")
        ]
    return "\n".join(lines)
