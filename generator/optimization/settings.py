"""The plain settings of `python -m generator.optimize`; light to import, for `--help`."""

from typing import Annotated

from pydantic import Field

from generator.schema import LocalPath, OneOrMore, Operational, Record


class OptimizeSettings(Record):
    """Plain settings of `python -m generator.optimize`, as in `conf/optimize.yaml`."""

    target: str = Field(
        description="Whose instructions are rewritten: `judge.NAME`, a judge that asks a model, or a step of a "
        "dialog, `answer`, `ask_first`, `ask_next` or `rewrite`."
    )
    data: Annotated[tuple[str, ...], OneOrMore, Field(min_length=1)] = Field(
        description="Examples, one set or a list: a published set with human labels, `q2_wow:FOLDER` where FOLDER "
        "holds it (docs/judges.md), or dialogs: a run, a file of them, `quac:PATH`. Judges need people's verdicts on "
        "them, as `python -m judges.human read` writes."
    )
    metric: Annotated[tuple[str, ...], OneOrMore] = Field(
        description="What is scored, one or a list whose mean counts; empty: what the target has. Judges: labels; "
        "those that score: criteria of people's scores, such as faithfulness. answer: evidence, grounding, labels. "
        "ask_first, ask_next: checks. rewrite: terms."
    )
    train: int = Field(ge=1, description="Examples whose replies and feedback the reflection model sees.")
    validation: int = Field(ge=1, description="Examples by whose scores candidates are chosen.")
    held_out: int = Field(ge=2, description="Examples that the optimiser never sees, for the scores before and after.")
    calls: Annotated[int, Operational] = Field(
        ge=1,
        description="Examples to try in all, with any candidate: GEPA's `max_metric_calls`; more of them continue a "
        "finished optimisation.",
    )
    minibatch: int = Field(ge=1, description="Training examples that a new instruction is written from.")
    seed: int = Field(ge=0, description="Seed of the split, of the optimiser, and of decoding.")
    dspy_program: Annotated[LocalPath | None, Operational] = Field(
        description="Start from the instructions in this file; what it has of other targets is written again, too."
    )
    run_dir: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of program, card and calls; null: outputs/prompts/<target>-<model>-<seed>."
    )
    fresh: Annotated[bool, Operational] = Field(description="Empty run_dir first, instead of continuing.")
