"""The parts of a run, as its settings make them."""

from pathlib import Path

import pytest

from generator.components import Components, WorkerSpec
from generator.errors import ConfigError
from generator.retrievers.bm25 import Bm25Settings
from taxonomy import load as load_taxonomy
from tests.support.settings import settings


def test_its_prompts_hold_the_rules_of_their_own_task_alone(tmp_path: Path) -> None:
    assert set(components(tmp_path).tasks) == set()
    assert {"ask_first", "answer", "correctness"} <= set(components(tmp_path, "lm=openai", "lm.model=m").tasks)


def test_without_reasoning_four_candidates_are_drawn(tmp_path: Path) -> None:
    plain = "algorithm.reasoning=false"
    chosen = (), (plain,), (plain, "algorithm.candidates=2")
    assert [components(tmp_path, *each).candidates for each in chosen] == [1, 4, 2]


def test_a_retriever_that_is_not_returned_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bm25Settings, "open", lambda *_: None)
    with pytest.raises(ConfigError, match="returned no retriever"):
        components(tmp_path)


def components(folder: Path, *given: str) -> Components:
    made = settings(*given, f"cache_dir={folder}")
    return Components(WorkerSpec(made, made.corpus.fingerprint(), load_taxonomy(made.taxonomy), 1000, ()))
