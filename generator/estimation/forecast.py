"""Forecast what a run will take: the sizes of its plans and documents, times what dialogs were measured to take.

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
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from generator.common.passages import count_tokens
from generator.components import Components
from generator.config.settings import ProgressiveSettings
from generator.dialogs.plan import NUMBER_TOKENS, Plan
from generator.execution.history import History
from generator.prompts.adapter import P_YES, is_plain
from generator.prompts.replies import SignatureType
from generator.prompts.sections import Documents
from generator.schema import Passage, Usage
from taxonomy import QUESTIONS

# The plans that stand for all that are left, evenly among them, and the passages that stand for all.
SAMPLED = 200
DRAWS = 2000
# Of the dialogs ahead so many make a draw: of more, the mean hardly varies, and of fewer, often none is accepted.
LEAST_AHEAD, MOST_AHEAD = 20, 1000
# The share of accepted dialogs is never taken for less, so that a draw without any ends at `max_attempts`.
LEAST_SHARE = 1e-6
# The prompt of a rewording, which holds nothing but the question.
REWORD_TOKENS = 80
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
    """The cost of a whole run, with what it has taken already.

    Attributes:
        attempts: dialogs that will be attempted, as in `draws`; shape (draws,).
        left: of them those that the run hasn't attempted yet.
        accepted: of all attempted ones the accepted ones.
        stages: names of the stages, in the order of the other arrays' last axis.
        draws: calls, prompt, cached and completion tokens; shape (draws, 4, stages). The first is the estimate, the
            second what the run has taken already.
        spread: by how much the draws are too near each other, since few dialogs were measured, as a power; None:
            nothing is left to do, or two dialogs or fewer were measured, which don't say how sure it is.
    """

    attempts: Floats
    left: int
    accepted: int
    stages: tuple[str, ...]
    draws: Floats
    spread: float | None

    def usage(self, stage: str) -> Usage:
        """Return the estimate for a stage."""
        calls, prompt, cached, completion = np.rint(self.draws[0, :, self.stages.index(stage)])
        return Usage(calls=int(calls), prompt=int(prompt), cached=int(cached), completion=int(completion))

    def range(self, draws: Floats) -> Range:
        """Return an estimate with its interval, given its draws as in `draws`."""
        value, done = map(float, draws[:2])
        if self.spread is None:
            return Range(value)
        left = value - done
        if left <= 0:  # as of cached tokens, which not every server reports
            return Range(value, value, value)
        ends = (np.quantile(draws[2:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]) - done) / left
        low, high = done + left * np.clip(ends, 1e-9, None) ** self.spread
        return Range(value, min(float(low), value), max(float(high), value))


@cache
def guesses() -> Any:
    """Return what stands in for measurements."""
    return json.loads(files("generator.estimation").joinpath("forecast.json").read_text(encoding="utf-8"))


class Sizes:
    """Works out the size of plans, by stage, from the documents and the settings."""

    def __init__(self, components: Components) -> None:
        self.components, self.settings = components, components.settings
        self.planner, library = components.planner, components.library
        self.rules = count_tokens(components.rules)
        rows = range(0, library.passage_count, 1 + library.passage_count // SAMPLED)
        self.passage = float(np.mean([_tokens(library.passage(row)) for row in rows]))
        self.passages = library.passage_count
        self.judged = [s for judge in components.judges if judge.asks_model for s in judge.signatures]

    def size(self, plan: Plan) -> dict[str, Size]:
        """Return the size of a plan by stage; `other` stands for stages that have no form here."""
        algorithm, turns = self.settings.algorithm, plan.turns
        source = _tokens(plan.source) if isinstance(plan.source, Passage) else 0
        said = [guesses()["turn_tokens"] * turn for turn in range(turns)]
        seen = [self._retrieved(turn) if algorithm.searches else source for turn in range(turns)]
        answers = [self.rules + documents + dialog for documents, dialog in zip(seen, said, strict=True)]
        judged = [self._judge(each, *read) for each in self.judged for read in zip(seen, said, strict=True)]
        sizes = {"other": Size(turns, sum(answers)), "judge": Size(len(judged), sum(judged))}
        if algorithm.name == "whole":
            return sizes | {"write": Size(1, self.rules + source)}
        if isinstance(algorithm, ProgressiveSettings):
            sets, read = algorithm.candidates, self.rules + source
            scores = sets * (len(algorithm.scorers) or 1)
            return sizes | {
                "candidates": Size(sets, sets * read),
                "score": Size(scores, scores * (read + QUESTIONS * self.settings.retriever.k * self.passage)),
                "reference": Size(turns, sum(answers)),
            }
        # Later questions follow what was found before them.
        asks = [self.rules + source, *(self.rules + seen[turn - 1] + said[turn] for turn in range(1, turns))]
        given, drawn = isinstance(plan.source, str), self.components.candidates
        rewrites = asks[1:] if algorithm.name == "multi" and self.settings.retriever.query == "rewrite" else []
        reworded = (turns - given) * self.settings.user.rewording
        return sizes | {
            "ask": Size((turns - given) * drawn, sum(asks[given:]) * drawn),
            "reword": Size(reworded, reworded * REWORD_TOKENS),
            "rewrite": Size(len(rewrites), sum(rewrites)),
            "answer": Size(turns * drawn, sum(answers) * drawn),
            "evidence": Size(turns, sum(answers)),
        }

    def _judge(self, signature: SignatureType, documents: float, dialog: float) -> float:
        """Return the tokens of a judge's prompt, which has what its signature asks for."""
        inputs, rules = signature.input_fields, 0 if is_plain(signature) else self.rules
        return rules + documents * ("documents" in inputs) + dialog * ("dialog" in inputs)

    def _retrieved(self, turn: int) -> float:
        """Return the tokens of all passages that the searches up to a turn, from 0, find."""
        found = self.settings.retriever.k * (1 + guesses()["new_passages"] * turn)
        return min(found, self.passages) * self.passage

    def of_plans(self, numbers: Sequence[int]) -> list[dict[str, Size]]:
        """Return the sizes of plans by their numbers."""
        return [self.size(self.planner.plan(number)) for number in numbers]


def forecast(
    sizes: Sizes, done: History | None, measured: History | None, measured_sizes: Sizes, wanted: int, most: int
) -> Forecast:
    """Return what a run will take.

    Args:
        sizes: of the run's plans.
        done: the run's own costs so far; None: it has none.
        measured: costs of finished dialogs to reckon with, the run's own or an earlier run's; None: guesses are.
        measured_sizes: of the plans of `measured`.
        wanted: dialogs to accept.
        most: dialogs to attempt at the most.
    """
    attempted, accepted = (len(done.plans), done.accepted) if done else (0, 0)
    missing, most_left = max(0, wanted - accepted), max(0, most - attempted)
    if measured is None:
        stages, factors, share = _guess(sizes, most_left, attempted)
    else:
        stages, factors, share = _measure(measured, measured_sizes, missing)
    attempts = np.minimum(missing / share, most_left)
    left = int(np.ceil(attempts[0]))
    step = max(1, left // SAMPLED)
    mean = _matrix(sizes.of_plans(range(attempted, attempted + left, step)) if left else [], stages).mean(axis=0)
    calls, prompt = (factors[:, each] * mean[each] for each in (0, 1))
    draws = np.stack([calls, prompt, prompt * factors[:, 2], calls * factors[:, 3]], axis=1) * attempts[:, None, None]
    attempts, draws = np.insert(attempts, 1, 0), np.insert(draws, 1, 0, axis=0)
    if done:
        stages, draws = _add(stages, draws, done.usage if left else done.spent)  # unfinished dialogs are ahead
    spread = None
    if left and measured and (count := len(measured.plans)) > 2:  # Student's interval is so much wider
        spread = float(stdtrit(count - 1, 0.95) / ndtri(0.95) * np.sqrt((count + 2) / (count - 1)))
    return Forecast(
        attempts=attempts + attempted,
        left=left,
        accepted=accepted + round(min(missing, left * float(share[0]))),
        stages=stages,
        draws=draws,
        spread=spread,
    )


def _guess(sizes: Sizes, most: int, first: int) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return the stages of a run, guessed factors as `_measure` returns them, and the share of accepted dialogs."""
    guess = guesses()
    plan = sizes.of_plans([first])[0] if most else {}
    stages = tuple(sorted(name for name, size in plan.items() if name != "other" and size.calls))
    of_stages = [guess["stages"][stage] for stage in stages]
    calls = [each["calls"] for each in of_stages]
    written = [each["completion"] for each in of_stages]
    if "judge" in stages:
        long = written[stages.index("judge")]
        written[stages.index("judge")] = fmean(1 if P_YES in each.output_fields else long for each in sizes.judged)
    rows = [
        calls,
        [guess["model_tokens"] * each for each in calls],
        [guess["cached"]] * len(stages),
        written,
    ]
    return stages, np.array([rows]).reshape(1, 4, len(stages)), np.array([guess["accepted"]])


def _measure(measured: History, sizes: Sizes, missing: int) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return stages, factors and shares of accepted dialogs, the estimate and then draws.

    Half a dialog that is accepted and half a one that is not, each as long as its like, stand beside the measured ones
    (Jeffreys' prior), so that 5 of 5 accepted are no promise. A draw weighs the dialogs at random (the Bayesian
    bootstrap) and takes as many of them as the run has ahead, since the run is such a draw itself.

    Args:
        missing: dialogs that are still to be accepted.

    Returns:
        stages; factors, shape (draws, 4, stages): calls for each of a plan, prompt tokens for each, the share of them
        that is cached, and completion tokens a call; shares, shape (draws,).
    """
    stages, plans = tuple(sorted(measured.usage)), measured.plans
    accepted = np.array([plan.accepted for plan in plans], dtype=float)
    planned = _matrix(sizes.of_plans(range(len(plans))), stages)
    spent = np.array([[_row(plan.usage.get(stage, Usage())) for stage in stages] for plan in plans], dtype=float)
    spent = spent.transpose(0, 2, 1)
    like = [accepted == each if (accepted == each).any() else accepted >= 0 for each in (1, 0)]
    spent = np.concatenate([spent, [spent[each].mean(axis=0) for each in like]])
    planned = np.concatenate([planned, [planned[each].mean(axis=0) for each in like]])
    accepted = np.append(accepted, [1, 0])
    prior = np.append(np.ones(len(plans)), [0.5, 0.5])
    weights = prior[None] / prior.sum()
    if len(plans) > 1:
        random = np.random.default_rng(0)
        ahead = int(np.clip(missing / (weights[0] @ accepted), LEAST_AHEAD, MOST_AHEAD))
        drawn = random.multinomial(ahead, random.dirichlet(prior, size=DRAWS)) / ahead
        weights = np.concatenate([weights, drawn])
    calls, prompt, cached, completion = np.einsum("dp,pfs->fds", weights, spent)
    plan_calls, plan_prompt = np.einsum("dp,pfs->fds", weights, planned)
    ratios = [(calls, plan_calls), (prompt, plan_prompt), (cached, prompt), (completion, calls)]
    factors = np.stack([_ratio(top, bottom) for top, bottom in ratios], axis=1)
    return stages, factors, np.maximum(weights @ accepted, LEAST_SHARE)


def _add(stages: tuple[str, ...], draws: Floats, done: Mapping[str, Usage]) -> tuple[tuple[str, ...], Floats]:
    """Return stages and draws with what the run has taken already."""
    every = tuple(sorted({*stages, *done}))
    total = np.zeros((len(draws), 4, len(every)))
    total[:, :, [every.index(stage) for stage in stages]] = draws
    total += np.array([_row(done.get(stage, Usage())) for stage in every]).T
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
    return count_tokens(passage.text) + NUMBER_TOKENS * len(Documents(passages=(passage,)).spans)
