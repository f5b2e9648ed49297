"""YAML in, frozen settings out; and which of them decide a run's data, and which only how it is made.

What is wrong with a setting, and how a part of the configuration becomes an object, is `generator.config.parts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from omegaconf import DictConfig
from pydantic import BeforeValidator, Field

from generator.common.atomic_files import digest
from generator.config.choices import compose_choice
from generator.config.judges import JudgeSettings, judge_settings
from generator.config.messages import choices
from generator.config.parts import by_name, class_of, no_part, part, plain, validated
from generator.corpora.human import DialogCorpus
from generator.dialogs.dedup import DedupSettings
from generator.dialogs.plan import Turns
from generator.errors import ConfigError, describe
from generator.execution.base import ExecutorSettings
from generator.models.client import Endpoint
from generator.models.embedded import EmbeddedEndpoint
from generator.output.base import Exporter
from generator.retrievers.base import RetrieverSettings
from generator.schema import Algorithm, Corpus, LocalPath, Record
from taxonomy import Mix

# Settings that don't change what a run's data is: a run may be continued with others. What lies behind a path does, and
# stands for itself by a hash: documents, questions of another run, question types, test files, a program, a model.
_OPERATIONAL = {
    "dialogs",
    "max_attempts",
    "program",
    "run_dir",
    "fresh",
    "index_only",
    "cache_dir",
    "export",
    "executor",
}
_OPERATIONAL_PARTS = {
    "algorithm": {"first_questions"},
    # `licence`, `source`, `language` are for the card; `no_answer`, `rewrites` and `answers` are about human dialogs.
    "corpus": {
        *("licence", "source", "language", "path", "cache_dir", "base_url"),
        *("no_answer", "rewrites", "answers"),
    },
    "taxonomy": {"path"},
    "dedup": {"against"},
    "lm": {
        *("path", "api_base", "api_key_env", "concurrency", "timeout_s", "retries", "retry_wait_s"),
        *("serve", "serve_python", "serve_args", "serve_timeout_s"),
    },
    # Of a server with an index, which holds the same wherever it is and whatever it is called.
    "retriever": {"hosts", "index", "api_key_env", "user", "password_env", "ca_certs", "timeout_s", "build_timeout_s"}
    | {"retries", "retry_wait_s", "chunk", "ingest_endpoint", "search_endpoint", "search_threads"},
}


class AlgorithmSettings(Record):
    """Algorithm 1 or 2, and for the latter where first questions come from: `generator.dialogs.first_questions`."""

    name: Algorithm
    first_questions: LocalPath | None = None


class Settings(Record):
    """All settings of a run, as in `conf/config.yaml`, and its parts."""

    model_config = Record.model_config | {"arbitrary_types_allowed": True}

    algorithm: AlgorithmSettings
    dialogs: int = Field(ge=1)
    max_attempts: int | None = Field(ge=1)
    turns: Annotated[Turns, BeforeValidator(Turns.parse)]
    min_turns: int = Field(ge=1)
    seed: int = Field(ge=0)
    dialogs_per_document: int = Field(ge=1)
    validation: float = Field(ge=0, lt=1)
    program: LocalPath | None
    run_dir: LocalPath | None
    human: bool
    fresh: bool
    index_only: bool
    cache_dir: LocalPath
    corpus: Any
    taxonomy: Mix
    lm: Endpoint
    retriever: RetrieverSettings
    judge: JudgeSettings
    dedup: DedupSettings
    executor: ExecutorSettings
    export: Any

    @property
    def exporter(self) -> Exporter | None:
        """What writes the files of somebody else's tools; None if nobody asked for them."""
        return cast(Exporter | None, self.export)

    @property
    def documents(self) -> Corpus:
        """The corpus; pydantic can't check a protocol."""
        return cast(Corpus, self.corpus)

    @property
    def folder(self) -> Path:
        """The run folder."""
        if self.human:
            return self.run_dir or Path("outputs") / f"{self.documents.name}-human"
        model = self.lm.model.rstrip("/").rpartition("/")[2]
        name = f"{self.documents.name}-{self.taxonomy.name}-{self.algorithm.name}-{model}-{self.seed}"
        return self.run_dir or Path("outputs") / name


def load(cfg: DictConfig) -> Settings:
    """The settings of a composed configuration.

    Raises:
        ConfigError: a setting is missing, has a wrong value, or names a class that isn't ours; one line.
    """
    data = plain(cfg)
    for group in ("corpus", "taxonomy", "lm", "retriever", "dedup"):
        data[group] = part(group, data.get(group))
    if not isinstance(algorithm := data.get("algorithm"), dict):
        raise no_part("algorithm", algorithm)
    data["algorithm"] = validated(AlgorithmSettings, "algorithm", algorithm)
    data["judge"] = judge_settings(data.get("judge"))
    data["export"] = _exporter(data.get("export"))
    data["executor"] = part("executor", by_name("executor", data.get("executor")))
    return validated(Settings, "", data)


def exporters() -> list[str]:
    """The names of all exporters of `conf/`, and so of their folders."""
    return [made.name for name in choices("export") if (made := _exporter(name)) is not None]


def human_corpora() -> list[str]:
    """The corpora of `conf/` whose publishers have conversations of people about them."""
    targets = {name: compose_choice("corpus", name)["_target_"] for name in choices("corpus")}
    return [name for name, target in targets.items() if issubclass(class_of("corpus", target) or object, DialogCorpus)]


def human_corpus(name: str, path: str, changes: Sequence[str] = ()) -> DialogCorpus:
    """One of `human_corpora` as its file in `conf/` says, reading `path`, with `changes`, each a `setting=value`.

    Raises:
        ConfigError: there is no such corpus or setting, or a value is wrong.
    """
    if name not in (known := human_corpora()):
        raise ConfigError(f"corpus={name}: has no conversations of people; choose from: {', '.join(known)}")
    return cast(DialogCorpus, part("corpus", {**compose_choice("corpus", name, changes), "path": path}))


def near_duplicates() -> DedupSettings:
    """The settings of `dedup=minhash` as `conf/` has them."""
    return cast(DedupSettings, part("dedup", compose_choice("dedup", "minhash")))


def identity(data: dict[str, Any], contents: Mapping[str, str]) -> dict[str, Any]:
    """What decides a run's data, by name: settings, and hashes of what they lead to; see `generator.execution.store.Store`."""
    kept = {k: v for k, v in data.items() if k not in _OPERATIONAL}
    kept |= {group: deciding(group, kept[group]) for group in _OPERATIONAL_PARTS}
    if own := kept["judge"].get("lm"):
        kept["judge"] = {**kept["judge"], "lm": deciding("lm", own)}
    return {**dict(dotted(kept)), **contents}


def model_files(endpoints: Mapping[str, Endpoint | None]) -> dict[str, str]:
    """Of models that are read from files of the user's, their names and short hashes of the files.

    Args:
        endpoints: by the names of their settings.

    Raises:
        ConfigError: a file can't be read.
    """
    told: dict[str, str] = {}
    for name, endpoint in endpoints.items():
        if isinstance(endpoint, EmbeddedEndpoint) and endpoint.path is not None:
            try:
                told[f"the file of {name}.path"] = f"{endpoint.model} {digest(endpoint.path)[:16]}"
            except OSError as error:
                where = f"{name}.path={endpoint.path}"
                raise ConfigError(f"{where}: can't be read ({describe(error)}); give a GGUF file") from error
    return told


def deciding(group: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Of a part's settings those that decide a run's data."""
    return {name: value for name, value in settings.items() if name not in _OPERATIONAL_PARTS[group]}


def dotted(node: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """The settings of nested parts, by dotted name."""
    for key, value in node.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from dotted(value, f"{name}.")
        else:
            yield name, value


def _exporter(node: object) -> Exporter | None:
    """The exporter of a part of the configuration; by its name alone it is chosen where a stored one has another.

    `export=none` has no class, and makes none.
    """
    node = by_name("export", node)
    if isinstance(node, dict) and "_target_" not in node:
        return None
    return cast(Exporter, part("export", node))
