"""Decide which context-response pairs of a judged dialog are kept (Lee et al. 2024, section 2.5); only here."""

from typing import Literal

from generator.schema import Dialog, Drop, Turn, Verdict

Filter = Literal["pairs", "prefix", "dialog", "verified"]

# Where judges differ, the strictest decides: correct is what all of them found correct.
_STRICTEST = ("incorrect", "unjudged", "correct")


def deciding_verdict(turn: Turn) -> Verdict | None:
    """Return the strictest of the verdicts that decide about a turn; None without a judge."""
    deciders = (verdict for verdict in turn.verdicts if verdict.decides)
    return min(deciders, key=lambda verdict: _STRICTEST.index(verdict.label), default=None)


def filter_pairs(dialog: Dialog, keep: Filter) -> tuple[list[Turn], list[Drop]]:
    """Return the turns whose pairs are kept, and a drop for each of the others; a task has the pair of its last turn.

    Args:
        keep: `pairs` removes a pair judged incorrect (the paper), `prefix` also those after it, `dialog` all pairs of
            a dialog with an incorrect one. A pair without a verdict, or that the judge failed on, is not incorrect,
            but with `verified` a dialog is also removed for a pair that the judge failed on.
    """
    kept, drops = [], []
    failing = {"incorrect", "unjudged"} if keep == "verified" else {"incorrect"}
    incorrect = [t.turn for t in dialog.own_turns if (v := deciding_verdict(t)) is not None and v.label in failing]
    for turn in dialog.own_turns:
        if turn.turn in incorrect:
            reason = "judged incorrect"
        elif keep == "prefix" and incorrect and turn.turn > incorrect[0]:
            reason = "follows an incorrect answer"
        elif keep in ("dialog", "verified") and incorrect:
            reason = "in a dialog with an incorrect answer"
        else:
            kept.append(turn)
            continue
        drops.append(
            Drop(dialog_id=dialog.id, scope="pair", turn=turn.turn, stage="judge", reason=reason, text=turn.answer)
        )
    return kept, drops
