"""What a run of judging came to, as `summary.json`: read from the run's store, nothing counted twice."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median

from generator.execution.store import Store
from generator.output.summary import Tokens
from generator.schema import Answerability, Dialog, Record, Turn, Usage, Verdict
from judges.base import UNJUDGED
from judges.llm.idk import IdkJudge
from judges.metrics.conditioning import LABELS, answerability_accuracy, conditioned


class Figures(Record):
    """Of some turns. `mean` and `median` are of the scores, in the judge's own range.

    `conditioned` is the mean of the scores, scaled to 0 to 1 and conditioned on answerability and I-don't-know
    (`judges.metrics.conditioning`), of the `conditioned_turns` where that can be told.
    """

    turns: int
    labels: Mapping[str, int]
    mean: float | None
    median: float | None
    conditioned: float | None
    conditioned_turns: int


class JudgeModel(Record):
    """One judge with one model; a turn with several question types counts for each of them.

    `unjudged` has the reasons why turns have no verdict. `answerability_accuracy`, of the judge `idk` alone, is the
    share of turns whose label fits what can be answered, of those where that can be told (`judges.metrics.conditioning`).
    """

    judge: str
    model: str
    all: Figures
    unjudged: Mapping[str, int]
    answerability_accuracy: float | None
    answerability: Mapping[str, Figures]
    question_type: Mapping[str, Figures]
    corpus: Mapping[str, Figures]


class JudgingSummary(Record):
    """`dialogs` and `turns` are what was judged so far, `skipped` the records of the input that can't be read."""

    input: str
    dialogs: int
    turns: int
    skipped: int
    voices: tuple[JudgeModel, ...]
    lm_calls: int
    tokens: Tokens
    seconds: float
    complete: bool

    @property
    def judged(self) -> int:
        """Verdicts that are not `unjudged`."""
        return sum(voice.all.turns - sum(voice.unjudged.values()) for voice in self.voices)


def summarise(
    store: Store, source: str, voices: Iterable[tuple[str, str]], best: float, skipped: int, total: int
) -> JudgingSummary:
    """The summary of a run as it stands, in one pass over its dialogs.

    Args:
        source: the input, as it was given.
        voices: judge and model of the verdicts that this run gives.
        best: the judge's highest score.
        total: dialogs of the input.
    """
    tallies = {voice: _Tally(best) for voice in voices}
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
        voices=tuple(tally.voice(judge, model) for (judge, model), tally in tallies.items()),
        lm_calls=usage.calls,
        tokens=Tokens(prompt=usage.prompt, cached=usage.cached, completion=usage.completion),
        seconds=round(store.seconds, 3),
        complete=store.attempted >= total,
    )


@dataclass
class _Group:
    """What is known of the turns that belong together."""

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
    """The verdicts of one voice, by what the turns have in common."""

    def __init__(self, best: float) -> None:
        self._best = best
        self._groups: dict[tuple[str, str], _Group] = {("all", ""): _Group()}
        self._unjudged: Counter[str] = Counter()
        self._known: list[tuple[Answerability, str]] = []

    def add(self, dialog: Dialog, turn: Turn, verdict: Verdict) -> None:
        kinds = [("question_type", kind) for kind in turn.question_type.split("+")]
        value = _conditioned(turn, verdict, self._best)
        for key in (("all", ""), ("answerability", turn.answerability), *kinds, ("corpus", dialog.corpus)):
            group = self._groups.setdefault(key, _Group())
            group.labels[verdict.label] += 1
            if verdict.score is not None:
                group.scores.append(verdict.score)
            if value is not None:
                group.conditioned.append(value)
        if verdict.label == UNJUDGED:
            self._unjudged[verdict.explanation.partition(":")[0]] += 1
        if verdict.judge == IdkJudge.name and verdict.label in LABELS:
            self._known.append((turn.answerability, verdict.label))

    def voice(self, judge: str, model: str) -> JudgeModel:
        accuracy = answerability_accuracy(self._known)

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
        )


def _conditioned(turn: Turn, verdict: Verdict, best: float) -> float | None:
    """The score of a turn that the last I-don't-know judge had a word on, scaled to 0 to 1 and conditioned on that."""
    idk = [v.label for v in turn.verdicts if v.judge == IdkJudge.name and v.label in LABELS]
    asks_nothing = turn.answerability == "conversational"  # the paper leaves these out
    if not idk or asks_nothing or verdict.judge == IdkJudge.name or verdict.label == UNJUDGED:
        return None
    if verdict.score is not None:
        return conditioned(verdict.score / best, turn.answerability, idk[-1])
    # A response without a claim has no score of its own: the table may give it one all the same.
    lowest, highest = (conditioned(score, turn.answerability, idk[-1]) for score in (0.0, 1.0))
    return lowest if lowest == highest else None
