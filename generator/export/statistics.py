"""What a dataset looks like in numbers, as in table 9 of Lee et al. 2024 and a little more.

Counted over whole dialogs, before pairs are filtered, as the paper's table is. A word is what white space separates.
"""

from collections import Counter, defaultdict

from generator.export.chat import deciding
from generator.export.markdown import line, table
from generator.schema import Dialog, Record


class Means(Record):
    """One line of table 9. `dialogs` is a count; the rest are means, lengths in words.

    `document` is the length of a dialog's grounding: all its passages together, as the model read them.
    """

    dialogs: int
    turns: float
    query: float
    response: float
    document: float
    passages: float


class Portion(Record):
    """How many there are of a kind, and their share of all."""

    name: str
    count: int
    share: float


class Statistics(Record):
    """Means by the first turn's question type (sorted by name) and in total; what the turns are."""

    by_type: tuple[tuple[str, Means], ...]
    total: Means
    question_types: tuple[Portion, ...]
    answerability: tuple[Portion, ...]
    verdicts: tuple[Portion, ...]

    def as_markdown(self) -> str:
        """Two tables: table 9, and the shares of the turns."""
        head = ("First question", "Dialogs", "Turns/dialog", "Query", "Response", "Document", "Passages/dialog")
        lines = [*((line(name), means) for name, means in self.by_type), ("**total**", self.total)]
        means = [
            (
                name,
                f"{m.dialogs:,}",
                f"{m.turns:.1f}",
                f"{m.query:.1f}",
                f"{m.response:.1f}",
                f"{m.document:,.0f}",
                f"{m.passages:.1f}",
            )
            for name, m in lines
        ]
        shares = [
            [f"{what}: {line(p.name)}", f"{p.count:,}", f"{p.share:.1%}"]
            for what, portions in (
                ("question type", self.question_types),
                ("answerability", self.answerability),
                ("verdict", self.verdicts),
            )
            for p in portions
        ]
        return f"{table(head, means)}\n\n{table(('Turns', 'Count', 'Share'), shares)}"


class Tally:
    """Counts dialogs one by one, in memory that doesn't grow with them."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._question_types: Counter[str] = Counter()
        self._answerability: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()

    def add(self, dialog: Dialog) -> None:
        """Count a dialog."""
        turns = dialog.turns
        self._sums[turns[0].question_type].update(
            dialogs=1,
            turns=len(turns),
            query=sum(_words(t.query) for t in turns),
            response=sum(_words(t.answer) for t in turns),
            document=sum(_words(p.text) for p in dialog.passages),
            passages=len(dialog.passages),
        )
        self._question_types.update(t.question_type for t in turns)
        self._answerability.update(t.answerability for t in turns)
        self._verdicts.update(v.label if (v := deciding(t)) else "none" for t in turns)

    def statistics(self) -> Statistics:
        """The numbers so far."""
        return Statistics(
            by_type=tuple((name, _means(self._sums[name])) for name in sorted(self._sums)),
            total=_means(sum(self._sums.values(), Counter())),
            question_types=_portions(self._question_types),
            answerability=_portions(self._answerability),
            verdicts=_portions(self._verdicts),
        )


def _words(text: str) -> int:
    return len(text.split())


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
    )


def _portions(counts: Counter[str]) -> tuple[Portion, ...]:
    total = counts.total()
    return tuple(Portion(name=name, count=n, share=n / total) for name, n in sorted(counts.items()) if n)
