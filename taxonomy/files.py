"""Read question types, tasks, scenarios, user types and criteria from YAML files, ours and those of a user.

Errors name file and line.
"""

import difflib
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from generator.errors import YAML_SLIPS, TaxonomyError, describe
from taxonomy.criteria import Criteria
from taxonomy.scenarios import Scenario
from taxonomy.tasks import Task
from taxonomy.types import Facet, QuestionType
from taxonomy.users import User

OURS = Path(__file__).parent
Dimension = Literal["multi_turn", "answerability"]
N = TypeVar("N", QuestionType, Facet, Task, Scenario, User, Criteria)


def read_types(path: Path | None = None) -> dict[str, QuestionType]:
    """Return our types and those of the folder `path` (`*.yaml`, `*.yml`), which replace ours of the same name.

    Raises:
        TaxonomyError: the folder is missing or empty, a file can't be used, or two of its files have the same name.
    """
    return _read_all("questions", path, QuestionType, "question type", "taxonomy.path")


def read_tasks(path: Path | None = None, setting: str = "taxonomy.path") -> dict[str, Task]:
    """Return our tasks and those of the folder `path`, the value of `setting`, as `read_types` does with types."""
    return _read_all("tasks", path, Task, "task", setting)


def read_scenarios(path: Path | None = None, setting: str = "taxonomy.path") -> dict[str, Scenario]:
    """Return our scenarios and those of the folder `path`, the value of `setting`, as `read_types` does with types."""
    return _read_all("scenarios", path, Scenario, "scenario", setting)


def read_users(path: Path | None = None) -> dict[str, User]:
    """Return our user types and those of the folder `path`, as `read_types` does with question types."""
    return _read_all("users", path, User, "user type", "user.path")


def read_criteria(name: str = "lee2024") -> Criteria:
    """Return the criteria of that name, or those in the YAML file at that path.

    Raises:
        TaxonomyError: there is no such file, or it can't be used.
    """
    ours = {file.stem: file for file in sorted((OURS / "criteria").glob("*.yaml"))}
    file = ours.get(name) or Path(name).expanduser()
    if not file.is_file():
        raise TaxonomyError(f"criteria={name}: no such file; choose from {', '.join(ours)}, or give a YAML file")
    return _read_file(file, Criteria, "set of criteria")


def read_facets(dimension: Dimension) -> dict[str, Facet]:
    """Return the values of a dimension by name."""
    return _read_folder(OURS / dimension, Facet, "value", dimension)


def _read_all(ours: str, path: Path | None, model: type[N], noun: str, setting: str) -> dict[str, N]:
    theirs = _read_folder(path, model, noun, setting) if path else {}
    return _read_folder(OURS / ours, model, noun, setting) | theirs


def _read_folder(folder: Path, model: type[N], noun: str, setting: str) -> dict[str, N]:
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else f"does not exist (looked in {Path.cwd()})"
        raise TaxonomyError(f"{setting}={folder}: {problem}; give a folder of {noun}s (*.yaml)")
    files = sorted(file for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    if not files:
        raise TaxonomyError(f"{setting}={folder}: has no {noun} (*.yaml); add one, or leave it out")
    found: dict[str, N] = {}
    for file in files:
        each = _read_file(file, model, noun)
        if each.name in found:
            raise TaxonomyError(f"{file}: name: another file has the name {each.name!r} too; rename one")
        found[each.name] = each
    return found


def _read_file(file: Path, model: type[N], noun: str) -> N:
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        data = loader.construct_document(node) if node else None
        return model.model_validate(data)
    except (OSError, UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise TaxonomyError(f"{file}: can't be read as UTF-8 text ({describe(error)})") from None
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        raise TaxonomyError(f"{file}:{at.line + 1 if at else 1}: not valid YAML: {error.problem}") from None
    except ValidationError as error:
        # A misspelt key is also missing under its right name: report the unknown one.
        problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        raise TaxonomyError(f"{file}:{_line(node, problem['loc'])}: {_explain(problem, model, noun)}") from None
    except YAML_SLIPS:
        reason = "an invalid date, number or boolean, or nested too deeply"
        raise TaxonomyError(f"{file}: not valid YAML: {reason}; put text in quotes") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader that rejects duplicate keys, of which PyYAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _explain(problem: ErrorDetails, model: type[BaseModel], noun: str) -> str:
    """Describe one of pydantic's errors: the key, what is wrong, what is expected."""
    where = ".".join(map(str, problem["loc"]))
    keys = [part for part in problem["loc"] if isinstance(part, str)]
    if not keys and problem["type"] == "value_error":
        return str(problem["msg"]).removeprefix("Value error, ")
    if not keys:
        required = (name for name, field in model.model_fields.items() if field.is_required())
        return f"not a {noun}; give at least the keys {', '.join(required)}"
    described = ""
    for key in keys:
        if (field := model.model_fields.get(key)) is None:  # a key of a mapping, or pydantic's name of a type
            break
        described, model = field.description or described, _find_nested(field.annotation) or model
    if problem["type"] == "extra_forbidden":
        known = model.model_fields
        near = difflib.get_close_matches(keys[-1], known, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(known)}"
        return f"unknown key {where!r}; {advice}"
    expected = f"expected {described}"
    if problem["type"] == "missing":
        return f"missing key {where!r}; {expected}"
    has_colon = problem["type"] == "string_type" and isinstance(problem["input"], dict)
    quotes = " (put text with a colon in quotes)" if has_colon else ""
    return f"{where}: {problem['msg'].removeprefix('Value error, ')}{quotes}; {expected}"


def _find_nested(annotation: Any) -> type[BaseModel] | None:
    """Return the record in the annotation of a field, such as that of a tuple's items; None if it has none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_find_nested, get_args(annotation))), None)


def _line(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int:
    """Return the line, from 1, of the key or list item `loc`, or of the nearest node around it."""
    line = 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
