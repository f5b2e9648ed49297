"""Judge if a response is correct, given the documents and the dialog (Lee et al. 2024, section 2.5 and figure 10).

The rubric is `correctness.txt`.
"""

from typing import Annotated, Literal

import dspy
from pydantic import Field

from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import any_letters, cut_to
from generator.schema import Record, Verdict
from judges.base import UNJUDGED, ModelJudge, ModelJudgeSettings, rubric

_Finding = Literal["correct", "misses the question", "unsupported", "contradicted"]


class Statement(Record, extra="ignore"):
    """One part of a response, which may be all of it."""

    text: Annotated[str, cut_to(700)] = Field(max_length=700)
    finding: Annotated[_Finding, any_letters(_Finding)]


class Correctness(dspy.Signature):
    __doc__ = rubric(__file__)

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The response to judge")
    statements: list[Statement] = dspy.OutputField(
        desc='each {"text": the statement, "finding": "correct" if it addresses the query and the documents back it, '
        'else "misses the question", "unsupported" or "contradicted"}',
        min_length=1,
        max_length=5,
    )
    explanation: str = dspy.OutputField(
        desc="step by step, with the sentence numbers that support or contradict each statement", max_length=600
    )
    label: Literal["correct", "incorrect"] = dspy.OutputField(desc="correct only if every statement is")


class CorrectnessJudge(ModelJudge):
    """Labels a response `correct` or `incorrect`, after a finding on each of its statements."""

    name = "correctness"
    signature = Correctness
    decides = True

    def to_verdict(self, prediction: dspy.Prediction) -> Verdict:
        # By the rubric one failing statement makes a response incorrect: a label that ignores it is unusable.
        if prediction.label == "correct" and (failing := [s for s in prediction.statements if s.finding != "correct"]):
            return self.verdict(UNJUDGED, f"contradicts itself: “{failing[0].text}” {failing[0].finding}, yet correct")
        return self.verdict(prediction.label, prediction.explanation)


class CorrectnessSettings(ModelJudgeSettings):
    judge = CorrectnessJudge

    grounding: bool = Field(
        default=True,
        description="When dialogs are generated, `judge=grounding` decides too, which asks no model: a pair is also "
        "removed for words and numbers that no passage has, or that the cited sentences don't cover. What it leaves "
        "`unjudged` removes nothing.",
    )

    @property
    def companions(self) -> tuple[str, ...]:
        return ("grounding",) if self.grounding else ()
