"""One run: begun or continued, and how it ends for the user."""

import asyncio
import os
import re
import shlex
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import dspy
from omegaconf import DictConfig
from pydantic_core import to_json

from generator.common.atomic_files import write_text
from generator.common.console import continues, count_noun, note
from generator.common.language import IN_ENGLISH, use_languages
from generator.common.passages import count_tokens
from generator.components import Components, WorkerSpec, skipped_documents
from generator.config.job import Job, RunFailed, load_named
from generator.config.run_checks import TOKENS_PER_WORD, check_settings, check_users, find_tightest, size_window
from generator.config.settings import Settings, hash_files, hash_models, identity, load
from generator.dialogs.dedup import Deduplicator
from generator.dialogs.first_questions import read_first_questions
from generator.dialogs.generate import DialogGenerator
from generator.dialogs.live import watching
from generator.dialogs.marks import apply_judged, apply_marks, count_bare_notes, read_marks
from generator.errors import ConfigError
from generator.execution.base import Executor, Plans
from generator.execution.identity import FILTER
from generator.execution.pipeline import run_pipeline
from generator.execution.session import Session, Work, run_session
from generator.execution.store import Store
from generator.models.embedded import EmbeddedEndpoint
from generator.models.lm import is_small
from generator.models.local_servers import find_servers
from generator.output.outcome import closing_table
from generator.output.progress import Display
from generator.output.summary import Summary
from generator.prompts.calls import TOO_LONG
from generator.prompts.program_file import read_program
from generator.results import write_results
from generator.schema import Drop
from taxonomy import load as load_taxonomy
from taxonomy import load_users

ATTEMPTS_PER_DIALOG, ATTEMPTS_OF_BUNDLED_MODEL = 10, 3
# What turns may find can be so many times what a prompt has room for: some passages are found again.
OVERFULL = 1.5
_FOR_DATA = (
    "SmolLM2-135M is here to show that everything works, and too small for data; with a real model: python -m "
    "generator lm=ollama lm.model=… (or llamacpp, lmstudio, vllm, openai, …), or lm.path=hf://Qwen/"
    "Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf, which is fetched once"
)
# Settings that are part of a run folder's name.
_NAMED = {"corpus", "taxonomy", "user", "algorithm", "lm.model", "seed", "run_dir"}


def generate(cfg: DictConfig, job: Job) -> float:
    """Generate a run, or continue it; the task of `python -m generator`.

    Returns:
        kept pairs a model call, for a sweep that looks for the best settings.

    Raises:
        GroundedDialogsError: the run can't begin or go on.
        RunFailed: nothing was accepted.
        KeyboardInterrupt: the run was interrupted; what is finished is written.
    """
    return generate_run(*load_run(cfg, job), job)


def load_run(cfg: DictConfig, job: Job) -> tuple[Settings, str]:
    """Return the settings of a composed configuration, and the YAML by which the run is continued."""
    return load_named(cfg, job, load, _NAMED)


def generate_run(settings: Settings, configuration: str, job: Job) -> float:
    """Generate a run, or continue it; see `generate`.

    Args:
        configuration: the settings as YAML, for the run folder.
    """
    dspy.disable_logging()  # what it would log of a reply stands with the reply's drop
    with settings.executor.open() as executor:
        run = Run(settings, configuration, job.command, executor)
        if settings.marks is not None:
            run.apply_marks_file(settings.marks)
        with use_languages(run.components.languages):
            summary = run_session(run, closing_table)
    if settings.lm.is_bundled:
        note(_FOR_DATA)
    if not summary.accepted:
        losses = {f"{stage} ({reason})": n for stage, why in summary.dropped.items() for reason, n in why.items()}
        most = max(losses, key=losses.__getitem__)
        drops = settings.folder / "drops.jsonl"
        lost = f"{losses[most]} of them lost at {most}"
        if most.startswith(("model (", f"context ({TOO_LONG}")):  # whose drops hold what the server said
            with drops.open(encoding="utf-8") as file:
                dropped = map(Drop.model_validate_json, file)
                lost += f": {next(d.text for d in dropped if d.scope == 'dialog' and most.startswith(d.stage))}"
        attempted = count_noun(summary.attempted, "attempted dialog")
        note(f"error: none of {attempted} was accepted, {lost}; {drops} has them all")
        if not job.optimised:
            raise RunFailed(1)
    elif not summary.complete:
        used_up = summary.attempted >= run.components.planner.limit
        why = "the last of algorithm.first_questions" if used_up else "max_attempts"
        more = "" if used_up else f"; with a higher max_attempts=… {continues(settings.fresh)}"
        note(
            f"stopped at {why}: {summary.accepted} of {count_noun(settings.wanted, 'dialog')} accepted, "
            f"{summary.attempted} attempted{more}"
        )
    return summary.pairs / max(1, summary.lm_calls - summary.surplus.calls)


class Run(Session[Summary]):
    """A run that is ready to begin or to be continued: settings checked, documents read, index built.

    Args:
        configuration: the settings as YAML, for the run folder.
        command: the command line, for the data card.

    Raises:
        GroundedDialogsError: the run can't begin; the run folder has not been touched.
    """

    def __init__(self, settings: Settings, configuration: str, command: str, executor: Executor) -> None:
        self.settings, self.configuration, self.command, self.executor = settings, configuration, command, executor
        self.folder, self.fresh = settings.folder, settings.fresh
        # What can be checked in a moment is checked before documents are read.
        program = settings.dspy_program
        if program is not None:
            read_program(program)
        taxonomy = load_taxonomy(settings.taxonomy)
        if settings.corpus.topics:  # there is no document that could lack an answer
            taxonomy = taxonomy.model_copy(update={"answerability": ()})
        check_settings(settings, taxonomy)
        window = size_window(settings, taxonomy)
        source = settings.algorithm.first_questions
        first_questions = read_first_questions(source, taxonomy.first) if source else []
        against = hash_files("dedup.against", settings.dedup.against)
        fingerprint = settings.corpus.fingerprint()
        self.skipped = skipped_documents(settings, fingerprint)
        users = load_users(settings.user.types, settings.user.path)
        check_users(settings, users)
        self.spec = WorkerSpec(settings, fingerprint, taxonomy, window, first_questions, users)
        self.components = Components(self.spec, executor.spread)
        for told in self.components.notes:
            note(told)
        languages = self.components.languages
        with use_languages(languages):
            self.dedup = Deduplicator(settings.dedup)
        per_dialog = ATTEMPTS_OF_BUNDLED_MODEL if settings.lm.is_bundled else ATTEMPTS_PER_DIALOG
        attempts = settings.max_attempts or per_dialog * settings.wanted
        self.max_attempts = min(attempts, self.components.planner.limit)
        asked = "\n".join(question.model_dump_json() for question in first_questions)
        contents: dict[str, Any] = {
            "algorithm.reasoning": self.components.reasoning,  # what its null stands for depends on the model
            "corpus.path (content)": fingerprint[:16],
            "prompt_version": self.components.prompt_version,
            "taxonomy.path (content)": sha256(taxonomy.model_dump_json().encode()).hexdigest()[:16],
            "user.path (content)": sha256(b"".join(map(to_json, users))).hexdigest()[:16],
            "algorithm.first_questions (content)": sha256(asked.encode()).hexdigest()[:16] if asked else "",
            "dspy_program (content)": hash_files("dspy_program", [program] if program else []),
            "dedup.against (content)": against,
            FILTER: settings.judge.filter,
            **hash_models({"lm": settings.lm, "judge.lm": settings.judge.lm, **settings.others}),
        }
        if languages != IN_ENGLISH:
            contents["corpus.language"], contents["dialog.language"] = (each.code for each in languages)
        self.identity = identity(settings, contents)

    def apply_marks_file(self, path: Path) -> None:
        """Make a person's marks, or what `judges.human read` wrote, verdicts of the run; rejected pairs become drops.

        Raises:
            ConfigError: there is no run, or the marks aren't of it.
        """
        where = f"marks={path}"
        marks = None if path.is_dir() else read_marks(path)
        if self.fresh or not (self.folder / "run.db").exists():
            why = "fresh=true would remove the dialogs" if self.fresh else f"there is no run in {self.folder}"
            raise ConfigError(f"{where}: {why}; give the settings that the marked run was made with")
        with Store(self.folder, self.identity) as store:
            dialogs, keep = store.dialogs(), self.settings.judge.filter
            marked = apply_marks(marks, dialogs, keep, where) if marks else apply_judged(path, dialogs, keep, where)
            store.judge_again(marked)
        if marks:
            said = Counter(mark.keep for mark in marks.marks)
            note(f"marks of {marks.annotator}: {said[True]} kept, {said[False]} rejected, {said[None]} without either")
            count_bare_notes(where, marks.bare_notes, note)

    def is_finished(self, store: Store) -> bool:
        return store.accepted >= self.settings.wanted or store.attempted >= self.max_attempts

    def describe_finished(self, store: Store) -> str:
        if store.attempted >= self.components.planner.limit:
            return super().describe_finished(store)  # no first question is left to continue with
        return "this run is finished; dialogs=… or max_attempts=… continues it, fresh=true starts over"

    def adapt(self, store: Store) -> None:
        keep = self.settings.judge.filter
        if store.filter_again(keep):
            store.command = _join_commands(store.command, self.command)
            write_text(self.folder / "config.yaml", self.configuration)
            dropped = store.dropped("dialog")
            lost = sum(sum(dropped.get(stage, {}).values()) for stage in ("filter", "judge"))
            gone = f"; an earlier one dropped {count_noun(lost, 'dialog')} whole, for good" if lost else ""
            note(f"{FILTER}={keep}: the pairs of {count_noun(store.accepted, 'dialog')} are chosen anew{gone}")

    def progress(self, summary: Summary) -> tuple[int, int]:
        return summary.accepted, self.settings.wanted

    async def open(self, stack: AsyncExitStack) -> Work:
        if isinstance(self.settings.lm, EmbeddedEndpoint) and "CI" not in os.environ:
            for settings in await find_servers():
                note(f"a model server runs on this machine: {settings} uses it")
        generator = await stack.enter_async_context(self.components.connect())
        self._advise(generator.clients.billions)
        await self.executor.ready()
        return partial(self._generate, generator)

    def _advise(self, billions: float) -> None:
        """Say what suits a small model or a short context better, which no setting alone tells."""
        algorithm, sampled = self.settings.algorithm, self.settings.lm.sampled
        turns, room = self.settings.turns.least, self.spec.window
        if algorithm.name == "multi" and (found := int(turns * self._words_found())) > OVERFULL * room:
            fits = "not even a first turn fits" if found > turns * room else "dialogs that don't fit end early"
            name, lm = find_tightest(self.settings)
            context = int(lm.context + TOKENS_PER_WORD * (found - room))
            tokens = room // (2 * turns)
            note(
                f"{name}.context={lm.context} has room for some {room} words of documents, and {turns} turns "
                f"may find {found}: {fits}; set {name}.context={context}, with which the server loads the model, or "
                f"for instance retriever.k=2 retriever.passage_tokens={tokens} retriever.overlap={tokens // 10}"
            )
        reasons = algorithm.name in ("single", "multi") and algorithm.reasoning is None and self.settings.reasoning
        better = ["algorithm.reasoning=false"] if reasons and not self.components.languages.differ else []
        better += ["lm.sampled.temperature=0.5"] if sampled.temperature == 1 else []
        if better and is_small(billions):
            size = f"{self.settings.lm.model} has {billions:.1f} billion parameters"
            note(f"{size}; set {' '.join(better)}, as suits so small a model (docs/serving.md)")

    def _words_found(self) -> float:
        """Return how many words and punctuation marks the passages of a search have, as a sample of them tells."""
        library, last = self.components.library, self.components.library.passage_count - 1
        lengths = [count_tokens(library.passage(row).text) for row in {last * place // 20 for place in range(21)}]
        return self.settings.retriever.k * sum(lengths) / len(lengths)

    async def _generate(self, generator: DialogGenerator, store: Store, stop: asyncio.Event) -> None:
        """Generate dialogs until the run is done or `stop` is set."""
        settings, wanted = self.settings, self.settings.wanted
        store.command = _join_commands(store.command, self.command)
        completion = sum(usage.completion for usage in store.usage().values())
        with Display(store.accepted, store.attempted, wanted, completion) as display:
            plans = Plans(
                make=lambda number: generator.generate(generator.plan(number), store),
                open=self.spec.open,
                store=store,
                numbers=range(store.attempted, self.max_attempts),
                at_once=settings.lm.most_dialogs,
            )
            with watching(display.show):
                await run_pipeline(
                    results=partial(self.executor.results, plans),
                    dedup=self.dedup,
                    keep=settings.judge.filter,
                    store=store,
                    dialogs=wanted,
                    on_progress=display.update,
                    stop=stop,
                )

    def write_results(self, store: Store) -> Summary:
        return write_results(self.components, store, self.skipped)


def _join_commands(before: str, command: str) -> str:
    """Return the command line for the data card: of a run that its own config.yaml continues, `before` and what is new.

    Nobody else has that file.
    """
    words = shlex.split(command)
    stored = next((place for place, word in enumerate(words) if re.fullmatch(r"[^=]*\.yaml", word)), None)
    if stored is None or not before:
        return command
    given = words[stored + 1 :]
    names = {word.lstrip("+").partition("=")[0] for word in given}
    kept = (word for word in shlex.split(before) if word.lstrip("+").partition("=")[0] not in names)
    return shlex.join([*kept, *given])


class Preview(Run):
    """A run whose first dialogs are to tell what it takes (`generator.estimate`); the run itself continues them."""

    def describe_finished(self, store: Store) -> str:
        return "the preview is in the run folder already"
