"""The summary of a run of judging, `summary.json`, from the run's store, and as a table on the terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import fmean, median

from generator.common.console import count_noun
from generator.dialogs.columns import NEEDS_DOCUMENTS
from generator.execution.store import Store
from generator.output.summary import Tokens
from generator.output.tables import print_table
from generator.schema import Answerability, Dialog, Record, Turn, Usage, Verdict
from judges.base import UNJUDGED
from judges.llm.idk import IdkJudge
from judges.metrics.conditioning import LABELS, answerability_accuracy, conditioned
from judges.metrics.question_type import QuestionTypeJudge

# Judges whose scores are of a question, not of the answer to it.
_OF_QUESTIONS = (NEEDS_DOCUMENTS, QuestionTypeJudge.name)


class Figures(Record):
    """Figures of some turns. `mean` and `median` are of the scores, in the judge's range.

    `conditioned` is the mean of the scores of `conditioned_turns` turns, scaled to 0 to 1 and conditioned on
    answerability and IDK (`judges.metrics.conditioning`); the other turns have no verdict of the judge `idk`. It is
    None of judges that score no answers.
    """

    turns: int
    labels: Mapping[str, int]
    mean: float | None
    median: float | None
    conditioned: float | None
    conditioned_turns: int


class JudgeModel(Record):
    """Figures of one judge with one model, of `lm` by the models that wrote the answers; a turn with several question
    types counts for each of them.

    `unjudged` counts the reasons why turns have no verdict. `answerability_accuracy`, of the judge `idk` alone, is the
    share of turns whose label predicts their answerability (`judges.metrics.conditioning`).
    """

    judge: str
    model: str
    all: Figures
    unjudged: Mapping[str, int]
    answerability_accuracy: float | None
    answerability: Mapping[str, Figures]
    question_type: Mapping[str, Figures]
    corpus: Mapping[str, Figures]
    lm: Mapping[str, Figures]


class JudgingSummary(Record):
    """Figures of a run: `dialogs` and `turns` judged so far, `skipped` records of the input that can't be read."""

    input: str
    dialogs: int
    turns: int
    skipped: int
    judges: tuple[JudgeModel, ...]
    lm_calls: int
    tokens: Tokens
    seconds: float
    complete: bool

    @property
    def judged(self) -> int:
        """Verdicts that are not `unjudged`."""
        return sum(judge.all.turns - sum(judge.unjudged.values()) for judge in self.judges)


def summarise(
    store: Store, source: str, models: Iterable[tuple[str, str]], best: float | None, skipped: int, total: int
) -> JudgingSummary:
    """Return the summary of a run so far, in one pass over its dialogs.

    Args:
        models: judge and model of the verdicts of this run.
        best: the judge's highest score; None if it gives labels alone.
        total: dialogs of the input.
    """
    tallies = {each: _Tally(best) for each in models}
    dialogs = turns = 0
    for dialog in store.dialogs():
        dialogs += 1
        for turn in dialog.own_turns:
            turns += 1
            for verdict in turn.verdicts:
                if (tally := tallies.get((verdict.judge, verdict.model))) is not None:
                    tally.add(dialog, turn, verdict)
    usage = sum(store.spent().values(), Usage())
    return JudgingSummary(
        input=source,
        dialogs=dialogs,
        turns=turns,
        skipped=skipped,
        judges=tuple(tally.figures(judge, model) for (judge, model), tally in tallies.items()),
        lm_calls=usage.calls,
        tokens=Tokens(prompt=usage.prompt, cached=usage.cached, completion=usage.completion),
        seconds=round(store.seconds, 3),
        complete=store.attempted >= total,
    )


@dataclass
class _Group:
    """Labels and scores of a group of turns."""

    labels: Counter[str] = field(default_factory=Counter)
    scores: list[float] = field(default_factory=list)
    conditioned: list[float] = field(default_factory=list)

    def figures(self) -> Figures:
        return Figures(
            turns=self.labels.total(),
            labels=dict(sorted(self.labels.items())),
            mean=round(fmean(self.scores), 4) if self.scores else None,
            median=round(median(self.scores), 4) if self.scores else None,
            conditioned=round(fmean(self.conditioned), 4) if self.conditioned else None,
            conditioned_turns=len(self.conditioned),
        )


class _Tally:
    """The verdicts of one judge with one model, by groups of turns."""

    def __init__(self, best: float | None) -> None:
        self._best = best
        self._groups: dict[tuple[str, str], _Group] = {("all", ""): _Group()}
        self._unjudged: Counter[str] = Counter()
        self._idk: list[tuple[Answerability, str]] = []

    def add(self, dialog: Dialog, turn: Turn, verdict: Verdict) -> None:
        of = [("answerability", turn.answerability), ("corpus", dialog.corpus), ("lm", dialog.lm)]
        of += [("question_type", name) for name in turn.question_type.split("+")]
        value = _condition(turn, verdict, self._best)
        for key in (("all", ""), *of):
            group = self._groups.setdefault(key, _Group())
            group.labels[verdict.label] += 1
            if verdict.score is not None:
                group.scores.append(verdict.score)
            if value is not None:
                group.conditioned.append(value)
        if verdict.label == UNJUDGED:
            self._unjudged[verdict.explanation.partition(":")[0]] += 1
        if verdict.judge == IdkJudge.name and verdict.label in LABELS:
            self._idk.append((turn.answerability, verdict.label))

    def figures(self, judge: str, model: str) -> JudgeModel:
        accuracy = answerability_accuracy(self._idk)

        def by(name: str) -> dict[str, Figures]:
            return {value: group.figures() for (key, value), group in sorted(self._groups.items()) if key == name}

        return JudgeModel(
            judge=judge,
            model=model,
            all=self._groups["all", ""].figures(),
            unjudged=dict(self._unjudged.most_common()),
            answerability_accuracy=None if accuracy is None else round(accuracy, 4),
            answerability=by("answerability"),
            question_type=by("question_type"),
            corpus=by("corpus"),
            lm=by("lm"),
        )


def _condition(turn: Turn, verdict: Verdict, best: float | None) -> float | None:
    """Return the score of an answer, scaled to 0 to 1 and conditioned on its last `idk` verdict, if it has one."""
    if best is None or verdict.judge in _OF_QUESTIONS:
        return None
    idk = [v.label for v in turn.verdicts if v.judge == IdkJudge.name and v.label in LABELS]
    asks_nothing = turn.answerability == "conversational"  # left out, as in the paper
    if not idk or asks_nothing:
        return None
    # A response without a score, for lack of claims or passages, has a conditioned one where the score plays no part.
    score = None if verdict.score is None else verdict.score / best
    return conditioned(score, turn.answerability, idk[-1])


def closing_table(summary: JudgingSummary) -> None:
    """Print the summary: a row for each judge and model, one for each model that it judged if several; the calls."""
    rows = []
    for judge in summary.judges:
        title = f"{judge.judge} ({judge.model})" if judge.model else judge.judge
        of = [(title, judge.all), *((f"of {lm}", figures) for lm, figures in judge.lm.items())]
        for name, figures in of if len(judge.lm) > 1 else of[:1]:
            labels = ", ".join(f"{count} {label}" for label, count in figures.labels.items())
            scores = (figures.mean, figures.median, figures.conditioned)
            cells = ["" if score is None else f"{score:g}" for score in scores]
            rows.append([name, str(figures.turns), labels, *cells])
    numbers = ("mean", "median", "conditioned")
    print_table(rows, ("judge", "turns", "labels", *numbers), right=("turns", *numbers))
    for judge in summary.judges:
        if (accuracy := judge.answerability_accuracy) is not None:
            print(f"{judge.judge} ({judge.model}): {accuracy:.1%} of the labels fit the answerability", flush=True)
    tokens = summary.tokens
    if summary.lm_calls:
        calls, time = count_noun(summary.lm_calls, "call"), timedelta(seconds=int(summary.seconds))
        print(f"{calls}, {tokens.prompt:,} prompt tokens, {tokens.completion:,} completion tokens, {time}", flush=True)
