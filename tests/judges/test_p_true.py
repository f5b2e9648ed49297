"""The judge by the probability of Yes: what it asks, how that and the words decide, and servers that tell none."""

from pathlib import Path

import pytest

from generator.schema import Turn, Verdict
from judges.__main__ import COMMAND
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.records import load_dialogs, make_dialog, make_passage, make_turn, write_dialogs
from tests.support.runs import Ended, Site, command

FERRY = make_passage("p", "Of ferries: dogs travel free on the ferry to Holm, and bicycles cost 20 crowns.")


def turn(answer: str, query: str = "What do dogs pay on the ferry?") -> Turn:
    return make_turn(1, query=query, answer=answer)


def judge(folder: Path, server: OpenAIServer, *turns: Turn) -> tuple[Ended, list[Verdict]]:
    """Return how the command ended, and the verdict on each of the turns, which are dialogs of their own."""
    dialogs = [make_dialog(each, id=f"d{number}", passages=(FERRY,)) for number, each in enumerate(turns)]
    source, run = write_dialogs(folder / "in.jsonl", *dialogs), folder / "run"
    done = command("judge=p_true", f"input={source}", f"run_dir={run}", *server.settings(), program=COMMAND)
    judged = load_dialogs(run / "dialogs.jsonl") if (run / "dialogs.jsonl").exists() else []
    return done, [dialog.turns[0].verdicts[0] for dialog in judged]


def sure_of(*, free: float, others: float = 0.5) -> OpenAIServer:
    """Return a server that finds so probable that a statement with “free” is supported, or another."""

    def likely(body: Body) -> dict[str, float]:
        yes = free if "free" in prompt(body).rpartition("Statement:")[2] else others
        return {" Yes": yes * 0.6, "yes": yes * 0.3, "No": (1 - yes) * 0.9, "Maybe": 0.1}

    return OpenAIServer(likely=likely)


def test_it_reads_one_token_of_a_short_reply(tmp_path: Path) -> None:
    with sure_of(free=0.99) as server:
        done, (verdict,) = judge(tmp_path, server, turn("Dogs travel free on the ferry to Holm."))
        (body,) = server.bodies
    assert done.code == 0, done.err
    assert (verdict.judge, verdict.label, verdict.decides) == ("p_true", "correct", True)
    assert verdict.score > 0.9 and "0.990" in verdict.explanation
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)
    assert "[1] Of ferries: dogs" in prompt(body) and "What do dogs pay" not in prompt(body)


@pytest.mark.parametrize(("yes", "label"), [(0.999, "correct"), (0.05, "incorrect")])
def test_where_the_words_are_the_passages_the_model_decides(yes: float, label: str, tmp_path: Path) -> None:
    with sure_of(free=yes) as server:
        _, (verdict,) = judge(tmp_path, server, turn("Bicycles travel free on the ferry to Holm."))
    assert verdict.label == label


def test_where_the_model_is_undecided_the_words_decide(tmp_path: Path) -> None:
    with sure_of(free=0.5, others=0.5) as server:
        _, (verdict,) = judge(tmp_path, server, turn("Bicycles cost 35 crowns on the ferry to Holm."))
    assert verdict.label == "incorrect" and "35" in verdict.explanation


def test_its_statement_is_what_a_response_claims(tmp_path: Path) -> None:
    short, partial = (
        turn("Yes, free.", "Do dogs travel free?"),
        turn("Dogs travel free on the ferry. I don't know about cats."),
    )
    with sure_of(free=0.99) as server:
        judge(tmp_path, server, short, partial)
        asked = sorted(prompt(body).rpartition("Statement:")[2].strip() for body in server.bodies)
    assert asked == ["Do dogs travel free? Yes, free.", "Dogs travel free on the ferry."]


def test_a_refusal_claims_nothing_that_a_model_could_be_sure_of(tmp_path: Path) -> None:
    with OpenAIServer(likely=lambda _: {"No": 1.0}) as server:
        _, (verdict,) = judge(tmp_path, server, turn("I don't have information on cats.", "What do cats pay?"))
    assert (verdict.label, verdict.score, server.bodies) == ("correct", 1, [])


def test_a_reply_that_is_neither_is_no_verdict(tmp_path: Path) -> None:
    with OpenAIServer(likely=lambda _: {"<think>": 0.9}) as server:
        _, (verdict,) = judge(tmp_path, server, turn("Dogs travel free on the ferry to Holm."))
    assert (verdict.label, verdict.score) == ("unjudged", None)


def test_a_server_without_probabilities_is_one_line(tmp_path: Path, openai_server: OpenAIServer) -> None:
    done, _ = judge(tmp_path, openai_server, turn("Dogs travel free on the ferry to Holm."))
    assert done.code == 2 and "logprobs" in done.error and "another judge" in done.error


def test_pairs_of_a_run_are_kept_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site = Site(tmp_path)
    with OpenAIServer(likely=lambda _: {"No": 1.0}) as server:
        done = site.run(server, "judge=p_true", "dialogs=2", "max_attempts=2")
    assert done.code == 1 and "no answer judged correct" in done.err
