"""Label a turn by what it turned out to be, in place of what was planned: by the judges that measure its labels.

Both papers leave unanswerable questions open: asked for one, a model often writes a question that the passages do
answer (Katsis et al. 2025, section 9). So a plan is only a wish. What counts is how much the passages answer, and how
much the answer claims to know; a response that contradicts the passages is incorrect.
"""

from generator.schema import Turn, Verdict
from taxonomy.types import RESOLUTION

MEASURES = ("question_type", "answerability", "idk")

# By how much the passages answer, and whether the response says that it doesn't know: what it answers in part, and what
# contradicts the passages.
_IN_PART = (("answerable", "partial"), ("unanswerable", "partial"))
_CONTRADICTIONS = {
    ("answerable", "yes"): "claims not to know what the passages answer",
    ("partial", "no"): "doesn't name what the passages leave open",
    ("partial", "yes"): "claims not to know what the passages answer in part",
    ("unanswerable", "no"): "answers what the passages don't answer",
}


def relabel_turn(turn: Turn) -> Turn:
    """Return the turn with the labels of its verdicts, and a verdict `incorrect` if they contradict each other.

    A judge that failed changes nothing: the answering model's own label stays, or that of the other judge. What answers
    the agent (“The Plus plan.”) stays a statement, though its words alone look like a search.
    """
    labels = {v.judge: v.label for v in turn.verdicts if v.judge in MEASURES and v.label != "unjudged"}
    answerability = labels.get("answerability", turn.answerability)
    measured = (answerability, labels.get("idk", ""))
    changes: dict[str, object] = {"answerability": "partial" if measured in _IN_PART else answerability}
    resolves = turn.planned is not None and turn.planned.multi_turn_type == RESOLUTION
    if "question_type" in labels and not resolves:
        changes["question_type"] = labels["question_type"]
    if measured in _CONTRADICTIONS:
        refusal = Verdict(judge="agreement", label="incorrect", explanation=_CONTRADICTIONS[measured], model="")
        changes["verdicts"] = (*turn.verdicts, refusal)
    return turn.model_copy(update=changes)
