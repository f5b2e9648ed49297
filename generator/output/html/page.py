"""Write `report.html`: one file without a server or a network, for any browser since 2023; see `docs/report.md`."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader
from markupsafe import Markup

from generator.common.atomic_files import atomic_write
from generator.common.language import use_languages
from generator.dialogs.marks import Marks, fingerprint
from generator.errors import ConfigError
from generator.output.html import overview
from generator.output.html.entries import Entry, Packed, Sample, listed, pack
from generator.output.html.sources import ReportSet
from generator.output.stats.comparison import Column, comparison_lines, count
from generator.schema import Dialog, Drop
from taxonomy import Criteria

# Bytes that the list and the dialogs take: 10,000 dialogs open in two seconds. What doesn't fit is left to a sample.
LIMITS = 14 << 20, 24 << 20


class _Read(NamedTuple):
    column: Column
    distributions: overview.Distributions
    sample: Sample
    fingerprint: str


def write_report(
    path: Path,
    sets: Sequence[ReportSet],
    criteria: Criteria,
    marks: Marks | None = None,
    limits: tuple[int, int] = LIMITS,
) -> None:
    """Write the report of one or more sets of dialogs, each read once.

    Args:
        criteria: that people may mark by.
        marks: the page opens with them, and begins with the pairs that they name; those of nobody are all it asks for.
        limits: bytes that the list of dialogs and drops may take, and what opening them shows; beyond them the report
            has a sample, and says so.

    Raises:
        ConfigError: the marks are of another run.
        CorpusError: a set can't be read.
        RunError: the file can't be written; the old one is still there.
    """
    read = [_read(number, each, Sample(*(limit // len(sets) for limit in limits))) for number, each in enumerate(sets)]
    if marks and marks.run not in (known := [each.fingerprint for each in read]):
        raise ConfigError(f"marks: are of another run ({marks.run}; this is {', '.join(known)}); give this run's")
    packed = [packed for each in read for packed in each.sample.packed]
    data = {
        "runs": [
            {"name": each.name, "fingerprint": found.fingerprint, "continues": each.continues}
            for each, found in zip(sets, read, strict=True)
        ],
        "entries": [{**p.entry.model_dump(), "full": bool(p.shown)} for p in packed],
        "criteria": criteria,
        "marks": marks,
    }
    page = _render(sets, read, packed, pack(data))
    with atomic_write(path) as file:
        file.writelines(page)


def _read(number: int, each: ReportSet, sample: Sample) -> _Read:
    drops: dict[str, list[Drop]] = {}
    for drop in each.drops() if each.drops else ():
        drops.setdefault(drop.dialog_id, []).append(drop)
    distributions = overview.Distributions()
    first: Dialog | None = None

    def pass_on(dialogs: Iterable[Dialog]) -> Iterator[Dialog]:
        nonlocal first
        for dialog in dialogs:
            first = first or dialog
            distributions.add(dialog)
            sample.add(listed(number, dialog, drops.pop(dialog.id, []) if each.drops else None), dialog)
            yield dialog

    with use_languages(each.languages()):
        column = count(each.name, pass_on(each.dialogs()), each.targets, each.dialogs_wanted)
    for dialog_id, of_dialog in drops.items():
        sample.add(Entry(run=number, id=dialog_id, accepted=False, drops=tuple(of_dialog)), None)
    return _Read(column, distributions, sample, fingerprint(first))


def _render(sets: Sequence[ReportSet], read: Sequence[_Read], packed: Sequence[Packed], data: str) -> Iterable[str]:
    names = [each.name for each in sets]
    columns, distributions = [each.column for each in read], [each.distributions for each in read]
    runs = [(f" ({each.name})" if len(sets) > 1 else "", each.counts) for each in sets if each.counts]
    charts: Mapping[str, Sequence[overview.Figure]] = {
        "From attempts to pairs": list(overview.funnel(runs)),
        "Shares": list(overview.shares(sets, columns)),
        "Lengths": list(overview.lengths(names, distributions)),
        "Verdicts": list(overview.verdicts(names, columns)),
        "Cost": [figure for run in runs for figure in overview.costs(*run)],
    }
    style, script = _asset("report.css"), _asset("marks.js") + _asset("report.js")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(_asset))
    environment.filters["duration"] = _duration
    sections = [(title, list(of)) for title, of in groupby(comparison_lines(columns), lambda line: line.section)]
    return environment.get_template("page.html").generate(
        title=" and ".join(names),
        sets=list(zip(sets, read, strict=True)),
        charts={title: figures for title, figures in charts.items() if figures},
        names=names,
        sections=sections,
        data=data,
        shown=[(place, each.shown) for place, each in enumerate(packed) if each.shown],
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
    )


def _asset(name: str) -> str:
    return files("generator.output.html").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
