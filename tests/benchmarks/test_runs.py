"""Benchmarks that lead real parts by a script: they still come to their end."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import candidates, estimate, memory, prefix_cache


def test_a_run_with_a_model_that_answers_at_once_keeps_its_dialogs() -> None:
    calls, seconds, peak = memory.measure_run("single", 2)
    assert calls and seconds and peak


@pytest.mark.parametrize(("algorithm", "calls"), [("single", 300), ("multi", 380)])
def test_the_scripted_dialogs_pass_all_checks(algorithm: str, calls: int, tmp_path: Path) -> None:
    dialogs, _ = asyncio.run(prefix_cache.record(algorithm, tmp_path))
    assert sum(map(len, dialogs)) == calls


@pytest.mark.parametrize("main", [candidates.main, estimate.main])
def test_a_missing_run_is_one_line(
    main: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmark", "outputs/absent"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "outputs/absent" in capsys.readouterr().err
