"""The settings of `python -m judges` that belong to no part of it; light to import, so that `--help` can show them."""

from pydantic import Field

from generator.schema import LocalPath, Record


class JudgingRunSettings(Record):
    """What is judged, and where the verdicts go."""

    input: LocalPath = Field(
        description="A run folder, dialogs, or mtRAG's conversations, tasks, predictions or evaluations."
    )
    format: str | None = Field(
        description="Corpus whose conversations the input holds, such as mtrag; null: dialogs of this project or mtRAG's."
    )
    predictions: bool = Field(
        description="Of mtRAG's tasks, judge what models answered, where that is there; false: the targets."
    )
    run_dir: LocalPath | None = Field(description="The run folder; null: outputs/<input>-<judge>-<model>.")
    fresh: bool = Field(description="Start over and remove what run_dir holds, in place of continuing it.")
