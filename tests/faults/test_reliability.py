"""docs/reliability.md: every fault in its table has tests, and they are there."""

import re
from pathlib import Path

import pytest

from generator.common.concurrency import LONGEST_WAIT_S
from generator.config.choices import compose_choice

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/\w+\.py)::(test_\w+)`", TEXT)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_fault_names_its_test() -> None:
    matrix = TEXT.partition("\n## The faults\n")[2].partition("\n## ")[0]
    rows = [line for line in matrix.splitlines() if line.startswith("| ")]
    faults = [row for row in rows if not row.startswith(("| fault |", "| --- |"))]
    assert len(faults) > 25
    assert [row for row in faults if "::test_" not in row.rpartition(" | ")[2]] == []


@pytest.mark.parametrize("model", ["openai", "vllm"])
def test_the_seconds_of_patience_are_those_of_the_settings(model: str) -> None:
    settings = compose_choice("lm", model)
    pauses = [min(settings["retry_wait_s"] * 2**n, LONGEST_WAIT_S) for n in range(settings["retries"])]
    assert f"{' + '.join(map(str, pauses))} = {sum(pauses)} s" in TEXT
    attempts, longest = settings["retries"] + 1, settings["timeout_s"]
    minutes = round((attempts * longest + sum(pauses)) / 60)
    assert f"{attempts} times {longest} s and {sum(pauses)} s, {minutes} minutes with `lm={model}`" in TEXT
