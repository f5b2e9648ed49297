"""What dialogs look like in numbers, as in table 9 of Lee et al. 2024 and table 8 of Katsis et al. 2025.

Counted over whole dialogs, before pairs are filtered, as the papers' tables are. A word is what white space separates.
What the figures are is said in `docs/statistics.md`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from generator.dialogs.filter import deciding_verdict
from generator.schema import UNLABELLED, Dialog, Record, Turn


class Means(Record):
    """One line of table 9, and more. `dialogs` is a count; the rest are means, lengths in words.

    Attributes:
        document: the length of a dialog's grounding: all its passages together, as the model read them.
        passages: of a dialog, each once: retrieved, or shown from the start.
        relevant_passages: of a dialog, each once: those that evidence points to.
        relevant: likewise, of a turn.
        edited: responses that people mended after a model wrote them, of a dialog.
        grounded_response, grounded_relevant: `response` and `relevant` of the answerable and partial turns alone, which
            mtRAG's table 8 counts; None if there are none.
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


class Portion(Record):
    """How many turns there are of a kind, and their share. Of question types a turn may have several."""

    name: str
    count: int
    share: float


class Statistics(Record):
    """Means by the first turn's question type (sorted by name) and in total; what the turns are.

    Attributes:
        turns: how many.
        question_types, answerability, verdicts: of all turns.
        first_types: question types of the first turns.
        later_types, multi_turn_types: of the later ones.
    """

    by_type: tuple[tuple[str, Means], ...]
    total: Means
    turns: int
    question_types: tuple[Portion, ...]
    first_types: tuple[Portion, ...]
    later_types: tuple[Portion, ...]
    multi_turn_types: tuple[Portion, ...]
    answerability: tuple[Portion, ...]
    verdicts: tuple[Portion, ...]


class Tally:
    """Counts dialogs one by one, in memory that doesn't grow with them."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._question_types: Counter[str] = Counter()
        self._first_types: Counter[str] = Counter()
        self._later_types: Counter[str] = Counter()
        self._multi_turn_types: Counter[str] = Counter()
        self._answerability: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()

    def add(self, dialog: Dialog) -> None:
        """Count a dialog, which has a turn."""
        turns, later = dialog.turns, dialog.turns[1:]
        grounded = [t for t in turns if t.answerability in ("answerable", "partial")]
        retrieved = {hit.passage_id for t in turns for hit in t.hits}
        self._sums[turns[0].question_type].update(
            dialogs=1,
            turns=len(turns),
            query=sum(_words(t.query) for t in turns),
            response=sum(_words(t.answer) for t in turns),
            document=sum(_words(p.text) for p in dialog.passages),
            passages=len(retrieved.union(p.id for p in dialog.passages)),
            relevant_passages=len(_relevant(turns)),
            relevant=sum(len(_relevant([t])) for t in turns),
            edited=sum(bool(t.original_answer) for t in turns),
            grounded=len(grounded),
            grounded_response=sum(_words(t.answer) for t in grounded),
            grounded_relevant=sum(len(_relevant([t])) for t in grounded),
        )
        self._question_types.update(label for t in turns for label in _labels(t.question_type))
        self._first_types.update(_labels(turns[0].question_type))
        self._later_types.update(label for t in later for label in _labels(t.question_type))
        self._multi_turn_types.update(label for t in later for label in _labels(t.multi_turn_type))
        self._answerability.update(t.answerability for t in turns)
        self._verdicts.update(v.label if (v := deciding_verdict(t)) else "none" for t in turns)

    def statistics(self) -> Statistics:
        """The numbers so far."""
        sums = sum(self._sums.values(), Counter())
        dialogs, turns = sums["dialogs"], sums["turns"]
        return Statistics(
            by_type=tuple((name, _means(self._sums[name])) for name in sorted(self._sums)),
            total=_means(sums),
            turns=turns,
            question_types=_portions(self._question_types, turns),
            first_types=_portions(self._first_types, dialogs),
            later_types=_portions(self._later_types, turns - dialogs),
            multi_turn_types=_portions(self._multi_turn_types, turns - dialogs),
            answerability=_portions(self._answerability, turns),
            verdicts=_portions(self._verdicts, turns),
        )


def _words(text: str) -> int:
    return len(text.split())


def _relevant(turns: Iterable[Turn]) -> set[str]:
    return {evidence.passage_id for t in turns for evidence in t.evidence}


def _labels(joined: str | None) -> set[str]:
    """The labels of a turn: people gave some questions several, joined by `+`."""
    return set((joined or UNLABELLED).split("+"))


def _means(sums: Counter[str]) -> Means:
    def each(what: str, of: str) -> float:
        return sums[what] / sums[of] if sums[of] else 0.0

    return Means(
        dialogs=sums["dialogs"],
        turns=each("turns", "dialogs"),
        query=each("query", "turns"),
        response=each("response", "turns"),
        document=each("document", "dialogs"),
        passages=each("passages", "dialogs"),
        relevant_passages=each("relevant_passages", "dialogs"),
        relevant=each("relevant", "turns"),
        edited=each("edited", "dialogs"),
        grounded_response=each("grounded_response", "grounded") if sums["grounded"] else None,
        grounded_relevant=each("grounded_relevant", "grounded") if sums["grounded"] else None,
    )


def _portions(counts: Counter[str], total: int) -> tuple[Portion, ...]:
    return tuple(Portion(name=name, count=n, share=n / total) for name, n in sorted(counts.items()) if n)
