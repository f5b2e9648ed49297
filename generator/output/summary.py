"""The outcome of a run, as in its `summary.json`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from generator.common.console import counted
from generator.dialogs.columns import Difficulty, deciding_verdict, difficulty
from generator.dialogs.filter import Filter
from generator.execution.store import Store
from generator.output.chat import kept_turns
from generator.output.stats.guesses import GuessTally
from generator.output.stats.statistics import Portion, Statistics, Tally, evidence_covers
from generator.schema import Cost, Record, Usage
from taxonomy import NON_QUESTION, UNDERSPECIFIED, Taxonomy


class Share(Record):
    """The target and achieved share of a task, a question type, a multi-turn type or an answerability.

    Attributes:
        stage: the turns that it is a share of: `first`, `later` or `all`; of a task, the first ones, which are as many
            as dialogs. A turn may have several types.
        turns: how many of them have it.
    """

    type: str
    target: float
    achieved: float
    stage: str
    turns: int


class Tokens(Record):
    """Tokens as the servers counted them; `cached` is the part of `prompt` that the prefix cache held."""

    prompt: int
    cached: int
    completion: int


class CachedShare(Record):
    """The share of prompt tokens that came from the servers' prefix caches, as far as replies say so.

    Attributes:
        stages: by stage.
        over_time: of the dialogs that ended in each tenth of the run, of whole minutes; None: none did.
    """

    stages: Mapping[str, float] = {}
    over_time: tuple[float | None, ...] = ()

    @property
    def collapsed(self) -> tuple[float, float] | None:
        """The best share and the last one, if that is less than half of it."""
        shares = [share for share in self.over_time if share is not None]
        return (max(shares), shares[-1]) if shares and shares[-1] < max(shares) / 2 else None


class PairCost(Record):
    """Calls, computed prompt tokens and completion tokens per kept pair, those of what was dropped included."""

    calls: float
    computed: float
    completion: float


class Surplus(Cost):
    """Work beyond the last dialog that a complete run needed; with a higher `dialogs` it goes on from there."""

    dialogs: int = 0


Counts = Mapping[str, Mapping[str, int]]


def by_frequency(counts: Counts) -> list[tuple[str, int]]:
    """Return counts by stage and reason as those of `stage: reason`, the highest first."""
    named = [(f"{stage}: {reason}", count) for stage, by in counts.items() for reason, count in by.items()]
    return sorted(named, key=lambda pair: -pair[1])


class Summary(Record):
    """The `summary.json` of a run. `accepted + sum(dropped) == attempted`, in dialogs.

    Attributes:
        dropped, dropped_turns, dropped_pairs: counts by stage and reason.
        dropped_candidates: the same, of questions, answers, turns and sets of questions that weren't the chosen ones.
        candidates_cost: what those took.
        pairs: context-response pairs in the dataset: those of accepted dialogs less `dropped_pairs`, and less those of
            a benchmark's items without a reference answer, or after one without.
        evidence_covers: share of the pairs whose evidence covers the answer (`generator.dialogs.checks.evidence`), of
            those that have or need some; None if none does.
        unjudged: how often a judge failed on one of the `unjudged_pairs`, by reason.
        difficulty: pairs in the dataset by `difficulty`, which those without evidence don't have.
        ranked: some have a rank of their evidence, without which none is hard.
        guessable: classes of answerability that a guesser tells without reading a passage, each with what it saw and
            the AUC; empty if none, or if there are too few pairs to tell.
        ended: dialogs by the reason why they have the number of turns they have.
        tasks: by name, of the dialogs; empty if the taxonomy has question types.
        question_types: by name; with its stage in the name if a type is planned for first and for later turns.
        multi_turn_types, standalone, answerability: empty if the taxonomy doesn't plan them.
        cached_share: empty if no server says it.
        pair_cost: by stage, and in total as `all`; empty without pairs.
        surplus: part of `lm_calls`, `tokens`, `stages` and `pair_cost`: the part that depends on timing, as `cached`
            does. Its dialogs are not among the attempted.
        skipped: documents that couldn't be read.
        complete: as many dialogs are accepted as were asked for.
    """

    attempted: int
    accepted: int
    dropped: Counts
    dropped_turns: Counts
    dropped_pairs: Counts
    dropped_candidates: Counts
    candidates_cost: Cost
    pairs: int
    evidence_covers: float | None
    unjudged_pairs: int
    unjudged: Mapping[str, int]
    difficulty: Mapping[str, int]
    ranked: bool = False
    guessable: tuple[str, ...]
    ended: Mapping[str, int]
    tasks: Mapping[str, Share]
    question_types: Mapping[str, Share]
    multi_turn_types: Mapping[str, Share]
    standalone: Mapping[str, Share]
    answerability: Mapping[str, Share]
    lm_calls: int
    tokens: Tokens
    cached_share: CachedShare = CachedShare()
    stages: Mapping[str, Usage]
    pair_cost: Mapping[str, PairCost]
    surplus: Surplus
    skipped: int
    seconds: float
    complete: bool


class HumanSummary(Record):
    """The `summary.json` of a folder of human dialogs: how many dialogs, pairs and skipped records."""

    human: int
    pairs: int
    skipped: int


def summarise(store: Store, taxonomy: Taxonomy, keep: Filter, skipped: int, dialogs: int) -> Summary:
    """Return the summary of a run so far, in one pass over its dialogs."""
    tally, guesses = Tally(), GuessTally()
    kept, ranked, unjudged, levels, covered = 0, False, Counter[str](), Counter[str](), Counter[bool]()
    for dialog in counted(store.dialogs(), "summing up dialogs"):
        tally.add(dialog)
        turns = kept_turns(dialog, keep)
        kept += len(turns)
        covered.update(covers for turn in turns if (covers := evidence_covers(dialog, turn)) is not None)
        levels.update(level for turn in turns if (level := difficulty(turn)))
        ranked = ranked or any(turn.rank_last_turn for turn in turns)
        guesses.add(dialog, turns)
        verdicts = (verdict for turn in turns if (verdict := deciding_verdict(turn)))
        unjudged.update(v.explanation.partition(": ")[0] for v in verdicts if v.label == "unjudged")
    achieved = tally.statistics()
    stages = store.spent()
    usage = sum(stages.values(), Usage())
    complete = store.accepted >= dialogs
    unfinished, calls = store.unfinished() if complete else (0, ())
    return Summary(
        attempted=store.attempted,
        accepted=store.accepted,
        dropped=store.dropped("dialog"),
        dropped_turns=store.dropped("turn"),
        dropped_pairs=store.dropped("pair"),
        dropped_candidates=store.dropped("candidate"),
        candidates_cost=sum((drop.cost for drop in store.drops() if drop.cost), Cost()),
        pairs=kept,
        evidence_covers=round(covered[True] / covered.total(), 4) if covered else None,
        unjudged_pairs=unjudged.total(),
        unjudged=dict(unjudged.most_common()),
        difficulty={level: levels[level] for level in get_args(Difficulty) if levels[level]},
        ranked=ranked,
        guessable=tuple(str(guess) for guess in guesses.guesses() if guess.gives_away),
        ended=store.endings(),
        # All turns of a dialog have its task as their question type.
        tasks=_shares({s.type.name: s.share for s in taxonomy.tasks}, achieved.first_types, "first"),
        question_types=_type_shares(taxonomy, achieved),
        multi_turn_types=_shares(_multi_turn_targets(taxonomy), achieved.multi_turn_types, "later"),
        standalone=_shares(
            {} if taxonomy.non_standalone is None else {"non-standalone": taxonomy.non_standalone},
            achieved.standalone,
            "later",
        ),
        answerability=_shares({s.type.name: s.share for s in taxonomy.answerability}, achieved.answerability, "all"),
        lm_calls=usage.calls,
        tokens=Tokens(prompt=usage.prompt, cached=usage.cached, completion=usage.completion),
        cached_share=_cached_share(stages, store.cached_by_minute()),
        stages=stages,
        pair_cost={stage: _cost(spent, kept) for stage, spent in {**stages, "all": usage}.items()} if kept else {},
        surplus=Surplus(dialogs=unfinished, **sum((each for _, each in calls), Usage()).cost.model_dump()),
        skipped=skipped,
        seconds=round(store.seconds, 3),
        complete=complete,
    )


def _cached_share(stages: Mapping[str, Usage], minutes: Sequence[tuple[int, int, int]]) -> CachedShare:
    if not any(usage.cached for usage in stages.values()):
        return CachedShare()
    length = minutes[-1][0] + 1 if minutes else 1
    parts = [[0, 0] for _ in range(min(10, length))]
    for minute, prompt, cached in minutes:
        part = parts[minute * len(parts) // length]
        part[0] += prompt
        part[1] += cached
    return CachedShare(
        stages={stage: round(usage.cached / usage.prompt, 4) for stage, usage in stages.items() if usage.prompt},
        over_time=tuple(round(cached / prompt, 4) if prompt else None for prompt, cached in parts),
    )


def _cost(spent: Usage, pairs: int) -> PairCost:
    computed = spent.prompt - spent.cached
    calls, computed_each, completion = (round(n / pairs, 2) for n in (spent.calls, computed, spent.completion))
    return PairCost(calls=calls, computed=computed_each, completion=completion)


def _type_shares(taxonomy: Taxonomy, achieved: Statistics) -> dict[str, Share]:
    first, later = ({share.type.name: share.share for share in shares} for shares in (taxonomy.first, taxonomy.later))
    shares = [*_shares(first, achieved.first_types, "first").values()]
    shares += _shares(_add(later, NON_QUESTION, _resolving(taxonomy)), achieved.later_types, "later").values()
    both = first.keys() & later.keys()
    return {f"{share.type} ({share.stage})" if share.type in both else share.type: share for share in shares}


def _multi_turn_targets(taxonomy: Taxonomy) -> dict[str, float]:
    """Return the targets of the multi-turn types, with all clarifications as one, as turns record them."""
    targets: dict[str, float] = {}
    for share in taxonomy.multi_turn:
        targets[share.type.kind] = targets.get(share.type.kind, 0) + share.share
    return _add(targets, "clarification", _resolving(taxonomy))


def _resolving(taxonomy: Taxonomy) -> float:
    """Return the share of later turns that resolve an underspecified one: about as many as are underspecified."""
    return sum(share.share for share in taxonomy.answerability if share.type.name == UNDERSPECIFIED)


def _add(targets: Mapping[str, float], name: str, share: float) -> dict[str, float]:
    """Return targets of which one has so much more, in equal parts of the others."""
    if name not in targets or not share:
        return dict(targets)
    rest = 1 - targets[name]
    left = (rest - share) / rest if rest else 1
    return {key: value + share if key == name else value * left for key, value in targets.items()}


def _shares(targets: Mapping[str, float], found: Iterable[Portion], stage: str) -> dict[str, Share]:
    """Return a share for each target; types without a target are left out, and all if no dialog has a later turn."""
    portions = {portion.name: portion for portion in found}
    if stage == "later" and not portions:
        return {}
    shares = {}
    for name, target in targets.items():
        portion = portions.get(name, Portion(name=name, count=0, share=0))
        shares[name] = Share(
            type=name, target=round(target, 4), achieved=round(portion.share, 4), stage=stage, turns=portion.count
        )
    return shares
