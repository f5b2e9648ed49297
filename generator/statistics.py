"""`python -m generator.statistics`: dialogs in numbers, several sets side by side; see `docs/statistics.md`."""

import sys
from functools import partial
from typing import Literal

from pydantic import Field

from generator.command import SETS_GROUPS, Command, SetsSettings, run_command, with_settings
from generator.schema import LocalPath

COMMAND = Command(
    program="python -m generator.statistics",
    primary="statistics",
    task="generator.statistics:compare",
    settings="generator.statistics:StatisticsSettings",
    usage=(
        "python -m generator.statistics PATH [PATH ...] [corpus=NAME] [setting=value ...]",
        "",
        "Dialogs in numbers, a column for each set: sizes, lengths, passages, variety, question types, answerability,",
        "verdicts, and the achieved and target shares of a run. docs/statistics.md defines each figure.",
        "A PATH is a run folder, a file such as its dialogs.jsonl, or, with corpus=NAME, human dialogs as published;",
        "NAME:PATH is read as that corpus whatever the others are.",
        "Records that can't be read are counted, and the first is named.",
    ),
    groups=SETS_GROUPS,
    positional="paths",
    many=True,
)


class StatisticsSettings(SetsSettings):
    dialogs: int | None = Field(
        ge=1,
        description="Count only the first so many of each set, since distinct-n and repeated questions depend on the "
        "size; null: all.",
    )
    format: Literal["terminal", "markdown", "csv", "json"] | None = Field(
        description="Of the table: terminal, markdown, csv or json; null: by the ending of `output`, else terminal."
    )
    output: LocalPath | None = Field(description="File for the table; null: standard output.")


@with_settings(StatisticsSettings)
def compare(settings: StatisticsSettings) -> None:
    """Print the figures of the configured sets side by side.

    Raises:
        ConfigError: a setting is wrong.
        CorpusError, RunError: a set can't be read.
    """
    from generator.common.language import use_languages
    from generator.output.stats.comparison import comparison, count, distinct_names
    from generator.output.tables import write_table
    from generator.sets import dialog_set

    sets = [dialog_set(path, settings.corpus) for path in settings.paths]
    columns = []
    for name, dialogs in zip(distinct_names(settings.paths), sets, strict=True):
        read = dialogs.dialogs(settings.dialogs)
        with use_languages(dialogs.languages()):
            columns.append(count(name, read, dialogs.targets, dialogs.dialogs_wanted))
    write_table(settings.output, settings.format, partial(comparison, columns))


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
