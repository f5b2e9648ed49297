"""Dialogs in numbers, as in table 9 of Lee et al. 2024 and table 8 of Katsis et al. 2025.

Counted over whole dialogs, before pairs are filtered, as in the papers. Words are separated by white space.
`docs/statistics.md` defines each figure.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from generator.common.language import languages
from generator.common.scripts import count_words
from generator.dialogs.checks.evidence import find_evidence_language, measure_turn
from generator.dialogs.checks.later_turns import leans
from generator.dialogs.columns import (
    READ,
    difficulty,
    label_order,
    needs_documents,
    new_passages,
    overlap,
    verdict_label,
)
from generator.schema import UNLABELLED, Dialog, Record, Turn
from taxonomy import PLAIN

_WORTH: Mapping[str, Callable[[Dialog, Turn], float | None]] = {
    "overlap": lambda _, turn: overlap(turn),
    "rank_last_turn": lambda _, turn: None if turn.rank_last_turn is None else float(turn.rank_last_turn <= READ),
    "rank_query": lambda _, turn: None if turn.rank_query is None else float(turn.rank_query <= READ),
    "new_passages": lambda dialog, turn: None if (new := new_passages(dialog, turn)) is None else float(new > 0),
}


class Means(Record):
    """A line of table 9, and more. `dialogs` is a count, the rest are means; lengths are in words.

    Attributes:
        response: mean length of the answers, which a benchmark's item may lack.
        document: length of all passages of a dialog together, as the model read them.
        passages: different passages per dialog, retrieved or given from the start.
        relevant_passages: different passages per dialog that evidence points to.
        relevant: the same per turn.
        edited: responses per dialog that people edited after a model wrote them.
        grounded_response, grounded_relevant: `response` and `relevant` of the answerable and partial turns alone, as in
            mtRAG's table 8; None if there are none.
        covered: share of the answers whose evidence covers them; None if none has evidence.
    """

    dialogs: int
    turns: float
    query: float
    response: float
    document: float
    passages: float
    relevant_passages: float
    relevant: float
    edited: float
    grounded_response: float | None
    grounded_relevant: float | None
    covered: float | None


class Portion(Record):
    """The number of turns with a label, and their share. A turn may have several question types."""

    name: str
    count: int
    share: float


class Statistics(Record):
    """Means by the first turn's question types (sorted by name) and in total, and the labels of the turns.

    Attributes:
        turns: the turns that are counted; of a task the last one alone. All figures but the mean number of turns are
            about these.
        question_types, answerability, verdicts: of all turns.
        first_types: question types of the first turns.
        later_types, multi_turn_types: of the later ones.
        standalone: of the later ones that were planned to be `standalone` or not: `non-standalone` are those that need
            the dialog before them, as far as words tell (`generator.dialogs.checks.later_turns.leans`).
        users: user types, of all dialogs; empty if every user is the plain one, as in human dialogs.
        difficulty, needs_documents: of the turns that have this column (`generator.dialogs.columns`); no difficulty
            where no evidence was ranked, since nothing is hard then.
        judges: labels of each judge's last verdict, of the turns that it judged, by its name; empty if it only scores.
        scores: means of each judge's scores.
        worth: means of the turns that have the column: `overlap`, and the share of turns whose evidence is among the
            first five hits of the last turn, and of the retrieval query, and in a passage that no earlier one's is in.
    """

    by_type: tuple[tuple[str, Means], ...]
    total: Means
    turns: int
    question_types: tuple[Portion, ...]
    first_types: tuple[Portion, ...]
    later_types: tuple[Portion, ...]
    multi_turn_types: tuple[Portion, ...]
    standalone: tuple[Portion, ...]
    answerability: tuple[Portion, ...]
    verdicts: tuple[Portion, ...]
    users: tuple[Portion, ...]
    difficulty: tuple[Portion, ...]
    needs_documents: tuple[Portion, ...]
    judges: Mapping[str, tuple[Portion, ...]]
    scores: Mapping[str, float]
    worth: Mapping[str, float]


class Tally:
    """Counts dialogs one by one, in constant memory."""

    def __init__(self) -> None:
        self._total = Counter[str]()
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by first question type
        self._labels: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by the fields of `Statistics`
        self._worth: defaultdict[str, float] = defaultdict(float)
        self._worth_of: Counter[str] = Counter()
        self._judges: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._scores: defaultdict[str, float] = defaultdict(float)
        self._scores_of: Counter[str] = Counter()

    def add(self, dialog: Dialog) -> None:
        """Count a dialog with at least one turn."""
        sums = _sums(dialog)
        for of in (self._total, *(self._sums[label] for label in _labels(dialog.own_turns[0].question_type))):
            of.update(sums)
        self._add_labels(dialog)
        self._add_verdicts(dialog)
        for name, value_of in _WORTH.items():
            values = [value for t in dialog.own_turns if (value := value_of(dialog, t)) is not None]
            self._worth[name] += sum(values)
            self._worth_of[name] += len(values)

    def _add_labels(self, dialog: Dialog) -> None:
        turns = dialog.own_turns
        first, later = [t for t in turns if t.turn == 1], [t for t in turns if t.turn > 1]
        count = self._labels
        count["question_types"].update(label for t in turns for label in _labels(t.question_type))
        count["first_types"].update(label for t in first for label in _labels(t.question_type))
        count["later_types"].update(label for t in later for label in _labels(t.question_type))
        count["multi_turn_types"].update(label for t in later for label in _labels(t.multi_turn_type))
        count["standalone"].update(
            "non-standalone" if leans(t) else "standalone"
            for t in later
            if t.planned and t.planned.standalone is not None
        )
        count["users"][dialog.user or PLAIN.name] += 1
        count["answerability"].update(t.answerability for t in turns)
        count["verdicts"].update(map(verdict_label, turns))
        count["difficulty"].update(level for t in turns if (level := difficulty(t)))
        count["needs_documents"].update(
            "yes" if needs else "no" for t in turns if (needs := needs_documents(t)) is not None
        )

    def _add_verdicts(self, dialog: Dialog) -> None:
        for turn in dialog.own_turns:
            for judge, verdict in {verdict.judge: verdict for verdict in turn.verdicts}.items():
                self._judges[judge][verdict.label] += 1
                if verdict.score is not None:
                    self._scores[judge] += verdict.score
                    self._scores_of[judge] += 1

    def statistics(self) -> Statistics:
        """Return the numbers so far."""
        sums = self._total
        dialogs, turns, first = sums["dialogs"], sums["turns"], sums["first"]
        totals = {"question_types": turns, "answerability": turns, "verdicts": turns, "first_types": first}
        totals |= {"users": dialogs, "later_types": turns - first, "multi_turn_types": turns - first}
        counts = self._labels | ({} if self._worth_of["rank_last_turn"] else {"difficulty": Counter()})
        counts |= {"users": Counter()} if counts["users"].keys() <= {PLAIN.name} else {}
        totals |= {name: counts[name].total() for name in ("standalone", "difficulty", "needs_documents")}
        return Statistics(
            by_type=tuple((name, _means(self._sums[name])) for name in sorted(self._sums)),
            total=_means(sums),
            turns=turns,
            judges={judge: _portions(labels, labels.total()) for judge, labels in sorted(self._judges.items())},
            scores={judge: self._scores[judge] / count for judge, count in sorted(self._scores_of.items())},
            worth={name: self._worth[name] / count for name, count in self._worth_of.items() if count},
            **{labels: _portions(counts[labels], total) for labels, total in totals.items()},
        )


def evidence_covers(dialog: Dialog, turn: Turn) -> bool | None:
    """Return whether a turn's evidence covers its answer; None if it has none and needn't, or has another language.

    A reply to what can't be answered needs none: it may decline, or doubt that the question makes sense.
    """
    if languages().differ:
        return None
    support = measure_turn(dialog.grounding(turn.turn), dialog.turns[: turn.turn - 1], turn)
    if support is None or (not turn.evidence and (support.covered or turn.answerability == "unanswerable")):
        return None
    return support.covered or (None if find_evidence_language(turn.evidence, support.missing) else False)


def _relevant(turns: Iterable[Turn]) -> set[str]:
    return {evidence.passage_id for t in turns for evidence in t.evidence}


def _labels(joined: str | None) -> set[str]:
    """Return the labels of a turn; several are joined by `+`."""
    return set((joined or UNLABELLED).split("+"))


def _sums(dialog: Dialog) -> Counter[str]:
    """Return what `_means` divides, of one dialog."""
    turns = dialog.own_turns
    grounded = [t for t in turns if t.answer and t.answerability in ("answerable", "partial")]
    measured = [covers for t in turns if (covers := evidence_covers(dialog, t)) is not None]
    retrieved = {hit.passage_id for t in turns for hit in t.hits}
    return Counter(
        dialogs=1,
        all_turns=len(dialog.turns),
        turns=len(turns),
        first=sum(t.turn == 1 for t in turns),
        query=sum(count_words(t.query) for t in turns),
        answered=sum(bool(t.answer) for t in turns),
        response=sum(count_words(t.answer) for t in turns),
        document=sum(count_words(p.text) for p in dialog.passages),
        passages=len(retrieved.union(p.id for p in dialog.passages)),
        relevant_passages=len(_relevant(turns)),
        relevant=sum(len(_relevant([t])) for t in turns),
        edited=sum(bool(t.original_answer) for t in turns),
        grounded=len(grounded),
        grounded_response=sum(count_words(t.answer) for t in grounded),
        grounded_relevant=sum(len(_relevant([t])) for t in grounded),
        measured=len(measured),
        covered=sum(measured),
    )


def _means(sums: Counter[str]) -> Means:
    def mean(figure: str, per: str) -> float:
        return sums[figure] / sums[per] if sums[per] else 0.0

    return Means(
        dialogs=sums["dialogs"],
        turns=mean("all_turns", "dialogs"),
        query=mean("query", "turns"),
        response=mean("response", "answered"),
        document=mean("document", "dialogs"),
        passages=mean("passages", "dialogs"),
        relevant_passages=mean("relevant_passages", "dialogs"),
        relevant=mean("relevant", "turns"),
        edited=mean("edited", "dialogs"),
        grounded_response=mean("grounded_response", "grounded") if sums["grounded"] else None,
        grounded_relevant=mean("grounded_relevant", "grounded") if sums["grounded"] else None,
        covered=mean("covered", "measured") if sums["measured"] else None,
    )


def _portions(counts: Counter[str], total: int) -> tuple[Portion, ...]:
    names = sorted((name for name, n in counts.items() if n), key=label_order)
    return tuple(Portion(name=name, count=counts[name], share=counts[name] / total) for name in names)
