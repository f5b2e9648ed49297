"""`python -m generator.report`: runs and human dialogs as one HTML file, to read and to mark; see `docs/report.md`."""

import sys

from pydantic import Field

from generator.command import SETS_GROUPS, Command, SetsSettings, run_command, with_settings
from generator.schema import LocalPath

COMMAND = Command(
    program="python -m generator.report",
    primary="report",
    task="generator.report:report",
    settings="generator.report:ReportSettings",
    usage=(
        "python -m generator.report RUN [RUN ...] [setting=value ...]",
        "",
        "Writes report.html, one file that any browser opens without a network: figures and charts, every dialog with",
        "its hits, evidence, verdicts and drops, and marks to keep or reject pairs. Several runs stand side by side.",
        "A RUN is a run folder, a file such as its dialogs.jsonl, or human dialogs as published, NAME:PATH.",
        "The marks that it saves are read by the run's own command with marks=FILE.",
    ),
    groups=SETS_GROUPS,
    positional="paths",
    many=True,
)


class ReportSettings(SetsSettings):
    marks: LocalPath | None = Field(
        description="File of marks that the page opens with; it then begins with the pairs in the file; null: none."
    )
    criteria: str = Field(description="Criteria to mark by: `lee2024`, `mtrag`, or a YAML file of one's own.")
    output: LocalPath | None = Field(
        description="The file; null: report.html, in the run folder or, of several, in the current folder."
    )


@with_settings(ReportSettings)
def report(settings: ReportSettings) -> None:
    """Write the report of the configured sets.

    Raises:
        ConfigError: a setting is wrong.
        CorpusError, RunError: a set can't be read, or the file can't be written.
        TaxonomyError: the criteria can't be used.
    """
    from pathlib import Path

    from generator.dialogs.marks import read_marks
    from generator.output.html.page import write_report
    from generator.output.stats.comparison import distinct_names
    from generator.report_sets import report_set
    from taxonomy import read_criteria

    names = distinct_names(settings.paths)
    sets = [report_set(path, settings.corpus, name) for path, name in zip(settings.paths, names, strict=True)]
    folder = Path(settings.paths[0]) if len(sets) == 1 and Path(settings.paths[0]).is_dir() else Path()
    output = settings.output or folder / "report.html"
    marks = read_marks(settings.marks) if settings.marks else None
    write_report(output, sets, read_criteria(settings.criteria), marks)
    print(f"report: {output}", flush=True)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
