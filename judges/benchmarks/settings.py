"""The plain settings of `judges.evaluate` and `judges.students`; light to import, so that `--help` can show them."""

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


class StudentsSettings(Record):
    """Settings of `python -m judges.students`, as in `conf/students.yaml`."""

    human: Annotated[tuple[str, ...], OneOrMore] = Field(
        description="Human dialogs to learn from, as in `quac:PATH`; empty if none of `sets` does."
    )
    synthetic: Annotated[tuple[str, ...], OneOrMore] = Field(
        description="Runs to learn from, judged; the set `synthetic` also learns from what was judged incorrect; "
        "empty if none of `sets` does."
    )
    input: str = Field(description="Human dialogs to answer: the benchmark's test set.")
    sets: Annotated[tuple[str, ...], OneOrMore, Field(min_length=1)] = Field(
        description="Which are compared: zero_shot, human, synthetic, synthetic_filtered, human+synthetic."
    )
    pairs: int = Field(ge=2, description="Context-response pairs of each set, the same number.")
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = Field(description="Students of each set, by their seeds.")
    finetune: tuple[str, ...] = Field(description="Further settings of `python -m generator.finetune`.")
    evaluate: tuple[str, ...] = Field(description="Further settings of `python -m judges.evaluate`.")
    run_dir: Annotated[LocalPath, Operational] = Field(description="Folder of students, answers and the table.")
