"""`python -m judges.benchmarks.mt_bench_101`: the sizes of dialogs by task; see `docs/mt_bench_101.md`."""

import sys

from pydantic import Field

from generator.command import Command, run_command, with_settings
from generator.schema import LocalPath, Record

COMMAND = Command(
    program="python -m judges.benchmarks.mt_bench_101",
    primary="counts",
    task="judges.benchmarks.mt_bench_101.__main__:count",
    settings="judges.benchmarks.mt_bench_101.__main__:CountsSettings",
    usage=(
        "python -m judges.benchmarks.mt_bench_101 FILE [tasks=FOLDER]",
        "",
        "Dialogs, turns, words and judged turns of MT-Bench-101, overall and by task. FILE is the published file, one",
        "in its format, a run folder or a dialogs.jsonl. Of the published file, the cells that differ from table 6 of",
        "Bai et al. 2024 are listed, too.",
    ),
    groups=(),
    positional="input",
)


class CountsSettings(Record):
    input: str = Field(description="The dialogs: the published file or one in its format, a run folder, dialogs.jsonl.")
    tasks: LocalPath | None = Field(description="Folder of your own tasks, added to ours; null: none.")


@with_settings(CountsSettings)
def count(settings: CountsSettings) -> None:
    """Print the sizes of the configured dialogs.

    Raises:
        ConfigError: a setting is wrong, or a dialog's task has no file.
        CorpusError, RunError: the dialogs can't be read.
        TaxonomyError: a task file can't be used.
    """
    from generator.sets import dialog_set
    from judges.benchmarks.mt_bench_101.counts import count_dialogs, print_counts
    from taxonomy import read_tasks

    tasks = read_tasks(settings.tasks)
    print_counts(count_dialogs(dialog_set(settings.input, "mt_bench_101").dialogs(), tasks))


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
