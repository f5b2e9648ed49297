"""What a turn turned out to be, in place of what was planned: its labels by the judges that measure them.

Both papers leave unanswerable questions open: asked for one, a model often writes a question that the passages do
answer (Katsis et al. 2025, section 9). So the plan is only a wish; what the passages answer and what the answer says of
itself decide, and a response that goes against the passages is incorrect.
"""

from typing import cast

from generator.schema import Answerability, Turn, Verdict

MEASURES = ("question_type", "answerability", "idk")

# By how much the passages answer, and whether the answer says that it isn't known: the label, or what is wrong.
_SETTLED: dict[tuple[str, str], Answerability | str] = {
    ("answerable", "no"): "answerable",
    ("answerable", "partial"): "partial",
    ("answerable", "yes"): "says that isn't known what the passages tell",
    ("partial", "no"): "doesn't say what the passages leave out",
    ("partial", "partial"): "partial",
    ("partial", "yes"): "says that isn't known what the passages tell in part",
    ("unanswerable", "no"): "answers what the passages don't tell",
    ("unanswerable", "partial"): "partial",
    ("unanswerable", "yes"): "unanswerable",
}


def relabelled(turn: Turn) -> Turn:
    """The turn with the labels of its verdicts; where they contradict each other, with a verdict `incorrect` more.

    A judge that failed changes nothing: then the answering model's own word stays, or that of the other judge.
    """
    labels = {v.judge: v.label for v in turn.verdicts if v.judge in MEASURES and v.label != "unjudged"}
    changes: dict[str, object] = {}
    if "question_type" in labels:
        changes["question_type"] = labels["question_type"]
    found = labels.get("answerability", turn.answerability)
    settled = _SETTLED.get((found, labels["idk"]), found) if "idk" in labels else found
    if " " in settled:
        refusal = Verdict(judge="agreement", label="incorrect", explanation=settled, model="")
        changes["verdicts"] = (*turn.verdicts, refusal)
        settled = found
    changes["answerability"] = cast(Answerability, settled)
    return turn.model_copy(update=changes)
