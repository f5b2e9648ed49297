"""The benchmark of answers: what counts as right, and a run of it."""

import pytest

from benchmarks.answers import is_right, main
from tests.support.openai_server import OpenAIServer


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It takes no cars, but I don't have information on parking.", True),
        ("It takes no cars.", False),
        ("I don't know about cars; park at the inn.", False),
    ],
)
def test_an_answer_is_right_by_its_words(answer: str, right: bool) -> None:
    assert is_right(answer, [r"\bno cars\b", "unknown"], ["inn"]) is right


@pytest.mark.parametrize("reasoning", ["true", "false"])
def test_it_asks_in_both_ways(
    openai_server: OpenAIServer, reasoning: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["lm=openai", "lm.model=test-model", f"lm.api_base={openai_server.url}", "lm.context=8000"]
    monkeypatch.setattr("sys.argv", ["answers", *settings, f"algorithm.reasoning={reasoning}"])
    main()
    printed = capsys.readouterr().out
    assert "of 36" in printed and "And in winter?" in printed
    forms = {"response_format" in body for body in openai_server.bodies if body["messages"][1:]}
    assert forms == (set() if reasoning == "true" else {False})


MODEL = ("lm=openai", "lm.model=test-model", "lm.context=8000")


@pytest.mark.parametrize(
    "settings",
    [["lm.nothing=1"], [*MODEL, "lm.retries=-1"], [*MODEL, "lm.retries=0", "lm.api_base=http://127.0.0.1:1/v1"]],
)
def test_an_error_is_one_line(
    settings: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["answers", *settings])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
