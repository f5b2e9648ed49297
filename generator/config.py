"""YAML in, frozen settings out: the one place that sees Hydra's objects, and that says what is wrong with a setting.

A part (corpus, model, retriever, judge, …) is a class of this project, named by `_target_` in its file in `conf/`; the
other keys of that file are its arguments. Knows which settings decide a run's data, and which only how it is made.
"""

import inspect
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast, get_type_hints

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError, InterpolationResolutionError, OmegaConfBaseException
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from yaml import YAMLError

from generator.advice import CONF, of_hydra, of_pydantic, of_stored
from generator.corpora.human import DialogCorpus
from generator.dedup import DedupSettings
from generator.errors import ConfigError
from generator.executors.base import ExecutorSettings
from generator.export.chat import Filter
from generator.export.material import Exporter
from generator.lm import Endpoint
from generator.plan import Turns
from generator.relabel import MEASURES
from generator.retrievers.base import RetrieverSettings
from generator.schema import Algorithm, Corpus, Judge, Record
from taxonomy import Mix

PACKAGES = ("generator.", "judges.", "taxonomy.")

# Settings that don't change what a run's data is: a run may be continued with others. The documents behind
# `corpus.path` do, and stand for themselves by their fingerprint; so do the questions of another run.
_OPERATIONAL = {"dialogs", "max_attempts", "run_dir", "fresh", "index_only", "cache_dir", "export", "executor"}
_OPERATIONAL_PARTS = {
    "algorithm": {"first_questions"},
    # `no_answer`, `rewrites` and `answers` are about human dialogs.
    "corpus": {"path", "cache_dir", "base_url", "no_answer", "rewrites", "answers"},
    "lm": {
        *("api_base", "api_key_env", "concurrency", "timeout_s", "retries", "retry_wait_s"),
        *("serve", "serve_python", "serve_args", "serve_timeout_s"),
    },
    # Of a server with an index, which holds the same wherever it is and whatever it is called.
    "retriever": {"hosts", "index", "api_key_env", "user", "password_env", "ca_certs", "timeout_s", "build_timeout_s"}
    | {"retries", "retry_wait_s", "chunk", "ingest_endpoint", "search_endpoint", "search_threads"},
}


def _path(value: object) -> object:
    """A path as a person writes it."""
    if value == "":
        raise ValueError("is empty; give a path, or leave the setting out")
    try:
        return Path(value).expanduser() if isinstance(value, str) else value
    except RuntimeError as error:  # the home directory of nobody
        raise ValueError(str(error)) from error


LocalPath = Annotated[Path, BeforeValidator(_path)]


class JudgeSettings(Record):
    """Who checks the answers, what becomes of pairs judged incorrect, and the judge's own model if it has one.

    Attributes:
        panel: several models of its own, whose median score counts, by names that tell them apart.
        arguments: settings that only this judge has, by name.
    """

    target: type | None
    name: str
    filter: Filter
    lm: Endpoint | None
    panel: dict[str, Endpoint] = Field(default_factory=dict)
    arguments: dict[str, Any] = Field(default_factory=dict)

    @property
    def asks_model(self) -> bool:
        """Whether the judge asks a model at all."""
        return self.target is not None and getattr(self.target, "asks_model", True)

    def build(self, model: str) -> Judge | None:
        """The judge, asking `model`; None if there is to be none."""
        return cast(Judge, self.target(model, **self.arguments)) if self.target else None


class AlgorithmSettings(Record):
    """Algorithm 1 or 2, and for the latter where first questions come from: `generator.openings`."""

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


class JudgingSettings(Record):
    """All settings of `python -m judges`, as in `conf/judges.yaml`, and its parts."""

    input: LocalPath
    format: str | None
    predictions: bool
    run_dir: LocalPath | None
    fresh: bool
    lm: Endpoint
    judge: JudgeSettings

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The models that are asked, by a name for each; none for a judge that asks none."""
        if not self.judge.asks_model:
            return {}
        return self.judge.panel or {"lm": self.judge.lm or self.lm}

    @property
    def folder(self) -> Path:
        """The run folder."""
        if self.run_dir is not None:
            return self.run_dir
        name = re.sub(r"(\.jsonl?)?(\.gz)?$", "", self.input.expanduser().absolute().name)
        models = [endpoint.model.rstrip("/").rpartition("/")[2] for endpoint in self.endpoints.values()]
        return Path("outputs") / "-".join([name, self.judge.name, *filter(None, ["+".join(models)])])


def load(cfg: DictConfig) -> Settings:
    """The settings of a composed configuration.

    Raises:
        ConfigError: a setting is missing, has a wrong value, or names a class that isn't ours; one line.
    """
    data = plain(cfg)
    for group in ("corpus", "taxonomy", "lm", "retriever", "dedup"):
        data[group] = _part(group, data.get(group))
    if not isinstance(algorithm := data.get("algorithm"), dict):
        raise _no_part("algorithm", algorithm)
    data["algorithm"] = _validated(AlgorithmSettings, "algorithm", algorithm)
    data["judge"] = _judge(data.get("judge"))
    data["export"] = _exporter(data.get("export"))
    data["executor"] = _part("executor", _by_name("executor", data.get("executor", "local")))
    return _validated(Settings, "", data)


def load_judging(cfg: DictConfig) -> JudgingSettings:
    """The same for `python -m judges`.

    Raises:
        ConfigError: as `load`; or there is no judge, or its panel has a model twice.
    """
    data = plain(cfg)
    settings = _validated(
        JudgingSettings, "", data | {"lm": _part("lm", data.get("lm")), "judge": _judge(data.get("judge"))}
    )
    judge = cast(JudgeSettings, settings.judge)
    if judge.target is None:
        raise ConfigError(f"judge={judge.name}: judges nothing; `python -m judges --help` lists the judges")
    if judge.panel and not judge.asks_model:
        raise ConfigError(f"judge.panel: {judge.name} asks no model; leave it out")
    models = [endpoint.model for endpoint in judge.panel.values()]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(f"judge.panel: has the model {twice[0]} twice; one voice each")
    return cast(JudgingSettings, settings)


def plain(cfg: DictConfig) -> dict[str, Any]:
    """The configuration as plain data, without Hydra's own and without what begins with `_`: files in `conf/` name
    there what they refer to.

    Raises:
        ConfigError: a mandatory setting is missing, an interpolation fails, or one asks for an environment variable.
    """
    # What a setting holds is stored with the run, and variables hold keys.
    OmegaConf.register_new_resolver("oc.env", _no_variable, replace=True)
    try:
        data = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        name = getattr(error, "full_key", None) or "configuration"
        if isinstance(error, InterpolationResolutionError) and not isinstance(error, InterpolationKeyError):
            raise ConfigError(f"{name}: can't be resolved: {of_hydra(error)}") from error
        raise ConfigError(f"{name}: has no value; give {name}=… on the command line") from error
    return {str(k): v for k, v in cast(dict[Any, Any], data).items() if k != "hydra" and not str(k).startswith("_")}


def _no_variable(name: str, *_: object) -> NoReturn:
    raise ValueError(
        f"settings are stored, so they hold no environment variable ({name}); the shell can put in what is no secret"
    )


def exporters() -> list[str]:
    """The names of all exporters of `conf/`, and so of their folders."""
    files = sorted((CONF / "export").glob("*.yaml"))
    return [made.name for file in files if (made := _exporter(file.stem)) is not None]


def human_corpora() -> list[str]:
    """The corpora of `conf/` whose publishers have conversations of people about them."""
    files = sorted((CONF / "corpus").glob("*.yaml"))
    targets = {file.stem: cast(DictConfig, OmegaConf.load(file)).get("_target_") for file in files}
    return [name for name, target in targets.items() if issubclass(_class("corpus", target) or object, DialogCorpus)]


def human_corpus(name: str, path: str, changes: Sequence[str] = ()) -> DialogCorpus:
    """One of `human_corpora` as its file in `conf/` says, reading `path`, with `changes`, each a `setting=value`.

    Raises:
        ConfigError: there is no such corpus or setting, or a value is wrong.
    """
    if name not in (known := human_corpora()):
        raise ConfigError(f"corpus={name}: has no conversations of people; choose from: {', '.join(known)}")
    try:
        node = OmegaConf.merge(OmegaConf.load(CONF / "corpus" / f"{name}.yaml"), OmegaConf.from_dotlist(list(changes)))
        settings = cast(dict[str, Any], OmegaConf.to_container(node, resolve=True))
    except (OmegaConfBaseException, YAMLError) as error:
        raise ConfigError(f"corpus={name}: {of_hydra(error)}") from error
    return cast(DialogCorpus, _part("corpus", {**settings, "path": path}))


def measures(model: str) -> tuple[Judge, ...]:
    """The judges that label what turns turned out to be (`generator.relabel`), asking `model`."""
    files = (OmegaConf.load(CONF / "judge" / f"{name}.yaml") for name in MEASURES)
    targets = (_class("judge", cast(DictConfig, file).get("_target_")) for file in files)
    return tuple(cast(Judge, target(model)) for target in targets if target)


def near_duplicates() -> DedupSettings:
    """The settings of `dedup=minhash` as `conf/` has them."""
    return cast(DedupSettings, _part("dedup", OmegaConf.to_container(OmegaConf.load(CONF / "dedup" / "minhash.yaml"))))


def identity(data: dict[str, Any], fingerprint: str, prompts: str, openings: str) -> dict[str, Any]:
    """The settings that decide what a run's data is, by dotted name; see `generator.store.Store`."""
    kept = {k: v for k, v in data.items() if k not in _OPERATIONAL}
    for part, names in _OPERATIONAL_PARTS.items():
        kept[part] = {k: v for k, v in kept[part].items() if k not in names}
    if own := kept["judge"].get("lm"):
        kept["judge"] = {**kept["judge"], "lm": {k: v for k, v in own.items() if k not in _OPERATIONAL_PARTS["lm"]}}
    told = {
        "the corpus's documents": fingerprint[:16],
        "the prompts' version": prompts,
        "the first questions": openings,
    }
    return dict(_flat("", kept)) | told


def judging_identity(settings: JudgingSettings, data: dict[str, Any], fingerprint: str, prompts: str) -> dict[str, Any]:
    """The same for a run of `python -m judges`; its input stands for itself by the fingerprint of its dialogs."""
    judge = {name: value for name, value in data["judge"].items() if name not in ("filter", "lm", "panel")}
    asked = data["judge"].get("panel") or {"lm": data["judge"].get("lm") or data["lm"]}
    models = {
        name: {k: v for k, v in asked[name].items() if k not in _OPERATIONAL_PARTS["lm"]} for name in settings.endpoints
    }
    kept = {"judge": {**judge, "panel": models}} if settings.judge.panel else {"judge": judge, **models}
    told = {"the input's dialogs": fingerprint[:16], "the prompts' version": prompts}
    return dict(_flat("", kept)) | told


def _flat(prefix: str, node: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in node.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(f"{name}.", value)
        else:
            yield name, value


def _class(group: str, target: object) -> type | None:
    if target is None:
        return None
    module, _, name = str(target).rpartition(".")
    if not (isinstance(target, str) and target.startswith(PACKAGES)):
        raise ConfigError(f"{group}._target_={target}: must be a class of this project ({', '.join(PACKAGES)}…)")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{group}._target_={target}: there is no such class ({error})") from error
    # What our modules import from others has a name in them too.
    if not (isinstance(found, type) and found.__module__.startswith(PACKAGES)):
        raise ConfigError(f"{group}._target_={target}: is no class of this project")
    # Others of our classes do something when they are made.
    if not (hasattr(found, "judge") if group == "judge" else issubclass(found, BaseModel)):
        raise ConfigError(f"{group}._target_={target}: is a class of this project, but none that settings can make")
    return found


def _part(group: str, node: Any) -> Any:
    if not isinstance(node, dict) or "_target_" not in node:
        raise _no_part(group, node)
    arguments = dict(node)
    part = _class(group, arguments.pop("_target_"))
    return _validated(cast(Any, part), group, arguments)


def _judge(node: Any) -> JudgeSettings:
    if not isinstance(node, dict):
        raise _no_part("judge", node)
    target = _class("judge", node.get("_target_"))
    common = {name: node[name] for name in ("name", "filter", "lm", "panel") if name in node}
    if common.get("lm"):
        common["lm"] = _part("judge.lm", common["lm"])
    if isinstance(panel := common.get("panel"), dict):
        common["panel"] = {name: _part(f"judge.panel.{name}", endpoint) for name, endpoint in panel.items()}
    own = {name: value for name, value in node.items() if name not in {"_target_", *common}}
    arguments = dict(_validated(_arguments(target), "judge", own))
    return cast(JudgeSettings, _validated(JudgeSettings, "judge", {**common, "target": target, "arguments": arguments}))


def _arguments(judge: type | None) -> type[BaseModel]:
    """What a judge is made with beside the name of its model, so that it is checked before there is one."""
    made = getattr(judge, "__init__", None)
    own = list(inspect.signature(made).parameters.values())[2:] if made and judge else []
    hints = get_type_hints(made, include_extras=True) if own else {}
    fields = {p.name: (hints.get(p.name, Any), ... if p.default is p.empty else p.default) for p in own}
    config = ConfigDict(extra="forbid", protected_namespaces=(), arbitrary_types_allowed=True)
    return cast(type[BaseModel], create_model("Arguments", __config__=config, **cast(Any, fields)))


def _exporter(node: object) -> Exporter | None:
    """The exporter of a part of the configuration; by its name alone it is chosen where a stored one has another.

    A configuration stored before there were any has none; nor has one without a class.
    """
    node = _by_name("export", node)
    if node is None or (isinstance(node, dict) and "_target_" not in node):
        return None
    return cast(Exporter, _part("export", node))


def _by_name(group: str, node: object) -> object:
    """A part of the configuration; one that is given by its name alone as its file in `conf/` has it."""
    if not isinstance(node, str):
        return node
    files = {file.stem: file for file in sorted((CONF / group).glob("*.yaml"))}
    if node not in files:
        raise ConfigError(f"{group}={node}: no such choice; choose from: {', '.join(files)}")
    return OmegaConf.to_container(OmegaConf.load(files[node]))


def _no_part(group: str, node: object) -> ConfigError:
    if isinstance(node, str):
        return ConfigError(of_stored(group))
    return ConfigError(f"{group}: is missing; `python -m generator --help` lists the choices of {group}=")


def _validated(part: Any, group: str, arguments: dict[str, Any]) -> Any:
    try:
        return part(**arguments)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, (group, *problem["loc"]) if group else problem["loc"]))
        raise ConfigError(of_pydantic(name, problem)) from None
