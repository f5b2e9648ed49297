"""The table at the end of a run."""

from collections.abc import Iterator
from datetime import timedelta

from generator.common.console import count_noun
from generator.models.admission import CACHE_CURE
from generator.output.summary import Summary, by_frequency
from generator.output.tables import cell, print_table
from generator.schema import Cost

_Rows = Iterator[tuple[str, str]]


def closing_table(summary: Summary) -> None:
    """Print the outcome of a run."""
    attempted = f"{summary.accepted:,} of {count_noun(summary.attempted, 'attempted dialog')}"
    rows = [("accepted", f"{attempted}, {count_noun(summary.pairs, 'pair')}")]
    rows += [*_losses(summary), *_worth(summary), *(_shares(summary) if summary.accepted else ())]
    if summary.skipped:
        skipped = f"{count_noun(summary.skipped, 'document')} that can't be read, listed in skipped.jsonl"
        rows.append(("skipped", skipped))
    print_table([*rows, *_spent(summary), ("time", str(timedelta(seconds=int(summary.seconds))))])


def _losses(summary: Summary) -> _Rows:
    for title, stages in (
        ("dropped dialogs", summary.dropped),
        ("dropped turns", summary.dropped_turns),
        ("dropped pairs", summary.dropped_pairs),
        ("unused candidates", summary.dropped_candidates),
    ):
        if counts := by_frequency(stages):
            yield title, "\n".join(f"{count} × {why}" for why, count in counts)
    if summary.candidates_cost.calls:
        yield "for unused candidates", _spell(summary.candidates_cost)


def _worth(summary: Summary) -> _Rows:
    if summary.unjudged_pairs:
        reason = next(iter(summary.unjudged), "")
        unjudged = f"{summary.unjudged_pairs:,} of {count_noun(summary.pairs, 'pair')}, most often: {reason}"
        yield "unjudged", f"{unjudged}; python -m judges judges them by another judge, or again where a call failed"
    if summary.evidence_covers is not None:
        yield "evidence", f"covers the answer of {summary.evidence_covers:.0%} of the pairs"
    if summary.difficulty:
        unranked = "" if summary.ranked else "; none can be hard without ranks of the evidence"
        levels = ", ".join(f"{count} {level}" for level, count in summary.difficulty.items())
        yield "difficulty", f"{levels}{unranked}"
    if summary.guessable:
        yield "gives itself away", f"without reading a passage: {', '.join(summary.guessable)}"


def _shares(summary: Summary) -> _Rows:
    types = list(summary.question_types.values())
    for title, shares in (
        ("tasks", list(summary.tasks.values())),
        ("first questions", [share for share in types if share.stage == "first"]),
        ("later questions", [share for share in types if share.stage == "later"]),
        ("multi-turn types", list(summary.multi_turn_types.values())),
        ("standalone", list(summary.standalone.values())),
        ("answerability", list(summary.answerability.values())),
    ):
        if shares:
            yield title, ", ".join(f"{s.type} {s.achieved:.0%} (target {s.target:.0%})" for s in shares)


def _spent(summary: Summary) -> _Rows:
    tokens = summary.tokens
    counted = ", the server doesn't report tokens" if summary.lm_calls else ""
    if tokens.prompt:
        cached = f"{tokens.cached / tokens.prompt:.0%} from the server's cache"
        counted = f", {tokens.prompt:,} prompt tokens ({cached}), {tokens.completion:,} completion tokens"
    yield "model", f"{count_noun(summary.lm_calls, 'call')}{counted}"
    if (share := summary.cached_share).stages:
        yield "cached, by stage", ", ".join(f"{stage} {part:.0%}" for stage, part in share.stages.items())
        yield "cached, over time", " ".join(cell(part, "{:.0%}") for part in share.over_time)
    if fell := share.collapsed:
        yield "warning", f"the cached share fell from {fell[0]:.0%} to {fell[1]:.0%}: {CACHE_CURE}"
    if (surplus := summary.surplus).dialogs:
        begun = f"{count_noun(surplus.dialogs, 'dialog')} begun too many: {_spell(surplus)}"
        yield "surplus", f"{begun}; a higher dialogs=… uses them"
    costs = []
    for stage, cost in summary.pair_cost.items():
        taken = f", {cost.computed:,.0f} prompt tokens computed, {cost.completion:,.0f} completed"
        costs.append(f"{stage} {cost.calls:.1f} calls{taken if tokens.prompt else ''}")
    if costs:
        yield "cost of a pair", "\n".join(costs)


def _spell(cost: Cost) -> str:
    return f"{count_noun(cost.calls, 'call')}, {cost.prompt:,} prompt tokens, {cost.completion:,} completion tokens"
