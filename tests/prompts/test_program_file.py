"""Files of prompts that an optimiser wrote: which step they change, and which they don't fit."""

import json
from pathlib import Path

import pytest

from generator.dialogs.dedup import Repetition
from generator.dialogs.single import SingleDocumentDialog
from generator.errors import ConfigError
from generator.prompts.program_file import list_predictors, load_program
from judges.llm.correctness import CorrectnessJudge


def test_a_file_with_a_step_changes_that_step_alone(tmp_path: Path) -> None:
    program = SingleDocumentDialog(Repetition(0.8))
    program.answer.predict.signature = program.answer.predict.signature.with_instructions("Answer as a ferryman.")
    state = {"answer.predict": program.answer.predict.dump_state()}
    (tmp_path / "program.json").write_text(json.dumps(state), encoding="utf-8")
    other = SingleDocumentDialog(Repetition(0.8))
    load_program(tmp_path / "program.json", list_predictors(other))
    changed = {
        name
        for (name, one), two in zip(
            SingleDocumentDialog(Repetition(0.8)).named_predictors(), other.predictors(), strict=True
        )
        if one.signature.instructions != two.signature.instructions
    }
    assert changed == {"answer.predict"}
    with pytest.raises(ConfigError, match=r"judge\.correctness\.predict"):
        load_program(tmp_path / "program.json", list_predictors(None, [CorrectnessJudge("m")]))
    del state["answer.predict"]["signature"]["fields"][2]
    (tmp_path / "program.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"program\.json: its prompt of answer\.predict has other fields"):
        load_program(tmp_path / "program.json", list_predictors(other))
