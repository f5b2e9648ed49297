"""Messages for settings that Hydra or pydantic refuse: one line with the setting, what is wrong, and the fix.

Knows the settings as files in `conf/`; nothing of what they mean.
"""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf.errors import InterpolationKeyError, InterpolationResolutionError, MissingMandatoryValue
from pydantic_core import ErrorDetails
from yaml import MarkedYAMLError

from generator.config.conf_files import choices, groups, settings, settings_of
from generator.config.shares import OWN_MODEL, WEIGHTS

# What is no choice of a group, and where it goes.
_ELSEWHERE = {
    "lm": "; a model's own name goes into lm.model (judge.lm.model, user.lm.model), an address into lm.api_base",
    "user": "; a type of users goes into user=mixed user.types={NAME: 1}",
    "corpus": "; a path goes into corpus.path, such as corpus=folder corpus.path=…",
    "dialog": "; the number of dialogs is dialogs=…",
}
# Why a command lacks a setting that others have, and what to do.
_LACKING = {
    ("evaluate", "dspy_program"): "it asks in plain chats, which have no instructions of ours; `python -m "
    "generator.optimize target=answer data=… dspy_program=… calls=1` tries a program on people's dialogs"
}
_EXPERIMENT_FILE = (
    "its file must have `# @package _global_` as its first line, and name choices as `override /corpus: folder` "
    "(docs/experiments.md)"
)
_SHOW_ALL = "`--cfg job` shows all settings"
# What must be given, by the type of pydantic's problem, or the type's first word.
_WANTED = {
    "int": "must be a whole number",
    "float": "must be a number",
    "path": "must be a path",
    "bool": "must be true or false",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "greater_than": "must be more than {gt:g}",
    "less_than": "must be less than {lt:g}",
    "string_type": "must be a text that isn't empty",
    "string_too_short": "must be a text that isn't empty",
    "tuple": "wrong type: expected a list, such as [a,b]",
    "list": "wrong type: expected a list, such as [a,b]",
}


def describe_unknown(name: str, command: str = "config") -> str:
    """Return the message for a setting that doesn't exist, or not in this command, with a similar one of it."""
    if name == "experiment" and name in settings_of(command):
        return f"{name}: {_EXPERIMENT_FILE}"
    if name in groups():
        return f"{name}: this command has no such choice; {_SHOW_ALL}"
    known = settings()
    own_model = re.match(rf"({OWN_MODEL})\.(.+)", name)
    if own_model and f"lm.{own_model[2]}" in known:
        return f"{name}: there is no such model yet; choose one first, such as {own_model[1]}=openai"
    names = sorted(settings_of(command))
    same_end = [setting for setting in names if setting.endswith(f".{name}")]
    if name in known and not same_end:
        having = [choice for choice in known[name] if not choice.startswith("conf/")]
        if not having or name not in names:
            return f"{name}: this command has no such setting; {_LACKING.get((command, name), _SHOW_ALL)}"
        return f"{name}: unknown here; only these have it: {', '.join(having)}"
    if own_model:
        names = [f"{own_model[1]}{setting[2:]}" for setting in known if setting.startswith("lm.")]
    group, _, key = name.partition(".")
    inside = [setting for setting in names if setting.startswith(f"{group}.") and setting.endswith(f".{key}")]
    near = (same_end or inside)[:3] or difflib.get_close_matches(name, names, 2, 0.75)
    advice = f"did you mean {' or '.join(near)}?" if near else _SHOW_ALL
    return f"{name}: unknown setting; {advice}"


def describe_choice(group: str, name: str, options: Sequence[str]) -> str:
    """Return the message for a choice that a group doesn't have; files that begin with `_` are no choices."""
    options = [option for option in options if not option.startswith("_")]
    near = difflib.get_close_matches(name, options, 1)
    advice = f"did you mean {near[0]}? " if near else ""
    known = f"; {advice}choose from: {', '.join(options)}" if options else ""
    return f"{group}={name}: unknown {group}{known}{_ELSEWHERE.get(group, '')}"


def describe_hydra_error(error: Exception, command: str = "config") -> str:
    """Return an error of Hydra, OmegaConf or PyYAML as one line, without the values of settings: a key, perhaps.

    Args:
        command: the name of its file in `conf/`.
    """
    text = " ".join(str(error).split())
    if isinstance(error, OverrideParseException):
        name, equals, value = error.override.partition("=")
        if not equals:
            if command == "config" and Path(name, "config.yaml").is_file():
                return f"{name}: is a run folder; {Path(name, 'config.yaml')} continues the run"
            if command == "config" and Path(name).exists():
                return f"{name}: not a setting; for dialogs on what it holds give corpus=folder corpus.path={name}"
            if command == "config" and "/" in name:
                return f"{name}: no such file or folder; give the config.yaml of a run folder, or name=value"
            return f"{name}: not a setting; write it as name=value"
        quoted = '["…","…"]' if value.startswith("[") else '"…"'
        advice = "put a value with special characters into two pairs of quotes"
        return f"{name}: can't be parsed; {advice}: '{name}={quoted}'"
    if isinstance(error, MarkedYAMLError) and (at := error.problem_mark):
        return f"{at.name}:{at.line + 1}: not valid YAML: {error.problem}; fix this file"
    if found := re.match(r"In 'experiment/([^']+)': Could not (?:override|find 'experiment/[^']+/)", text):
        return f"experiment={found[1]}: {_EXPERIMENT_FILE}"
    if isinstance(error, MissingConfigException):
        # A path or an address as the choice has slashes, too.
        group, name = re.findall(r"^((?:hydra/)?[^/]*)/?(.*)", str(error.missing_cfg_file))[0]
        if text.startswith("Cannot find primary config") and group not in groups():
            return f"-cn {error.missing_cfg_file}: no such file in conf/ or the folder of -cd"
        return describe_choice(group, name, error.options or choices(group))
    if isinstance(error, MissingMandatoryValue | InterpolationKeyError) and error.full_key:
        return f"{error.full_key}: has no value; give {error.full_key}=… on the command line"
    if isinstance(error, InterpolationResolutionError) and error.full_key:
        return f"{error.full_key}: can't be resolved: {text.partition(' full_key: ')[0]}"
    if found := re.match(r"Error merging override \+*([^=]+)=(\S*)", text):
        return f"{found[1]}: {_describe_wrong_type(found[1])}"
    if found := re.match(r"You must specify '(\w+)'", text):
        return f"{found[1]}: is missing; `--help` lists the choices of {found[1]}="
    if found := re.match(r"Could not (?:override|delete)[^']*'([^'@]+)", text):
        return describe_unknown(found[1], command)
    if found := re.search(r"An item is already at '([^']+)'", text):
        return f"+{found[1]}: is a setting already; leave out the +"
    if found := re.match(r"Ambiguous value for argument '\+*([^=]+)", text):
        return f"{found[1]}: several values need -m; put one value that has a comma into two pairs of quotes: \"'a,b'\""
    if found := re.match(r"Multiple values for (\w+)|([\w.@]+) appears more than once", text):
        return f"{found[1] or found[2]}: is given twice; give it once, in a file as `override /GROUP: NAME`"
    return text


def _describe_wrong_type(name: str) -> str:
    wanted = "values by name, such as {NAME: 1}" if re.fullmatch(WEIGHTS, name) else "settings of its own"
    return f"wrong type; expected {wanted}; {_SHOW_ALL}"


def describe_problem(name: str, problem: ErrorDetails) -> str:
    """Return one of pydantic's problems with the setting `name` as one line."""
    given, kind, context = problem.get("input"), problem["type"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        return describe_unknown(name)
    if kind == "missing":
        return f"{name}: has no value; give {name}=…"
    shown = "null" if given is None else str(given).lower() if isinstance(given, bool) else given
    shown = re.sub(r"^(\w+://)?.*@", r"\1…@", str(shown))  # a password
    shown = re.sub(r"(://[^?#]*[?#]).*", r"\1…", shown)  # a key, perhaps
    # Nor is shown what stands in place of a variable's name: a key, perhaps.
    short = (given is None or isinstance(given, str | int | float)) and not name.endswith("_env")
    if words := _WANTED.get(kind) or _WANTED.get(kind.partition("_")[0]):
        wanted = words.format(**context)
    elif kind in ("dict_type", "model_type", "is_instance_of"):
        wanted = _describe_wrong_type(name)
    elif kind == "string_pattern_mismatch" and name.endswith("language"):
        wanted = "must be an ISO 639 code, such as en or de"
    elif kind == "too_short":
        least = context["min_length"]
        wanted = "must not be empty" if least == 1 else f"must have {least} or more entries"
    else:
        message = problem["msg"].removeprefix("Value error, ")
        wanted = re.sub(r"^(Input|String) should ", "must ", message)
        wanted = wanted[:1].lower() + wanted[1:]
    return f"{name}={shown}: {wanted}" if short else f"{name}: {wanted}"
