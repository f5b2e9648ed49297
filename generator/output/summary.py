"""What a run came to, as `summary.json`: read from the run's store, nothing counted twice."""

from collections import Counter
from collections.abc import Iterable, Mapping

from generator.dialogs.filter import Filter, deciding_verdict, filter_pairs
from generator.execution.store import Store
from generator.output.stats.statistics import Portion, Statistics, Tally
from generator.schema import Record, Scope, Usage
from taxonomy import Taxonomy

SCOPES: tuple[Scope, ...] = ("dialog", "turn", "pair")


class Share(Record):
    """The share of a question type among the turns of its stage (first, or later), or of what else is planned among the
    turns that it is planned for (later, or all). A turn may have several types.
    """

    type: str
    target: float
    achieved: float
    stage: str
    turns: int


class Tokens(Record):
    """Tokens as the servers counted them; `cached` is the part of `prompt` that a prefix cache held."""

    prompt: int
    cached: int
    completion: int


class PairCost(Record):
    """What an accepted pair cost, with its part of all that came to nothing: calls, prompt tokens that the server
    computed, completion tokens.
    """

    calls: float
    computed: float
    completion: float


Counts = Mapping[str, Mapping[str, int]]


class Summary(Record):
    """`accepted + sum(dropped) == attempted`, all of dialogs; pairs are context-response pairs.

    `pairs` is what the dataset holds: pairs made in accepted dialogs less `dropped_pairs`. A question type
    that is planned for first and for later turns is named with its stage. `unjudged` has the reasons why
    `unjudged_pairs` have no verdict. `multi_turn_types` and `answerability` are
    empty where the taxonomy doesn't plan them. `pair_cost` is by stage, and of all (`all`); empty without
    a pair.
    """

    attempted: int
    accepted: int
    dropped: Counts
    dropped_turns: Counts
    dropped_pairs: Counts
    pairs: int
    unjudged_pairs: int
    unjudged: Mapping[str, int]
    ended: Mapping[str, int]
    question_types: Mapping[str, Share]
    multi_turn_types: Mapping[str, Share]
    answerability: Mapping[str, Share]
    lm_calls: int
    tokens: Tokens
    stages: Mapping[str, Usage]
    pair_cost: Mapping[str, PairCost]
    skipped: int
    seconds: float
    complete: bool


def summarise(store: Store, taxonomy: Taxonomy, keep: Filter, skipped: int, dialogs: int) -> Summary:
    """The summary of a run as it stands, in one pass over its dialogs."""
    tally = Tally()
    kept, unjudged = 0, Counter[str]()
    for dialog in store.dialogs():
        tally.add(dialog)
        turns, _ = filter_pairs(dialog, keep)
        kept += len(turns)
        verdicts = (verdict for turn in turns if (verdict := deciding_verdict(turn)))
        unjudged.update(v.explanation.partition(": ")[0] for v in verdicts if v.label == "unjudged")
    asked = tally.statistics()
    stages = store.spent()
    usage = sum(stages.values(), Usage())
    dropped, dropped_turns, dropped_pairs = (store.dropped(scope) for scope in SCOPES)
    return Summary(
        attempted=store.attempted,
        accepted=store.accepted,
        dropped=dropped,
        dropped_turns=dropped_turns,
        dropped_pairs=dropped_pairs,
        pairs=kept,
        unjudged_pairs=unjudged.total(),
        unjudged=dict(unjudged.most_common()),
        ended=store.endings(),
        question_types=_types(taxonomy, asked),
        multi_turn_types=_shares(_links(taxonomy), asked.multi_turn_types, "later"),
        answerability=_shares({s.type.name: s.share for s in taxonomy.answerability}, asked.answerability, "all"),
        lm_calls=usage.calls,
        tokens=Tokens(prompt=usage.prompt, cached=usage.cached, completion=usage.completion),
        stages=stages,
        pair_cost={stage: _cost(spent, kept) for stage, spent in {**stages, "all": usage}.items()} if kept else {},
        skipped=skipped,
        seconds=round(store.seconds, 3),
        complete=store.accepted >= dialogs,
    )


def _cost(spent: Usage, pairs: int) -> PairCost:
    computed = spent.prompt - spent.cached
    calls, computed_each, completion = (round(n / pairs, 2) for n in (spent.calls, computed, spent.completion))
    return PairCost(calls=calls, computed=computed_each, completion=completion)


def _types(taxonomy: Taxonomy, asked: Statistics) -> dict[str, Share]:
    first, later = ({share.type.name: share.share for share in shares} for shares in (taxonomy.first, taxonomy.later))
    opening = _shares(first, asked.first_types, "first")
    going_on = _shares(later, asked.later_types, "later")
    named = ((name, share) for shares in (opening, going_on) for name, share in shares.items())
    return {f"{name} ({share.stage})" if name in first.keys() & later.keys() else name: share for name, share in named}


def _links(taxonomy: Taxonomy) -> dict[str, float]:
    """The targets of multi-turn types, all clarifications together, as turns have them."""
    targets: dict[str, float] = {}
    for share in taxonomy.multi_turn:
        targets[share.type.kind] = targets.get(share.type.kind, 0) + share.share
    return targets


def _shares(targets: Mapping[str, float], found: Iterable[Portion], stage: str) -> dict[str, Share]:
    """Targets beside what became of them; what nobody asked for is left out."""
    there = {portion.name: portion for portion in found}
    none = Portion(name="", count=0, share=0)
    return {
        name: Share(
            type=name,
            target=target,
            achieved=round(there.get(name, none).share, 4),
            stage=stage,
            turns=there.get(name, none).count,
        )
        for name, target in targets.items()
    }
