"""What a configuration says, made: plain data, and the parts that it names.

A part (corpus, model, retriever, judge, …) is a class of this project, named by `_target_` in its file in `conf/`; the
other keys of that file are its arguments. A configuration can't run any other code.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError, InterpolationResolutionError, OmegaConfBaseException
from pydantic import BaseModel, ValidationError

from generator.config.choices import compose_choice
from generator.config.messages import of_hydra, of_pydantic, of_stored
from generator.errors import ConfigError

_LARGEST = 2**53  # from here on JSON's readers disagree
_NAMES = (".name", ".model")  # of files and folders, among others
PACKAGES = ("generator.", "judges.", "taxonomy.")


def plain(cfg: DictConfig) -> dict[str, Any]:
    """The configuration as plain data, without Hydra's own and without what begins with `_`: files in `conf/` name
    there what they refer to.

    Raises:
        ConfigError: a mandatory setting is missing, an interpolation fails, or one asks for an environment variable.
    """
    try:
        data = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        name = getattr(error, "full_key", None) or "configuration"
        if isinstance(error, InterpolationResolutionError) and not isinstance(error, InterpolationKeyError):
            raise ConfigError(of_hydra(error)) from error
        raise ConfigError(f"{name}: has no value; give {name}=… on the command line") from error
    return {str(k): v for k, v in cast(dict[Any, Any], data).items() if k != "hydra" and not str(k).startswith("_")}


def shown(cfg: DictConfig, resolve: bool) -> str:
    """The configuration as YAML, for a person.

    Raises:
        ConfigError: an interpolation can't be resolved.
    """
    try:
        return OmegaConf.to_yaml(cfg, resolve=resolve)
    except OmegaConfBaseException as error:
        raise ConfigError(of_hydra(error)) from error


def _no_variable(name: str, *_: object) -> NoReturn:
    raise ValueError(
        f"settings are stored, so they hold no environment variable ({name}); the shell can put in what is no secret"
    )


# What a setting holds is stored with the run, and variables hold keys: for whatever of this program resolves one.
OmegaConf.register_new_resolver("oc.env", _no_variable, replace=True)


def class_of(group: str, target: object) -> type | None:
    """The class that `_target_` names; None if it names none.

    Raises:
        ConfigError: it isn't ours, or not one that settings can make.
    """
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
    if not issubclass(found, BaseModel):
        raise ConfigError(f"{group}._target_={target}: is a class of this project, but none that settings can make")
    return found


def part(group: str, node: Any) -> Any:
    """The part that a node of the configuration describes.

    Raises:
        ConfigError: it describes none, or a setting is wrong.
    """
    if not isinstance(node, dict) or node.get("_target_") is None:
        raise no_part(group, node)
    settings = dict(node)
    found = class_of(group, settings.pop("_target_"))
    return validated(cast(Any, found), group, settings)


def by_name(group: str, node: object) -> object:
    """A node of the configuration; one that is given by its name alone as its file in `conf/` has it."""
    if not isinstance(node, str):
        return node
    return compose_choice(group, node)


def no_part(group: str, node: object) -> ConfigError:
    """What to say of a node that describes no part."""
    if isinstance(node, str):
        return ConfigError(of_stored(group))
    return ConfigError(f"{group}: is missing; `python -m generator --help` lists the choices of {group}=")


def validated(kind: Any, group: str, settings: dict[str, Any]) -> Any:
    """A pydantic model with these settings.

    Raises:
        ConfigError: one of them is wrong; the first.
    """
    try:
        made = kind(**settings)
    except ValidationError as error:
        problem = error.errors()[0]
        # A place in a list has no name that a person could type.
        names = [str(part) for part in problem["loc"] if not isinstance(part, int)]
        name = ".".join([group, *names] if group else names)
        raise ConfigError(of_pydantic(name, problem)) from None
    for name, value in _values(group, made):
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise ConfigError(f"{name}: is too large a number")
        named = name.endswith(_NAMES) and isinstance(value, str) and not value.isprintable()
        if named or "\0" in str(value):
            raise ConfigError(f"{name}: holds a control character; leave it out")
    return made


def _values(name: str, node: object) -> Iterator[tuple[str, object]]:
    """All that a part holds, however deep, by dotted name."""
    if isinstance(node, BaseModel | dict):
        for key, value in dict(node).items():
            yield from _values(f"{name}.{key}" if name else str(key), value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _values(name, value)
    elif isinstance(node, str | int | Path):
        yield name, node
