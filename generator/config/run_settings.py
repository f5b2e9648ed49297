"""The settings of a run that belong to no part of it; light to import, so that `--help` can show them."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from generator.schema import LocalPath, Operational, Record, Turns


class RunSettings(Record):
    """The number and length of the dialogs, the seed, and the folders."""

    dialogs: Annotated[int, Operational] = Field(ge=1, description="Stop when so many dialogs are accepted.")
    scale: Annotated[float, Operational] = Field(
        gt=0, description="Factor on `dialogs`: 0.01 tries an experiment at a hundredth of its size."
    )
    max_attempts: Annotated[int | None, Operational] = Field(
        ge=1,
        description="Stop when so many dialogs were attempted; null: ten times `dialogs`; "
        "three times with the model in the package, most of whose dialogs fail.",
    )
    turns: Annotated[Turns, BeforeValidator(Turns.parse)] = Field(
        description="Planned turns of a dialog, a number or a range such as 3-6; question types may and the tasks of "
        "benchmarks do set their own. A turn that is refused is left out, so a dialog may be shorter (`min_turns`)."
    )
    min_turns: int = Field(
        ge=1, description="Drop a dialog that lost turns and has fewer than this left; one planned shorter stays."
    )
    seed: int = Field(ge=0, description="Seed of all that is drawn: documents, question types, decoding.")
    dialogs_per_document: int = Field(
        ge=1,
        description="Dialogs in a row on one document, which share its tokens in the server's prefix cache; fewer on "
        "one too short to start so many from, and not with `algorithm=whole`, where each task takes one document after "
        "another.",
    )
    validation: float = Field(
        ge=0, lt=1, description="Share of the documents whose dialogs form the validation split; 0: no such split."
    )
    dspy_program: Annotated[LocalPath | None, Operational] = Field(
        description="Prompts of steps and judges by name (JSON, as `python -m generator.optimize` and DSPy's `save` "
        "write them), in place of ours; what the file lacks stays as it is; null: none."
    )
    run_dir: Annotated[LocalPath | None, Operational] = Field(
        description="The run folder; null: outputs/<corpus>-<taxonomy>[-<user>]-<algorithm>-<model>-<seed>, with "
        "the user unless it is `default`."
    )
    fresh: Annotated[bool, Operational] = Field(
        description="Start over and remove what run_dir holds, in place of continuing it."
    )
    cache_dir: Annotated[LocalPath, Operational] = Field(
        description="Folder for documents and indexes, which are built once and used by all runs."
    )
    marks: Annotated[LocalPath | None, Operational] = Field(
        description="File of marks that somebody saved from the run's report.html, or the folder that `python -m "
        "judges.human read` wrote of this run: pairs that people reject leave the dataset, those that they keep stay "
        "whatever judges said; null: none."
    )


def scaled(dialogs: int, scale: float) -> int:
    """Return how many dialogs a run is to accept, by these two of its settings."""
    return max(1, round(dialogs * scale))
