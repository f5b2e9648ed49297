"""The parts of a run, put together the same way in every process that generates dialogs."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import dspy

from generator.common.atomic_files import atomic_write
from generator.common.concurrency import Spread, one_by_one
from generator.common.language import IN_ENGLISH, Languages, load_language, use_languages
from generator.config.parts import build_choice
from generator.config.settings import ProgressiveSettings, Settings
from generator.corpora.library import Library, wait_for
from generator.dialogs.columns import EvidenceRanker
from generator.dialogs.dedup import Repetition
from generator.dialogs.filter import check_columns
from generator.dialogs.first_questions import StoredQuestion
from generator.dialogs.generate import Connected, DialogGenerator, Judging
from generator.dialogs.judging import JudgeSettings
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.plan import Planner
from generator.dialogs.program import Options, Program
from generator.dialogs.progressive import ProgressiveDialog
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.whole import UNKNOWN, WholeDialogProgram
from generator.errors import ConfigError
from generator.models.endpoints import Endpoint
from generator.prompts.adapter import SharedPrefixAdapter, collect_tasks
from generator.prompts.program_file import list_predictors, load_program
from generator.prompts.replies import SignatureType
from generator.prompts.signatures import prompt_version, quote_unknown
from generator.retrievers.bm25 import Bm25, Bm25Settings
from generator.schema import Document, Judge, Retriever
from taxonomy import PLAIN, Share, Taxonomy, User, read_types

# What `algorithm.candidates=null` stands for without reasoning: more turns are kept, for fewer prompt tokens
# (`docs/performance.md`, “Several candidates”).
PLAIN_CANDIDATES = 4


@dataclass(frozen=True)
class WorkerSpec:
    """The inputs of `Components`; can be pickled, for the workers of a run.

    Args:
        window: how much of a document a prompt may hold, in tokens as `generator.common.passages` counts them.
        first_questions: the questions that open the dialogs; without any they are asked of the documents.
        users: the user types who ask, with their shares.
    """

    settings: Settings
    fingerprint: str
    taxonomy: Taxonomy
    window: int
    first_questions: Sequence[StoredQuestion]
    users: Sequence[Share[User]] = ()

    @asynccontextmanager
    async def open(self, workers: int) -> AsyncIterator[DialogGenerator]:
        """Yield the generator of one of so many processes, which share the calls that may be in flight."""
        dspy.disable_logging()  # what it would log of a reply stands with the reply's drop
        async with Components(self).connect(workers) as generator:
            yield generator


class Components:
    """Documents, plans, the program with its retriever, judges, and the prompts' beginning (`rules`) and version.

    `notes` is what to tell the user of its documents.

    Args:
        spread: divides the building of an index among processes.

    Raises:
        GroundedDialogsError: a part can't be made.
    """

    def __init__(self, spec: WorkerSpec, spread: Spread = one_by_one) -> None:
        self.settings, self.taxonomy = settings, taxonomy = spec.settings, spec.taxonomy
        self.judges = _build_judges(settings, taxonomy)
        # Those of hybrid are such settings too.
        ranks, retriever = settings.algorithm.searches, settings.retriever
        self.ranking = retriever if ranks and isinstance(retriever, Bm25Settings) else None
        labels = _labels(taxonomy, spec.users) | {"lm": {settings.lm.model}}
        check_columns(settings.judge.filter, self.judges, labels, self.ranking is not None)
        self.library = open_library(settings, spec.fingerprint)
        self.languages, self.notes = find_languages(settings, self.library)
        if taxonomy.underspecified:
            _check_underspecified(settings, taxonomy, self.languages)
        with use_languages(self.languages):
            self._build(spec, spread)

    def _build(self, spec: WorkerSpec, spread: Spread) -> None:
        settings, taxonomy, algorithm = self.settings, self.taxonomy, self.settings.algorithm
        # A validation dialog retrieves from validation documents alone, so it needs a few of them.
        validation = self.library.validation(settings.validation, settings.retriever.k if algorithm.searches else 1)
        self.planner = Planner(
            library=self.library,
            validation=validation,
            taxonomy=taxonomy,
            turns=settings.turns,
            seed=settings.seed,
            per_document=settings.dialogs_per_document,
            window=spec.window,
            first_questions=spec.first_questions,
            topics=settings.corpus.topics,
            users=spec.users,
            searches=algorithm.searches,
        )
        self.ranker: EvidenceRanker | None = None
        retriever: Retriever | None = None
        if algorithm.searches:
            settings.retriever.build(self.library, spread)
            retriever = settings.retriever.open(self.library, validation)
            if retriever is None:  # of a class of the user's own; nothing would be searched
                raise ConfigError(f"retriever: open() of {type(settings.retriever).__name__} returned no retriever")
            if self.ranking:
                self.ranker = Bm25(self.library, validation, self.ranking.k1, self.ranking.b)
        self.program = self._make_program(retriever, any(share.type.switch for share in spec.users))
        if settings.dspy_program is not None:
            load_program(settings.dspy_program, list_predictors(self.program, self.judges))
        judge_tasks = {judge.name: signature for judge in self.judges for signature in judge.signatures}
        tasks = collect_tasks(self.program)
        shared = (tasks if self.program.shares_prompts else {}) | judge_tasks
        self.tasks = shared if settings.lm.shares_rules else {}
        self.rules = self._adapter(settings.lm, self.tasks).rules
        self.prompt_version = prompt_version((tasks | judge_tasks).values(), self.rules, *self._prompt_texts(spec))

    def _prompt_texts(self, spec: WorkerSpec) -> list[str]:
        """Return the texts beside the signatures that decide a prompt."""
        taxonomy = spec.taxonomy
        asked = [share.type for share in (*taxonomy.first, *taxonomy.later)]
        texts = [type_.prompt() for type_ in asked]
        texts += [share.type.prompt() for share in (*taxonomy.multi_turn, *taxonomy.answerability)]
        texts += [form.prompt() for form in (taxonomy.underspecified.forms if taxonomy.underspecified else ())]
        texts += [type_.reply.model_dump_json() for type_ in asked if type_.reply]
        texts += [share.type.model_dump_json() for share in taxonomy.tasks]
        if taxonomy.tasks and taxonomy.answerability:
            texts.append(quote_unknown(UNKNOWN))
        texts += filter(None, (share.type.prompt() for share in spec.users))
        if self.languages != IN_ENGLISH:
            texts += [json.dumps(self.languages.dialog.phrasings)]
        return texts

    @property
    def reasoning(self) -> bool:
        """True if the model reasons, as it always does where dialogs have another language than their documents."""
        return self.settings.reasoning or self.languages.differ

    @property
    def candidates(self) -> int:
        """The candidates of a step: `algorithm.candidates`, or what its null stands for."""
        return self.settings.algorithm.candidates or (1 if self.reasoning else PLAIN_CANDIDATES)

    def _make_program(self, retriever: Retriever | None, switching: bool) -> Program:
        """Return the program that writes the dialogs.

        Args:
            retriever: None: the algorithm doesn't search.
            switching: some users leave the topic of their dialog.
        """
        settings, taxonomy, algorithm = self.settings, self.taxonomy, self.settings.algorithm
        repetition, k = Repetition(settings.dedup.threshold), settings.retriever.k
        if algorithm.name == "whole":
            return WholeDialogProgram(repetition, grounded=not settings.corpus.topics)
        options = Options(
            planned=taxonomy.has_targets,
            candidates=self.candidates,
            judges=[judge for judge in self.judges if judge.decides and not judge.asks_model],
            reasoning=self.reasoning,
            replies=taxonomy.has_replies,
            switching=switching,
            rewording=settings.user.rewording,
            moving=taxonomy.focus == "passages",
            underspecified=taxonomy.underspecified is not None,
        )
        if retriever is None:
            return SingleDocumentDialog(repetition, options)
        if isinstance(algorithm, ProgressiveSettings):
            return ProgressiveDialog(
                repetition,
                retriever,
                k,
                self.candidates,
                algorithm.min_rating,
                ("", *sorted(name for name in algorithm.endpoints if "generators" in name)),
                sorted(name for name in algorithm.endpoints if "scorers" in name) or ("",),
            )
        return MultiDocumentDialog(repetition, retriever, k, settings.retriever.query, options)

    @asynccontextmanager
    async def connect(self, workers: int | None = None) -> AsyncIterator[DialogGenerator]:
        """Yield a generator whose models were seen to answer.

        Args:
            workers: processes that share the calls that may be in flight; None: this is the only one.

        Raises:
            ModelError: a model doesn't answer.
        """
        settings, lm = self.settings, self.settings.lm.shared_by(workers)
        async with AsyncExitStack() as stack:
            clients = await stack.enter_async_context(lm.open(settings.folder))
            yield DialogGenerator(
                corpus=settings.corpus.name,
                program=self.program,
                planner=self.planner,
                clients=clients,
                adapter=self._adapter(lm, self.tasks if self.program.shares_prompts else {}),
                others={
                    name: Connected(
                        await other.shared_by(workers).enter(stack, settings.folder, name), self._adapter(other, {})
                    )
                    for name, other in settings.others.items()
                },
                judging=await self._connect_judges(workers, stack),
                ranker=self.ranker,
                keep=settings.judge.filter,
                min_turns=settings.min_turns,
                prompt_version=self.prompt_version,
                languages=self.languages,
            )

    def _adapter(self, endpoint: Endpoint, tasks: Mapping[str, SignatureType]) -> SharedPrefixAdapter:
        return SharedPrefixAdapter(endpoint.structured_outputs, tasks, self.program.preamble, self.languages)

    async def _connect_judges(self, workers: int | None, stack: AsyncExitStack) -> Judging | None:
        if not self.judges:
            return None
        if (own := self.settings.judge.lm) is None:
            return Judging(self.judges, None, self._adapter(self.settings.lm, self.tasks))
        clients = await own.shared_by(workers).enter(stack, self.settings.folder, "judge.lm")
        return Judging(self.judges, clients, self._adapter(own, self.tasks))


def _check_underspecified(settings: Settings, taxonomy: Taxonomy, languages: Languages) -> None:
    """Raise ConfigError where no underspecified question can be asked."""
    if languages.differ:
        raise ConfigError(
            f"dialog.language={settings.dialog.language}: underspecified questions are made of the words of the "
            "documents; leave it out, or set the weight of underspecified to 0"
        )
    if not settings.algorithm.searches:
        raise ConfigError(
            f"taxonomy={taxonomy.name}: underspecified questions need several documents, and algorithm=single has "
            "one; set algorithm=multi, or the weight of underspecified to 0"
        )
    if settings.retriever.k < 2:
        raise ConfigError(
            f"retriever.k={settings.retriever.k}: underspecified questions (taxonomy={taxonomy.name}) find two "
            "passages or more; set retriever.k=2 at least"
        )


def _labels(taxonomy: Taxonomy, users: Sequence[Share[User]]) -> dict[str, set[str]]:
    """Return the labels that a run's turns can get, by the columns of `judge.filter`."""
    known = {"user": {share.type.name for share in users} or {PLAIN.name}}
    asked = [share.type for share in (*taxonomy.first, *taxonomy.later)]
    if asked:
        links = [share.type for share in taxonomy.multi_turn]
        links += [share.type.resolution for share in taxonomy.answerability if share.type.resolution]
        known["multi_turn_type"] = {link.kind for link in links} | {each.multi_turn_type for each in asked}
        measured = read_types() if "question_type" in taxonomy.measure else {}
        known["question_type"] = {each.name for each in asked} | measured.keys()
    return known


def _build_judges(settings: Settings, taxonomy: Taxonomy) -> tuple[Judge, ...]:
    """Return the judge of the run, those beside it, and those of `taxonomy.measure`, which ask the same model.

    Raises:
        ConfigError: one of them doesn't exist, or `judge.lm` or `judge.panel` has no effect.
    """
    if settings.judge.panel:
        raise ConfigError("judge.panel: only `python -m judges` asks several models; give judge.lm=… here")
    more: list[JudgeSettings] = [build_choice("judge", name) for name in settings.judge.companions]
    try:
        more += [build_choice("judge", name) for name in taxonomy.measure]
    except ConfigError as error:
        raise ConfigError(f"taxonomy.measure: {error}") from error
    model = (settings.judge.lm or settings.lm).model
    judges = tuple(judge for each in (settings.judge, *more) if (judge := each.build(model)) is not None)
    if settings.judge.lm and not any(judge.asks_model for judge in judges):
        raise ConfigError(f"judge.lm: judge={settings.judge.name} asks no model; leave it out")
    return judges


def skipped_documents(settings: Settings, fingerprint: str) -> Path:
    """Return the file that lists the documents that couldn't be read."""
    return settings.cache_dir / f"{settings.corpus.name}-{fingerprint[:12]}.skipped.jsonl"


def open_library(settings: Settings, fingerprint: str) -> Library:
    """Return the documents and passages, which are read and cut if they aren't in the cache yet."""
    corpus, skipped = settings.corpus, skipped_documents(settings, fingerprint)

    def read() -> Iterator[Document]:
        skipped.parent.mkdir(parents=True, exist_ok=True)
        # A process that cuts passages of another size may read them now, too.
        lock = wait_for(skipped.with_suffix(".lock"), f"{skipped}: another process reads the documents")
        with lock, atomic_write(skipped) as file:
            yield from corpus.readable(corpus.read(), lambda record: print(record.model_dump_json(), file=file))

    return Library.open(
        corpus.name,
        fingerprint,
        read,
        settings.cache_dir,
        settings.retriever.passage_tokens,
        settings.retriever.overlap,
    )


def find_languages(settings: Settings, library: Library) -> tuple[Languages, list[str]]:
    """Return the languages of documents and dialogs, of which `library` gets the first, and what to tell the user.

    The latter tells of copies among the documents, too.
    """
    folder = settings.dialog.languages
    told = library.find_language("corpus.language", settings.corpus.language, folder)
    documents = library.language
    dialog = load_language(settings.dialog.language, folder) if settings.dialog.language else documents
    if unknown := [each.code for each in dict.fromkeys((documents, dialog)) if each.is_unknown]:
        told = f"{told or 'languages'}; no data for “{unknown[0]}”: docs/languages.md says what isn't checked"
    notes = [told] if told else []
    if library.copies:
        copies = f"corpus: documents with the text of another: {len(library.copies)} of {len(library)}"
        notes.append(f"{copies}; such are in one split, and dialogs use one of them")
    return Languages(documents, dialog), notes
