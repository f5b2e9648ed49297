"""`python -m judges.human draw|read`: dialogs for people to judge, and what they found; see `docs/human.md`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from pydantic import Field

from generator.command import SETS_GROUPS, Command, SetsSettings, run_command, with_settings
from generator.dialogs.filter import Filter
from generator.schema import LocalPath, OneOrMore, Record
from judges.people import Stratum, Unit

DRAW = Command(
    program="python -m judges.human draw",
    primary="human_draw",
    task="judges.human:draw",
    settings="judges.human:DrawSettings",
    usage=(
        "python -m judges.human draw PATH [PATH ...] [criteria=lee2024|mtrag|FILE.yaml] [items=100] [unit=dialogs]",
        "",
        "Draws dialogs for people to judge, and writes sheets, a Label Studio project and a report to mark; all blind,",
        "in random order, without model, verdicts or labels. What the ids stand for is in the key, a file apart.",
        "A PATH is what `python -m generator.statistics` takes: a run folder, a file of dialogs, NAME:PATH.",
    ),
    groups=SETS_GROUPS,
    positional="paths",
    many=True,
)
READ = Command(
    program="python -m judges.human read",
    primary="human_read",
    task="judges.human:read",
    settings="judges.human:ReadSettings",
    usage=(
        "python -m judges.human read FILE [FILE ...] key=KEY.json [setting=value ...]",
        "python -m judges.human read FILE [FILE ...] input=RUN [criteria=NAME]    marks of a run's own report",
        "python -m judges.human read EVALUATIONS.json criteria=mtrag    mtRAG's human evaluations",
        "",
        "Makes verdicts of what people judged (sheets, Label Studio's export as JSON, marks of the report), and",
        "measures how far people agree with each other, and the judges of these dialogs with them.",
    ),
    groups=(),
    positional="annotations",
    many=True,
)
COMMAND = {"draw": DRAW, "read": READ}


class DrawSettings(SetsSettings):
    criteria: str = Field(description="What people judge by: lee2024, mtrag, or a YAML file of your own.")
    unit: Unit = Field(description="What is drawn: pairs, each with the dialog before it, or whole dialogs.")
    items: int = Field(ge=1, description="Pairs or dialogs to draw; all of them if there are fewer.")
    strata: Annotated[tuple[Stratum, ...], OneOrMore] = Field(
        description="What the sample is stratified by, of source, question_type, turn, answerability: sources in equal "
        "numbers, the rest in proportion. Of a dialog, its first question, its number of turns, and all it has."
    )
    annotators: Annotated[tuple[Annotated[str, Field(pattern=r"^[\w.@+-]+$")], ...], OneOrMore] = Field(
        description="Names of the people, for a sheet each; empty: one sheet, of which each fills in a copy."
    )
    each: int | None = Field(
        ge=1, description="How many of the annotators judge each item, all pairs of them in turn; null: all."
    )
    seed: int = Field(description="Of the draw.")
    output: LocalPath = Field(description="Folder for what people are given.")
    key: LocalPath | None = Field(description="File for what the ids stand for; null: <output>.key.json.")


class FilterSettings(Record):
    """The setting `judge.filter`."""

    filter: Filter = Field(description="Pairs that stay, as in a run; people's columns are human:ANNOTATOR:CRITERION.")


class ReadSettings(Record):
    annotations: Annotated[tuple[LocalPath, ...], OneOrMore, Field(min_length=1)] = Field(
        description="Filled-in sheets, exports of Label Studio as JSON, marks of the report, or mtRAG's evaluations."
    )
    key: LocalPath | None = Field(
        description="What the ids of a sample stand for; null: files name dialogs themselves."
    )
    input: Annotated[tuple[str, ...], OneOrMore] = Field(
        description="Where the dialogs are, in the order of the draw, if they were moved or judged since; without a "
        "key, the sets that the files are about; empty: as the key says, or the annotations' own file."
    )
    criteria: str = Field(description="Without a key, what people judged by: lee2024, mtrag, or a YAML file.")
    names: Annotated[tuple[Annotated[str, Field(pattern=r"^.+:[\w.@+-]+$")], ...], OneOrMore] = Field(
        description="Names of annotators in place of those in the files, such as `names=[1:ann,2:ben]`."
    )
    judge: FilterSettings = Field(
        description="`judge.filter`: pairs that stay, as in a run, also by people's verdicts: "
        "`judge.filter='pairs and human:all:faithfulness>=3'`."
    )
    seed: int = Field(description="Of the bootstrap.")
    run_dir: LocalPath | None = Field(
        description="Folder for the judged dialogs and the figures; null: outputs/<input>-people."
    )


@with_settings(DrawSettings)
def draw(settings: DrawSettings) -> None:
    """Draw a sample, and write what people are given and the key.

    Raises:
        ConfigError, TaxonomyError: a setting or the criteria can't be used.
        CorpusError, RunError: dialogs can't be read, or files not written.
    """
    from generator.common.console import count_noun
    from generator.errors import ConfigError
    from generator.output.tables import print_table
    from judges.people.forms import write_forms
    from judges.people.sample import Source, draw_sample
    from taxonomy import read_criteria

    people = settings.annotators
    if twice := [name for name in people if people.count(name) > 1]:
        raise ConfigError(f"annotators: {twice[0]} is there twice; give different names")
    if settings.each and settings.each > len(people):
        raise ConfigError(f"each={settings.each}: annotators names only {len(people)}; name at least as many")
    criteria = read_criteria(settings.criteria)
    if settings.unit == "pairs":
        if not criteria.about(False):
            raise ConfigError(f"unit=pairs: criteria={settings.criteria} are about whole dialogs; set unit=dialogs")
        criteria = criteria.model_copy(update={"criteria": criteria.about(False)})
    key_file = settings.key or settings.output.with_name(f"{settings.output.name}.key.json")
    sources = [Source(path=path, corpus=settings.corpus) for path in settings.paths]
    key, drawn, strata = draw_sample(
        sources, criteria, settings.unit, settings.items, settings.strata, settings.seed, people, settings.each
    )
    written = write_forms(settings.output, key, drawn, key_file)
    if settings.strata:
        rows = [[*stratum, str(count), str(of)] for stratum, (count, of) in strata.items() if count]
        print_table(rows, (*settings.strata, "drawn", "of"), right=("drawn", "of"))
        if len(rows) < len(strata):
            print(f"strata of which nothing is drawn: {len(strata) - len(rows)}")
    count, total = map(sum, zip(*strata.values(), strict=True))
    by = f", stratified by {', '.join(settings.strata)}" if settings.strata else ""
    of = count_noun(total, settings.unit.removesuffix("s"))
    print(f"\n{count} of {of}{by}, with {count_noun(len(drawn), 'item')} to judge")
    print("\n".join(f"  {path}" for path in written))
    print(f"key, to keep apart: {key_file}")


@with_settings(ReadSettings)
def read(settings: ReadSettings) -> None:
    """Make verdicts of annotations, and print and write how far people agree, and judges with them.

    Raises:
        ConfigError, TaxonomyError: a setting or the criteria can't be used, or a package is missing.
        CorpusError, RunError: dialogs or annotations can't be read, or files not written.
    """
    from generator.common.atomic_files import write_text
    from generator.common.console import note
    from judges.people.annotations import published_scores, read_annotations
    from judges.people.measures import require
    from judges.people.report import measure
    from judges.people.tables import as_markdown, print_report
    from judges.people.verdicts import Judged
    from judges.people.write import REPORT, check_filter, check_folder, read_key, source_names, writing_judged

    require()
    key = read_key(settings.key, settings.input, settings.annotations, settings.criteria)
    renamed = {given: name for given, _, name in (pair.rpartition(":") for pair in settings.names)}
    annotations, efforts, said = read_annotations(settings.annotations, key, renamed)
    judged = Judged(key, annotations)
    check_filter(settings.judge.filter, judged)
    names = source_names(key)
    folder = settings.run_dir or Path("outputs", f"{names[0]}-{REPORT}")
    check_folder(folder, key)
    published = {name: of for path in settings.annotations for name, of in published_scores(path).items()}
    with writing_judged(folder, key, names, judged, published, settings.judge.filter) as kept:
        report = measure(judged, efforts, names, settings.seed)
        for each in said:
            note(each)
        write_text(folder / f"{REPORT}.json", report.model_dump_json(indent=1) + "\n")
    write_text(folder / f"{REPORT}.md", as_markdown(report, judged.criteria))
    print_report(report, judged.criteria)
    print(f"\npairs: {kept[0]} of {kept[1]} stay by judge.filter={settings.judge.filter}")
    print(f"folder: {folder}", flush=True)
    for source, name in zip(key.sources, names, strict=True):
        configuration = Path(source.path, "config.yaml")
        # A run of judging has no drops.
        if all(configuration.with_name(file).exists() for file in ("run.db", "drops.jsonl")):
            people = folder / name if len(names) > 1 else folder
            print(f"into the run: python -m generator {shlex.join([str(configuration), f'marks={people}'])}")


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
