"""Runs on a real Ray cluster of this machine: the same data as locally, whatever becomes of a worker or the driver."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from generator.common.concurrency import one_by_one
from generator.corpora.library import Library
from generator.dialogs.generate import GeneratedDialog
from generator.errors import RunError
from generator.execution.ray.cluster import Cluster, as_run_error
from generator.execution.ray.executor import RayExecutor, RaySettings
from generator.retrievers.hybrid import HybridSettings
from generator.schema import Document
from tests.retrievers.test_hybrid import SETTINGS
from tests.support import openai_server as fake
from tests.support.encoders import WordModel, word_model
from tests.support.openai_server import Body, OpenAIServer, words
from tests.support.runs import Site, replying, some, until
from tests.support.tasks import reply

__all__ = ["word_model"]

installed = pytest.mark.skipif(find_spec("ray") is None, reason="ray isn't installed (extra ray)")

IN_FLIGHT = 4
DIALOGS = 16
# Prompts that are refused and dialogs that are too short: that plans fail is what makes order matter.
REPLIES = replying(ask=lambda body: {"can_ask": not some(body, 0.2)})

# A head node that ends with the process that has started it. Its processors are numbers: each worker wants one.
HEAD = """
import sys, ray
started = ray.init(address="local", num_cpus=8, include_dashboard=False, object_store_memory=200 << 20,
    log_to_driver=False)
print(started.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""
# Two nodes with a processor each, of which the second dies at the end of a line.
NODES = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
second = cluster.add_node(**node)
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.remove_node(second, allow_graceful=False)
print("dead", flush=True)
sys.stdin.read()
"""
# What workers find in place of sentence-transformers: they are processes of their own, which no fixture reaches.
STAND_IN = """
from tests.support.encoders import WordModel
class SentenceTransformer(WordModel):
    def __init__(self, name, **_):
        super().__init__()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a cluster."""
    with nodes(HEAD, tmp_path_factory.mktemp("packages")) as head:
        assert head.stdout is not None
        yield head.stdout.readline().strip()


@contextmanager
def nodes(program: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the nodes of a cluster, which find stand-ins for packages in the folder."""
    if find_spec("ray") is None:
        pytest.skip("ray isn't installed (extra ray)")
    for name, text in {
        "sentence_transformers": STAND_IN,
        "huggingface_hub": "class HfApi: pass",
        "transformers": "",
        "transformers.utils": "",
        "transformers.utils.logging": "def disable_progress_bar(): pass\nset_verbosity_error = disable_progress_bar",
    }.items():
        place = folder / name.replace(".", "/")
        place.mkdir(parents=True)
        (place / "__init__.py").write_text(text, encoding="utf-8")
    root = Path(__file__).parents[2]
    changes = {
        "PYTHONPATH": f"{folder}:{root}",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",  # a token would lie in the home directory
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # 127.0.0.1 only
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OMP_NUM_THREADS": "1",
    }
    head = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | changes,
    )
    try:
        yield head
    finally:
        head.terminate()
        head.wait()


@pytest.fixture(params=["multi", "single"])
def algorithm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def on_ray(cluster: str) -> tuple[str, ...]:
    return ("executor=ray", f"executor.address={cluster}", "executor.workers=2")


def settings(algorithm: str, dialogs: int = DIALOGS) -> tuple[str, ...]:
    return (f"algorithm={algorithm}", f"lm.concurrency={IN_FLIGHT}", f"dialogs={dialogs}", "turns=1-3", "seed=3")


def undisturbed(folder: Path, algorithm: str) -> Site:
    """Return the same run, made in one process."""
    place = Site(folder)
    with OpenAIServer(REPLIES) as server:
        assert place.run(server, *settings(algorithm)).code == 0
    assert place.drops()
    return place


def calling_workers(server: OpenAIServer) -> list[int]:
    """Return the processes that make dialogs and are connected to the server: no other run's, none just starting."""
    port = f":{int(server.url.split(':')[2].split('/')[0]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]]
    sockets = {f"socket:[{line[9]}]" for line in lines if line[2].endswith(port)}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            makes_dialogs = (process / "cmdline").read_bytes().startswith(b"ray::Worker")
            if makes_dialogs and any(str(file.readlink()) in sockets for file in (process / "fd").iterdir()):
                found.append(int(process.name))
        except OSError:  # it has ended, or closed the file
            continue
    return found


@pytest.mark.engines
def test_a_worker_is_killed_and_the_data_is_that_of_a_local_run(cluster: str, algorithm: str, tmp_path: Path) -> None:
    """Calls that the dead worker had finished are read back; what was on the way then is all that comes twice."""
    local, mauled = undisturbed(tmp_path / "undisturbed", algorithm), Site(tmp_path / "mauled")
    with OpenAIServer(REPLIES, delay_s=0.05) as server:
        process = mauled.start(server, *settings(algorithm), *on_ray(cluster))
        until(lambda: server.finished.total() >= 30, process, seconds=120)
        os.kill(random.Random(algorithm).choice(calling_workers(server)), signal.SIGKILL)
        ended = mauled.ended(process)
        repeated = server.finished.total() - len(server.finished)
        assert server.peak <= IN_FLIGHT * 2  # calls of the dead worker are still being answered
    assert ended.code == 0, ended.err
    assert mauled.made() == local.made()
    assert repeated < 30, "what was finished before the kill is read back, however slow the machine is"
    assert ended.err.count("a worker has died") == 1
    assert "ray" not in ended.err.lower(), "nothing of its own on the terminal"


@pytest.mark.engines
def test_a_node_dies_and_the_others_finish_the_run(tmp_path: Path) -> None:
    local, mauled = undisturbed(tmp_path / "undisturbed", "multi"), Site(tmp_path / "mauled")
    died = threading.Event()
    with nodes(NODES, tmp_path / "packages") as cluster, OpenAIServer(REPLIES) as server:
        server.hold = lambda _: len(server.bodies) > 20 and not died.is_set()
        assert cluster.stdin is not None and cluster.stdout is not None
        process = mauled.start(server, *settings("multi"), *on_ray(cluster.stdout.readline().strip()))
        until(lambda: server.in_flight == IN_FLIGHT, process)  # of both workers
        print(file=cluster.stdin, flush=True)
        assert cluster.stdout.readline() == "dead\n"
        until(lambda: len(calling_workers(server)) < 2, process)  # a worker outlives its node by a moment
        died.set()
        ended = mauled.ended(process)
    assert ended.code == 0, ended.err
    assert mauled.made() == local.made()
    assert ended.err.count("a worker has died") == 1


@pytest.mark.engines
def test_a_driver_that_is_stopped_goes_on_with_another_executor(cluster: str, tmp_path: Path) -> None:
    local, moved = undisturbed(tmp_path / "undisturbed", "single"), Site(tmp_path / "moved")
    with OpenAIServer(REPLIES, delay_s=0.05) as server:
        assert moved.run(server, *settings("single", dialogs=2)).code == 0
        before = server.finished.total()
        process = moved.start(server, *settings("single"), *on_ray(cluster))
        until(lambda: server.finished.total() >= before + 15, process, seconds=120)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        ended = moved.ended(process)
        assert ended.code == 130
        assert "SIGTERM" not in ended.err, "Ray's own handler would abort the driver after three seconds"
        assert "same command continues" in ended.err.splitlines()[-1]
        moved.check_ledger()
        until(lambda: not server.in_flight)
        made, known = server.finished.total(), moved.recorded()
        assert 2 <= moved.summary()["accepted"] < DIALOGS
        assert 0 <= made - known <= IN_FLIGHT
        assert moved.run(server, *settings("single")).code == 0
        assert server.finished.total() - len(server.finished) <= made - known
    assert moved.made() == local.made()


class Crowd:
    """In place of the generator of a worker: its dialogs end once all are under way, or stay without an end."""

    def __init__(self, size: int) -> None:
        self._size, self._arrived, self._all = size, 0, asyncio.Event()

    def plan(self, number: int) -> SimpleNamespace:
        return SimpleNamespace(dialog_id=str(number))

    async def generate(self, plan: SimpleNamespace, calls: object) -> GeneratedDialog:
        self._arrived += 1
        if self._arrived == self._size:
            self._all.set()
        await self._all.wait()
        return GeneratedDialog(dialog_id=plan.dialog_id, dialog=None, drops=(), usage=())


@asynccontextmanager
async def crowd(workers: int, size: int) -> AsyncIterator[Crowd]:
    yield Crowd(size)


@pytest.mark.engines
def test_a_worker_has_as_many_dialogs_under_way_as_its_share(cluster: str) -> None:
    """More than Ray lets an actor do at a time unless it is told."""
    size = 1100
    store = SimpleNamespace(attempted=0, all_calls=lambda: iter(()))
    plans: Any = SimpleNamespace(open=partial(crowd, size=size), store=store, numbers=range(size), at_once=size)

    async def run(executor: RayExecutor) -> int:
        async with asyncio.timeout(120), aclosing(executor.results(plans, lambda *_: True, asyncio.Event())) as results:
            return len([number async for number, _ in results])

    with RaySettings(workers=1, address=cluster, gpus=0).open() as executor:
        assert asyncio.run(run(executor)) == size


@pytest.mark.engines
def test_what_ends_a_run_in_a_worker_is_one_line(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the cluster was started in another folder than the command, whose paths are relative."""

    def gone(number: int, body: Body) -> fake.Fault | None:
        return fake.status(401) if number > 10 else None

    place = Site(tmp_path / "place")
    with OpenAIServer(REPLIES, gone) as server:
        monkeypatch.chdir(tmp_path)
        paths = ("corpus.path=place/documents.jsonl", "cache_dir=place/cache")
        ended = place.run(server, *settings("multi"), *on_ray(cluster), *paths, "executor.workers=1")
        assert ended.code == 2
        assert "check the key" in ended.error
        assert place.recorded() >= 9
        server.faults = ()
        assert place.run(server, *settings("multi")).code == 0
        assert server.finished.total() == len(server.finished)
    place.check_ledger()


@pytest.mark.engines
@installed
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("executor.address=127.0.0.1:9", "no Ray cluster at this address"),
        ("executor.gpus=999", "too few for executor.workers=2"),  # Ray itself would wait for them for ever
    ],
)
def test_a_missing_cluster_or_gpu_is_one_line(change: str, words: str, tmp_path: Path) -> None:
    """In a process of its own: Ray can't be with one cluster, started here, and then with another."""
    place = Site(tmp_path / "place")
    with OpenAIServer() as server:
        ended = place.ended(place.start(server, *settings("single"), "executor=ray", change))
    assert ended.code == 2
    assert ended.error.startswith(f"{change}: ") and words in ended.error
    assert not place.run_dir.exists(), "nothing is begun before all is there"


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "127.0.0.1", "local"])
def test_an_address_is_that_of_a_head_node(address: str) -> None:
    with pytest.raises(ValidationError, match="HOST:PORT"):
        RaySettings(workers=1, address=address, gpus=0)


def test_a_server_that_is_no_head_node_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """For instance Ray's own dashboard, a port beside."""
    silent = SimpleNamespace(init=lambda **_: threading.Event().wait())
    monkeypatch.setattr("generator.execution.ray.cluster._import_ray", lambda local: silent)
    monkeypatch.setattr("generator.execution.ray.cluster._ANSWER_S", 0.1)
    with OpenAIServer() as server:
        address = f"127.0.0.1:{server.port}"
        with pytest.raises(RunError, match=f"executor.address={address}: no Ray cluster"):
            Cluster(address, 1, 0)


def test_a_part_that_cannot_be_sent_to_workers_is_one_line() -> None:
    with RaySettings(workers=2, gpus=0).open() as executor, pytest.raises(RunError, match=r"_thread\.lock"):
        list(executor.spread(partial(isinstance, threading.Lock()), [range(1), range(2)]))


@installed
def test_a_package_that_a_node_lacks_is_named() -> None:
    from ray.exceptions import RayError

    with pytest.raises(RunError, match=r"No module named 'my_parts'.*on every node"), as_run_error():
        raise RayError("The actor died in its creation\n  File ...\nModuleNotFoundError: No module named 'my_parts'")


def test_without_the_extra_its_name_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    place = Site(tmp_path / "place")
    with OpenAIServer() as server:
        ended = place.run(server, *settings("single"), "executor=ray")
    assert ended.code == 2
    assert "uv sync --inexact --extra ray" in ended.error
    assert not place.run_dir.exists()


@pytest.mark.engines
def test_an_index_is_the_same_whoever_builds_it(
    cluster: str, word_model: WordModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.retrievers.dense.CHUNK", 7)
    monkeypatch.setattr("generator.retrievers.bm25.DOCUMENTS", 3)
    chance = random.Random(1)
    texts = [" ".join(words(chance, 120) for _ in range(chance.choice((1, 6)))) for _ in range(20)]
    documents = [Document(id=f"d{n}", title=f"T{n}", url="", text=text) for n, text in enumerate(texts)]
    built = HybridSettings(**SETTINGS | {"passage_tokens": 80, "overlap": 10, "model": "encoder", "window": 30})

    def index(folder: Path, spread: object) -> dict[str, bytes]:
        library = Library.open("c", "f" * 12, lambda: documents, folder, 80, 10)
        built.build(library, spread)  # type: ignore[arg-type]
        kinds = (".npy", ".f32", ".json")
        return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.suffix in kinds}

    local = index(tmp_path / "local", one_by_one)
    word_model.encoded.clear()
    with RaySettings(workers=2, address=cluster, gpus=0).open() as executor:
        assert index(tmp_path / "ray", executor.spread) == local
    assert word_model.encoded == [""], "passages were encoded by the workers"
    assert len(local) > 5


@pytest.mark.engines
def test_dialogs_of_tasks_are_those_of_a_local_run(cluster: str, tmp_path: Path) -> None:
    tasks = ("taxonomy=mt_bench_101", "judge=task", "lm.context=16384")
    local, spread = Site(tmp_path / "local"), Site(tmp_path / "spread")
    with OpenAIServer(reply) as server:
        assert local.run(server, *settings("whole"), *tasks).code == 0
        assert spread.run(server, *settings("whole"), *tasks, *on_ray(cluster)).code == 0
    assert spread.made() == local.made()
