"""What is wrong with a setting, in words for the person who typed it: what Hydra and pydantic found, and what to do.

Knows the settings as files in `conf/`; nothing of what they mean.
"""

import difflib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf.errors import InterpolationKeyError, InterpolationResolutionError

CONF = Path(__file__).parents[2] / "conf"
JUDGES = "the judges' command"
_WHERE_ALL_ARE = "`python -m generator --cfg job` shows all settings"


@cache
def settings() -> dict[str, tuple[str, ...]]:
    """Every setting of `conf/` by its dotted name, with what has it: choices of its group, `JUDGES`, or nothing."""
    found: dict[str, tuple[str, ...]] = {}
    for file in sorted(CONF.rglob("[!_]*.yaml")):
        group = file.parent.relative_to(CONF).as_posix().removeprefix(".")
        if group == "experiment":  # it has no settings, but values of those of others
            continue
        for name in _names(f"{group}." if group else "", _content(file)):
            if group:
                found[name] = (*found.get(name, ()), f"{group}={file.stem}")
            else:  # of the judges' command, what the generator's doesn't have, too
                found.setdefault(name, () if file.stem == "config" else (JUDGES,))
    return {
        name: choices for name, choices in found.items() if not re.match(r".*\bdefaults$|hydra\b|.*_target_$", name)
    }


def groups() -> list[str]:
    """The groups of `conf/`, such as `lm`."""
    return sorted(folder.name for folder in CONF.iterdir() if any(folder.glob("*.yaml")))


def choices(group: str) -> list[str]:
    """What a group of `conf/` can be."""
    return sorted(file.stem for file in (CONF / group).glob("[!_]*.yaml"))


def unknown(name: str) -> str:
    """What to say of a setting that isn't there."""
    known = settings()
    own_judge = re.match(r"(judge\.(?:lm|panel\.[\w-]+))\.(.+)", name)
    if own_judge and f"lm.{own_judge[2]}" in known:
        return f"{name}: the judge has no model of its own that has this; choose one too, such as {own_judge[1]}=openai"
    if name in known:
        *others, last = known[name] or ["the generator's command"]
        which = f"{', '.join(others)} and {last} have" if others else f"{last} has"
        return f"{name}: only {which} this setting"
    names = [*known, *groups()]
    if own_judge:
        names = [f"{own_judge[1]}{setting[2:]}" for setting in known if setting.startswith("lm.")]
    same_end = [setting for setting in names if setting.endswith(f".{name}")]
    near = difflib.get_close_matches(name, names, 2, 0.75) or same_end[:3]
    advice = f"did you mean {' or '.join(near)}?" if near else _WHERE_ALL_ARE
    return f"{name}: there is no such setting; {advice}"


def of_stored(group: str) -> str:
    """What to say when a part is chosen where a stored configuration has one."""
    return f"{group}: a stored configuration has its parts; leave its file out to choose {group}= anew"


def of_hydra(error: Exception) -> str:
    """One of Hydra's or OmegaConf's errors on one line, without what a setting was given: a key, perhaps."""
    text = " ".join(str(error).split())
    if isinstance(error, OverrideParseException):
        name, equals, _ = error.override.partition("=")
        if not equals:
            return f"{error.override}: a setting is given as name=value"
        return f"{name}: can't be read; quote a value with special characters twice: '{name}=\"…\"'"
    if isinstance(error, MissingConfigException) and error.options:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        near = difflib.get_close_matches(name, error.options, 1)
        advice = f"did you mean {near[0]}? " if near else ""
        own_name = "; a model's own name goes into lm.model (or judge.lm.model)" if group == "lm" else ""
        return f"{group}={name}: no such choice; {advice}choose from: {', '.join(error.options)}{own_name}"
    if isinstance(error, MissingConfigException):
        return f"{error.missing_cfg_file}: there is no such configuration file"
    if isinstance(error, InterpolationResolutionError) and not isinstance(error, InterpolationKeyError):
        return f"{error.full_key}: can't be resolved: {text.partition(' full_key: ')[0]}"
    if found := re.match(r"Error merging override \+*([^=]+)", text):
        return f"{found[1]}: what is given isn't of the kind that belongs there; {_WHERE_ALL_ARE}"
    if found := re.match(r"You must specify '(\w+)'", text):
        return f"{found[1]}: is missing; `python -m generator --help` lists the choices of {found[1]}="
    if found := re.match(r"Could not override '([^'@]+)", text):
        return unknown(found[1])
    if found := re.search(r"An item is already at '([^']+)'", text):
        return of_stored(found[1]) if found[1] in groups() else f"+{found[1]}: is a setting already; leave out the +"
    if found := re.match(r"Ambiguous value for argument '\+*([^=]+)", text):
        return (
            f"{found[1]}: a run for each of several values needs -m; quote one value that has a comma twice: \"'a,b'\""
        )
    if found := re.match(r"Multiple values for (\w+)|([\w.@]+) appears more than once", text):
        return f"{found[1] or found[2]}: is given twice; give it once"
    return f"{text}; {_WHERE_ALL_ARE}"


def of_pydantic(name: str, problem: Any) -> str:
    """One of pydantic's problems with the setting `name`, on one line."""
    given, context = problem.get("input"), problem.get("ctx", {})
    shown = "null" if given is None else str(given).lower() if isinstance(given, bool) else given
    shown = re.sub(r"^(\w+://)?.*@", r"\1…@", str(shown))  # a password
    shown = re.sub(r"(://[^?#]*[?#]).*", r"\1…", shown)  # a key, perhaps
    # Nor is shown what stands in place of a variable's name: a key, perhaps.
    short = (given is None or isinstance(given, str | int | float)) and not name.endswith("_env")
    setting = f"{name}={shown}" if short else name
    match problem["type"]:
        case "extra_forbidden":
            return unknown(name)
        case "missing":
            return f"{name}: has no value; give {name}=…"
        case "int_parsing" | "int_type" | "int_from_float":
            wanted = "must be a whole number"
        case "float_parsing" | "float_type":
            wanted = "must be a number"
        case "finite_number":
            wanted = "must be a finite number"
        case "path_type":
            wanted = "must be a path"
        case "bool_parsing" | "bool_type":
            wanted = "must be true or false"
        case "greater_than_equal":
            wanted = f"must be {context['ge']:g} or more"
        case "less_than_equal":
            wanted = f"must be {context['le']:g} or less"
        case "greater_than":
            wanted = f"must be more than {context['gt']:g}"
        case "less_than":
            wanted = f"must be less than {context['lt']:g}"
        case "string_type" | "string_too_short":
            wanted = "must be a text that isn't empty"
        case "tuple_type" | "list_type":
            wanted = "must be a list, such as [a,b]"
        case _:
            message = problem["msg"].removeprefix("Value error, ")
            wanted = re.sub(r"^(Input|String) should ", "must ", message)
            wanted = wanted[:1].lower() + wanted[1:]
    return f"{setting}: {wanted}"


def _content(file: Path) -> dict[str, Any]:
    """Return the content of a file over that of the files of its group that it builds on."""
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    bases = [name for name in content.get("defaults", []) if isinstance(name, str) and name != "_self_"]
    return {key: value for base in bases for key, value in _content(file.with_stem(base)).items()} | content


def _names(prefix: str, node: dict[str, Any]) -> Iterator[str]:
    for key, value in node.items():
        # The question types of a mix are named by the person, not by us.
        if isinstance(value, dict) and value and key not in ("first", "later", "multi_turn", "answerability"):
            yield from _names(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}"
