"""One run: its parts put together and set going, and how it ends for the person who started it."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import dspy

from generator.adapter import SharedPrefixAdapter, tasks
from generator.config import Settings, identity, measures
from generator.corpora.reading import documents
from generator.dedup import Deduplicator, Repetition
from generator.errors import ConfigError, GroundedDialogsError, ModelError
from generator.files import written
from generator.human import write_human
from generator.interruption import interruptible, unless
from generator.library import Library
from generator.multi import MultiDocumentDialog
from generator.notes import note
from generator.openings import fingerprint as of_openings
from generator.openings import openings
from generator.pipeline import Judging, Limits, Pipeline
from generator.plan import Planner
from generator.progress import Display, closing_table
from generator.results import write_results
from generator.schema import Document
from generator.signatures import prompt_version
from generator.single import SingleDocumentDialog
from generator.store import Store
from generator.summary import Summary
from taxonomy import Taxonomy, load

ATTEMPTS_PER_DIALOG = 10
# Of `lm.context`, tokens that are kept free of documents: for the rules, the task and a dialog of four turns; for each
# turn more; and for the rules on more dimensions than question types, with the judges that measure them.
RESERVED_TOKENS, RESERVED_FOR_TURN, RESERVED_FOR_TARGETS = 1500, 120, 600
# A generous guess at how many of a model's tokens a word or punctuation mark becomes.
TOKENS_PER_WORD = 1.6


class Run:
    """A run that is ready to be made or continued: settings checked, documents read, index built.

    Args:
        settings: of the run.
        data: the same as plain data, for what must not change when a run is continued.
        configuration: the same as YAML, for the run folder.
        command: as typed, for the data card.

    Raises:
        GroundedDialogsError: something is to be mended first; the run folder has not been touched.
    """

    def __init__(self, settings: Settings, data: dict[str, Any], configuration: str, command: str) -> None:
        self.settings, self.configuration, self.command = settings, configuration, command
        # What can be wrong in a moment is looked at before documents are read.
        if settings.program is not None and not settings.program.is_file():
            raise ConfigError(f"program={settings.program}: there is no such file; give one that DSPy's `save` wrote")
        self.taxonomy = load(settings.taxonomy)
        window = _window(settings, self.taxonomy)
        source = settings.algorithm.first_questions
        self.openings = openings(source, self.taxonomy.first) if source else []
        self.dedup = Deduplicator(settings.dedup)
        retriever = settings.retriever
        multi = settings.algorithm.name == "multi"
        fingerprint = settings.documents.fingerprint()
        self.skipped = _skipped(settings, fingerprint)
        self.library = library = _library(settings, fingerprint)
        # A validation dialog retrieves from validation documents alone, so it needs a few of them.
        validation = library.validation(settings.validation, retriever.k if multi else 1)
        self.planner = Planner(
            library=library,
            validation=validation,
            taxonomy=self.taxonomy,
            turns=settings.turns,
            seed=settings.seed,
            per_document=settings.dialogs_per_document,
            window=window,
            openings=self.openings,
        )
        repetition = Repetition(settings.dedup.threshold)
        self.program: SingleDocumentDialog | MultiDocumentDialog
        if multi:
            found = retriever.open(library, validation)
            moving = self.taxonomy.focus == "passages"
            self.program = MultiDocumentDialog(
                repetition, found, retriever.k, retriever.query, self.taxonomy.has_targets, moving
            )
        else:
            self.program = SingleDocumentDialog(repetition, self.taxonomy.has_targets)
        if settings.program is not None:
            _load_program(self.program, settings.program)
        if settings.judge.panel:
            raise ConfigError("judge.panel: only `python -m judges` asks several models; give judge.lm=… here")
        judging_model = (settings.judge.lm or settings.lm).model
        judge = settings.judge.build(judging_model)
        self.judges = (*((judge,) if judge else ()), *(measures(judging_model) if self.taxonomy.measure else ()))
        self.tasks = tasks(self.program, **{j.name: j for j in self.judges if isinstance(j, dspy.Module)})
        wanted = self.taxonomy
        kinds = [share.type.prompt() for share in (*wanted.first, *wanted.later)]
        kinds += [share.type.prompt() for share in (*wanted.multi_turn, *wanted.answerability)]
        self.prompts = prompt_version(self.tasks.values(), SharedPrefixAdapter(tasks=self.tasks).rules, *kinds)
        self.identity = identity(data, fingerprint, self.prompts, of_openings(self.openings))

    async def go(self, stop: asyncio.Event) -> Summary:
        """Make dialogs until the run is done or `stop` is set; whatever happens, what it has is written out."""
        settings = self.settings
        max_attempts = min(settings.max_attempts or ATTEMPTS_PER_DIALOG * settings.dialogs, self.planner.limit)
        async with AsyncExitStack() as stack:
            store = None
            if (settings.folder / "run.db").exists() and not settings.fresh:
                store = stack.enter_context(Store(settings.folder, self.identity))
                if store.accepted >= settings.dialogs or store.attempted >= max_attempts:
                    note("this run is finished; dialogs=… or max_attempts=… continues it, fresh=true begins it anew")
                    return self._results(store)
            clients = await unless(stop, stack.enter_async_context(settings.lm.open(settings.folder)))
            adapter = SharedPrefixAdapter(settings.lm.structured_outputs, self.tasks)
            judging = await self._judging(adapter, stack)
            # A new run, or the removal of an old one, begins when everything is seen to be there.
            store = store or stack.enter_context(Store(settings.folder, self.identity, settings.fresh))
            with written(settings.folder / "config.yaml") as file:
                file.write(self.configuration)
            display = stack.enter_context(
                Display(
                    store.accepted, store.attempted, settings.dialogs, sum(u.completion for u in store.usage().values())
                )
            )
            pipeline = Pipeline(
                corpus=settings.documents.name,
                program=self.program,
                planner=self.planner,
                clients=clients,
                adapter=adapter,
                judging=judging,
                dedup=self.dedup,
                keep=settings.judge.filter,
                store=store,
                limits=Limits(
                    dialogs=settings.dialogs,
                    max_attempts=max_attempts,
                    min_turns=settings.min_turns,
                    at_once=settings.lm.concurrency,
                ),
                prompt_version=self.prompts,
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
        return write_results(
            self.settings, self.taxonomy, self.library, store, self.skipped, self.prompts, self.command
        )

    async def _judging(self, adapter: SharedPrefixAdapter, stack: AsyncExitStack) -> Judging | None:
        if not self.judges:
            return None
        own = self.settings.judge.lm
        if own is None:
            return Judging(self.judges, None, adapter)
        try:
            clients = await stack.enter_async_context(own.open(self.settings.folder))
        except ModelError as error:
            raise ModelError(re.sub(r"\blm\.", "judge.lm.", str(error))) from error
        return Judging(self.judges, clients, SharedPrefixAdapter(own.structured_outputs, self.tasks))


def _skipped(settings: Settings, fingerprint: str) -> Path:
    """Where the documents are listed that couldn't be read."""
    return settings.cache_dir / f"{settings.documents.name}-{fingerprint[:12]}.skipped.jsonl"


def _library(settings: Settings, fingerprint: str) -> Library:
    """The documents and passages, built if they aren't there yet."""
    corpus, skipped = settings.corpus, _skipped(settings, fingerprint)

    def read() -> Iterator[Document]:
        skipped.parent.mkdir(parents=True, exist_ok=True)
        with written(skipped) as file:
            yield from documents(
                corpus, corpus.strict, corpus.max_broken, lambda broken: print(broken.model_dump_json(), file=file)
            )

    return Library.open(
        settings.documents.name,
        fingerprint,
        read,
        settings.cache_dir,
        settings.retriever.passage_tokens,
        settings.retriever.overlap,
        lambda count: note(f"reading documents: {count}") if count % 10_000 == 0 else None,
    )


def build_index(settings: Settings) -> int:
    """Build documents, passages and the retriever's index, whatever the algorithm, and say where it is. Returns 0.

    No model is asked, and there is no run folder.
    """
    library = _library(settings, settings.documents.fingerprint())
    settings.retriever.open(library, library.validation(settings.validation, settings.retriever.k))
    place = settings.retriever.place(library)
    print(f"indexed: {library.passage_count} passages of {len(library)} documents, {place}", flush=True)
    return 0


def run(settings: Settings, data: dict[str, Any], configuration: str, command: str) -> int:
    """Make a run, or continue it, and say how it ended; see `Run`. Returns the exit code."""
    if settings.index_only:
        return build_index(settings)
    if settings.human:
        return write_human(settings, configuration, command)
    dspy.disable_logging()  # what it would say of a reply stands with the reply's drop
    ready = Run(settings, data, configuration, command)

    summary, interrupted = asyncio.run(interruptible(ready.go))
    closing_table(summary)
    print(f"run folder: {settings.folder}", flush=True)
    if interrupted and not summary.complete:
        note(
            f"interrupted at {summary.accepted} of {settings.dialogs} dialogs, which are written; "
            "the same command continues"
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
        used_up = summary.attempted >= ready.planner.limit
        why = "the last of algorithm.first_questions" if used_up else "max_attempts"
        more = "" if used_up else "; with a higher max_attempts=… the same command continues"
        note(
            f"stopped at {why}: {summary.accepted} of {settings.dialogs} dialogs accepted, "
            f"{summary.attempted} attempted{more}"
        )
    return 0


def _window(settings: Settings, taxonomy: Taxonomy) -> int:
    """How much of a document a prompt may hold, in tokens as `generator.passages` counts them."""
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


def _load_program(program: SingleDocumentDialog | MultiDocumentDialog, path: Path) -> None:
    try:
        program.load(str(path))
        program.set_lm(None)  # a program that was saved with a model would ask that one, past the run's bookkeeping
    except Exception as error:  # DSPy raises what it meets, from OSError to KeyError
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"program={path}: no program of this algorithm that DSPy's `save` wrote ({why})") from error
