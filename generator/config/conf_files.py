"""List what the files of `conf/` hold: groups, their choices, and settings."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from generator.config.installed import CONF, conf_folders
from generator.config.shares import WEIGHTS


@cache
def settings() -> dict[str, tuple[str, ...]]:
    """Return every setting of `conf/` by its dotted name, with the choices of its group that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for conf, file in ((folder, file) for folder in conf_folders() for file in sorted(folder.rglob("[!_]*.yaml"))):
        group = file.parent.relative_to(conf).as_posix().removeprefix(".")
        if group != "experiment":  # which has no settings, but values of those of others
            for name in _names(f"{group}." if group else "", _keys(file)):
                found[name] = (*found.get(name, ()), f"{group}={file.stem}" if group else f"conf/{file.stem}.yaml")
    return {name: choices for name, choices in found.items() if not re.match(r".*_target_$|hydra\b", name)}


def groups() -> list[str]:
    """Return the groups of `conf/`, such as `lm`."""
    return sorted({file.parent.name for conf in conf_folders() for file in conf.glob("*/[!_]*.yaml")})


def choices(group: str) -> list[str]:
    """Return what a group of `conf/` can be; files that begin with `_` are what several choices share."""
    return sorted({file.stem for conf in conf_folders() for file in (conf / group).glob("[!_]*.yaml")}) if group else []


def targets(group: str) -> dict[str, str]:
    """Return the class of each choice of a group, by the choice's name."""
    files = [file for conf in reversed(conf_folders()) for file in (conf / group).glob("[!_]*.yaml")]
    return {file.stem: _keys(file)["_target_"] for file in sorted(files, key=lambda file: file.stem)}


def settings_of(command: str) -> set[str]:
    """Return the settings and groups that a command has, by the name of its file in `conf/`."""
    defaults = yaml.safe_load((CONF / f"{command}.yaml").read_text(encoding="utf-8"))["defaults"]
    names = {group for default in defaults if isinstance(default, dict) for group in default} & {*groups()}
    has = {f"conf/{command}.yaml", *names}
    names |= {name for name, choices in settings().items() if any(c.partition("=")[0] in has for c in choices)}
    return names | settings_of("config") if "config" in defaults else names


def _keys(file: Path) -> dict[str, Any]:
    """Return the keys of a file with those of the files of its folder that it builds on."""
    own = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    bases = [name for name in own.pop("defaults", []) if isinstance(name, str) and name != "_self_"]
    merged: dict[str, Any] = {}
    for base in bases:
        beside = file.with_name(f"{base}.yaml")
        merged |= _keys(beside if beside.exists() else CONF / file.parent.name / beside.name)
    return merged | own


def _names(prefix: str, node: dict[str, Any]) -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, dict) and value and not re.fullmatch(WEIGHTS, f"{prefix}{key}"):
            yield from _names(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}"
