"""`python -m judges.students`: students of several training sets side by side, table 4 of Lee et al. 2024."""

import sys
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from generator.command import Command, run_command
from generator.schema import LocalPath, OneOrMore, Operational, Record

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMMAND = Command(
    program="python -m judges.students",
    primary="students",
    task="judges.students:compare",
    settings="judges.students:StudentsSettings",
    usage=(
        "python -m judges.students human=quac:PATH synthetic=RUN input=PATH [setting=value ...]",
        "",
        "Trains a student on each set and with each seed (python -m generator.finetune), has it answer human dialogs",
        "(python -m judges.evaluate), and prints the metrics side by side. The same command again goes on.",
    ),
    groups=(),
)


class StudentsSettings(Record):
    """Settings of `python -m judges.students`, as in `conf/students.yaml`."""

    human: Annotated[tuple[str, ...], OneOrMore] = Field(description="Human dialogs to learn from, as in `quac:PATH`.")
    synthetic: Annotated[tuple[str, ...], OneOrMore] = Field(
        description="Runs to learn from, judged; the set `synthetic` also learns from what was judged incorrect."
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


def compare(cfg: "DictConfig", job: object) -> None:
    """Train and evaluate the students that are missing, and print the table.

    Raises:
        GroundedDialogsError: a setting is wrong.
        RunFailed: a training or an evaluation ended with an error, which it has printed.
    """
    from generator.config.parts import plain, validate
    from judges.benchmarks.students import run_students

    run_students(validate(StudentsSettings, "", plain(cfg)))


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
