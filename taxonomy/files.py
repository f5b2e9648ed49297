"""Question types from YAML files: ours, and those of a user's own folder. Whatever is wrong in a file, and where.

Knows nothing of mixes.
"""

import difflib
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ValidationError

from generator.errors import YAML_SLIPS, TaxonomyError, describe
from taxonomy.types import Example, Exchange, Facet, QuestionType

OURS = Path(__file__).parent / "questions"
Dimension = Literal["multi_turn", "answerability"]

# What a key belongs to, by how many keys lead to it.
_LEVELS: tuple[type[BaseModel], ...] = (QuestionType, Example, Exchange)


def read_types(path: Path | None = None) -> dict[str, QuestionType]:
    """Our types, with those of the folder `path` (`*.yaml`, `*.yml`) added; a type of yours replaces ours of its name.

    Raises:
        TaxonomyError: the folder is missing or holds no type, a file can't be used, or two of its files have one name.
    """
    return _read_folder(OURS) | (_read_folder(path.expanduser()) if path else {})


def read_facets(dimension: Dimension) -> dict[str, Facet]:
    """What a question can be in a dimension, by name."""
    files = sorted((OURS.parent / dimension).glob("*.yaml"))
    facets = (Facet.model_validate(yaml.safe_load(file.read_text(encoding="utf-8"))) for file in files)
    return {facet.name: facet for facet in facets}


def _read_folder(folder: Path) -> dict[str, QuestionType]:
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise TaxonomyError(f"{folder}: {what}; taxonomy.path is a folder of question-type files (*.yaml)")
    files = sorted(file for file in folder.iterdir() if file.suffix in (".yaml", ".yml"))
    if not files:
        raise TaxonomyError(f"{folder}: holds no question type (*.yaml); add one, or leave taxonomy.path out")
    types: dict[str, QuestionType] = {}
    origin: dict[str, Path] = {}
    for file in files:
        kind = _read_file(file)
        if kind.name in types:
            raise TaxonomyError(f"{file}: name: {origin[kind.name].name} has the name {kind.name!r} too; rename one")
        types[kind.name], origin[kind.name] = kind, file
    return types


def _read_file(file: Path) -> QuestionType:
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        data = loader.construct_document(node) if node else None
        return QuestionType.model_validate(data)
    except (OSError, UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise TaxonomyError(f"{file}: can't be read as UTF-8 text ({describe(error)})") from None
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        raise TaxonomyError(f"{file}:{at.line + 1 if at else 1}: not valid YAML: {error.problem}") from None
    except ValidationError as error:
        # A misspelt key is missing under its right name too, so the unknown one is the problem to tell.
        problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        raise TaxonomyError(f"{file}:{_line(node, problem['loc'])}: {_explain(problem)}") from None
    except YAML_SLIPS:
        what = "a date, number or truth value is none, or it is nested too deeply"
        raise TaxonomyError(f"{file}: not valid YAML: {what}; put text in quotes") from None


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where plain YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _explain(problem: Any) -> str:
    """One of pydantic's errors as: key, what is wrong, what would be right."""
    where = ".".join(map(str, problem["loc"]))
    keys = [part for part in problem["loc"] if isinstance(part, str)]
    if not keys:
        required = (name for name, field in QuestionType.model_fields.items() if field.is_required())
        return f"not a question type; give at least the keys {', '.join(required)}"
    known = _LEVELS[len(keys) - 1].model_fields
    if keys[-1] not in known:
        near = difflib.get_close_matches(keys[-1], known, 1)
        right = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        return f"unknown key {where!r}; {right}"
    right = f"it is {known[keys[-1]].description}"
    if problem["type"] == "missing":
        return f"missing key {where!r}; {right}"
    quotes = " (put text with a colon in quotes)" if isinstance(problem["input"], dict) else ""
    return f"{where}: {problem['msg']}{quotes}; {right}"


def _line(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int:
    """The line, from 1, of the key or list item `loc`, or of the nearest thing around it that is there."""
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
