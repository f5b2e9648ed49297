"""Evaluate a model on a benchmark of dialogs: it answers, a judge rates each answer, the scores come out.

A plan of the store is an item with the earlier answers that the model is shown (`Dialog.context`). What fails is
counted apart: an answer that doesn't come, or a judge without a rating, leaves its turn without a score.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import dspy
from omegaconf import DictConfig
from pydantic_core import to_jsonable_python

from generator.common.atomic_files import make_folder, write_lines, write_text
from generator.common.console import count_noun, note
from generator.common.language import IN_ENGLISH, use_languages
from generator.config.job import Job, RunFailed, load_named
from generator.config.parts import identify
from generator.config.settings import hash_models
from generator.dialogs.journal import Journal
from generator.errors import ConfigError, CorpusError, RunError
from generator.execution.session import Session, Work, run_session
from generator.execution.store import Outcome, Store
from generator.prompts.signatures import prompt_version
from generator.schema import Context, Dialog, Record, Usage
from generator.sets import DialogSet
from judges.benchmarks.answers import add_answers
from judges.benchmarks.base import RatedBenchmark
from judges.benchmarks.config import Evaluation, load_evaluation
from judges.benchmarks.evaluator import Evaluator, why_missing
from judges.benchmarks.items import draw_items, read_items
from judges.benchmarks.scores import Rated, count_reasons
from judges.llm.task import RatingAdapter, RatingJudge
from judges.panel import Member
from judges.work import check_apart, work_through

# Settings that are part of a run folder's name.
_NAMED = {"benchmark", "input", "answers", "judgments", "lm.model", "run_dir"}


def evaluate(cfg: DictConfig, job: Job) -> None:
    """Evaluate a model, or continue, or aggregate judgments; the task of `python -m judges.evaluate`.

    Raises:
        GroundedDialogsError: the run can't begin or go on.
        RunFailed: nothing was judged.
        KeyboardInterrupt: the run was interrupted; what is finished is written.
    """
    settings, configuration = load_named(cfg, job, load_evaluation, _NAMED)
    if settings.judgments:
        _aggregate(settings, settings.judgments, configuration)
        return
    dspy.disable_logging()  # a verdict holds what DSPy would log of a reply
    run = EvaluationRun(settings, configuration)
    with use_languages(run.languages):
        result = run_session(run, run.show)
    if not result.judged:
        reason = next(iter(result.failures), "nothing to judge")
        note(f"error: none of the answers could be judged; the most frequent reason: {reason}")
        raise RunFailed(1)


def _aggregate(settings: Evaluation, paths: Sequence[Path], configuration: str) -> None:
    """Write and print the scores of judgments that exist."""
    folder, benchmark = settings.folder, settings.benchmark
    assert isinstance(benchmark, RatedBenchmark)
    if (folder / "run.db").exists():
        raise RunError(f"run_dir={folder}: holds a run; set another run_dir for the scores of judgments")
    ratings: dict[str, Mapping[Context, Sequence[Rated]]] = {}
    for path in paths:
        found = benchmark.judgments(path)
        if twice := found.keys() & ratings.keys():
            raise CorpusError(f"judgments={path}: {min(twice)} was judged in another one, too; give one of the two")
        ratings |= found
    scores = benchmark.score(ratings, settings.seed)
    make_folder(folder)
    _write(folder, {"benchmark": benchmark.name, "judgments": list(map(str, paths)), **scores}, configuration)
    benchmark.show(scores)
    print(f"run folder: {folder}", flush=True)


class Result(Record):
    """The scores of a run so far, the number of turns with one, and why turns lack one."""

    scores: dict[str, Any]
    judged: int
    failures: dict[str, int]
    complete: bool


class EvaluationRun(Session[Result]):
    """An evaluation that is ready to start or to continue: settings are checked, and the items have been read.

    Raises:
        GroundedDialogsError: a setting or the input can't be used; the run folder has not been touched.
    """

    def __init__(self, settings: Evaluation, configuration: str) -> None:
        self.settings, self.configuration = settings, configuration
        self.folder, self.fresh, self.benchmark = settings.folder, settings.fresh, settings.benchmark
        assert settings.input is not None
        check_apart(self.folder, settings.input)
        self.items, self.skipped = read_items(self.benchmark, settings.input)
        rated, items = isinstance(self.benchmark, RatedBenchmark), self.items
        # Refusals are compared by their words; the published items that a model rates are in English.
        self.languages = IN_ENGLISH if rated else DialogSet(str(settings.input), lambda: iter(items)).languages()
        self.lacking: dict[str, int] = {}
        if settings.answers:
            assert isinstance(self.benchmark, RatedBenchmark)
            if self.items[0].context:
                raise ConfigError(
                    f"answers={settings.answers}: input={settings.input} has answers already; leave one out"
                )
            self.items, self.lacking = add_answers(
                self.items, settings.answers, settings.model, self.benchmark, settings.contexts[0]
            )
        self.answered = self.items[0].context is not None
        digest = hashlib.sha256("\n".join(item.model_dump_json() for item, _ in self._plan()).encode())
        self.items = draw_items(self.items, settings.items, settings.seed)
        self.plans = self._plan()
        endpoints = {**({} if self.answered else {"lm": settings.lm}), **settings.endpoints}
        asked = (RatingJudge("").signatures, RatingAdapter().rules) if rated else ((), "")
        self.version = prompt_version(*asked, *self.benchmark.prompts)
        decided = {"benchmark": self.benchmark, **endpoints}
        self.identity = {
            **to_jsonable_python(dict(pair for name, part in decided.items() for pair in identify(name, part))),
            "context": list(dict.fromkeys(context for _, context in self.plans)),
            "input (content)": digest.hexdigest()[:16],
            **({"items": settings.items} if settings.items else {}),
            "seed": settings.seed,
            "prompt_version": self.version,
            **hash_models(endpoints),
        }
        if self.languages != IN_ENGLISH:
            self.identity["language"] = "/".join(each.code for each in self.languages)

    def _plan(self) -> list[tuple[Dialog, Context]]:
        """Return each item with its context if it is answered already, the others once for each context."""
        return [(i, c) for i in self.items for c in ([i.context] if i.context else self.settings.contexts)]

    def is_finished(self, store: Store) -> bool:
        return store.attempted >= len(self.plans)

    def progress(self, summary: Result) -> tuple[int, int]:
        return summary.scores["dialogs"], len(self.plans)

    async def open(self, stack: AsyncExitStack) -> Work:
        if "lm" in self.settings.endpoints:
            note(f"judge.lm is not set: {self.settings.lm.model} rates, also answers of its own")
        tested = None
        if not self.answered:
            tested = await stack.enter_async_context(self.settings.lm.open(self.folder))
        members = []
        for setting, endpoint in self.settings.endpoints.items():
            own = tested if setting == "lm" else None
            clients = own or await endpoint.decoding_greedily().enter(stack, self.folder, setting)
            members.append(Member(RatingJudge(endpoint.model), clients, RatingAdapter(endpoint.structured_outputs)))
        # An encoder that can't be loaded must be known before answers are paid for.
        for metric in self.benchmark.judges:
            try:
                await metric.judge((), (), self.items[0].turns[0])
            except ConfigError as error:
                setting = f"benchmark.metrics.{metric.name}"
                raise ConfigError(
                    f"{str(error).replace('judge.', f'{setting}.')}; or leave this metric out: {setting}=null"
                ) from error
        lm, seed = self.settings.lm.model, self.settings.seed
        return partial(self._evaluate, Evaluator(self.benchmark, lm, tested, members, seed))

    async def _evaluate(self, evaluator: Evaluator, store: Store, stop: asyncio.Event) -> None:
        def make(number: int) -> Coroutine[Any, Any, Outcome]:
            return evaluator.evaluate(*self.plans[number], Journal(store, name(number)))

        def name(number: int) -> str:
            return f"{number} {self.plans[number][0].id}"

        at_once = max(endpoint.concurrency for endpoint in (self.settings.lm, *self.settings.endpoints.values()))
        await work_through(make, name, len(self.plans), at_once, "evaluated", store, stop)

    def write_results(self, store: Store) -> Result:
        write_lines(self.folder / "dialogs.jsonl", store.dialogs())
        if self.skipped:
            write_lines(self.folder / "skipped.jsonl", self.skipped)
        complete = store.attempted >= len(self.plans)
        ratings: dict[str, dict[Context, list[Rated]]] = {}
        every: list[Rated] = []
        counts = Counter[str]()
        for dialog in store.dialogs():
            judged, rated = self.benchmark.judged(dialog), self.benchmark.rated(dialog)
            assert dialog.context is not None
            ratings.setdefault(dialog.lm, {}).setdefault(dialog.context, []).extend(rated)
            every += {(one.turn, one.reason): one for one in rated}.values()  # several metrics fail for the same reason
            counts.update(scored=len({one.turn for one in rated if one.score is not None}))
            counts.update(dialogs=1, answers=len(judged), truncated=sum(turn.truncated for turn in judged))
            missing = sum(why_missing(turn) is not None for turn in judged)
            counts.update(without_answer=missing, empty=sum(not turn.answer for turn in judged) - missing)
        failures = count_reasons(every)
        scores = self._facts(store, counts) | (self.benchmark.score(ratings, self.settings.seed) if ratings else {})
        _write(self.folder, scores | {"complete": complete}, self.configuration)
        return Result(scores=scores, judged=counts["scored"], failures=failures, complete=complete)

    def _facts(self, store: Store, counts: Mapping[str, int]) -> dict[str, Any]:
        """Return what was evaluated, how, and at what cost."""
        usage = sum(store.spent().values(), Usage())
        sampling = self.settings.lm.greedy.model_dump(exclude_none=True)
        return {
            "benchmark": self.benchmark.name,
            "input": str(self.settings.input),
            "model": self.items[0].lm if self.answered else self.settings.lm.model,
            "judge": [endpoint.model for endpoint in self.settings.endpoints.values()],
            "decoding": None if self.answered else sampling | {"max_tokens": self.settings.lm.max_tokens},
            "prompt_version": self.version,
            **{name: counts[name] for name in ("dialogs", "answers", "without_answer")},
            **({} if isinstance(self.benchmark, RatedBenchmark) else {"empty": counts["empty"]}),
            "truncated": counts["truncated"],
            **({"lacking": self.lacking} if self.settings.answers else {}),
            "skipped": len(self.skipped),
            "lm_calls": usage.calls,
            "tokens": {"prompt": usage.prompt, "cached": usage.cached, "completion": usage.completion},
            "seconds": round(store.seconds, 3),
        }

    def show(self, result: Result) -> None:
        """Print the tables, and what failed."""
        scores = result.scores
        if result.judged:
            self.benchmark.show(scores)
        print(f"{count_noun(scores['lm_calls'], 'call')}, {scores['tokens']['prompt']:,} prompt tokens", flush=True)
        for reason, count in result.failures.items():
            note(f"{count} of {scores['answers']} answers lack a score: {reason}")
        if scores.get("empty"):
            note(f"{scores['empty']} of {scores['answers']} answers are empty, and count as 0")
        if scores["truncated"]:
            note(f"{scores['truncated']} of {scores['answers']} answers were cut off; raise lm.max_tokens")


def _write(folder: Path, scores: Mapping[str, Any], configuration: str) -> None:
    write_text(folder / "scores.json", json.dumps(scores, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "config.yaml", configuration)
