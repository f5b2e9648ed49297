"""One run: its parts put together and set going, and how it ends for the person who started it."""

import asyncio
import gc
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from generator.common.atomic_files import atomic_write, digest
from generator.common.console import continues, note
from generator.common.interruption import ends_at_once, interruptible, unless
from generator.components import Components, WorkerSpec, open_library, skipped_documents
from generator.config.settings import Settings, identity, model_files
from generator.dialogs.dedup import Deduplicator
from generator.dialogs.first_questions import hash_questions, read_first_questions
from generator.errors import ConfigError, GroundedDialogsError
from generator.execution.base import Executor, Work
from generator.execution.pipeline import Pipeline
from generator.execution.store import Store
from generator.human import write_human
from generator.output.progress import Display, closing_table
from generator.output.summary import Summary
from generator.results import write_results
from taxonomy import Taxonomy, load

ATTEMPTS_PER_DIALOG = 10
# Of `lm.context`, tokens that are kept free of documents: for the rules, the task and a dialog of four turns; for each
# turn more; and for the rules on more dimensions than question types, with the judges that measure them.
RESERVED_TOKENS, RESERVED_FOR_TURN, RESERVED_FOR_TARGETS = 1500, 120, 600
# A generous guess at how many of a model's tokens a word or punctuation mark becomes.
TOKENS_PER_WORD = 1.6
# New objects that the garbage collector waits for; Python's own 700 take a run a tenth of its processor.
GC_THRESHOLD = 50_000


class Run:
    """A run that is ready to be made or continued: settings checked, documents read, index built.

    Args:
        settings: of the run.
        data: the same as plain data, for what must not change when a run is continued.
        configuration: the same as YAML, for the run folder.
        command: as typed, for the data card.
        executor: makes the dialogs.

    Raises:
        GroundedDialogsError: something is to be mended first; the run folder has not been touched.
    """

    def __init__(
        self, settings: Settings, data: dict[str, Any], configuration: str, command: str, executor: Executor
    ) -> None:
        self.settings, self.configuration, self.command, self.executor = settings, configuration, command, executor
        # What can be wrong in a moment is looked at before documents are read.
        if settings.program is not None and not settings.program.is_file():
            raise ConfigError(f"program={settings.program}: there is no such file; give one that DSPy's `save` wrote")
        taxonomy = load(settings.taxonomy)
        window = _window(settings, taxonomy)
        source = settings.algorithm.first_questions
        first = read_first_questions(source, taxonomy.first) if source else []
        self.dedup = Deduplicator(settings.dedup)
        fingerprint = settings.documents.fingerprint()
        self.skipped = skipped_documents(settings, fingerprint)
        self.recipe = WorkerSpec(settings, fingerprint, taxonomy, window, first)
        self.parts = Components(self.recipe, executor.spread)
        contents = {
            "the corpus's documents": fingerprint[:16],
            "the prompts' version": self.parts.prompts,
            "the question types": hashlib.sha256(taxonomy.model_dump_json().encode()).hexdigest()[:16],
            "the first questions": hash_questions(first),
            "the program's file": _hash([settings.program] if settings.program else []),
            "the files of dedup.against": _hash(settings.dedup.against),
            **model_files({"lm": settings.lm, "judge.lm": settings.judge.lm}),
        }
        self.identity = identity(data, contents)

    async def go(self, stop: asyncio.Event) -> Summary:
        """Make dialogs until the run is done or `stop` is set; whatever happens, what it has is written out."""
        settings = self.settings
        max_attempts = min(settings.max_attempts or ATTEMPTS_PER_DIALOG * settings.dialogs, self.parts.planner.limit)
        async with AsyncExitStack() as stack:
            store = None
            if (settings.folder / "run.db").exists() and not settings.fresh:
                store = stack.enter_context(Store(settings.folder, self.identity))
                if store.accepted >= settings.dialogs or store.attempted >= max_attempts:
                    note("this run is finished; dialogs=… or max_attempts=… continues it, fresh=true begins it anew")
                    return self._results(store)
            maker = await unless(stop, stack.enter_async_context(self.parts.maker(settings.lm, settings.judge.lm)))
            await unless(stop, self.executor.ready())
            # A new run, or the removal of an old one, begins when everything is seen to be there.
            store = store or stack.enter_context(Store(settings.folder, self.identity, settings.fresh))
            with atomic_write(settings.folder / "config.yaml") as file:
                file.write(self.configuration)
            store.command = self.command
            display = stack.enter_context(
                Display(
                    store.accepted, store.attempted, settings.dialogs, sum(u.completion for u in store.usage().values())
                )
            )
            work = Work(
                make=lambda number: maker.generate(maker.planner.plan(number), store),
                recipe=self.recipe,
                store=store,
                limit=max_attempts,
                # Some more dialogs than calls, so that there is always one that has a call to make.
                at_once=settings.lm.concurrency + settings.lm.concurrency // 4,
            )
            pipeline = Pipeline(
                results=partial(self.executor.results, work),
                dedup=self.dedup,
                keep=settings.judge.filter,
                store=store,
                dialogs=settings.dialogs,
                on_progress=display.update,
            )
            try:
                await pipeline.run(stop)
            except Exception:
                with suppress(GroundedDialogsError):  # what went wrong first says more
                    self._results(store)
                raise
            return self._results(store)

    def _results(self, store: Store) -> Summary:
        ends_at_once()  # nothing is left that could be stopped and kept
        parts = self.parts
        return write_results(self.settings, parts.taxonomy, parts.library, store, self.skipped, parts.prompts)


def _hash(files: Iterable[Path]) -> str:
    """A short hash of what files hold."""
    return hashlib.sha256("".join(map(digest, files)).encode()).hexdigest()[:16]


def build_index(settings: Settings, executor: Executor) -> int:
    """Build documents, passages and the retriever's index, whatever the algorithm, and say where it is. Returns 0.

    No model is asked, and there is no run folder.
    """
    fingerprint = settings.documents.fingerprint()
    library = open_library(settings, fingerprint)
    settings.retriever.build(library, executor.spread)
    settings.retriever.open(library, library.validation(settings.validation, settings.retriever.k))
    place = settings.retriever.place(library)
    print(f"indexed: {library.passage_count} passages of {len(library)} documents, {place}", flush=True)
    skipped = skipped_documents(settings, fingerprint)
    if lines := skipped.read_text(encoding="utf-8").count("\n") if skipped.exists() else 0:
        note(f"skipped: {lines} documents that can't be read, listed in {skipped}")
    return 0


def run(settings: Settings, data: dict[str, Any], configuration: str, command: str) -> int:
    """Make a run, or continue it, and say how it ended; see `Run`. Returns the exit code."""
    if settings.human and not settings.index_only:
        return write_human(settings, configuration, command)
    with settings.executor.open() as executor:
        if settings.index_only:
            return build_index(settings, executor)
        dspy.disable_logging()  # what it would say of a reply stands with the reply's drop
        ready = Run(settings, data, configuration, command, executor)
        with _frozen():
            summary, interrupted = asyncio.run(interruptible(ready.go))
    closing_table(summary)
    print(f"run folder: {settings.folder}", flush=True)
    if interrupted and not summary.complete:
        note(
            f"interrupted at {summary.accepted} of {settings.dialogs} dialogs, which are written; "
            + continues(settings.fresh)
        )
        return 130
    if not summary.accepted:
        losses = {f"{stage} ({reason})": n for stage, why in summary.dropped.items() for reason, n in why.items()}
        note(
            f"error: none of {summary.attempted} attempted dialogs was accepted; most were lost at "
            f"{max(losses, key=losses.__getitem__)}; {settings.folder / 'drops.jsonl'} has them all"
        )
        return 1
    if not summary.complete:
        used_up = summary.attempted >= ready.parts.planner.limit
        why = "the last of algorithm.first_questions" if used_up else "max_attempts"
        more = "" if used_up else f"; with a higher max_attempts=… {continues(settings.fresh)}"
        note(
            f"stopped at {why}: {summary.accepted} of {settings.dialogs} dialogs accepted, "
            f"{summary.attempted} attempted{more}"
        )
    return 0


@contextmanager
def _frozen() -> Iterator[None]:
    """What is there now outlives the block: the garbage collector needn't look through it again and again.

    Nor for each few calls through what has come since: almost all of that goes without it.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _window(settings: Settings, taxonomy: Taxonomy) -> int:
    """How much of a document a prompt may hold, in tokens as `generator.common.passages` counts them."""
    reserved = RESERVED_TOKENS + RESERVED_FOR_TURN * max(0, settings.turns.most - 4)
    reserved += RESERVED_FOR_TARGETS * taxonomy.has_targets
    free = settings.lm.context - settings.lm.max_tokens - reserved
    if free < RESERVED_TOKENS / 3:
        raise ConfigError(
            f"lm.context={settings.lm.context}: leaves no room for documents beside replies of "
            f"lm.max_tokens={settings.lm.max_tokens}; give at least "
            f"{settings.lm.max_tokens + reserved + RESERVED_TOKENS}"
        )
    return int(free / TOKENS_PER_WORD)
