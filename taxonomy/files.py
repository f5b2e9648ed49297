"""Read question types and tasks from YAML files, ours and those of a user's folder; errors name file and line."""

import difflib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from generator.errors import YAML_SLIPS, TaxonomyError, describe
from taxonomy.tasks import Task, TaskExample
from taxonomy.types import Example, Exchange, Facet, QuestionType

OURS = Path(__file__).parent / "questions"
TASKS = Path(__file__).parent / "tasks"
Dimension = Literal["multi_turn", "answerability"]
# The models of a file's keys, by how deep a key is nested.
Levels = Sequence[type[BaseModel]]
N = TypeVar("N", QuestionType, Task)


def read_types(path: Path | None = None) -> dict[str, QuestionType]:
    """Return our types and those of the folder `path` (`*.yaml`, `*.yml`), which replace ours of the same name.

    Raises:
        TaxonomyError: the folder is missing or empty, a file can't be used, or two of its files have the same name.
    """
    return _read_all(OURS, path, (QuestionType, Example, Exchange), "question type")


def read_tasks(path: Path | None = None) -> dict[str, Task]:
    """Return our tasks and those of the folder `path`, as `read_types` does with question types.

    Raises:
        TaxonomyError: as `read_types`.
    """
    return _read_all(TASKS, path, (Task, TaskExample, Exchange), "task")


def read_facets(dimension: Dimension) -> dict[str, Facet]:
    """Return the values of a dimension by name."""
    files = sorted((OURS.parent / dimension).glob("*.yaml"))
    facets = (Facet.model_validate(yaml.safe_load(file.read_text(encoding="utf-8"))) for file in files)
    return {facet.name: facet for facet in facets}


def _read_all(
    ours: Path, path: Path | None, levels: tuple[type[N], *tuple[type[BaseModel], ...]], noun: str
) -> dict[str, N]:
    return _read_folder(ours, levels, noun) | (_read_folder(path.expanduser(), levels, noun) if path else {})


def _read_folder(folder: Path, levels: tuple[type[N], *tuple[type[BaseModel], ...]], noun: str) -> dict[str, N]:
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise TaxonomyError(f"taxonomy.path={folder}: {problem}; give a folder of {noun}s (*.yaml)")
    files = sorted(file for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    if not files:
        raise TaxonomyError(f"taxonomy.path={folder}: has no {noun} (*.yaml); add one, or leave it out")
    found: dict[str, N] = {}
    for file in files:
        each = cast(N, _read_file(file, levels, noun))
        if each.name in found:
            raise TaxonomyError(f"{file}: name: another file has the name {each.name!r} too; rename one")
        found[each.name] = each
    return found


def _read_file(file: Path, levels: Levels, noun: str) -> BaseModel:
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        data = loader.construct_document(node) if node else None
        return levels[0].model_validate(data)
    except (OSError, UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise TaxonomyError(f"{file}: can't be read as UTF-8 text ({describe(error)})") from None
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        raise TaxonomyError(f"{file}:{at.line + 1 if at else 1}: not valid YAML: {error.problem}") from None
    except ValidationError as error:
        # A misspelt key is also missing under its right name: report the unknown one.
        problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        raise TaxonomyError(f"{file}:{_line(node, problem['loc'])}: {_explain(problem, levels, noun)}") from None
    except YAML_SLIPS:
        reason = "an invalid date, number or boolean, or nested too deeply"
        raise TaxonomyError(f"{file}: not valid YAML: {reason}; put text in quotes") from None


class _Loader(yaml.SafeLoader):
    """YAML loader that rejects duplicate keys, of which PyYAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _explain(problem: Any, levels: Levels, noun: str) -> str:
    """Describe one of pydantic's errors: the key, what is wrong, what is expected."""
    where = ".".join(map(str, problem["loc"]))
    keys = [part for part in problem["loc"] if isinstance(part, str)]
    if not keys:
        required = (name for name, field in levels[0].model_fields.items() if field.is_required())
        return f"not a {noun}; give at least the keys {', '.join(required)}"
    known = levels[len(keys) - 1].model_fields
    if keys[-1] not in known:
        near = difflib.get_close_matches(keys[-1], known, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(known)}"
        return f"unknown key {where!r}; {advice}"
    expected = f"expected {known[keys[-1]].description}"
    if problem["type"] == "missing":
        return f"missing key {where!r}; {expected}"
    quotes = " (put text with a colon in quotes)" if isinstance(problem["input"], dict) else ""
    return f"{where}: {problem['msg'].removeprefix('Value error, ')}{quotes}; {expected}"


def _line(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int:
    """Return the line, from 1, of the key or list item `loc`, or of the nearest node around it."""
    line = 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
