"""GEPA: a model reads replies and feedback, writes new instructions, and those that score better go on.

After Agrawal et al. 2025, “GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning”; the optimiser is
DSPy's.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from statistics import fmean
from typing import Any

import dspy

from generator.common.console import count_noun, note
from generator.errors import Rejected
from generator.optimization.bench import Bench, Student
from generator.optimization.data import Example, Split
from generator.prompts.adapter import P_YES, describe_outputs
from generator.prompts.calls import call
from generator.prompts.sections import neutralize

# As long as the longest of ours.
_LONGEST = 1500
# Characters of what was wrong with a reply.
_TOLD = 200
# What small models write about instructions, in place of instructions.
_ABOUT_THEM = re.compile(
    r"\binstructions (?:\w+ly )?(?:should|must|need|are|will|would|can|could)\b|^\W*(?:re)?write the instructions?\b",
    re.IGNORECASE,
)


class BetterInstructions(dspy.Signature):
    """Rewrite the instructions of another model, so that it does its task better. Read the examples: what it was \
asked, what it replied, and the feedback on that. First say what it does wrong, and which rule would have put it \
right. Then write the whole instructions anew, in plain sentences to that model: what the task is, what to look at and \
in which order, and how to decide. Keep what works, and state rules that hold for any example; name none of these. \
What it is told of its reply stays as it is: contradict none of it, and leave it out."""

    current: str = dspy.InputField(desc="The instructions so far")
    form: str = dspy.InputField(desc="What it is told of its reply")
    examples: str = dspy.InputField(desc="Examples")
    diagnosis: str = dspy.OutputField(desc="what is wrong, and which rule would put it right", max_length=600)
    better: str = dspy.OutputField(
        desc="the whole task, told to that model; it begins with a verb, as the instructions so far do",
        min_length=40,
        max_length=_LONGEST,
    )


class Proposer:
    """Writes new instructions from replies and feedback, as `dspy.GEPA` asks for them.

    DSPy's own proposer calls a model synchronously and in a format of its own; this one goes through our adapter, whose
    schema small models keep to, and through the store.
    """

    def __init__(self, bench: Bench, student: Student) -> None:
        self.bench, self.predict, self.rounds = bench, dspy.Predict(BetterInstructions), 0
        signatures = {name: predictor.signature for name, predictor in student.named_predictors()}
        self.forms = {
            name: "" if P_YES in signature.output_fields else describe_outputs(signature)
            for name, signature in signatures.items()
        }

    def __call__(
        self,
        candidate: Mapping[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: Sequence[str],
    ) -> dict[str, str]:
        """Return new instructions by the name of their predictor; without one where the reply can't be used."""
        proposals = {}
        for name in components_to_update:
            if examples := reflective_dataset.get(name):
                self.rounds += 1
                note(f"round {self.rounds}: instructions are rewritten")
                try:
                    proposals[name] = self.bench.wait(
                        self.bench.once(name, partial(self._propose, candidate[name], self.forms[name], examples))
                    )
                except Rejected as why:
                    wrong = why.text.rpartition("\n")[2].removeprefix("The reason: ")
                    note(f"round {self.rounds}: left out, since {why.reason}: {wrong[:_TOLD]}")
        return proposals

    async def _propose(self, instructions: str, form: str, examples: Sequence[Mapping[str, Any]]) -> str:
        shown = "\n\n".join(
            f"Example {number}\n{each['Feedback']}\nThe reply in full: {each['Generated Outputs']}"
            for number, each in enumerate(examples, start=1)
        )
        sampling = self.bench.reflection.endpoint.sampled
        with self.bench.reflecting():
            reply = await call(
                self.predict,
                "reflect",
                "sampled",
                self.rounds,
                sampling.temperature,
                current=instructions,
                form=form,
                examples=shown,
            )
        better = " ".join(neutralize(reply.better).split())
        if _ABOUT_THEM.search(better):
            raise Rejected("reflect", "it says what instructions should be like, and gives none", better)
        return better


def optimise(bench: Bench, student: Student, split: Split, calls: int, minibatch: int) -> Student:
    """Return the candidate with the best score on the validation examples; `detailed_results` has the others.

    Blocks until it is found: call it in a thread beside the event loop.

    Raises:
        Exception: what ended it, a `GroundedDialogsError` or `Stopped`.
    """

    def metric(gold: Any, pred: Any, trace: Any = None, name: Any = None, calls: Any = None) -> dspy.Prediction:
        return dspy.Prediction(score=pred.score, feedback=f"{pred.feedback}\nIts score: {pred.score:.2f} of 1")

    def watch(state: Any) -> bool:
        """Report a round's beginning; return true if there is to be none."""
        scores = [fmean(found.values()) for found in state.prog_candidate_val_subscores]
        kept = f"{count_noun(len(scores), 'candidate')}, validation {scores[0]:.2f} at first, {max(scores):.2f} at best"
        note(f"{state.total_num_evals} examples tried (calls={calls}): {kept}")  # the last round may exceed it
        return bench.failure is not None or max(scores) == 1  # then none can be better

    gepa = dspy.GEPA(
        metric=metric,
        max_metric_calls=calls,
        reflection_minibatch_size=minibatch,
        instruction_proposer=Proposer(bench, student),
        component_selector="all",
        num_threads=bench.model.endpoint.concurrency,
        warn_on_score_mismatch=False,
        track_stats=True,
        seed=bench.seed,
        gepa_kwargs={"stop_callbacks": [watch]},
    )
    try:
        with redirect_stdout(StringIO()):  # DSPy's progress bars
            best: Student = gepa.compile(student, trainset=_wrap(split.train), valset=_wrap(split.validation))
    except Exception:
        if bench.failure is None:
            raise
    if bench.failure is not None:
        raise bench.failure
    return best


def _wrap(examples: Sequence[Example]) -> list[dspy.Example]:
    return [dspy.Example(example=example).with_inputs("example") for example in examples]
