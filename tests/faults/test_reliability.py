"""docs/reliability.md: the waiting times that it states are those of the settings."""

from pathlib import Path

import pytest

from generator.common.concurrency import LONGEST_WAIT_S
from generator.config.choices import compose_choice

ROOT = Path(__file__).parents[2]
TEXT = " ".join((ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("model", ["openai", "vllm"])
def test_the_seconds_of_patience_are_those_of_the_settings(model: str) -> None:
    settings = compose_choice("lm", model)
    pauses = [min(settings["retry_wait_s"] * 2**n, LONGEST_WAIT_S) for n in range(settings["retries"])]
    assert f"{' + '.join(map(str, pauses))} = {sum(pauses)} s" in TEXT
    attempts, longest = settings["retries"] + 1, settings["timeout_s"]
    minutes = round((attempts * longest + sum(pauses)) / 60)
    assert f"{attempts} times {longest} s and {sum(pauses)} s, {minutes} minutes with `lm={model}`" in TEXT
