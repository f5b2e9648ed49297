"""Judge dialogs that exist: the same dialogs come out, with one more verdict on each turn.

A plan of the store is an input dialog. Verdicts on many dialogs are requested concurrently, and stored in input order.
"""

import asyncio
import hashlib
from array import array
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from typing import Any, cast

import dspy
from omegaconf import DictConfig

from generator.common.atomic_files import write_lines, write_text
from generator.common.concurrency import together
from generator.common.console import count_noun, note
from generator.common.language import IN_ENGLISH, known_codes, use_languages
from generator.config.job import Job, RunFailed, load_named
from generator.config.settings import human_corpora
from generator.dialogs.journal import Journal
from generator.errors import ConfigError, CorpusError
from generator.execution.session import Session, Work, run_session
from generator.execution.store import Outcome, Store
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.program_file import list_predictors, load_program
from generator.prompts.signatures import prompt_version
from generator.schema import Dialog, Judge, SkippedRecord, Turn, Verdict
from generator.sets import DialogSet, dialog_set, note_skipped
from judges.base import UNJUDGED
from judges.benchmarks.evaluator import why_missing
from judges.config import JudgingSettings, judging_identity, load_judging
from judges.panel import Member, median_name, median_of
from judges.summary import JudgingSummary, closing_table, summarise
from judges.work import check_apart, work_through

# Concurrent dialogs of a judge that asks no model; a judge may work in batches.
_CONCURRENCY = 32
# Settings that are part of a run folder's name.
_NAMED = {"judge", "input", "lm.model", "run_dir"}


def judge(cfg: DictConfig, job: Job) -> None:
    """Judge dialogs that exist, or continue; the task of `python -m judges`.

    Raises:
        GroundedDialogsError: the run can't begin or go on.
        RunFailed: nothing was judged.
        KeyboardInterrupt: the run was interrupted; what is finished is written.
    """
    settings, configuration = load_named(cfg, job, load_judging, _NAMED)
    dspy.disable_logging()  # a verdict holds what DSPy would log of a reply
    run = JudgingRun(settings, configuration)
    if any(lm.is_bundled for lm in settings.endpoints.values()):
        note(f"judge={settings.judge.name}: SmolLM2-135M can't judge (docs/judges.md); give a larger model, lm=…")
    with use_languages(run.languages):
        summary = run_session(run, closing_table)
    if not summary.judged:
        reason = next(iter(summary.judges[0].unjudged), "nothing to judge")
        note(f"error: none of {count_noun(summary.turns, 'turn')} could be judged; the most frequent reason: {reason}")
        raise RunFailed(1)
    for each in summary.judges:
        if each.unjudged:
            count, name, reason = sum(each.unjudged.values()), each.model or each.judge, next(iter(each.unjudged))
            note(f"{name}: unjudged turns: {count} of {each.all.turns}; the most frequent reason: {reason}")


class JudgingRun(Session[JudgingSummary]):
    """A run of judging that is ready to start or to continue: settings are checked, and the input has been read once.

    Raises:
        GroundedDialogsError: a setting or the input can't be used; the run folder has not been touched.
    """

    def __init__(self, settings: JudgingSettings, configuration: str) -> None:
        self.settings, self.configuration = settings, configuration
        self.folder, self.fresh = settings.folder, settings.fresh
        self.endpoints = settings.endpoints
        models = [endpoint.model for endpoint in self.endpoints.values()] or [""]
        self.judges = [cast(Judge, settings.judge.build(model)) for model in models]
        if settings.dspy_program is not None:
            for each in self.judges:
                load_program(settings.dspy_program, list_predictors(None, [each]))
        judge = self.judges[0]
        medians = [median_name(models)] if len(models) > 1 and judge.best is not None else []
        self.models = [(judge.name, model) for model in [*models, *medians]]
        check_apart(self.folder, settings.input)
        self.input = _find_input(settings)
        self.known, fingerprint, self.skipped = _read_through(self.input)
        self.total = len(self.known)
        prompts = prompt_version(judge.signatures, SharedPrefixAdapter().rules)
        self.languages = self.input.languages(settings.language, "language")
        if settings.language and settings.language not in known_codes():
            note(f"language={settings.language}: no data for it; docs/languages.md says what isn't compared")
        self.identity = judging_identity(settings, fingerprint, prompts)
        if self.languages != IN_ENGLISH:
            self.identity["language"] = "/".join(each.code for each in self.languages)

    def is_finished(self, store: Store) -> bool:
        return store.attempted >= self.total

    def progress(self, summary: JudgingSummary) -> tuple[int, int]:
        return summary.dialogs, self.total

    async def open(self, stack: AsyncExitStack) -> Work:
        opened = [
            Member(
                judge,
                await endpoint.decoding_greedily().enter(stack, self.folder, setting),
                SharedPrefixAdapter(endpoint.structured_outputs),
            )
            for (setting, endpoint), judge in zip(self.endpoints.items(), self.judges, strict=False)
        ]
        return partial(self._judge, opened or [Member(self.judges[0], None, SharedPrefixAdapter())])

    async def _judge(self, members: list[Member[Judge]], store: Store, stop: asyncio.Event) -> None:
        dialogs = islice((r for r in self.input.records() if isinstance(r, Dialog)), store.attempted, None)
        ids: dict[int, str] = {}

        def make(number: int) -> Coroutine[Any, Any, Outcome]:
            dialog = next(dialogs, None)
            if dialog is None or hash(dialog.model_dump_json()) != self.known[number]:
                raise CorpusError(
                    f"{self.input.path}: was changed during the run, at dialog {number + 1} of {self.total}; restore "
                    "it, and the same command continues"
                )
            ids[number] = f"{number} {dialog.id}"
            return judge_dialog(dialog, members, Journal(store, ids[number]))

        at_once = max((endpoint.concurrency for endpoint in self.endpoints.values()), default=_CONCURRENCY)
        await work_through(make, ids.pop, self.total, at_once, "judged", store, stop)

    def write_results(self, store: Store) -> JudgingSummary:
        write_lines(self.folder / "dialogs.jsonl", store.dialogs())
        if self.skipped:
            write_lines(self.folder / "skipped.jsonl", self.skipped)
        source, best = str(self.settings.input), self.judges[0].best
        summary = summarise(store, source, self.models, best, len(self.skipped), self.total)
        write_text(self.folder / "summary.json", summary.model_dump_json(indent=2) + "\n")
        return summary


async def judge_dialog(dialog: Dialog, members: Sequence[Member[Judge]], journal: Journal) -> Outcome:
    """Return a dialog with the verdicts of `members`, which replace earlier ones of the same judges and models."""
    found = await together(_verdicts(dialog, member, journal) for member in members)
    has_median = len(members) > 1 and members[0].judge.best is not None
    turns = list(dialog.turns)
    for turn, verdicts in zip(dialog.own_turns, zip(*found, strict=True), strict=True):
        new = [*verdicts, *([median_of(verdicts)] if has_median else [])]
        replaced = {(verdict.judge, verdict.model) for verdict in new}
        kept = [verdict for verdict in turn.verdicts if (verdict.judge, verdict.model) not in replaced]
        turns[turn.turn - 1] = turn.model_copy(update={"verdicts": (*kept, *new)})
    return Outcome(dialog=dialog.model_copy(update={"turns": tuple(turns)}), drops=(), usage=journal.by_stage())


async def _verdicts(dialog: Dialog, member: Member[Judge], journal: Journal) -> list[Verdict]:
    """Return the verdicts of one judge on each turn of a dialog, requested concurrently.

    An answer that didn't come when a model was evaluated has none.
    """

    async def verdict(turn: Turn) -> Verdict:
        if dialog.context is not None and turn.verdicts and (why := why_missing(turn)) is not None:
            model = getattr(member.judge, "model", "")
            return Verdict(judge=member.judge.name, label=UNJUDGED, explanation=why, model=model, decides=False)
        return await member.judge.judge(dialog.grounding(turn.turn), dialog.turns[: turn.turn - 1], turn)

    about = dialog.document_ids[0] if dialog.document_ids else dialog.id
    with member.asking(about, journal, dialog.seed):
        return await together(map(verdict, dialog.own_turns))


def _find_input(settings: JudgingSettings) -> DialogSet:
    if settings.format is not None and settings.format not in (known := human_corpora()):
        raise ConfigError(f"format={settings.format}: unknown format; choose from: {', '.join(known)}")
    responses = settings.predictions and settings.format in (None, "mtrag")
    try:
        return dialog_set(str(settings.input), settings.format, responses)
    except ConfigError as error:
        raise ConfigError(str(error).replace("NAME:PATH", "format=NAME")) from error


def _read_through(source: DialogSet) -> tuple[Sequence[int], str, list[SkippedRecord]]:
    """Return a hash of each dialog, valid in this process, a digest of all dialogs, and the skipped records."""
    known, digest, skipped = array("q"), hashlib.sha256(), []
    for record in source.records():
        if isinstance(record, SkippedRecord):
            skipped.append(record)
        else:
            line = record.model_dump_json()
            known.append(hash(line))
            digest.update(f"{line}\n".encode())
    note_skipped(source.path, skipped, len(known))
    return known, digest.hexdigest(), skipped
