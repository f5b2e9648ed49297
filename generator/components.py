"""The parts of a run that make its dialogs, put together the same way in every process that makes some."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import dspy

from generator.common.atomic_files import atomic_write
from generator.common.concurrency import Spread, one_by_one
from generator.common.console import note
from generator.config.judges import measures
from generator.config.settings import Settings
from generator.corpora.base import read_documents
from generator.corpora.library import Library
from generator.dialogs.adapter import SharedPrefixAdapter, tasks
from generator.dialogs.dedup import Repetition
from generator.dialogs.first_questions import Opening
from generator.dialogs.generate import DialogGenerator, Judging
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.plan import Planner
from generator.dialogs.signatures import prompt_version
from generator.dialogs.single import SingleDocumentDialog
from generator.errors import ConfigError, ModelError
from generator.models.client import Endpoint
from generator.models.endpoints import VllmEndpoint
from generator.schema import Document
from taxonomy import Taxonomy


@dataclass(frozen=True)
class WorkerSpec:
    """What the parts are made from; see `generator.execution.base.WorkerSpec`.

    Args:
        fingerprint: of the documents.
        window: how much of a document a prompt may hold, in tokens as `generator.common.passages` counts them.
        openings: the first questions, if there already are some.
    """

    settings: Settings
    fingerprint: str
    taxonomy: Taxonomy
    window: int
    openings: Sequence[Opening]

    @asynccontextmanager
    async def opened(self, workers: int) -> AsyncIterator[DialogGenerator]:
        dspy.disable_logging()  # what it would say of a reply stands with the reply's drop
        settings = self.settings
        own = settings.judge.lm
        async with Components(self).maker(_share(settings.lm, workers), own and _share(own, workers)) as maker:
            yield maker


class Components:
    """Documents, plans, the program with its retriever, judges, and what they say to models.

    Args:
        spread: divides the building of an index.

    Raises:
        GroundedDialogsError: something is to be mended first.
    """

    def __init__(self, recipe: WorkerSpec, spread: Spread = one_by_one) -> None:
        settings, self.taxonomy = recipe.settings, recipe.taxonomy
        self.settings = settings
        retriever = settings.retriever
        multi = settings.algorithm.name == "multi"
        self.library = library = open_library(settings, recipe.fingerprint)
        # A validation dialog retrieves from validation documents alone, so it needs a few of them.
        validation = library.validation(settings.validation, retriever.k if multi else 1)
        self.planner = Planner(
            library=library,
            validation=validation,
            taxonomy=self.taxonomy,
            turns=settings.turns,
            seed=settings.seed,
            per_document=settings.dialogs_per_document,
            window=recipe.window,
            openings=recipe.openings,
        )
        repetition = Repetition(settings.dedup.threshold)
        self.program: SingleDocumentDialog | MultiDocumentDialog
        if multi:
            retriever.build(library, spread)
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

    @asynccontextmanager
    async def maker(self, lm: Endpoint, judge_lm: Endpoint | None) -> AsyncIterator[DialogGenerator]:
        """What makes dialogs with these models, which are seen to be there.

        Raises:
            ModelError: one of them isn't.
        """
        settings = self.settings
        async with AsyncExitStack() as stack:
            clients = await stack.enter_async_context(lm.open(settings.folder))
            adapter = SharedPrefixAdapter(lm.structured_outputs, self.tasks)
            yield DialogGenerator(
                corpus=settings.documents.name,
                program=self.program,
                planner=self.planner,
                clients=clients,
                adapter=adapter,
                judging=await self._judging(adapter, judge_lm, stack),
                keep=settings.judge.filter,
                min_turns=settings.min_turns,
                prompt_version=self.prompts,
            )

    async def _judging(
        self, adapter: SharedPrefixAdapter, own: Endpoint | None, stack: AsyncExitStack
    ) -> Judging | None:
        if not self.judges:
            return None
        if own is None:
            return Judging(self.judges, None, adapter)
        try:
            clients = await stack.enter_async_context(own.open(self.settings.folder))
        except ModelError as error:
            raise ModelError(re.sub(r"\blm\.", "judge.lm.", str(error))) from error
        return Judging(self.judges, clients, SharedPrefixAdapter(own.structured_outputs, self.tasks))


def skipped_documents(settings: Settings, fingerprint: str) -> Path:
    """Where the documents are listed that couldn't be read."""
    return settings.cache_dir / f"{settings.documents.name}-{fingerprint[:12]}.skipped.jsonl"


def open_library(settings: Settings, fingerprint: str) -> Library:
    """The documents and passages, built if they aren't there yet."""
    corpus, skipped = settings.corpus, skipped_documents(settings, fingerprint)

    def read() -> Iterator[Document]:
        skipped.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(skipped) as file:
            yield from read_documents(
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


def _share(endpoint: Endpoint, workers: int) -> Endpoint:
    """An endpoint for one of several processes that ask it together. A server of the run's own is there already."""
    share = endpoint.model_copy(update={"concurrency": max(1, endpoint.concurrency // workers)})
    return share.model_copy(update={"serve": False}) if isinstance(share, VllmEndpoint) else share


def _load_program(program: SingleDocumentDialog | MultiDocumentDialog, path: Path) -> None:
    try:
        program.load(str(path))
        program.set_lm(None)  # a program that was saved with a model would ask that one, past the run's bookkeeping
    except Exception as error:  # DSPy raises what it meets, from OSError to KeyError
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"program={path}: no program of this algorithm that DSPy's `save` wrote ({why})") from error
