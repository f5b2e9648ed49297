"""Files with the prompts of steps and judges, as DSPy's `save` writes them: instructions and examples by name."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.saving import get_dependency_versions

from generator.common.atomic_files import write_text
from generator.common.console import note
from generator.errors import ConfigError

_METADATA = "metadata"


def list_predictors(program: dspy.Module | None, judges: Iterable[Any] = ()) -> dict[str, dspy.Predict]:
    """Return the predictors of a program by name (`answer.predict`), and of judges (`judge.correctness.predict`)."""
    found = dict(program.named_predictors()) if program else {}
    for judge in judges:
        if isinstance(judge, dspy.Module):
            found |= {f"judge.{judge.name}.{name}": predictor for name, predictor in judge.named_predictors()}
    return found


def read_program(path: Path) -> dict[str, Any]:
    """Return the states of the predictors in a file, by name.

    Raises:
        ConfigError: it can't be read, or isn't such a file.
    """
    try:
        states = json.loads(path.read_bytes())
        return {name: {**state, "lm": None} for name, state in states.items() if name != _METADATA}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise _unusable(path, error) from error


def load_program(path: Path, predictors: Mapping[str, dspy.Predict]) -> None:
    """Give predictors the prompts that a file has for them; the others stay as they are.

    A model that was saved with a program is left out: it would be asked past the run's bookkeeping.

    Raises:
        ConfigError: it isn't such a file, or has none of these predictors.
    """
    states = read_program(path)
    if not states.keys() & predictors.keys():
        raise ConfigError(
            f"dspy_program={path}: not a program of what runs here: it has prompts of {', '.join(states) or 'none'}, "
            f"and {', '.join(predictors) or 'no model'} is asked"
        )
    if unasked := ", ".join(sorted(states.keys() - predictors.keys())):
        note(f"dspy_program={path}: its prompts of {unasked} are left out, which nothing here asks")
    for name in states.keys() & predictors.keys():
        try:
            same = _list_fields(states[name]) == _list_fields(predictors[name].dump_state())
            if same:  # else DSPy would put what a file says of its fields on others, by their place
                predictors[name].load_state(states[name])
        except Exception as error:  # DSPy raises what it meets
            raise _unusable(path, error) from error
        if not same:
            raise ConfigError(
                f"dspy_program={path}: its prompt of {name} has other fields than this version's; optimise it again"
            )


def _list_fields(state: Mapping[str, Any]) -> list[str]:
    return [field["prefix"] for field in state["signature"]["fields"]]


def write_program(path: Path, states: Mapping[str, Any]) -> None:
    """Write the states of predictors as DSPy's `save` does."""
    content = {**states, _METADATA: {"dependency_versions": get_dependency_versions()}}
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _unusable(path: Path, error: Exception) -> ConfigError:
    if isinstance(error, FileNotFoundError):
        return ConfigError(f"dspy_program={path}: no such file; give one that DSPy's `save` wrote")
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return ConfigError(f"dspy_program={path}: not a program file; give one that DSPy's `save` wrote ({why})")
