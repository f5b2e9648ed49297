"""All settings of a run, and which of them decide what its data is."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from omegaconf import DictConfig
from pydantic import Field
from pydantic_core import to_jsonable_python

from generator.common.atomic_files import digest
from generator.config.choices import compose_choice
from generator.config.conf_files import choices, targets
from generator.config.parts import build_choice, class_of, identify, plain, validate
from generator.config.run_settings import RunSettings, scaled
from generator.corpora.base import CorpusSettings
from generator.corpora.human import DialogCorpus
from generator.dialogs.dedup import DedupSettings
from generator.dialogs.judging import JudgeSettings
from generator.errors import ConfigError, describe
from generator.execution.base import ExecutorSettings
from generator.models.embedded import EmbeddedEndpoint
from generator.models.endpoints import Endpoint
from generator.models.gguf import find_model
from generator.models.lm import MOST_CANDIDATES, billions_named, is_small
from generator.output.base import Exporter
from generator.retrievers.base import RetrieverSettings
from generator.schema import Algorithm, LocalPath, Operational, Record
from taxonomy import Mix, ScenarioMix, TaskMix, Weights


class AlgorithmSettings(Record):
    """Algorithm 1 (`single`) or 2 (`multi`) of Lee et al. 2024, a whole dialog in one call (`whole`), or a subclass."""

    name: Algorithm = Field(description="Name of the algorithm, in the run folder's name and the dialogs.")
    first_questions: Annotated[LocalPath | None, Operational] = Field(
        default=None,
        description="A run whose first questions open these dialogs, its folder or its dialogs.jsonl (Algorithm 2); "
        "null: questions are asked of the documents.",
    )
    candidates: int | None = Field(
        default=None,
        ge=1,
        le=MOST_CANDIDATES,
        description="Questions and answers that are drawn for each turn at a time (algorithms 1 and 2): the best that "
        "passes the checks stays, by a score that asks no model. null: 1, but 4 without `algorithm.reasoning`.",
    )
    reasoning: bool | None = Field(
        default=None,
        description="Before it asks and answers, the model notes what it goes by, and afterwards it checks itself "
        "(algorithms 1 and 2). false: questions are asked for in plain words and answered in a chat, and evidence is "
        "chosen after the answer, which small models do better (docs/runs.md). null: true, but false for a model of "
        "your own in this process (`lm=embedded lm.path=…`) and for one whose name tells one or two billion "
        "parameters (`lm.model=qwen2.5:1.5b`). Always true where dialogs have another language than their documents.",
    )

    @property
    def searches(self) -> bool:
        """True if passages are retrieved; else dialogs rest on whole documents, or on none."""
        return self.name in ("multi", "progressive")

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The models that the algorithm asks beside `lm`, by the names of their settings."""
        return {}


class ProgressiveSettings(AlgorithmSettings):
    """Questions that build on each other, chosen from several sets, with contexts and references (Kuo et al. 2025)."""

    candidates: int = Field(
        ge=1, description="Sets of questions that are written for each dialog; the one that is rated best stays."
    )
    generators: dict[str, Endpoint] = Field(
        description="Models that write sets in turn with `lm`, each under a name of your choice: "
        "`algorithm.generators.a=openai algorithm.generators.a.model=…`."
    )
    min_rating: float = Field(
        ge=1,
        le=5,
        description="Drop an item whose best set is rated lower, from 1 to 5: 2 is for a set that fails in several "
        "ways, as where a document has nothing for its scenario. 1 keeps all.",
    )
    scorers: dict[str, Endpoint] = Field(
        description="Models that rate the sets in place of `lm`, named as `generators`; their mean counts."
    )

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        groups = {"generators": self.generators, "scorers": self.scorers}
        return {f"algorithm.{group}.{name}": each for group in groups for name, each in sorted(groups[group].items())}


class UserSettings(Record):
    """The user types who ask, their shares, and the model that asks for them."""

    name: str = Field(description="Name of the mix, in the run folder's name unless it is `default`.")
    path: Annotated[LocalPath | None, Operational] = Field(
        default=None,
        description="Folder of your own user types (`*.yaml`), added to ours; a type with the name of one of ours "
        "replaces it.",
    )
    types: Weights = Field(
        description="Weight of each user type among the dialogs, `plain`, `novice`, `expert`, `hurried`, `curious`, "
        "`adversarial`, `searcher`, `talkative` or one of your own. Weights are relative. `user.types.novice=2` "
        "changes one weight, `user.types={novice: 1}` replaces them all."
    )
    rewording: bool = Field(
        default=False,
        description="Whether the model says each question again in other words, with nothing else in view, so that it "
        "has fewer words of its documents.",
    )
    lm: Endpoint | None = Field(
        default=None,
        description="Model that asks the questions, such as `user.lm=openai user.lm.model=…`; null: the model of `lm`.",
    )


class LanguageSettings(Record):
    """The language of the dialogs, and where languages of the user's own are described."""

    # What they lead to decides, unless all is English; see `generator.run`.
    language: Annotated[str | None, Operational] = Field(
        default=None,
        pattern=r"^[a-z]{2,3}$",
        description="ISO 639 code of the language that users and agents speak, such as `de`; null: that of the "
        "documents.",
    )
    languages: Annotated[LocalPath | None, Operational] = Field(
        default=None,
        description="Folder of your own language files (`xx.yaml`), added to ours; one with the code of one of ours "
        "replaces it.",
    )


class Settings(RunSettings):
    """All settings of a run, as in `conf/config.yaml`, and its parts."""

    algorithm: AlgorithmSettings
    corpus: CorpusSettings
    taxonomy: Mix | TaskMix | ScenarioMix
    user: UserSettings
    dialog: LanguageSettings
    lm: Endpoint
    retriever: RetrieverSettings
    judge: JudgeSettings
    dedup: DedupSettings
    executor: Annotated[ExecutorSettings, Operational]
    export: Annotated[Any, Operational]

    @property
    def exporter(self) -> Exporter | None:
        """The writer of another tool's files; None: `export=none`. (pydantic can't check a protocol.)"""
        return cast(Exporter | None, self.export)

    @property
    def others(self) -> dict[str, Endpoint]:
        """The models that write dialogs beside `lm`, by the names of their settings."""
        return {**self.algorithm.endpoints, **({"user.lm": self.user.lm} if self.user.lm else {})}

    @property
    def reasoning(self) -> bool:
        """True if the model reasons: `algorithm.reasoning`, or what its null stands for."""
        if self.algorithm.reasoning is not None:
            return self.algorithm.reasoning
        if isinstance(self.lm, EmbeddedEndpoint):
            return self.lm.is_bundled
        return not is_small(billions_named(self.lm.model))

    @property
    def wanted(self) -> int:
        """The number of dialogs to accept."""
        return scaled(self.dialogs, self.scale)

    @property
    def folder(self) -> Path:
        model = Path(self.lm.model).name
        user = "" if self.user.name == "default" else f"-{self.user.name}"
        name = f"{self.corpus.name}-{self.taxonomy.name}{user}-{self.algorithm.name}-{model}-{self.seed}"
        return self.run_dir or Path("outputs") / name


def load(cfg: DictConfig) -> Settings:
    """Return the settings of a composed configuration.

    Raises:
        ConfigError: a setting is missing or has a wrong value; one line.
    """
    data = plain(cfg)
    groups = (name for name in Settings.model_fields if name not in RunSettings.model_fields)
    parts = {group: build_choice(group, data.get(group)) for group in groups}
    exporter = parts["export"] = None if isinstance(parts["export"], dict) else parts["export"]
    if exporter is not None and not _names_a_folder(exporter):
        raise ConfigError(
            f"export: {type(exporter).__name__}.name={exporter.name}: must be the name of a folder of its own in the "
            "run folder: letters, digits, - and _, and not `dataset`"
        )
    return validate(Settings, data | parts)


def exporters() -> list[str]:
    """Return the names of all exporters of `conf/` that can be used, which are those of their folders."""
    parts = (build_choice("export", choice) for choice in choices("export"))
    return [part.name for part in parts if not isinstance(part, dict) and _names_a_folder(part)]


def _names_a_folder(exporter: Exporter) -> bool:
    """Return whether a run folder has nothing else of an exporter's name, whose folder is replaced, or removed."""
    return exporter.name != "dataset" and re.fullmatch(r"[\w-]+", exporter.name) is not None


def human_corpora() -> list[str]:
    """Return the corpora of `conf/` whose publishers have conversations of people about them."""
    return [name for name, target in targets("corpus").items() if issubclass(class_of("corpus", target), DialogCorpus)]


def human_corpus(corpus: str | Mapping[str, Any], path: str) -> DialogCorpus:
    """Return a corpus of human dialogs that reads `path`.

    Args:
        corpus: its name in `conf/corpus/`, or its settings.

    Raises:
        ConfigError: there is no such corpus, or it has no human dialogs.
    """
    node = compose_choice("corpus", corpus) if isinstance(corpus, str) else corpus
    if not issubclass(class_of("corpus", node.get("_target_")), DialogCorpus):
        raise ConfigError(f"corpus={node.get('name')}: has no human dialogs; choose from: {', '.join(human_corpora())}")
    return cast(DialogCorpus, build_choice("corpus", {**node, "path": path}))


def near_duplicates() -> DedupSettings:
    """Return the settings of `dedup=minhash`."""
    return cast(DedupSettings, build_choice("dedup", "minhash"))


def identity(settings: Record, contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides a run's data, by name: settings, and what they lead to, mostly as hashes.

    `generator.execution.identity` compares them.
    """
    return {**to_jsonable_python(dict(identify("", settings))), **contents}


def hash_models(endpoints: Mapping[str, Endpoint | None]) -> dict[str, str]:
    """Return names and short hashes of the model files that endpoints read, by the names of their settings.

    Raises:
        ConfigError: a file can't be read.
        ModelError: one isn't there, or can't be fetched.
    """
    hashes: dict[str, str] = {}
    for name, endpoint in endpoints.items():
        if isinstance(endpoint, EmbeddedEndpoint) and (path := endpoint.path) is not None:
            setting = f"{name}.path"
            hashes[f"{setting} (content)"] = f"{endpoint.model} {hash_files(setting, [find_model(path, setting)])}"
    return hashes


def hash_files(name: str, files: Iterable[Path]) -> str:
    """Return a short hash of what files hold; empty without any.

    Raises:
        ConfigError: one can't be read.
    """
    found = hashlib.sha256()
    file: Path | None = None
    try:
        for file in files:
            found.update(digest(file).encode())
    except OSError as error:
        raise ConfigError(f"{name}={file}: can't be read: {describe(error)}; give a file that is there") from error
    return found.hexdigest()[:16] if file else ""
