"""Dialogs under way are as many as the server's cache holds, and the older ones go first."""

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from generator.common.concurrency import in_order
from generator.models import admission as module
from generator.models.admission import Admission, Place
from generator.models.client import HttpClient
from generator.models.completions import capacity_of
from generator.models.corrections import RateTrials
from generator.models.lm import Clients
from generator.schema import Usage
from tests.support.clients import request
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.runs import Site

CALLS = 8
# In tokens, as the server counts them: what all prompts begin with, a dialog's own, and what each call appends.
RULES, OWN, APPENDED = 400, 400, 100
LONGEST = RULES + OWN + CALLS * APPENDED
# A cache that holds so many dialogs.
ROOM = 10
CACHE = RULES + ROOM * (LONGEST - RULES)


def text(key: object, tokens: int) -> str:
    return "".join(random.Random(str(key)).choices("abcdefghijklmnopqrstuvwxyz ", k=4 * tokens))


async def dialog(clients: Clients, number: int) -> int:
    """Lead a dialog whose prompts grow, as ours do."""
    said = text("rules", RULES) + f"dialog {number}." + text(number, OWN)
    with clients.for_dialog(f"document {number}") as client:
        for call in range(CALLS):
            await client.chat(request(said, max_tokens=16))
            said += text((number, call), APPENDED)
    return number


def lead(server: OpenAIServer, dialogs: int | None = None, count: int = 60, concurrency: int = 32) -> Admission:
    """Lead so many dialogs through a client; return its admission."""

    async def main() -> Admission:
        endpoint = server.endpoint(concurrency=concurrency, dialogs=dialogs, context=4096)
        async with endpoint.open(Path()) as client:
            work = in_order(partial(dialog, client), range(count), endpoint.most_dialogs, asyncio.Event())
            numbers = [number async for number, _ in work]
            assert numbers == list(range(count))
            assert isinstance(client, HttpClient)
            return client.admission

    return asyncio.run(main())


def dialogs_of(bodies: Sequence[Body]) -> list[int]:
    return [int(re.findall(r"dialog (\d+)\.", prompt(body))[0]) for body in bodies]


def most_under_way(server: OpenAIServer) -> int:
    """Return the most dialogs at a time that had begun and not ended, by the order in which calls arrived."""
    numbers = dialogs_of(server.bodies)
    first = {number: place for place, number in reversed(list(enumerate(numbers)))}
    last = {number: place for place, number in enumerate(numbers)}
    return max(sum(first[n] <= place <= last[n] for n in first) for place in range(len(numbers)))


def most_in_forty_calls(bodies: Sequence[Body]) -> int:
    """Return the most different dialogs in any block of forty calls."""
    numbers = dialogs_of(bodies)
    return max(len(set(numbers[place : place + 40])) for place in range(0, len(numbers), 40))


def short(_: Body) -> str:
    return "Yes."


# The number


@pytest.mark.parametrize("says_cached", [True, False])
def test_as_many_dialogs_as_the_cache_holds(says_cached: bool) -> None:
    """And hardly anything that was cached is computed again, though 40 at a time could be."""
    with OpenAIServer(short, cache=CACHE, metrics=True, says_cached=says_cached, delay_s=0.005) as server:
        admission = lead(server)
        assert ROOM / 2 <= admission.limit < 2 * ROOM
        assert server.cached_tokens / server.prompt_tokens > 0.75


def test_a_number_that_is_set_is_kept_though_the_cache_holds_fewer() -> None:
    with OpenAIServer(short, cache=CACHE, metrics=True, delay_s=0.005) as server:
        lead(server, dialogs=40)
        assert server.cached_tokens / server.prompt_tokens < 0.65


def test_a_large_cache_is_no_limit() -> None:
    for settings in ({"cache": 1_000_000, "metrics": True}, {"says_cached": False}):
        with OpenAIServer(short, hold=lambda _: server.peak < 32, **settings) as server:  # type: ignore[arg-type]
            assert lead(server).limit == 40
            assert server.peak == 32


def test_what_replies_say_is_enough() -> None:
    """A server without metrics: the number falls until what a dialog has sent stays cached, and not to nothing."""
    with OpenAIServer(short, cache=RULES + 8 * (LONGEST - RULES), delay_s=0.005) as server:
        admission = lead(server, count=100)
        assert 2 <= admission.limit <= 16
        half = len(server.bodies) // 2
        assert most_in_forty_calls(server.bodies[half:]) <= 24


def answer_forty(admission: Admission, calls: int) -> Iterator[None]:
    """Answer calls of those of forty dialogs that are under way; of no prompt much is cached."""
    places = [admission.enter() for _ in range(40)]
    for call in range(1, calls):
        for place in places[: admission.limit]:
            body = b"x" * 1000 * call
            admission.record(place, body, Usage(calls=1, prompt=len(body) // 4, cached=len(body) // 10, completion=10))
        yield


def test_a_loss_that_is_not_the_numbers_fault_does_not_lower_it_for_good() -> None:
    """As at a hosted service, which sends calls to machines of its choice."""
    admission = Admission("http://127.0.0.1:1/v1", 40)
    limits = [admission.limit for _ in answer_forty(admission, 120)]
    assert min(limits) < 40 == limits[-1]


def test_calls_that_were_answered_slowly_for_a_while_halve_no_number() -> None:
    trials = RateTrials()
    for comparison in range(40):
        trials.compare(64 * trials.factor / (2 if comparison % 9 == 1 else 1))
    assert trials.factor == 1


@pytest.mark.parametrize("best", [8, 40])
def test_without_any_word_calls_a_minute_decide(best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that answers as many calls with 8 dialogs as with 40, and of one that answers fewer."""
    now = 0.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    admission = Admission("http://127.0.0.1:1/v1", 40)
    places = [admission.enter() for _ in range(40)]
    limits = []
    for call in range(6000):
        now += 1 / min(admission.limit, best)
        admission.record(places[call % admission.limit], b"x" * 1000, Usage(calls=1, prompt=250, completion=10))
        limits.append(admission.limit)
    if best == 40:
        assert sum(limits) / len(limits) > 38, "trials are short and rare"
    else:
        assert 0.7 * best <= limits[-1] < 20


@pytest.mark.parametrize(
    ("metrics", "tokens"),
    [
        ('vllm:cache_config_info{block_size="16",num_gpu_blocks="2912"} 1.0', 46_592),
        (
            'vllm:cache_config_info{block_size="32",engine="0",kv_cache_size_tokens="5000",num_gpu_blocks="200"} 1.0',
            5000,
        ),
        ('vllm:cache_config_info{block_size="16",kv_cache_size_tokens="None",num_gpu_blocks="10"} 1.0', 160),
        ('vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="10"} 1.0', None),
        ('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0', None),
        ("# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.", None),
    ],
)
def test_the_size_of_a_cache_is_read(metrics: str, tokens: int | None) -> None:
    assert capacity_of(f"# TYPE x gauge\n{metrics}\nprocess_open_fds 12\n") == tokens
    assert capacity_of(f"{metrics}\n{metrics}\n") == (tokens and 2 * tokens), "of two engines"


# The order


def test_a_number_that_is_set_is_never_exceeded_and_the_older_go_first() -> None:
    with OpenAIServer(short, delay_s=0.002) as server:
        lead(server, dialogs=5, count=30, concurrency=16)
        assert most_under_way(server) == 5
    numbers = dialogs_of(server.bodies)
    first = [numbers.index(number) for number in range(30)]
    assert first == sorted(first)


def test_a_lower_limit_makes_the_youngest_wait() -> None:
    admission = Admission("http://127.0.0.1:1/v1", 4)
    places = [admission.enter() for _ in range(6)]

    def may_call() -> list[int]:
        return [place for place in range(6) if places[place].may_call.is_set()]

    assert may_call() == [0, 1, 2, 3]
    admission.set_capacity(200, context=100)
    assert may_call() == [0, 1]
    admission.leave(places[0])
    assert may_call() == [0, 1, 2], "what waits for a place that is left doesn't wait for ever"


def test_a_dialog_that_moves_keeps_its_age() -> None:
    one, other = Admission("one", 1), Admission("other", 1)
    moving: Place = one.enter()
    younger = other.enter()
    one.leave(moving)
    assert other.enter(moving.age).may_call.is_set()
    assert not younger.may_call.is_set()


# A run


def test_the_data_is_the_same_at_any_limit(tmp_path: Path) -> None:
    seen, reports = [], []
    for number, (cache, settings) in enumerate(
        [(None, "lm.dialogs=1"), (None, "lm.dialogs=40"), (30_000, "lm.dialogs=null")]
    ):
        site = Site(tmp_path / str(number))
        with OpenAIServer(cache=cache, metrics=True) as server:
            ended = site.run(server, "dialogs=8", "algorithm=single", "lm.concurrency=16", settings)
            assert ended.code == 0, ended.err
        seen.append(site.data())
        reports.append(ended.err)
        assert 0 < site.summary()["cached_share"]["stages"]["answer"] <= 1
        assert len(site.summary()["cached_share"]["over_time"]) == 1
        assert "over time" in ended.out
    assert seen[0] == seen[1] == seen[2]
    assert re.search(r"(?m)room for \d+ dialogs of [\d,]+ tokens$", reports[2])


@pytest.mark.parametrize(("own", "warned"), [(600, True), (40, False)])
def test_what_is_lost_of_dialogs_is_a_warning_where_it_is_much_of_their_prompts(
    own: int, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    admission, said = Admission("server", 8), b"r" * (1000 - own) + b"o" * own
    for _ in range(8):
        place = admission.enter()
        for _ in range(60):  # the rules are cached, and what the dialog sent before isn't
            admission.record(place, said, Usage(calls=1, prompt=1000, cached=1000 - own, completion=10))
        admission.leave(place)
    assert ("warning: " in capsys.readouterr().err) == warned


def test_no_room_is_reported_for_a_number_that_a_warning_calls_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the cache's size the number is a guess, which fell from 40 here."""
    admission, told = Admission("server", 40), ""
    for _ in answer_forty(admission, 200):
        told += capsys.readouterr().err
        if told and admission.limit < 40:
            break
    admission.close()
    assert "are too many" in told and "room for" not in capsys.readouterr().err


def test_a_share_that_collapses_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(short, cache=8000, metrics=True) as server:
        lead(server, dialogs=30)
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert all(cure in warning for cure in ("lm.dialogs", "retriever.k", "fp8", "memory"))
