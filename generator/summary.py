"""What a run came to, as `summary.json`: read from the run's store, nothing counted twice."""

from collections import Counter
from collections.abc import Mapping

from generator.export.chat import Filter, pairs
from generator.schema import Record, Scope, Usage
from generator.store import Store
from taxonomy import Taxonomy


class Share(Record):
    """The share of a question type among the turns of its stage (first, or later)."""

    target: float
    achieved: float
    stage: str
    turns: int


class Tokens(Record):
    """Tokens as the servers counted them; `cached` is the part of `prompt` that a prefix cache held."""

    prompt: int
    cached: int
    completion: int


Counts = Mapping[str, Mapping[str, int]]


class Summary(Record):
    """`accepted + sum(dropped) == attempted`, all of dialogs; pairs are context-response pairs.

    `pairs_kept` is what the dataset holds: `pairs == pairs made in accepted dialogs - dropped_pairs`.
    """

    attempted: int
    accepted: int
    dropped: Counts
    dropped_turns: Counts
    dropped_pairs: Counts
    pairs: int
    unjudged_pairs: int
    ended: Mapping[str, int]
    question_types: Mapping[str, Share]
    lm_calls: int
    tokens: Tokens
    stages: Mapping[str, Usage]
    skipped: int
    seconds: float
    complete: bool


def summarise(store: Store, taxonomy: Taxonomy, keep: Filter, skipped: int, dialogs: int) -> Summary:
    """The summary of a run as it stands, in one pass over its dialogs."""
    asked: Counter[str] = Counter()
    kept = unjudged = 0
    for dialog in store.dialogs():
        asked.update(turn.question_type for turn in dialog.turns)
        rows, _ = pairs(dialog, keep)
        kept += len(rows)
        unjudged += sum(row.verdict == "unjudged" for row in rows)
    stages = store.usage()
    usage = sum(stages.values(), Usage())
    scopes: tuple[Scope, ...] = ("dialog", "turn", "pair")
    dropped, turns, lost = (store.dropped(scope) for scope in scopes)
    return Summary(
        attempted=store.attempted,
        accepted=store.accepted,
        dropped=dropped,
        dropped_turns=turns,
        dropped_pairs=lost,
        pairs=kept,
        unjudged_pairs=unjudged,
        ended=store.ended(),
        question_types=_shares(taxonomy, asked),
        lm_calls=usage.calls,
        tokens=Tokens(prompt=usage.prompt, cached=usage.cached, completion=usage.completion),
        stages=stages,
        skipped=skipped,
        seconds=round(store.seconds, 3),
        complete=store.accepted >= dialogs,
    )


def _shares(taxonomy: Taxonomy, asked: Counter[str]) -> dict[str, Share]:
    shares: dict[str, Share] = {}
    for stage, targets in (("first", taxonomy.first), ("later", taxonomy.later)):
        total = sum(asked[target.type.name] for target in targets) or 1
        for target in targets:
            turns = asked[target.type.name]
            shares[target.type.name] = Share(
                target=target.share, achieved=round(turns / total, 4), stage=stage, turns=turns
            )
    return shares
