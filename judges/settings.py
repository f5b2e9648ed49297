"""The plain settings of `python -m judges`; light to import, so that `--help` can show them."""

from typing import Annotated

from pydantic import Field

from generator.schema import LocalPath, Operational, Record


class JudgingRunSettings(Record):
    """Settings of `python -m judges` that belong to no part of it."""

    input: LocalPath = Field(
        description="What to judge: a run folder, a file of dialogs, or a file of mtRAG's conversations, tasks, "
        "predictions or evaluations."
    )
    format: str | None = Field(
        description="Corpus whose format the input has, such as mtrag for its conversations and its tasks without "
        "predictions; null: a run, dialogs as in its dialogs.jsonl, or mtRAG's predictions or evaluations."
    )
    language: str | None = Field(
        default=None,
        pattern=r"^[a-z]{2,3}$",
        description="ISO 639 code of the dialogs' language, for judges that compare words; null: found in a sample.",
    )
    predictions: bool = Field(
        description="Of mtRAG's tasks, judge the predictions of models if there are any; false: the target answers."
    )
    dspy_program: Annotated[LocalPath | None, Operational] = Field(
        default=None,
        description="A program file with the judge's prompts, as `python -m generator.optimize` writes; null: none.",
    )
    run_dir: Annotated[LocalPath | None, Operational] = Field(
        description="Folder for the verdicts; null: outputs/<input>-<judge>-<model>."
    )
    fresh: Annotated[bool, Operational] = Field(description="Empty run_dir first, instead of continuing the run in it.")
