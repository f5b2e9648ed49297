"""Read what the dialogs of a run took, beside the run: without its lock, so also while it goes on."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from generator.errors import RunError, describe
from generator.schema import Record, Usage, add_up


class PlanCost(Record):
    """The outcome of one plan: whether its dialog was accepted, and its usage by stage."""

    accepted: bool
    usage: Mapping[str, Usage]


class History(Record):
    """The costs of a run so far.

    Attributes:
        plans: in plan order.
        usage: of all plans together, by stage.
        seconds: how long they took.
        identity: the settings that decide the run's data, as `generator.execution.identity.encode` has them.
        unfinished: usage of the finished calls of dialogs without an outcome, by stage.
    """

    plans: tuple[PlanCost, ...]
    usage: Mapping[str, Usage]
    seconds: float
    identity: Mapping[str, str]
    unfinished: Mapping[str, Usage] = {}

    @property
    def accepted(self) -> int:
        return sum(plan.accepted for plan in self.plans)

    @property
    def spent(self) -> dict[str, Usage]:
        """All usage so far, by stage."""
        return add_up([*self.usage.items(), *self.unfinished.items()])

    @property
    def total(self) -> Usage:
        return sum(self.spent.values(), Usage())


def read_history(folder: Path) -> History:
    """Return what the dialogs of a run folder took.

    Raises:
        RunError: it isn't a run folder, or its `run.db` can't be read.
    """
    file = folder / "run.db"
    if not file.is_file():
        raise RunError(f"{folder}: is not a run folder: it has no run.db; give the folder of a run")
    # Without a log beside it nobody writes, and the file is read where no log can be made, as on a read-only disk.
    mode = "mode=ro" if Path(f"{file}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)) as db:
            db.execute("BEGIN")  # one state of a run that goes on
            meta = dict(db.execute("SELECT name, value FROM meta"))
            plans = db.execute("SELECT number, dialog IS NOT NULL FROM plans ORDER BY number").fetchall()
            usage = {name: read_usage(*rest) for name, *rest in db.execute("SELECT * FROM usage ORDER BY stage")}
            calls = db.execute("SELECT stage, json_extract(reply, '$.usage') FROM calls")
            unfinished = add_up((stage, Usage.model_validate_json(spent)) for stage, spent in calls)
            costs: dict[int, dict[str, Usage]] = {}
            for number, stage, *rest in db.execute("SELECT * FROM costs"):
                costs.setdefault(number, {})[stage] = read_usage(*rest)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise RunError(f"{file}: can't be read ({describe(error)}); give the folder of another run") from error
    return History(
        plans=tuple(PlanCost(accepted=bool(accepted), usage=costs.get(number, {})) for number, accepted in plans),
        usage=usage,
        seconds=float(meta.get("seconds", 0)),
        identity={name[1:]: value for name, value in meta.items() if name.startswith("=")},
        unfinished=unfinished,
    )


def read_usage(calls: int, prompt: int, cached: int, completion: int) -> Usage:
    """Return the usage in these columns of `run.db`."""
    return Usage(calls=calls, prompt=prompt, cached=cached, completion=completion)
