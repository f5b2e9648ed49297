"""The plain settings of `python -m judges.evaluate`; light to import, so that `--help` can show them."""

from typing import Annotated, Literal

from pydantic import Field

from generator.schema import LocalPath, OneOrMore, Operational, Record


class EvaluationSettings(Record):
    """Settings of `python -m judges.evaluate` that belong to no part of it."""

    input: LocalPath | None = Field(
        description="Dialogs of the benchmark as its publisher has them, a run that generated such dialogs, or a run "
        "of this command, whose answers are judged again."
    )
    answers: LocalPath | None = Field(
        description="A model's answers to the input that exist, judged in place of asking `lm`; the file's name is the "
        "model's. `$ERROR$`, empty and missing ones are counted, and not judged."
    )
    judgments: Annotated[tuple[LocalPath, ...] | None, OneOrMore] = Field(
        description="Judgments that exist, one path or a list: files or folders of the publisher's, or runs of this "
        "command. They are aggregated, and nobody is asked."
    )
    context: Literal["golden", "own", "both"] | None = Field(
        description="Earlier answers that the model is shown: `golden`, its `own`, or `both`, side by side; null: as "
        "the publisher does."
    )
    items: int | None = Field(ge=1, description="Draw so many dialogs of each task; null: all.")
    seed: int = Field(ge=0, description="Seed of that draw, of the intervals, and of decoding.")
    run_dir: Annotated[LocalPath | None, Operational] = Field(
        description="The run folder; null: outputs/<benchmark>-<input>-<model>."
    )
    fresh: Annotated[bool, Operational] = Field(description="Empty run_dir first, instead of continuing the run in it.")
