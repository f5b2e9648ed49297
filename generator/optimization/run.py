"""One optimisation in its folder: data, scores before, search, scores after, program and card."""

import asyncio
import hashlib
import time
import warnings
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import dspy
from omegaconf import DictConfig
from pydantic import Field

from generator.common.atomic_files import write_text
from generator.common.concurrency import run_async, together
from generator.common.console import count_noun, note
from generator.common.interruption import interruptible, unless
from generator.config.job import RunFailed
from generator.config.parts import build_choice, plain, validate
from generator.config.settings import hash_files, hash_models, identity
from generator.execution.session import Session, Work
from generator.execution.store import Store
from generator.models.endpoints import Endpoint
from generator.optimization.bench import Bench, Connection, Stopped, Student
from generator.optimization.card import Card, Comparison, compare, count_unlabelled
from generator.optimization.data import Example, find_groups, read_examples, split_examples
from generator.optimization.search import optimise
from generator.optimization.settings import OptimizeSettings
from generator.optimization.targets import JudgeTarget, Outcome, find_metrics, find_target
from generator.output.tables import print_table
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.program_file import list_predictors, load_program, read_program, write_program
from generator.prompts.signatures import prompt_version
from generator.schema import Record

_PARTS = ("train", "validation", "held_out")
PROGRAM, CARD = "program.json", "card.json"


class Reflection(Record):
    """The model that rewrites instructions."""

    lm: Endpoint | None = Field(
        default=None, description="Model that rewrites, such as `reflection.lm=openai`; null: the model of `lm`."
    )


class Optimization(OptimizeSettings):
    """All settings of `python -m generator.optimize`."""

    lm: Endpoint
    reflection: Reflection

    @property
    def folder(self) -> Path:
        return self.run_dir or Path("outputs/prompts") / f"{self.target}-{Path(self.lm.model).name}-{self.seed}"


def load_optimization(cfg: DictConfig) -> Optimization:
    """Return the settings of a composed configuration.

    Raises:
        ConfigError: one of them is wrong.
    """
    data = plain(cfg)
    data["lm"] = build_choice("lm", data.get("lm"))
    own = data["reflection"].get("lm")
    data["reflection"] = Reflection(lm=build_choice("lm", own) if own else None)
    return validate(Optimization, data)


def run_optimization(settings: Optimization, configuration: str) -> None:
    """Optimise, or continue, and print the card.

    Raises:
        GroundedDialogsError: it can't begin or go on.
        RunFailed: no reply could be used.
        KeyboardInterrupt: it was interrupted; finished calls are kept.
    """
    dspy.disable_logging()
    warnings.filterwarnings("ignore", module="dspy")  # that GEPA is experimental
    session = OptimizationRun(settings, configuration)
    (card,), interrupted = run_async(interruptible(session.go))
    if card is None or (interrupted and session.card is None):  # an earlier session may have left a card
        raise KeyboardInterrupt
    rows = [[name, str(each.before), str(each.after), str(each.difference)] for name, each in card.scores.items()]
    print_table(rows, ("held out", "before", "after", "difference"))
    print(f"\n{card.verdict}; see card.md")
    print(f"program: {session.folder / PROGRAM}", flush=True)
    if card.failed:
        note(f"error: {card.verdict}")
        raise RunFailed(1)


class Ended(NamedTuple):
    """The outcome of a session: the card, or None if it was interrupted."""

    card: Card | None

    @property
    def complete(self) -> bool:
        return self.card is not None


class OptimizationRun(Session[Ended]):
    """An optimisation that is ready to start or to continue.

    Raises:
        GroundedDialogsError: a setting or the data can't be used; the run folder has not been touched.
    """

    def __init__(self, settings: Optimization, configuration: str) -> None:
        self.settings, self.configuration = settings, configuration
        self.folder, self.fresh = settings.folder, settings.fresh
        self.card: Card | None = None
        self.best: Student | None = None
        self.target = find_target(settings.target, settings.lm.model)
        self.metrics = find_metrics(self.target, settings.metric)
        self.predictors = self._list_predictors(self.target.step)
        self.states: dict[str, Any] = {}
        if settings.dspy_program is not None:
            self.states = read_program(settings.dspy_program)
            if self.states.keys() & self.predictors.keys():
                load_program(settings.dspy_program, self.predictors)
        examples = self.target.select(read_examples(settings.data, self.target.criteria(self.metrics)), self.metrics)
        self.split = split_examples(examples, {part: getattr(settings, part) for part in _PARTS}, settings.seed)
        used = [example._replace(keys=frozenset()) for part in self.split for example in part]
        program = [settings.dspy_program] if settings.dspy_program else []
        signatures = [predictor.signature for predictor in self.predictors.values()]
        contents = {
            "data (content)": hashlib.sha256(repr(used).encode()).hexdigest()[:16],
            "dspy_program (content)": hash_files("dspy_program", program),
            "prompt_version": prompt_version(signatures, SharedPrefixAdapter(tasks=self.target.tasks).rules),
            **hash_models({"lm": settings.lm, "reflection.lm": settings.reflection.lm}),
        }
        self.identity = identity(settings, contents)

    def is_finished(self, store: Store) -> bool:
        card = self.write_results(store).card
        return card is not None and card.budget >= self.settings.calls

    def progress(self, summary: Ended) -> tuple[int, int]:
        return int(summary.complete), 1

    async def open(self, stack: AsyncExitStack) -> Work:
        lm, other = self.settings.lm, self.settings.reflection.lm
        asked = lm.decoding_greedily() if isinstance(self.target, JudgeTarget) else lm  # as `python -m judges` asks
        clients = await stack.enter_async_context(asked.open(self.folder))
        model = Connection(asked, clients)
        reflection = Connection(lm, clients)
        if other is not None:
            reflection = Connection(other, await other.enter(stack, self.folder, "reflection.lm"))
        return partial(self._work, model, reflection)

    async def _work(self, model: Connection, reflection: Connection, store: Store, stop: asyncio.Event) -> None:
        bench = Bench(self.target, self.metrics, model, reflection, store, self.settings.seed)
        began = time.monotonic()
        try:
            with dspy.context(trace=None):
                await unless(stop, self._optimise(bench))
        except KeyboardInterrupt:
            bench.stop(Stopped())
        finally:
            store.add_seconds(time.monotonic() - began)

    async def _optimise(self, bench: Bench) -> None:
        settings, split, student = self.settings, self.split, Student(bench)
        sizes = ", ".join(f"{part} {len(examples)}" for part, examples in zip(_PARTS, split, strict=True))
        note(f"{self.target.name}: {sizes} examples of {sum(map(len, map(find_groups, split)))} documents")
        before = await self._try_held_out(bench, student)
        scores = self._compare(before, before)
        note(f"before, held out: {', '.join(f'{name} {each.before}' for name, each in scores.items())}")
        best = await asyncio.to_thread(optimise, bench, student, split, settings.calls, settings.minibatch)
        details = best.detailed_results
        validation = tuple(round(float(score), 4) for score in details.val_aggregate_scores)
        found = ", ".join(f"{score:.2f}" for score in validation)
        note(f"{count_noun(len(validation), 'candidate')}; validation: {found}")
        after = await self._try_held_out(bench, best)
        calls = [reply.usage for _, _, reply in bench.store.all_calls()]
        self.best = best
        self.card = Card(
            target=self.target.name,
            model=settings.lm.model,
            reflection=(settings.reflection.lm or settings.lm).model,
            metric=self.metrics,
            data=settings.data,
            seed=settings.seed,
            train=len(split.train),
            validation_examples=len(split.validation),
            held_out=len(split.held_out),
            documents=cast(Any, tuple(len(find_groups(part)) for part in split)),
            shared=split.shared,
            scores=self._compare(before, after),
            no_label=(count_unlabelled(before), count_unlabelled(after)),
            validation=validation,
            budget=settings.calls,
            tried=details.total_metric_calls,
            calls=len(calls),
            tokens=sum(usage.prompt + usage.completion for usage in calls),
            seconds=0,
            before={name: each.signature.instructions for name, each in self.predictors.items()},
            after={name: each.signature.instructions for name, each in self._list_predictors(best.step).items()},
        )

    def _list_predictors(self, step: dspy.Module) -> dict[str, dspy.Predict]:
        return {f"{self.target.name}.{name}": each for name, each in list_predictors(step).items()}

    def _compare(self, before: Sequence[Outcome], after: Sequence[Outcome]) -> dict[str, Comparison]:
        return compare(self.split.held_out, before, after, self.settings.seed, self.target.agreement)

    async def _try_held_out(self, bench: Bench, student: Student) -> list[Outcome]:
        def attempt(example: Example) -> Coroutine[Any, Any, Outcome]:
            return bench.attempt(student.step, student.signatures(), example)

        return await together(map(attempt, self.split.held_out))

    def write_results(self, store: Store) -> Ended:
        stored = self.folder / CARD
        if self.card is None or self.best is None:
            found = Card.model_validate_json(stored.read_text(encoding="utf-8")) if stored.exists() else None
            return Ended(found)
        self.card = self.card.model_copy(update={"seconds": round(store.seconds, 1)})
        states = {name: each.dump_state() for name, each in self._list_predictors(self.best.step).items()}
        write_program(self.folder / PROGRAM, {**self.states, **states})
        for name, content in (("card.md", self.card.markdown()), (CARD, self.card.model_dump_json(indent=1) + "\n")):
            write_text(self.folder / name, content)
        return Ended(self.card)
