"""The table at the end of a run."""

from typing import Any

import pytest

from generator.output.outcome import closing_table
from generator.output.summary import Share, Summary, Surplus, Tokens
from generator.schema import Cost


def share(name: str, stage: str) -> Share:
    return Share(type=name, target=0.5, achieved=0.25, stage=stage, turns=1)


def summary(**more: Any) -> Summary:
    fields: dict[str, Any] = {name: {} for name in Summary.model_fields}
    fields |= dict.fromkeys(("attempted", "pairs", "unjudged_pairs", "lm_calls", "skipped", "seconds"), 0)
    fields |= {"evidence_covers": None, "guessable": (), "complete": True, "ranked": False}
    fields |= {"candidates_cost": Cost(), "surplus": Surplus(), "tokens": Tokens(prompt=0, cached=0, completion=0)}
    return Summary(**(fields | more))


def test_types_are_told_by_stage_and_tokens_in_thousands(capsys: pytest.CaptureFixture[str]) -> None:
    types = {"factoid (first)": share("factoid", "first"), "factoid (later)": share("factoid", "later")}
    tokens = Tokens(prompt=1234567, cached=0, completion=9876)
    closing_table(summary(accepted=1, question_types=types, tokens=tokens, lm_calls=1))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "first questions  factoid 25% (target 50%)" in lines
    assert "later questions  factoid 25% (target 50%)" in lines
    assert any("1,234,567 prompt tokens" in line for line in lines)
    closing_table(summary(accepted=0, question_types=types))
    assert "target" not in capsys.readouterr().out, "of nothing there are no shares"
