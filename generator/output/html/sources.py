"""The sources of a report: sets of dialogs with what their run folders tell."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from generator.common.language import Languages
from generator.output.summary import Counts, PairCost
from generator.schema import Dialog, Drop, Usage


class RunCounts(BaseModel):
    """The part of a report that comes from a run's `summary.json`, of this release or an earlier one."""

    attempted: int
    accepted: int
    dropped: Counts = {}
    dropped_turns: Counts = {}
    dropped_pairs: Counts = {}
    dropped_candidates: Counts = {}
    pairs: int = 0
    unjudged_pairs: int = 0
    stages: Mapping[str, Usage] = {}
    pair_cost: Mapping[str, PairCost] = {}
    seconds: float = 0


class ReportSet(NamedTuple):
    """A set of dialogs to report.

    Attributes:
        name: shown for it; sets of one report differ in it.
        dialogs: reads them, in a stable order.
        drops: reads the drops; None where no file lists them.
        targets: planned shares by stage and name, as `generator.sets.DialogSet` has them.
        dialogs_wanted: how many dialogs the run was to make; None if it is no run.
        languages: tells those of the passages and the dialogs.
        notes: what can't be read, and whether the run goes on. Complete once `dialogs` and `drops` are read.
        counts: the outcome of the run; None if it is no run of dialogs.
        configuration: the run's settings, YAML; empty if it has none.
        continues: the command that reads marks back, without the marks; empty if none does.
    """

    name: str
    dialogs: Callable[[], Iterator[Dialog]]
    drops: Callable[[], Iterator[Drop]] | None
    targets: Mapping[tuple[str, str], float]
    dialogs_wanted: int | None
    languages: Callable[[], Languages]
    notes: list[str]
    counts: RunCounts | None = None
    configuration: str = ""
    continues: str = ""
