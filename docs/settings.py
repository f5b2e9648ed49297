"""`python docs/settings.py > docs/settings.md`: every setting, as its field describes it."""

import json
import re
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

from generator.command import CONF, GENERATOR_GROUPS
from generator.config.choices import compose_choice
from generator.config.conf_files import choices
from generator.config.parts import class_of
from generator.config.settings import AlgorithmSettings
from generator.schema import Operational

HEAD = """# Settings

A setting is `name=value` on the command line: `python -m generator corpus=quac dialogs=100 lm.concurrency=32`. `--help`
lists the choices of each group; `--cfg job` prints the settings that a command would run with. With `-m`, values
separated by commas make one run each ([sweeps](experiments.md#sweeps)). Quote a value with a comma or bracket twice:
`corpus.path='"a,b.jsonl"'`. `python -m generator outputs/RUN/config.yaml dialogs=200` continues a run with its
settings, in its folder even if you renamed or moved that.

The same command continues a run. Settings marked ○ may change then, and files may be moved; every other setting, and
the content of the files, must be the same.

This page is made from the code: `uv run python docs/settings.py > docs/settings.md`.
"""
# The modules of commands with plain settings, and what a title says beside the program.
MODULES = (
    *("generator.__main__", "generator.estimate", "generator.push", "generator.finetune", "generator.optimize"),
    *("generator.report", "generator.statistics", "judges.__main__", "judges.evaluate"),
    *("judges.agreement", "judges.human", "judges.review", "judges.correlation", "judges.students"),
    "judges.retrieval",
)
_BESIDE = {"generator.__main__": ", .index, .human", "generator.estimate": ", beside those above"}
# The groups of other commands than `python -m generator`.
OTHER_GROUPS = (
    ("benchmark", "benchmarks of `python -m judges.evaluate`"),
    ("student", "students of `python -m generator.finetune`"),
)
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


class Row(NamedTuple):
    """A setting of one choice."""

    name: str
    default: str
    values: str
    text: str


def reference() -> str:
    """Return the page."""
    parts = [HEAD]
    for module in MODULES:
        own = import_module(module).COMMAND
        for command in own.values() if isinstance(own, dict) else [own]:
            record, _, name = command.settings.partition(":")
            defaults = yaml.safe_load((CONF / f"{command.primary}.yaml").read_text(encoding="utf-8"))
            fields = getattr(import_module(record), name).model_fields
            rows = [(_row(key, defaults[key], fields[key]), "") for key in fields if key in defaults]
            parts.append(f"## {command.program}{_BESIDE.get(module, '')}\n\n{_table(rows)}")
    for group, title in (*GENERATOR_GROUPS, *OTHER_GROUPS):
        if group == "experiment":  # which has no settings of its own
            continue
        found: dict[tuple[str, str, str], list[tuple[str, Row]]] = {}
        for choice in choices(group):
            for row in _choice_rows(group, choice):
                found.setdefault((row.name, row.values, row.text), []).append((choice, row))
        listed = ", ".join(f"`{choice}`" for choice in choices(group))
        merged = [(rows[0][1]._replace(default=_defaults(rows)), [c for c, _ in rows]) for rows in found.values()]
        table = _table([(row, _only(names, choices(group))) for row, names in merged])
        parts.append(f"## {group}\n\n{title[:1].upper()}{title[1:]}: {listed}.\n\n{table}")
    return "\n".join(parts)


# A run is continued in the languages that it was made in, whether they were set or found.
_LANGUAGES = {"corpus.language", "dialog.language"}


def _choice_rows(group: str, choice: str) -> Iterator[Row]:
    node = compose_choice(group, choice)
    target = node.pop("_target_", None)
    if target is None and group != "algorithm":
        return
    fields = (class_of(group, target) if target else AlgorithmSettings).model_fields
    for key, value in node.items():
        if key in fields:
            yield _row(f"{group}.{key}", value, fields[key])


def _row(name: str, default: object, info: FieldInfo) -> Row:
    if isinstance(default, dict) and any(isinstance(value, dict) for value in default.values()):
        default = ", ".join(default)  # choices of their own, by name
    mark = " ○" if Operational in info.metadata and name not in _LANGUAGES else ""
    shown = "required" if default == "???" else f"`{default if isinstance(default, str) else json.dumps(default)}`"
    return Row(f"`{name}`{mark}", "empty" if default == "" else shown, _values(info), info.description or "")


def _values(info: FieldInfo) -> str:
    """Return what a field takes, from its type and bounds."""
    annotation, optional = info.annotation, False
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        optional, annotation = len(members) < len(get_args(annotation)), members[0]
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    marks = [(getattr(mark, key, None), word) for mark in info.metadata for key, word in _BOUNDS.items()]
    bounds = [f"{word} {bound:g}" for bound, word in marks if bound is not None]
    origin: Any = get_origin(annotation)
    if origin is Literal:
        shown = ", ".join(f"`{value}`" for value in get_args(annotation))
    elif annotation is bool:
        shown = "true, false"
    elif annotation in (int, float):
        shown = " ".join(["whole number" if annotation is int else "number", " and ".join(bounds)]).strip()
    elif isinstance(annotation, type) and issubclass(annotation, Path):
        shown = "path"
    else:
        shown = {str: "text", tuple: "list", list: "list", dict: "mapping"}.get(origin or annotation, "")
    return f"{shown}, null" if optional and shown else shown


def _defaults(rows: list[tuple[str, Row]]) -> str:
    """Return the default; where choices differ, the most frequent one and then the others with their choices."""
    names: dict[str, list[str]] = {}
    for choice, row in rows:
        names.setdefault(row.default, []).append(choice)
    usual, *others = sorted(names, key=lambda default: -len(names[default]))
    if len(names) > 3 or max(map(len, names)) > 60:
        return "by choice" if len(names) > 1 else usual
    return ", ".join([usual, *(f"{default} ({', '.join(names[default])})" for default in others)])


def _only(names: list[str], every: list[str]) -> str:
    """Return which choices have a setting, or those that have not, if they are fewer; empty: all have it."""
    others = [name for name in every if name not in names]
    shorter = ", ".join(names) if len(names) <= len(others) else f"all but {', '.join(others)}"
    return f" ({shorter})" if others else ""


def _table(rows: list[tuple[Row, str]]) -> str:
    lines = ["| setting | default | values | what it does |", "| --- | --- | --- | --- |"]
    for row, where in rows:
        text = re.sub(r"\s+", " ", row.text).replace("|", "\\|")
        text = re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "\\<", text)  # <corpus> would be taken for a tag
        lines.append(f"| {row.name}{where} | {row.default} | {row.values.replace('|', chr(92) + '|')} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
