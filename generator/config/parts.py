"""From a composed configuration to objects: plain data, and the parts that it names.

A part (corpus, model, retriever, judge, …) is a pydantic model, named by `_target_` in its file in `conf/`; the other
keys of that file are its fields. It is a class of this project, or one that an entry point of an installed package
names. A configuration can't run any other code.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast

from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel, ValidationError

from generator.config.choices import compose_choice
from generator.config.installed import ENTRY_POINTS, installed_classes
from generator.config.messages import describe_problem
from generator.errors import ConfigError, describe
from generator.schema import Operational, Record

M = TypeVar("M", bound=BaseModel)
PACKAGES = ("generator.", "judges.", "taxonomy.")


def plain(cfg: DictConfig) -> dict[str, Any]:
    """Return the configuration as plain data, without Hydra's section and without keys that begin with `_`.

    Raises:
        OmegaConfBaseException: a setting has no value, or an interpolation can't be resolved.
    """
    data = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    return {str(k): v for k, v in cast(dict[Any, Any], data).items() if k != "hydra" and not str(k).startswith("_")}


def build(name: str, node: Any) -> Any:
    """Return the value of a setting, with every part in it built.

    Raises:
        ConfigError: a part can't be built.
    """
    if not isinstance(node, dict):
        return node
    values = {key: build(f"{name}.{key}", value) for key, value in node.items() if key != "_target_"}
    if node.get("_target_") is None:
        return values
    return validate(class_of(name, node["_target_"]), values, name)


def build_choice(group: str, node: Any) -> Any:
    """Return the part of a group; a name alone, as beside a stored configuration, is a choice of `conf/`.

    Raises:
        ConfigError: there is no such choice, or the part can't be built.
    """
    if isinstance(node, str):
        node = compose_choice(group, node)
    if not isinstance(node, dict):
        raise ConfigError(f"{group}: is missing; `python -m generator --help` lists the choices of {group}=")
    return build(group, node)


def class_of(name: str, target: object) -> type[BaseModel]:
    """Return the class that `_target_` names.

    Raises:
        ConfigError: there is no such class, its module can't be imported, or settings can't build it.
    """
    module, _, class_name = str(target).rpartition(".")
    where = f"{name}._target_={target}"
    package = installed_classes(name).get(str(target))
    if package is None and not f"{module}.".startswith(PACKAGES):
        named = f", or one that an installed package names as {ENTRY_POINTS[name]}" if name in ENTRY_POINTS else ""
        raise ConfigError(f"{where}: must be a class of this project ({', '.join(PACKAGES)}…){named}")
    try:
        found = getattr(import_module(module), class_name, None)
    except Exception as error:  # whatever a part that isn't ours raises
        absent = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
        if not absent or not f"{module}.".startswith(f"{absent}."):
            advice = "install it" if absent else "repair or reinstall it"
            raise ConfigError(f"{where}: {package or module} can't be imported: {describe(error)}; {advice}") from error
        found = None
    if found is None:
        advice = f"reinstall {package}" if package else "a run of another release can't be continued"
        raise ConfigError(f"{where}: no such class; {advice}")
    ours = package or f"{getattr(found, '__module__', '')}.".startswith(PACKAGES)
    if not (isinstance(found, type) and issubclass(found, BaseModel) and ours):
        raise ConfigError(f"{where}: must be a pydantic model, as the other files of {name} name")
    if missing := getattr(found, "__abstractmethods__", None):
        raise ConfigError(f"{where}: the class lacks {', '.join(sorted(missing))}")
    return found


def validate(model: type[M], values: Mapping[str, Any], name: str = "") -> M:
    """Return a pydantic model with these values, those of the setting `name` if it has one.

    Raises:
        ConfigError: one of them is wrong; the first.
    """
    try:
        return model(**values)
    except ValidationError as error:
        problem = error.errors()[0]
        # A place in a list, or a branch of a union, has no name that one could type.
        loc = [str(part) for part in problem["loc"] if isinstance(part, str) and part in _field_names(model, values)]
        raise ConfigError(describe_problem(".".join([*([name] if name else []), *loc]), problem)) from None


def _field_names(model: type[BaseModel], values: Mapping[str, Any]) -> set[str]:
    def names(node: object) -> Iterator[str]:
        if isinstance(node, Mapping):
            for key, value in node.items():
                yield str(key)
                yield from names(value)

    return {*model.model_fields, *names(values)}


def identify(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what decides a run's data, by dotted name: all settings of a record that aren't `Operational`.

    Of a part the name of its class counts too, but not the module it lies in.
    """
    if isinstance(value, Record):
        if name:
            yield name, type(value).__name__
        for field, info in type(value).model_fields.items():
            if Operational not in info.metadata:
                yield from identify(f"{name}.{field}" if name else field, getattr(value, field))
    elif isinstance(value, Mapping):
        for key, nested in value.items():
            yield from identify(f"{name}.{key}", nested)
    else:
        yield name, value
