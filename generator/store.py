"""The run's bookkeeping: one SQLite file that knows what is done, what was dropped and why, and what it cost.

A model call is written down the moment its reply is in, before anything is made of it. A dialog that was cut off is
simply made again: its plan is the same, so its calls are the same, and those that were finished are read back instead
of being paid for twice. A plan's outcome (its dialog or its drops, and its cost) is one transaction, written in plan
order; then its calls are no longer needed. Everything else in the run folder is derived from this file.
"""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from generator.engine import ChatReply
from generator.errors import RunError
from generator.schema import Dialog, Drop, Record, Scope, Usage

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (dialog_id TEXT, key TEXT, stage TEXT, turn INTEGER, reply TEXT,
    PRIMARY KEY (dialog_id, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans (number INTEGER PRIMARY KEY, dialog TEXT, ended TEXT);
CREATE TABLE IF NOT EXISTS drops (number INTEGER, scope TEXT, stage TEXT, reason TEXT, record TEXT);
CREATE TABLE IF NOT EXISTS usage (stage TEXT PRIMARY KEY, calls INTEGER, prompt INTEGER, cached INTEGER,
    completion INTEGER);
"""


class Outcome(Record):
    """How a plan ended: accepted with its dialog, or dropped (then one of `drops` has the scope `dialog`)."""

    dialog: Dialog | None
    drops: tuple[Drop, ...]
    usage: tuple[tuple[str, Usage], ...]


class Journal:
    """The finished calls of one dialog; see `generator.engine.Journal`."""

    def __init__(self, store: "Store", dialog_id: str) -> None:
        self._store, self._dialog_id = store, dialog_id
        self._replies = store.calls(dialog_id)
        self._spent: dict[tuple[str, int], Usage] = {}

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        """The reply of an earlier run of this dialog, if this call was finished then."""
        reply = self._replies.get(key)
        if reply is not None:
            self._count(stage, turn, reply)
        return reply

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Write a finished call down."""
        self._store.add_call(self._dialog_id, key, stage, turn, reply)
        self._count(stage, turn, reply)

    def usage(self, turn: int) -> Usage:
        """What the calls of one turn cost, retries of bad questions and repairs included."""
        return sum((u for (_, t), u in self._spent.items() if t == turn), Usage())

    def by_stage(self) -> tuple[tuple[str, Usage], ...]:
        """What the dialog cost, by stage."""
        total: dict[str, Usage] = {}
        for (stage, _), usage in sorted(self._spent.items()):
            total[stage] = total.get(stage, Usage()) + usage
        return tuple(total.items())

    def _count(self, stage: str, turn: int, reply: ChatReply) -> None:
        self._spent[stage, turn] = self._spent.get((stage, turn), Usage()) + reply.usage


class Store:
    """The run folder's `run.db`. One process at a time; use as a context manager."""

    def __init__(self, folder: Path, identity: Mapping[str, object], fresh: bool = False) -> None:
        """Open a run, or begin it.

        Args:
            folder: the run folder; made if it isn't there.
            identity: the settings that decide what the run's data is, by name.
            fresh: begin anew, and remove what an earlier run left.

        Raises:
            RunError: another run has it open, it was made with other settings, or it can't be written.
        """
        self.folder = folder
        self._lock = FileLock(folder / ".lock")
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()) and not (folder / ".lock").exists():
                raise RunError(f"{folder}: holds files that are no run of ours; give another run_dir=…")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise RunError(f"{folder}: another run is writing here; wait for it, or give run_dir=…") from None
            try:
                if fresh:
                    _empty(folder)
                self._db = sqlite3.connect(folder / "run.db", isolation_level=None)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
                self._db.executescript(_TABLES)
                self._same_run({name: json.dumps(value, sort_keys=True) for name, value in identity.items()})
            except BaseException:
                self._lock.release()
                raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exception: object) -> None:
        self._db.close()
        self._lock.release()

    def _same_run(self, identity: dict[str, str]) -> None:
        stored = {k[1:]: v for k, v in self._db.execute("SELECT name, value FROM meta WHERE name LIKE '=%'")}
        if not stored:
            with self._transaction():
                self._db.executemany("INSERT INTO meta VALUES (?, ?)", [("=" + k, v) for k, v in identity.items()])
            return
        names = sorted(k for k in stored.keys() | identity.keys() if stored.get(k) != identity.get(k))
        if names:
            changes = ", ".join(f"{k} ({stored.get(k, 'unset')} there, {identity.get(k, 'unset')} now)" for k in names)
            raise RunError(
                f"{self.folder}: this run was made with other settings: {changes}; "
                "give another run_dir=…, or fresh=true to begin anew"
            )

    # Calls of dialogs in the making

    def calls(self, dialog_id: str) -> dict[str, ChatReply]:
        """The finished calls of a dialog that has no outcome yet."""
        rows = self._db.execute("SELECT key, reply FROM calls WHERE dialog_id = ?", (dialog_id,))
        return {key: ChatReply.model_validate_json(reply) for key, reply in rows}

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Write a finished call down."""
        with _explained(self.folder):
            row = (dialog_id, key, stage, turn, reply.model_dump_json())
            self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?)", row)

    # Outcomes, in plan order

    def add(self, number: int, dialog_id: str, outcome: Outcome, seconds: float) -> None:
        """Write a plan's outcome down, with the seconds that the run took since the last one."""
        dialog = outcome.dialog
        with self._transaction():
            self._db.execute(
                "INSERT INTO plans VALUES (?, ?, ?)",
                (number, dialog and dialog.model_dump_json(), dialog and dialog.ended),
            )
            self._db.executemany(
                "INSERT INTO drops VALUES (?, ?, ?, ?, ?)",
                [(number, d.scope, d.stage, d.reason, d.model_dump_json()) for d in outcome.drops],
            )
            self._db.executemany(
                "INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT (stage) DO UPDATE SET "
                "calls = calls + excluded.calls, prompt = prompt + excluded.prompt, cached = cached + excluded.cached, "
                "completion = completion + excluded.completion",
                [(stage, u.calls, u.prompt, u.cached, u.completion) for stage, u in outcome.usage],
            )
            self._db.execute("DELETE FROM calls WHERE dialog_id = ?", (dialog_id,))
            self._set("seconds", str(self.seconds + seconds))

    @property
    def attempted(self) -> int:
        """Plans that have an outcome; also the number of the next plan."""
        return int(self._db.execute("SELECT count(*) FROM plans").fetchone()[0])

    @property
    def accepted(self) -> int:
        """Plans that ended with a dialog."""
        return int(self._db.execute("SELECT count(dialog) FROM plans").fetchone()[0])

    @property
    def seconds(self) -> float:
        """How long the run took so far, in all its sittings."""
        return float(self._get("seconds") or 0)

    def dialogs(self) -> Iterator[Dialog]:
        """The accepted dialogs, in plan order."""
        for (text,) in self._db.execute("SELECT dialog FROM plans WHERE dialog IS NOT NULL ORDER BY number"):
            yield Dialog.model_validate_json(text)

    def drops(self) -> Iterator[Drop]:
        """Everything that was not kept, in plan order."""
        for (text,) in self._db.execute("SELECT record FROM drops ORDER BY number, rowid"):
            yield Drop.model_validate_json(text)

    def dropped(self, scope: Scope) -> dict[str, dict[str, int]]:
        """How often what was dropped: stage to reason to count."""
        counts: dict[str, dict[str, int]] = {}
        query = (
            "SELECT stage, reason, count(*) FROM drops WHERE scope = ? GROUP BY stage, reason ORDER BY stage, reason"
        )
        for stage, reason, count in self._db.execute(query, (scope,)):
            counts.setdefault(stage, {})[reason] = count
        return counts

    def ended(self) -> dict[str, int]:
        """How the accepted dialogs came to their length: `complete`, or what ended them early; with counts."""
        query = "SELECT ended, count(*) FROM plans WHERE ended IS NOT NULL GROUP BY ended ORDER BY ended"
        return Counter(dict(self._db.execute(query).fetchall()))

    def usage(self) -> dict[str, Usage]:
        """What it cost, by stage."""
        rows = self._db.execute("SELECT * FROM usage ORDER BY stage")
        return {s: Usage(calls=c, prompt=p, cached=h, completion=o) for s, c, p, h, o in rows}

    def _get(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row and str(row[0])

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _explained(self.folder):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn what the disk says into one line."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise RunError(
            f"{folder}: can't write the run ({error}); free space or mend the folder, and the same command continues"
        ) from error


def _empty(folder: Path) -> None:
    """Remove what an earlier run left, all but the lock that we hold."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != ".lock":
            path.unlink()
