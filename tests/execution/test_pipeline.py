"""A whole run: accepted dialogs, drops and counts, none of which depends on timing."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from generator.common.concurrency import Wanted, in_order
from generator.config.settings import near_duplicates
from generator.dialogs.dedup import Deduplicator
from generator.dialogs.generate import GeneratedDialog
from generator.execution.pipeline import Progress, Results, run_pipeline
from generator.execution.store import Store
from generator.prompts.signatures import FirstQuestion, GroundedAnswer
from generator.schema import Drop
from tests.support import openai_server as fake
from tests.support.openai_server import Body, Fault, OpenAIServer, Responder, prompt, words
from tests.support.records import make_dialog, make_turn
from tests.support.runs import Site, replying, some, stage, turn

TROUBLES: dict[str, Responder] = {
    "declined": replying(ask=lambda b: {"can_ask": not some(b, 0.7)}),
    "inconsistent": replying(answer=lambda b: {"consistent": not some(b, 0.3)}),
    "scaffolding": replying(ask=lambda b: {"question": "What does the passage say?"} if some(b, 0.4) else {}),
    "unusable": replying(answer=lambda b: "I would rather not." if some(b, 0.5) else {}),
    "incorrect": replying(judge=lambda b: {"label": "incorrect" if some(b, 0.5) else "correct"}),
    "unjudged": replying(judge=lambda b: "Well …" if some(b, 0.7) else {}),
    "repeated": replying(ask=lambda b: {"question": f"Where is {some(b, 0.5)} harbour office?"}),
}


def all_is_accounted_for(site: Site, server: OpenAIServer) -> None:
    """The ledger holds, and the run knows of every call, but for those in flight when the last dialog was accepted."""
    site.check_ledger()
    site.check_calls(len(server.bodies))
    assert set(server.finished.values()) == {1}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_every_attempt_is_accepted_or_dropped(trouble: str, tmp_path: Path) -> None:
    site, algorithm = Site(tmp_path), "multi" if trouble in ("declined", "unusable", "repeated") else "single"
    with OpenAIServer(TROUBLES[trouble]) as server:
        ended = site.run(server, "dialogs=8", f"algorithm={algorithm}", "turns=2-3", "dedup=none")
        all_is_accounted_for(site, server)
    assert ended.code == 0, ended.err
    summary = site.summary()
    assert summary["accepted"] == 8, "exactly as many as asked for"
    assert summary["complete"]
    if trouble in ("declined", "inconsistent", "scaffolding", "unusable"):
        assert site.drops()
        assert all(drop["text"] for drop in site.drops()), "with the offending text"
    if trouble == "incorrect":
        assert summary["dropped_pairs"]["judge"]["judged incorrect by correctness"] > 0
    if trouble == "unjudged":
        assert 0 < summary["unjudged_pairs"] < summary["pairs"]
        assert not summary["dropped_pairs"], "a judge that fails is not a low score"


def test_a_reply_is_asked_for_in_the_order_of_its_signature(site: Site) -> None:
    """On the wire too: servers hold a model to the order of the schema's keys, and reasoning comes before results."""
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=1", "turns=1", "algorithm=single", "taxonomy=direct").code == 0
    asked = {
        stage(body): list(body["response_format"]["json_schema"]["schema"]["properties"]) for body in server.bodies
    }
    assert asked["answer"] == list(GroundedAnswer.output_fields)
    assert asked["ask"] == [name for name in FirstQuestion.output_fields if name != "can_ask"]
    assert asked["judge"][-1] == "label"


def test_the_judge_is_on_unless_it_is_turned_off(site: Site) -> None:
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=1").code == 0
        verdicts = [v for dialog in site.dialogs() for t in dialog["turns"] for v in t["verdicts"]]
        judges = {("correctness", "correct", "test-model"), ("grounding", "correct", "")}
        assert {(v["judge"], v["label"], v["model"]) for v in verdicts} == judges
        assert {row["verdict"] for row in site.rows()} == {"correct"}
        assert site.run(server, "dialogs=1", "judge=none", "fresh=true").code == 0
    assert {row["verdict"] for row in site.rows()} == {"none"}


async def run_alone(
    folder: Path, results: Results, dialogs: int, on_progress: Callable[[Progress], None] = lambda _: None
) -> None:
    """Run the pipeline until so many of these results are accepted."""
    dedup = Deduplicator(near_duplicates().model_copy(update={"between_dialogs": False}))
    with Store(folder, {}) as store:
        stop = asyncio.Event()
        await run_pipeline(
            results=results, dedup=dedup, keep="pairs", store=store, dialogs=dialogs, on_progress=on_progress, stop=stop
        )


def test_dialogs_that_wait_for_an_earlier_one_are_reported(tmp_path: Path) -> None:
    """The first of six dialogs ends once the others are reported, of which every other one is dropped."""
    reports: list[Progress] = []

    async def main() -> None:
        others = asyncio.Event()

        async def make(number: int) -> GeneratedDialog:
            if number == 0:
                await others.wait()
            name = f"{number}"
            lost = Drop(dialog_id=name, scope="dialog", stage="ask", reason="no question")
            dialog = None if number % 2 else make_dialog(make_turn(1, query=f"Where is pier {number}?"), id=name)
            return GeneratedDialog(dialog_id=name, dialog=dialog, drops=(lost,) * (dialog is None), usage=())

        def on_progress(progress: Progress) -> None:
            reports.append(progress)
            if progress.waiting == 5:
                others.set()

        results = partial(in_order, make, range(6), 2)
        lead = run_alone(tmp_path, lambda wanted, stop: results(stop, wanted), 9, on_progress)
        await asyncio.wait_for(lead, timeout=300)

    asyncio.run(main())
    assert Progress(0, 0, 9, 0, waiting=5, passed=2, running=1) in reports
    assert reports[-1] == Progress(3, 6, 9, 0)


def test_plans_are_started_by_the_share_accepted_so_far(tmp_path: Path) -> None:
    """Of 20 dialogs wanted none is accepted yet; eight rejected ones halve the share, one that waits counts whole."""
    most: list[int] = []

    async def results(
        wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        def start(*waiting: GeneratedDialog) -> None:
            most.append(next(running for running in count() if not wanted(running, waiting)))

        start()
        for number in range(8):
            lost = Drop(dialog_id=f"{number}", scope="dialog", stage="ask", reason="no question")
            yield number, GeneratedDialog(dialog_id=f"{number}", dialog=None, drops=(lost,), usage=())
        start()
        start(GeneratedDialog(dialog_id="9", dialog=make_dialog(make_turn(1), id="9"), drops=(), usage=()))

    asyncio.run(run_alone(tmp_path, results, 20))
    assert most == [20, 40, 38]


def test_max_attempts_ends_a_run_that_loses_too_much(site: Site) -> None:
    with OpenAIServer(replying(answer=lambda b: {"consistent": not some(b, 0.8)})) as server:
        ended = site.run(server, "dialogs=10", "max_attempts=12", "turns=1")
        all_is_accounted_for(site, server)
        summary = site.summary()
        assert ended.code == 0
        assert summary["attempted"] == 12
        assert 0 < summary["accepted"] < 10
        assert "max_attempts" in ended.err
        assert site.run(server, "dialogs=10", "max_attempts=15", "turns=1").code == 0
        assert site.summary()["attempted"] == 15, "a higher one continues the run"


# Judged incorrect: the second of three turns


def second_of_three(body: Body) -> dict[str, object]:
    return {"label": "incorrect" if turn(body) == 2 else "correct"}


@pytest.mark.parametrize(("keep", "kept"), [("pairs", {1, 3}), ("prefix", {1})])
def test_pairs_judged_incorrect_are_removed(keep: str, kept: set[int], site: Site) -> None:
    with OpenAIServer(replying(judge=second_of_three)) as server:
        settings = ("dialogs=4", "taxonomy=direct", "turns=3")
        assert site.run(server, *settings, f"judge.filter={keep}").code == 0
        all_is_accounted_for(site, server)
    assert {row["turn"] for row in site.rows()} == kept
    assert all(len(dialog["turns"]) == 3 for dialog in site.dialogs()), "the dialog stays whole"
    lost = Counter(drop["turn"] for drop in site.drops() if drop["scope"] == "pair")
    assert lost == dict.fromkeys({1, 2, 3} - kept, 4)
    answers = {t["answer"] for dialog in site.dialogs() for t in dialog["turns"]}
    assert all(drop["text"] in answers for drop in site.drops() if drop["scope"] == "pair")


def test_a_dialog_with_an_incorrect_answer_can_be_dropped_whole(site: Site) -> None:
    with OpenAIServer(replying(judge=lambda b: {"label": "incorrect" if b["seed"] % 2 else "correct"})) as server:
        assert site.run(server, "dialogs=2", "taxonomy=direct", "judge.filter=dialog").code == 0
        all_is_accounted_for(site, server)
    assert {v["label"] for dialog in site.dialogs() for t in dialog["turns"] for v in t["verdicts"]} == {"correct"}
    assert site.summary()["accepted"] == 2
    lost = [drop for drop in site.drops() if drop["stage"] == "judge"]
    assert lost and all(drop["scope"] == "dialog" for drop in lost)
    for drop in lost:  # the whole dialog can be read there, with the judges' verdicts
        assert drop["text"].count("User: ") == drop["text"].count("Agent: ") > 1
        assert "correctness: incorrect: " in drop["text"]


# Near-duplicates

OPENING = "When does the harbour office of Lindholm open on Sundays?"


def test_a_first_question_that_was_there_already(site: Site) -> None:
    same = replying(ask=lambda b: {"question": OPENING} if turn(b) == 1 else {})
    with OpenAIServer(same, delay_s=lambda b: 0.2 if b["seed"] % 2 else 0) as server:
        assert site.run(server, "algorithm=single", "dialogs=3", "max_attempts=5").code == 0
        all_is_accounted_for(site, server)
        assert site.summary()["dropped"] == {"dedup": {"exact duplicate: first question": 4}}
        (kept,) = site.dialogs()
        repeated = [drop for drop in site.drops() if drop["scope"] == "dialog"]
        assert repeated and all(OPENING in drop["text"] and kept["id"] in drop["text"] for drop in repeated)
        assert site.run(server, "algorithm=single", "dialogs=3", "max_attempts=5", "dedup=none", "fresh=true").code == 0
        assert kept["id"] == site.dialogs()[0]["id"], "the first plan's is kept, whatever came in first"
        assert site.summary()["accepted"] == 3


def test_what_a_test_file_holds_is_not_kept(tmp_path: Path, site: Site) -> None:
    tests = tmp_path / "benchmark.jsonl"
    tests.write_text(json.dumps({"input": "Something else"}) + "\n" + json.dumps({"input": OPENING}) + "\n")
    mixed = replying(ask=lambda b: {"question": OPENING} if turn(b) == 1 and b["seed"] % 2 else {})
    with OpenAIServer(mixed) as server:
        assert (
            site.run(server, "algorithm=single", "dialogs=4", "max_attempts=40", f"dedup.against=[{tests}]").code == 0
        )
        all_is_accounted_for(site, server)
    assert OPENING not in (site.run_dir / "dialogs.jsonl").read_text()
    drops = [drop for drop in site.drops() if drop["scope"] == "dialog"]
    assert drops
    assert all("contamination" in drop["reason"] and f"{tests}:2" in drop["text"] for drop in drops)


def test_a_run_that_is_continued_remembers_what_it_has(site: Site) -> None:
    same = replying(ask=lambda b: {"question": OPENING} if turn(b) == 1 else {})
    with OpenAIServer(same) as server:
        assert site.run(server, "algorithm=single", "dialogs=1").code == 0
        site.run(server, "algorithm=single", "dialogs=2", "max_attempts=3")
    assert site.summary()["accepted"] == 1


# Timing decides nothing


def test_concurrency_and_delays_change_nothing(tmp_path: Path) -> None:
    """With drops and duplicates of all kinds on the way."""
    trouble = replying(
        ask=lambda b: {"question": "Does the passage say so?"} if some(b, 0.2) else {},
        answer=lambda b: {"consistent": not some(b, 0.15)},
        judge=lambda b: {"label": "incorrect" if some(b, 0.3) else "correct"},
    )
    chance = random.Random(0)
    seen = []
    for concurrency, delay in ((1, 0.0), (32, 0.1)):
        site = Site(tmp_path / f"{concurrency} {delay}")
        with OpenAIServer(trouble, delay_s=lambda _, delay=delay: chance.uniform(0, delay)) as server:  # type: ignore[misc]
            ended = site.run(server, "dialogs=24", "turns=2-3", f"lm.concurrency={concurrency}")
            all_is_accounted_for(site, server)
            assert server.peak <= concurrency
        assert ended.code == 0
        assert site.summary()["attempted"] > 24
        seen.append(site.made())
    assert seen[0] == seen[1]
    assert not any(str(tmp_path).encode() in content for content in seen[0][0].values()), "no path is in the data"


def test_what_a_run_began_too_many_of_is_used_by_a_larger_one(tmp_path: Path) -> None:
    """Dialogs that are rejected end at once; after four accepted ones, the others wait until too many have begun."""
    rejects = replying(ask=lambda b: {"can_ask": turn(b) > 1 or not some(b, 0.75)})

    def hold(body: Body) -> bool:
        later = [call for call in server.bodies if stage(call) == "ask" and turn(call) > 1]
        return body in later[4:] and len(later) < 9

    grown, whole = (Site(tmp_path / name) for name in ("grown", "whole"))
    with OpenAIServer(rejects, hold=hold) as server:
        settings = ("algorithm=single", "turns=2", "dedup=none", "lm.concurrency=32")
        first = grown.run(server, *settings, "dialogs=8")
        assert first.code == 0, first.err
        all_is_accounted_for(grown, server)
        surplus, recorded, cut = grown.summary()["surplus"], grown.recorded(), len(server.bodies)
        assert surplus["dialogs"] > 0 and surplus["calls"] > 0
        assert f"{surplus['calls']} calls" in first.out
        assert grown.run(server, *settings, "dialogs=12").code == 0
        assert grown.recorded() - recorded >= len(server.bodies) - cut - 32, "no recorded call is repeated"
        assert whole.run(server, *settings, "dialogs=12", "lm.concurrency=1").code == 0
    assert whole.summary()["surplus"] == {"calls": 0, "prompt": 0, "completion": 0, "dialogs": 0}
    assert grown.made() == whole.made()


# The model's context


def lengthy(tmp_path: Path) -> Site:
    chance = random.Random(2)
    return Site(tmp_path, [" ".join(words(chance, 120) for _ in range(40)) for _ in range(12)])


@pytest.mark.parametrize(("characters_per_token", "context"), [(2, 9200), (8, 2500)])
def test_a_prompt_that_would_not_fit_is_never_sent(
    characters_per_token: int, context: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dialog ends where its next prompt would not fit. How long a token is, it learns from the dialog's own calls.

    So does the judge, which is asked whatever fits.
    """
    monkeypatch.setattr(fake, "_TOKEN", characters_per_token)
    site = lengthy(tmp_path)
    with OpenAIServer() as server:
        ended = site.run(server, "dialogs=6", "turns=4", f"lm.context={context}", "retriever.k=3", "taxonomy=direct")
        all_is_accounted_for(site, server)
        assert ended.code == 0
        longest = max(len(prompt(body)) // characters_per_token for body in server.bodies)
    assert 0.6 * context < longest < context - 256
    assert not site.summary()["unjudged_pairs"]
    cut = [dialog for dialog in site.dialogs() if dialog["ended"].startswith("context: ")]
    assert cut
    assert all(0 < len(dialog["turns"]) < 4 for dialog in cut)
    drops = {drop["dialog_id"]: drop for drop in site.drops() if drop["stage"] == "context"}
    assert {dialog["id"] for dialog in cut} <= set(drops)
    for dialog in cut:
        drop = drops[dialog["id"]]
        assert (drop["scope"], drop["turn"]) == ("turn", len(dialog["turns"]) + 1)
        assert str(context) in drop["text"]


def test_a_server_that_counts_no_tokens_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fake._completion
    monkeypatch.setattr(fake, "_completion", lambda *given, **more: whole(*given, **more) | {"usage": None})
    with OpenAIServer() as server:
        ended = Site(tmp_path).run(server, "dialogs=1")
    assert "calls, the server doesn't report tokens" in ended.out + ended.err
    assert "cost of a pair" in ended.out and "0 prompt tokens" not in ended.out


def test_a_prompt_that_the_server_finds_too_long_ends_the_dialog_too(site: Site) -> None:

    def overflow(_: int, body: Body) -> Fault | None:
        return fake.overflow if stage(body) == "answer" and turn(body) == 2 else None

    with OpenAIServer(faults=overflow) as server:
        assert site.run(server, "dialogs=3", "turns=3", "taxonomy=direct").code == 0
        assert max(Counter(fake.digest(body) for body in server.bodies).values()) == 1, "not asked again"
    site.check_ledger()
    for dialog in site.dialogs():
        assert len(dialog["turns"]) == 1
        assert dialog["ended"].startswith("context: ")
    assert site.summary()["dropped_turns"].keys() == {"context"}
    lost = [drop for drop in site.drops() if drop["stage"] == "context"]
    assert lost and all("maximum context length is 4096" in drop["text"] for drop in lost)
