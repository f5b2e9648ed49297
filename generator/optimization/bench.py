"""Where candidates are tried: DSPy's optimisers call modules synchronously, from threads of their own.

The calls of a candidate run in the event loop that the models were opened in; the optimiser's thread waits for them.
Each is in the store before its reply is used, by its example, so the same command makes none of them twice.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import dspy

from generator.dialogs.journal import Journal
from generator.errors import Rejected
from generator.execution.store import Store
from generator.models.endpoints import Endpoint
from generator.models.lm import Clients, LanguageModel
from generator.optimization.data import Example
from generator.optimization.targets import Outcome, Target
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import use_model
from generator.prompts.replies import SignatureType

T = TypeVar("T")


class Stopped(Exception):
    """The work was interrupted."""


@dataclass
class Connection:
    """A model that is open: its settings and its clients."""

    endpoint: Endpoint
    clients: Clients


@dataclass
class Bench:
    """The target, its model and the one that reflects, and the store of their calls.

    Attributes:
        failure: why nothing more can be tried.
    """

    target: Target
    metrics: Sequence[str]
    model: Connection
    reflection: Connection
    store: Store
    seed: int
    failure: BaseException | None = None
    _running: dict[object, asyncio.Task[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._free = asyncio.Semaphore(self.model.endpoint.concurrency)

    def __deepcopy__(self, memo: object) -> "Bench":
        return self  # candidates are copies of a program, all on one bench

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the event loop and return its result, for a thread that isn't the loop's.

        Raises:
            Rejected: as the work raised it.
            Exception: anything else, which is kept, and raised by each later call: an optimiser counts an exception
                as a bad score and goes on.
        """
        if self.failure is not None:
            work.close()
            raise self.failure
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except Rejected:
            raise
        except BaseException as error:
            self.failure = self.failure or error
            self._loop.call_soon_threadsafe(self.stop, error)
            raise

    def stop(self, why: BaseException) -> None:
        """Cancel what runs, and start nothing more."""
        self.failure = self.failure or why
        for task in self._running.values():
            task.cancel()

    async def once(self, key: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of work, which is shared if it is running: DSPy starts slow examples a second time."""
        if key not in self._running:
            self._running[key] = asyncio.create_task(work())
            self._running[key].add_done_callback(partial(self._end, key))
        result: T = await asyncio.shield(self._running[key])
        return result

    def _end(self, key: object, task: asyncio.Task[Any]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # read here, since after a failure nobody may wait for it

    async def attempt(self, step: dspy.Module, signatures: Mapping[str, SignatureType], example: Example) -> Outcome:
        """Try an example with a step; the rules of its prompts have the step's own instructions.

        The calls are added to DSPy's trace, if there is one.
        """
        tasks = self.target.tasks and {**self.target.tasks, **signatures}

        async def work() -> tuple[Outcome, list[Any]]:
            trace: list[Any] = []
            async with self._free:
                with self._asking(self.model, min(example.keys, default=example.id), example.id, tasks, trace):
                    return await self.target.attempt(step, example, self.metrics), trace

        key = example.id, *(signature.instructions for signature in signatures.values())
        outcome, calls = await self.once(key, work)
        if dspy.settings.trace is not None:
            dspy.settings.trace.extend(calls)
        return outcome

    @contextmanager
    def _asking(
        self,
        model: Connection,
        about: str,
        name: str,
        tasks: Mapping[str, SignatureType] | None = None,
        trace: list[Any] | None = None,
    ) -> Iterator[LanguageModel]:
        adapter = SharedPrefixAdapter(model.endpoint.structured_outputs, tasks)
        with model.clients.for_dialog(about) as client:
            lm = LanguageModel(client, Journal(self.store, name), self.seed)
            with use_model(lm, adapter, trace):
                yield lm

    @contextmanager
    def reflecting(self) -> Iterator[LanguageModel]:
        """Yield the model that reflects, in a context in which modules call it."""
        with self._asking(self.reflection, "reflection", "reflection") as lm:
            yield lm


class Student(dspy.Module):
    """A target as DSPy's optimisers call one: synchronously, with an example, and with its calls in the trace."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench, self.step = bench, bench.target.step

    def signatures(self) -> dict[str, SignatureType]:
        """Return the signatures of the target by the names of their tasks."""
        return {
            f"{self.bench.target.name}.{name}".removesuffix(".predict"): predictor.signature
            for name, predictor in self.step.named_predictors()
        }

    def forward(self, example: Example) -> dspy.Prediction:
        return self.bench.wait(self.aforward(example))

    async def aforward(self, example: Example) -> dspy.Prediction:
        """Return the outcome of an example."""
        return dspy.Prediction(**(await self.bench.attempt(self.step, self.signatures(), example))._asdict())
