"""What a run will take: the sizes of its plans and documents, times what dialogs were measured to take.

A plan says how many turns a dialog has and what its first question is asked of, so the calls of each stage and the
length of their prompts can be worked out but for a factor. The factor, and the share of dialogs that are accepted, come
from dialogs that were made: a ratio estimate, whose interval is bootstrapped over those dialogs. Without any they are
guesses (`forecast.json`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generator.common.passages import count_tokens
from generator.components import Components
from generator.config.settings import ProgressiveSettings
from generator.dialogs.adapter import SharedPrefixAdapter
from generator.dialogs.plan import NUMBER_TOKENS, Plan
from generator.dialogs.prompt import Documents
from generator.execution.history import History
from generator.schema import Passage, Usage
from taxonomy import QUESTIONS

# The plans that stand for all that are left, evenly among them, and the passages that stand for all.
SAMPLED = 200
DRAWS = 2000
# The interval holds so much of what the draws give.
CONFIDENCE = 0.9

Floats = NDArray[np.float64]


class Range(NamedTuple):
    """An estimate with its interval; both ends are None where nothing was measured."""

    value: float
    low: float | None = None
    high: float | None = None


class Size(NamedTuple):
    """The calls of a stage that a plan has if none is repeated, and the length of their prompts in our tokens."""

    calls: float
    prompt: float


@dataclass(frozen=True)
class Forecast:
    """What a whole run takes, with what it has taken already.

    Attributes:
        attempts: dialogs that will be attempted.
        accepted: of them the accepted ones.
        stages: names of the stages, in the order of the other arrays' last axis.
        draws: calls, prompt, cached and completion tokens; shape (draws, 4, stages). The first draw is the estimate.
        sure: whether the draws say how sure it is: several dialogs were measured.
    """

    attempts: Range
    accepted: int
    stages: tuple[str, ...]
    draws: Floats
    sure: bool

    def usage(self, stage: str) -> Usage:
        """Return the estimate for a stage."""
        calls, prompt, cached, completion = np.rint(self.draws[0, :, self.stages.index(stage)])
        return Usage(calls=int(calls), prompt=int(prompt), cached=int(cached), completion=int(completion))

    def range(self, draws: Floats) -> Range:
        """Return an estimate with its interval, given its draws, the estimate first."""
        return interval(draws, self.sure)


def interval(draws: Floats, sure: bool) -> Range:
    """Return an estimate with its interval, given its draws, the estimate first; without the interval if not `sure`."""
    if not sure:
        return Range(float(draws[0]))
    low, high = np.quantile(draws[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Range(float(draws[0]), min(float(low), float(draws[0])), max(float(high), float(draws[0])))


@cache
def guesses() -> Any:
    """Return what stands in for measurements."""
    return json.loads(files("generator").joinpath("forecast.json").read_text(encoding="utf-8"))


class Sizes:
    """Works out the size of plans, by stage, from the documents and the settings.

    Args:
        components: of the run.
    """

    def __init__(self, components: Components) -> None:
        self.components, self.settings = components, components.settings
        self.planner, library = components.planner, components.library
        program = components.program
        self.rules = count_tokens(SharedPrefixAdapter(tasks=components.tasks, preamble=program.preamble).rules)
        rows = range(0, library.passage_count, 1 + library.passage_count // SAMPLED)
        self.passage = float(np.mean([_tokens(library.passage(row)) for row in rows]))
        self.passages = library.passage_count
        self.judges = sum(judge.asks_model for judge in components.judges)

    def size(self, plan: Plan) -> dict[str, Size]:
        """Return the size of a plan by stage; `other` stands for stages that have no form here."""
        algorithm, turns = self.settings.algorithm, plan.turns
        source = _tokens(plan.source) if isinstance(plan.source, Passage) else 0
        said = [guesses()["turn_tokens"] * turn for turn in range(turns)]
        seen = [
            self._retrieved(turn) if algorithm.name in ("multi", "progressive") else source for turn in range(turns)
        ]
        answers = [self.rules + documents + dialog for documents, dialog in zip(seen, said, strict=True)]
        sizes = {"other": Size(turns, sum(answers)), "judge": Size(self.judges * turns, self.judges * sum(answers))}
        if algorithm.name == "whole":
            return sizes | {"write": Size(1, self.rules + source)}
        if isinstance(algorithm, ProgressiveSettings):
            scorers = len([name for name in algorithm.endpoints if ".scorers." in name]) or 1
            sets, read = algorithm.candidates, self.rules + source
            scores = sets * scorers
            return sizes | {
                "candidates": Size(sets, sets * read),
                "score": Size(scores, scores * (read + QUESTIONS * self.settings.retriever.k * self.passage)),
                "reference": Size(turns, sum(answers)),
            }
        # Later questions follow what was found before them.
        asks = [self.rules + source, *(self.rules + seen[turn - 1] + said[turn] for turn in range(1, turns))]
        given = isinstance(plan.source, str)
        rewrites = asks[1:] if algorithm.name == "multi" and self.settings.retriever.query == "rewrite" else []
        return sizes | {
            "ask": Size((turns - given) * algorithm.candidates, sum(asks[given:]) * algorithm.candidates),
            "rewrite": Size(len(rewrites), sum(rewrites)),
            "answer": Size(turns * algorithm.candidates, sum(answers) * algorithm.candidates),
            "evidence": Size(turns, sum(answers)),
        }

    def _retrieved(self, turn: int) -> float:
        """Return the tokens of all passages that the searches up to a turn, from 0, find."""
        found = self.settings.retriever.k * (1 + guesses()["new_passages"] * turn)
        return min(found, self.passages) * self.passage

    def of_plans(self, numbers: Sequence[int]) -> list[dict[str, Size]]:
        """Return the sizes of plans by their numbers."""
        return [self.size(self.planner.plan(number)) for number in numbers]


def forecast(
    sizes: Sizes,
    done: History | None,
    measured: History | None,
    measured_sizes: Sizes | None,
    wanted: int,
    most: int,
) -> Forecast:
    """Return what a run will take.

    Args:
        sizes: of the run's plans.
        done: the run's own costs so far; None: it has not begun.
        measured: costs to reckon with, the run's own or an earlier run's; None: guesses are.
        measured_sizes: of the plans of `measured`.
        wanted: dialogs to accept.
        most: dialogs to attempt at the most.
    """
    attempted, accepted = (len(done.plans), done.accepted) if done else (0, 0)
    missing, most_left = max(0, wanted - accepted), max(0, most - attempted)
    random = np.random.default_rng(0)
    if measured is None or not measured.plans or measured_sizes is None:
        stages, factors, share = _guess(sizes, most_left, attempted)
        sure = False
    else:
        stages, factors, share = _measure(measured, measured_sizes, min(missing, 1000), random)
        sure = len(share) > 1
    attempts = missing / share
    if sure and missing:
        attempts[1:] = missing + random.negative_binomial(missing, share[1:])
    attempts = np.minimum(attempts, most_left)
    left = int(np.ceil(attempts[0]))
    step = max(1, left // SAMPLED)
    mean = _matrix(sizes.of_plans(range(attempted, attempted + left, step)) if left else [], stages).mean(axis=0)
    calls, prompt = (factors[:, each] * mean[each] for each in (0, 1))
    draws = np.stack([calls, prompt, prompt * factors[:, 2], calls * factors[:, 3]], axis=1) * attempts[:, None, None]
    if done:
        stages, draws = _add(stages, draws, done)
    total = interval(attempts + attempted, sure)
    return Forecast(total, accepted + round(min(missing, left * float(share[0]))), stages, draws, sure)


def _guess(sizes: Sizes, most: int, first: int) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return the stages of a run, guessed factors as `_measure` returns them, and the share of accepted dialogs."""
    guess = guesses()
    plan = sizes.of_plans([first])[0] if most else {}
    stages = tuple(sorted(name for name, size in plan.items() if name != "other" and size.calls))
    of_stages = [guess["stages"][stage] for stage in stages]
    calls = [each["calls"] for each in of_stages]
    rows = [
        calls,
        [guess["model_tokens"] * each for each in calls],
        [guess["cached"]] * len(stages),
        [each["completion"] for each in of_stages],
    ]
    return stages, np.array([rows]).reshape(1, 4, len(stages)), np.array([guess["accepted"]])


def _measure(
    measured: History, sizes: Sizes, ahead: int, random: np.random.Generator
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return stages, factors and shares of accepted dialogs, the estimate and then draws.

    A draw takes as many of the measured dialogs, with replacement, and of these as many as are ahead, since the run is
    such a draw itself. The share is Jeffreys' estimate: of 5 of 5 accepted, 92%; the draws are of its distribution.

    Returns:
        stages; factors, shape (draws, 4, stages): calls for each of a plan, prompt tokens for each, the share of them
        that is cached, and completion tokens a call; shares, shape (draws,).
    """
    stages = tuple(sorted(measured.usage))
    plans, count = measured.plans, len(measured.plans)
    numbers = range(count)
    whole = not all(plan.usage for plan in plans)  # an earlier release kept only the sum
    spent = np.array(
        [[_row(plan.usage.get(stage, Usage())) for stage in stages] for plan in plans]
        if not whole
        else [[_row(measured.usage[stage]) for stage in stages]],
        dtype=float,
    )
    planned = _matrix(sizes.of_plans(numbers), stages)
    accepted = measured.accepted
    estimate = (accepted + 0.5) / (count + 1)
    if whole or count < 2:
        weights, shares = np.ones((1, len(spent))), np.array([estimate])
        planned = planned.sum(axis=0, keepdims=True) if whole else planned
    else:
        drawn = random.multinomial(count, np.full(count, 1 / count), size=DRAWS)
        drawn = random.multinomial(max(ahead, 1), drawn / count)
        weights = np.concatenate([np.ones((1, count)), drawn])
        shares = random.beta(accepted + 0.5, count - accepted + 0.5, size=DRAWS)
        shares = np.concatenate([[estimate], np.maximum(shares, 1e-6)])
    spent_sum = np.einsum("dp,psf->dfs", weights, spent)
    planned_sum = np.einsum("dp,pfs->dfs", weights, planned)
    calls, prompt, cached, completion = (spent_sum[:, each] for each in range(4))
    return (
        stages,
        np.stack(
            [
                _ratio(calls, planned_sum[:, 0]),
                _ratio(prompt, planned_sum[:, 1]),
                _ratio(cached, prompt),
                _ratio(completion, calls),
            ],
            axis=1,
        ),
        shares,
    )


def _add(stages: tuple[str, ...], draws: Floats, done: History) -> tuple[tuple[str, ...], Floats]:
    """Return stages and draws with what the run has taken already."""
    every = tuple(sorted({*stages, *done.usage}))
    total = np.zeros((len(draws), 4, len(every)))
    total[:, :, [every.index(stage) for stage in stages]] = draws
    total += np.array([_row(done.usage.get(stage, Usage())) for stage in every]).T
    return every, total


def _matrix(sizes: Sequence[Mapping[str, Size]], stages: Sequence[str]) -> Floats:
    """Return sizes as an array, shape (plans, 2, stages); without plans a single row of zeros."""
    rows = [[size.get(stage, size["other"]) for stage in stages] for size in sizes]
    found = np.array(rows or np.zeros((1, len(stages), 2)), dtype=float).reshape(-1, len(stages), 2)
    return found.transpose(0, 2, 1)


def _row(usage: Usage) -> tuple[int, int, int, int]:
    return usage.calls, usage.prompt, usage.cached, usage.completion


def _ratio(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _tokens(passage: Passage) -> int:
    return count_tokens(passage.text) + NUMBER_TOKENS * Documents(passages=(passage,)).count
