"""What a run will take: near to what it then takes, from a preview that it continues, or from an earlier run."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from generator.estimate import COMMAND
from generator.estimation.forecast import Forecast
from tests.support import openai_server as fake
from tests.support.openai_server import Body, OpenAIServer, prompt, status
from tests.support.runs import Ended, Site, command, replying, some, stage, turn


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("COLUMNS", "200")
    return Site(tmp_path)


def estimate(site: Site, server: OpenAIServer, *more: str) -> Ended:
    return command(*site.arguments(server, *more), program=COMMAND)


def row(done: Ended, label: str = "all") -> list[float]:
    """Return the numbers in the row of a label: of `all` calls, computed, cached and completion tokens."""
    assert done.code == 0, done.err
    (line,) = re.findall(rf"^{label} +(.*)$", done.out, re.MULTILINE)
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,.]*", line)]


def money(done: Ended) -> float:
    """Return the dollars of an estimate."""
    assert done.code == 0, done.err
    (found,) = re.findall(r"^money +\$([\d,.]+)", done.out, re.MULTILINE)
    return float(found.replace(",", ""))


def taken(site: Site) -> list[float]:
    tokens = site.summary()["tokens"]
    return [site.summary()["lm_calls"], tokens["prompt"] - tokens["cached"], tokens["cached"], tokens["completion"]]


def test_a_preview_tells_what_the_run_takes_which_continues_it(site: Site, openai_server: OpenAIServer) -> None:
    settings = ["dialogs=10", "turns=2-3", "algorithm=single"]
    before = estimate(site, openai_server, *settings, "preview=5", "tokens_per_s=10")
    assert site.summary()["attempted"] == 5, "kept in the run folder"
    previewed = len(openai_server.bodies)
    assert row(before, "of it so far")[2] == previewed
    assert site.run(openai_server, *settings).code == 0
    site.check_calls(len(openai_server.bodies))
    assert site.summary()["lm_calls"] > previewed
    assert row(before) == pytest.approx(taken(site), rel=0.25)
    minutes = taken(site)[-1] / 10 / 60
    estimated, low, high, _ = row(before, "time")
    assert estimated == pytest.approx(minutes, rel=0.25) and low <= minutes <= high
    after = estimate(site, openai_server, *settings)
    assert row(after) == taken(site) and "between" not in after.out, "a run that is finished took what it took"


@pytest.mark.parametrize("answered", [6, 40])
def test_calls_of_unfinished_dialogs_are_spent(answered: int, site: Site) -> None:
    settings = ["dialogs=10", "algorithm=single", "lm.retries=0", "lm.concurrency=4"]
    with OpenAIServer(faults=lambda number, _: status(503) if number > answered else None) as server:
        assert site.run(server, *settings).code == 2
        tokens, calls = site.summary()["tokens"], site.summary()["lm_calls"]
        assert site.recorded() and (site.summary()["attempted"] > 0) == (answered > 6)
        so_far = row(estimate(site, server, *settings), "of it so far")
    assert so_far[2:] == [calls, tokens["prompt"], tokens["completion"]]


def test_a_finished_run_took_its_surplus_too(site: Site) -> None:
    """After four accepted dialogs, the others wait until one too many has begun."""
    rejects = replying(ask=lambda body: {"can_ask": turn(body) > 1 or not some(body, 0.75)})

    def hold(body: Body) -> bool:
        later = [call for call in server.bodies if stage(call) == "ask" and turn(call) > 1]
        return body in later[4:] and len(later) < 9

    settings = ["dialogs=8", "turns=2", "algorithm=single", "dedup=none", "lm.concurrency=32"]
    with OpenAIServer(rejects, hold=hold) as server:
        assert site.run(server, *settings).code == 0
        assert site.summary()["surplus"]["calls"]
        assert row(estimate(site, server, *settings)) == taken(site)


def test_an_interval_is_of_what_is_left_beside_what_is_done() -> None:
    draws = np.array([110, 100, *np.linspace(105, 120, 101)])
    found = Forecast(attempts=draws, left=10, accepted=10, stages=(), draws=draws, spread=3)
    value, low, high = found.range(draws)
    assert value == 110 and low and high and 100 < low < 105 and 120 < high < 200
    assert found.range(np.full(103, 100.0)) == (100, 100, 100)


def test_two_dialogs_are_too_few_for_an_interval(site: Site, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "dialogs=2", "algorithm=single").code == 0
    done = estimate(site, openai_server, "dialogs=50", "algorithm=single")
    assert row(done)[0] > 100 and "between" not in done.out and "too few" in done.out


def test_a_server_that_reports_no_cached_tokens_will_do(site: Site) -> None:
    with OpenAIServer(says_cached=False) as server:
        done = estimate(site, server, "dialogs=20", "turns=2", "algorithm=single", "preview=5")
    assert row(done)[2] == 0 and row(done, "between")[4:6] == [0, 0]


def test_what_a_server_does_not_report_is_unknown(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fake._completion
    monkeypatch.setattr(fake, "_completion", lambda *given, **more: whole(*given, **more) | {"usage": None})
    with OpenAIServer() as server:
        done = estimate(site, server, "dialogs=10", "algorithm=single", "preview=5", "tokens_per_s=10")
    assert len(row(done)) == 1, "calls alone"
    assert re.search("^money +unknown", done.out, re.MULTILINE) and re.search("^time +unknown", done.out, re.MULTILINE)


def test_without_anything_measured_it_is_a_guess(site: Site, openai_server: OpenAIServer) -> None:
    done = estimate(site, openai_server, "dialogs=10", "calls_per_min=10")
    calls, *_ = row(done)
    assert row(done, "time")[0] == pytest.approx(calls / 10, abs=0.1)
    assert "a guess" in done.out and "preview=5" in done.out
    assert not openai_server.bodies and not site.run_dir.exists()
    longer = estimate(site, openai_server, "dialogs=10", "turns=6")
    assert row(longer)[0] > 2 * calls, "the plan counts"


@pytest.mark.parametrize(
    ("judge", "calls", "completion"), [("correctness", 1, 150), ("p_true", 1, 1), ("rl_f", 2, 150)]
)
def test_a_guess_knows_the_calls_of_a_judge_and_which_reads_one_token_alone(
    judge: str, calls: int, completion: int, site: Site, openai_server: OpenAIServer
) -> None:
    settings = ("dialogs=20", "algorithm=single", f"judge={judge}")
    made, computed, cached, written = row(estimate(site, openai_server, *settings), "judge")
    answers, *read = row(estimate(site, openai_server, *settings), "answer")
    assert made == pytest.approx(calls * answers / 1.2, abs=1) and written == pytest.approx(completion * made, rel=0.01)
    assert (judge == "correctness") == ((computed + cached) / made == pytest.approx(sum(read[:2]) / answers, rel=0.01))


def test_an_earlier_run_tells_what_a_larger_and_longer_one_takes(site: Site, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "dialogs=8").code == 0
    earlier, site.run_dir = site.run_dir, site.folder / "larger"
    settings = ["dialogs=14", "turns=3-4"]
    done = estimate(site, openai_server, *settings, f"earlier_run={earlier}")
    assert not site.run_dir.exists()
    assert site.run(openai_server, *settings).code == 0
    calls, computed, cached, completion = row(done)
    assert [calls, computed + cached, completion] == pytest.approx(
        [taken(site)[0], sum(taken(site)[1:3]), taken(site)[3]], rel=0.25
    )


def test_an_earlier_run_of_another_kind_is_refused_and_one_of_another_model_named(
    site: Site, openai_server: OpenAIServer
) -> None:
    assert site.run(openai_server, "dialogs=2", "algorithm=single").code == 0
    earlier, site.run_dir = site.run_dir, site.folder / "other"
    refused = estimate(site, openai_server, "algorithm=multi", f"earlier_run={earlier}")
    assert refused.code == 2 and "algorithm.name=single (this run: multi)" in refused.error
    done = estimate(site, openai_server, "algorithm=single", "lm.model=larger", f"earlier_run={earlier}")
    assert "lm.model=test-model (this run: larger)" in done.err and row(done)
    refused = estimate(site, openai_server, "algorithm=single", "lm.model=small-1.5b", f"earlier_run={earlier}")
    assert "algorithm.reasoning=true (this run: false)" in refused.error


def test_a_run_that_stops_before_its_dialogs_says_so(site: Site, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "dialogs=2", "max_attempts=4").code == 0
    done = command(str(site.run_dir / "config.yaml"), "dialogs=2000", program=COMMAND)
    assert row(done, "dialogs")[:2] == [4, 4] and "max_attempts stops the run before 2,000" in done.out
    enough = command(str(site.run_dir / "config.yaml"), "dialogs=3", "max_attempts=null", program=COMMAND)
    assert row(enough, "dialogs")[0] == 3 and "max_attempts" not in enough.out


@pytest.mark.parametrize(("more", "read"), [({}, 0.01), ({"cache_read_input_token_cost": 0}, 0)])
def test_money_is_tokens_times_the_price_of_each_stages_model(
    more: dict[str, float], read: float, site: Site, openai_server: OpenAIServer
) -> None:
    prices = site.folder / "prices.json"
    free = {"input_cost_per_token": 0, "output_cost_per_token": 0}
    table = {"test-model": {"input_cost_per_token": 0.01, "output_cost_per_token": 0.02}, "judge": free, "user": free}
    table["test-model"] |= more
    prices.write_text(json.dumps(table), encoding="utf-8")
    others = [f"{name}.lm{rest}" for name in ("judge", "user") for rest in ("=openai", f".model={name}")]
    done = estimate(site, openai_server, "dialogs=10", *others, "user.rewording=true", f"prices={prices}")
    stages = [row(done, stage) for stage in ("rewrite", "answer", "evidence")]
    assert row(done, "reword") and row(done, "ask")
    expected = sum(0.01 * computed + read * cached + 0.02 * completion for _, computed, cached, completion in stages)
    assert money(done) == pytest.approx(expected, rel=0.001)


JUDGE = ("judge.lm=openai", "judge.lm.model=gpt-4o")


def test_models_without_a_price_are_left_out_and_named(site: Site, openai_server: OpenAIServer) -> None:
    judged = estimate(site, openai_server, *JUDGE)
    assert money(judged) > 0 and "without test-model, which has no price" in judged.out
    others = [each for each in site.arguments(openai_server, *JUDGE) if not each.startswith("lm")]
    embedded = command(*others, "lm=embedded", program=COMMAND)
    assert money(embedded) > 0 and "without" not in embedded.out


def test_a_file_has_prices_beside_litellms(site: Site, openai_server: OpenAIServer) -> None:
    prices = site.folder / "prices.json"
    prices.write_text('{"test-model": {"input_cost_per_token": 0, "output_cost_per_token": 0}}', encoding="utf-8")
    own = estimate(site, openai_server, *JUDGE, f"prices={prices}")
    assert money(own) == money(estimate(site, openai_server, *JUDGE)) and "without" not in own.out


def test_two_providers_of_one_model_have_their_own_prices(site: Site, openai_server: OpenAIServer) -> None:
    prices = site.folder / "prices.json"
    free, dear = ({"input_cost_per_token": each, "output_cost_per_token": each} for each in (0, 1))
    prices.write_text(json.dumps({"groq/gpt-4o": dear, "gpt-4o": free}), encoding="utf-8")
    models = ("lm.model=gpt-4o", "lm.api_base=https://api.groq.com/openai/v1", *JUDGE, f"prices={prices}")
    done = estimate(site, openai_server, *models)
    assert money(done) > sum(row(done, "answer")[1:]) and "gpt-4o: free" in done.out


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("prices={folder}/prices.json", "has no price of test-model"),
        ("prices={folder}/half.json", "test-model has no output_cost_per_token"),
        ("prices={folder}/documents.jsonl", "can't be read"),
        ("earlier_run={folder}", "not a run folder"),
        ("earlier_run={folder}/damaged", "can't be read"),
        ("preview=4", "preview"),
        ("preview=5 earlier_run={folder}", "leave one of them out"),
        ("tokens_per_s=0", "tokens_per_s"),
    ],
)
def test_what_cant_be_reckoned_with_is_one_line(setting: str, words: str, site: Site) -> None:
    (site.folder / "prices.json").write_text("{}", encoding="utf-8")
    (site.folder / "half.json").write_text('{"test-model": {"input_cost_per_token": 0}}', encoding="utf-8")
    (site.folder / "damaged").mkdir()
    (site.folder / "damaged" / "run.db").write_text("no database", encoding="utf-8")
    with OpenAIServer() as server:
        done = estimate(site, server, *setting.format(folder=site.folder).split())
        assert done.code == 2 and words in done.error
        assert not done.out and not server.bodies and not site.run_dir.exists()


def test_the_rules_of_another_language_count(site: Site, openai_server: OpenAIServer) -> None:
    english, german = (row(estimate(site, openai_server, f"dialog.language={code}"))[1] for code in ("en", "de"))
    assert german > english


def test_a_preview_plans_as_the_run_does_in_another_language(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """English sentences end behind “Am 3.”, so that another part was in focus."""
    text = " ".join(f"Am {day}. Mai bleibt das Amt wegen Umbaus geschlossen." for day in range(1, 31))
    settings = ["dialogs=5", "corpus.language=de", "algorithm=single", "turns=1", "max_attempts=5"]
    asked = []
    for name, first in (("run", []), ("previewed", ["preview=5"])):
        site, before = Site(tmp_path / name, [text]), len(openai_server.bodies)
        ended = estimate(site, openai_server, *settings, *first) if first else site.run(openai_server, *settings)
        assert ended.code in (0, 1), ended.err
        asked.append({prompt(body) for body in openai_server.bodies[before:] if stage(body) == "ask"})
    assert asked[0] == asked[1] != set()
