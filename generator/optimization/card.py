"""Scores on held-out examples, before and after, with intervals; and the card that says what was done."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from generator.common.console import count_noun
from generator.optimization.data import Example, find_groups
from generator.optimization.targets import UNJUDGED, Outcome
from generator.output.markdown import table
from generator.schema import Record

RESAMPLES = 9999
# Of fewer documents, all are better by chance alone more often than a 95% interval may err.
LEAST_DOCUMENTS = 6
Figures = NDArray[np.float64]


class Score(Record):
    """A score with its 95% interval, by bootstrap over documents; examples of fewer than six have none."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{self.value:.2f}" + ("" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})")


class Comparison(Record):
    """A score before and after, and the difference, whose interval is of both together on the same resamples."""

    before: Score
    after: Score
    difference: Score

    @property
    def verdict(self) -> str:
        """Say whether the whole interval of the difference is above 0, or below."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None:
            return f"no interval of fewer than {LEAST_DOCUMENTS} held-out documents tells whether it is better"
        which = "better" if low > 0 else "worse" if high < 0 else "not better"
        return f"{which} by more than its interval"


class Card(Record):
    """A record of what was optimised, how, and with which result.

    Attributes:
        metric: the mean of these is what was optimised.
        data: the sets, as they were given.
        documents: of train, validation and held-out examples, none of them on two sides.
        shared: documents that are on two sides: if there are any, `documents` are those that the dialogs began with.
        scores: by name; `score` is what was optimised, `kappa` Cohen's, of a judge's verdicts, `tau` Kendall's (tau-b),
            of its scores with people's.
        no_label: held-out examples without a usable reply, before and after; they count as wrong, and not in kappa.
        validation: the score of each candidate on the validation examples, the first one's before.
        budget, tried: examples that could be and that were tried to find it, with any candidate.
        calls, tokens: of both models, with those on held-out examples.
        before, after: instructions by predictor.
    """

    target: str
    model: str
    reflection: str
    metric: tuple[str, ...]
    data: tuple[str, ...]
    seed: int
    train: int
    validation_examples: int
    held_out: int
    documents: tuple[int, int, int]
    shared: int = 0
    scores: Mapping[str, Comparison]
    no_label: tuple[int, int]
    validation: tuple[float, ...]
    budget: int
    tried: int
    calls: int
    tokens: int
    seconds: float
    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def failed(self) -> bool:
        """True if no held-out example got a usable reply."""
        return min(self.no_label) == self.held_out

    @property
    def verdict(self) -> str:
        """Say in a sentence what came of it."""
        if self.failed:
            return "no reply could be used, so nothing could be tried"
        if self.validation[0] == 1:
            return "nothing to improve: all validation examples were right at first; give harder or more examples"
        if len(self.validation) < 2:
            return "no new instructions came as far as the validation examples: the instructions are as they were"
        if self.before == self.after:
            return "no candidate was better on the validation examples: the instructions are as they were"
        return self.scores["score"].verdict

    @property
    def _score(self) -> str:
        metrics = ", ".join(self.metric)
        if "tau" not in self.scores:
            return f"the mean of {metrics}"
        return f"1 less the mean difference from people's scores ({metrics}), both from 0 to 1; `tau` is Kendall's"

    def markdown(self) -> str:
        """Return the card as a page."""
        sides = "none of them on two sides"
        if self.shared:
            sides = f"which their dialogs began with; of all documents of the dialogs, {self.shared} are on two sides"
        rows = [[n, str(c.before), str(c.after), str(c.difference)] for n, c in self.scores.items()]
        parts = [
            f"# Instructions of {self.target} for {self.model}",
            f"On {self.held_out} held-out examples: **{self.verdict}**.",
            table(["held out", "before", "after", "difference"], rows),
            f"Intervals: 95%, bootstrap over documents. `score` is {self._score}.",
            f"Without a usable reply: {self.no_label[0]} before, {self.no_label[1]} after.",
            f"Data: {', '.join(self.data)}; train {self.train}, validation {self.validation_examples}, held out "
            f"{self.held_out} examples of {' + '.join(map(str, self.documents))} documents, {sides}. Seed {self.seed}.",
            f"GEPA, reflection by {self.reflection}: {count_noun(len(self.validation), 'candidate')} (validation: "
            f"{', '.join(f'{score:.2f}' for score in self.validation)}), {self.tried} examples tried; {self.calls} "
            f"model calls, {self.tokens} tokens, {self.seconds / 60:.0f} minutes.",
        ]
        for name, text in self.after.items():
            parts += [f"## {name}", f"Before:\n\n> {self.before[name]}", f"After:\n\n> {text}"]
        return "\n\n".join(parts) + "\n"


def compare(
    examples: Sequence[Example], before: Sequence[Outcome], after: Sequence[Outcome], seed: int, agreement: str
) -> dict[str, Comparison]:
    """Return the scores of the same examples before and after.

    Args:
        agreement: `kappa` or `tau`: Cohen's of labels, or Kendall's of scores, beside the score; empty: neither.
    """
    groups = find_groups(examples)
    place = {example.id: number for number, group in enumerate(groups) for example in group}
    where = [place[example.id] for example in examples]
    chance = np.random.default_rng(seed)
    weights = chance.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=RESAMPLES).astype(float)
    weights = np.vstack([np.ones(len(groups)), weights])

    def by_group(values: Figures) -> Figures:
        sums = np.zeros((len(groups), values.shape[1]))
        np.add.at(sums, where, values)
        return np.asarray(weights @ sums)

    def mean(outcomes: Sequence[Outcome]) -> Figures:
        sums = by_group(np.array([[outcome.score, 1.0] for outcome in outcomes]))
        return np.asarray(sums[:, 0] / sums[:, 1])

    names = sorted({example.label for example in examples})

    def kappa(outcomes: Sequence[Outcome]) -> Figures:
        cells = np.zeros((len(examples), len(names), len(names) + 1))
        for number, (example, outcome) in enumerate(zip(examples, outcomes, strict=True)):
            given = names.index(outcome.label) if outcome.label in names else len(names)
            cells[number, names.index(example.label), given] = outcome.label != UNJUDGED
        counts = by_group(cells.reshape(len(examples), -1)).reshape(-1, len(names), len(names) + 1)
        total = np.maximum(counts.sum(axis=(1, 2)), 1)
        agreed = np.trace(counts[:, :, : len(names)], axis1=1, axis2=2) / total
        expected = (counts.sum(axis=2) * counts.sum(axis=1)[:, : len(names)]).sum(axis=1) / total**2
        return np.asarray((agreed - expected) / np.maximum(1 - expected, 1e-9))

    def tau(outcomes: Sequence[Outcome]) -> Figures:
        given = np.array([[one.rating for one in outcomes]], dtype=float)  # None is nan
        people = np.array([[one.rating for one in examples]], dtype=float) + 0 * given
        orders = [np.nan_to_num(np.sign(each.T - each)) for each in (people, given)]
        member = np.eye(len(groups))[where]
        products = [orders[0] * orders[1], orders[0] ** 2, orders[1] ** 2]
        both, one, other = (((weights @ (member.T @ each @ member)) * weights).sum(axis=1) for each in products)
        return np.asarray(both / np.maximum(np.sqrt(one * other), 1e-9))

    figures = {"score": mean, **({agreement: {"kappa": kappa, "tau": tau}[agreement]} if agreement else {})}
    found = {}
    for name, figure in figures.items():
        one, other = figure(before), figure(after)
        scores = [_score(values, len(groups)) for values in (one, other, other - one)]
        found[name] = Comparison(before=scores[0], after=scores[1], difference=scores[2])
    return found


def _score(values: Figures, groups: int) -> Score:
    low = high = None
    if groups >= LEAST_DOCUMENTS:
        low, high = (round(float(end), 4) for end in np.quantile(values[1:], [0.025, 0.975]))
    return Score(value=round(float(values[0]), 4), low=low, high=high)


def count_unlabelled(outcomes: Sequence[Outcome]) -> int:
    """Return how many have no usable reply."""
    return sum(outcome.label == UNJUDGED for outcome in outcomes)
