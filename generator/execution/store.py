"""The run's bookkeeping: one SQLite file that knows what is done, what was dropped and why, and what it cost.

A model call is written down the moment its reply is in, before anything is made of it. A dialog that was cut off is
simply made again: its plan is the same, so its calls are the same, and those that were finished are read back instead
of being paid for twice. A plan's outcome (its dialog or its drops, and its cost) is one transaction, written in plan
order; then its calls are no longer needed. Everything else in the run folder is derived from this file.
"""

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from generator.errors import RunError
from generator.models.lm import ChatReply
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

_Kept = TypeVar("_Kept", bound=Record)

# What SQLite says of a disk or a file system; whatever else it says is of the file's content.
_OF_THE_DISK = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


class Outcome(Record):
    """How a plan ended: accepted with its dialog, or dropped (then one of `drops` has the scope `dialog`)."""

    dialog: Dialog | None
    drops: tuple[Drop, ...]
    usage: tuple[tuple[str, Usage], ...]


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
            if folder.exists() and not folder.is_dir():
                raise RunError(f"{folder}: is no folder; give another run_dir=…")
            folder.mkdir(parents=True, exist_ok=True)
            names = {path.name for path in folder.iterdir() if not _is_kept(path)}
            if names and "run.db" not in names:
                raise RunError(f"{folder}: holds files that are no run of ours; give another run_dir=…")
            begun = not fresh and any(not name.startswith("run.db") for name in names)
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
                self._file = _identified(folder / "run.db")
                self._same_run({name: json.dumps(value, sort_keys=True) for name, value in identity.items()}, begun)
            except BaseException:
                self._lock.release()
                raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exception: object) -> None:
        self._db.close()
        self._lock.release()

    def _same_run(self, identity: dict[str, str], begun: bool) -> None:
        stored = {k[1:]: v for k, v in self._rows("SELECT name, value FROM meta WHERE name LIKE '=%'")}
        if begun and not stored:  # SQLite takes an empty file for a new one
            raise sqlite3.DatabaseError("it is empty")
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
        with _explained(self.folder):
            rows = self._rows("SELECT key, reply FROM calls WHERE dialog_id = ?", dialog_id)
            return {key: ChatReply.model_validate_json(reply) for key, reply in rows}

    def all_calls(self) -> Iterator[tuple[str, str, ChatReply]]:
        """The finished calls of all such dialogs: dialog, key and reply."""
        with _explained(self.folder):
            for dialog_id, key, reply in self._db.execute("SELECT dialog_id, key, reply FROM calls"):
                yield dialog_id, key, ChatReply.model_validate_json(reply)

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Write a finished call down."""
        with self._writing():
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
            self._took(seconds)

    def add_seconds(self, seconds: float) -> None:
        """Write down what the run took since its last outcome, when a sitting ends."""
        with self._transaction():
            self._took(seconds)

    def _took(self, seconds: float) -> None:
        total = str(self.seconds + seconds)
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('seconds', ?)", (total,))

    @property
    def command(self) -> str:
        """The command line of the last sitting that could make dialogs."""
        return str(self._row("SELECT max(value) FROM meta WHERE name = 'command'")[0] or "")

    @command.setter
    def command(self, command: str) -> None:
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('command', ?)", (command,))

    @property
    def attempted(self) -> int:
        """Plans that have an outcome; also the number of the next plan."""
        return int(self._row("SELECT count(*) FROM plans")[0])

    @property
    def accepted(self) -> int:
        """Plans that ended with a dialog."""
        return int(self._row("SELECT count(dialog) FROM plans")[0])

    @property
    def seconds(self) -> float:
        """How long the run took so far, in all its sittings."""
        return float(self._row("SELECT max(value) FROM meta WHERE name = 'seconds'")[0] or 0)

    def dialogs(self) -> Iterator[Dialog]:
        """The accepted dialogs, in plan order."""
        return self._records(Dialog, "SELECT dialog FROM plans WHERE dialog IS NOT NULL ORDER BY number")

    def drops(self) -> Iterator[Drop]:
        """Everything that was not kept, in plan order."""
        return self._records(Drop, "SELECT record FROM drops ORDER BY number, rowid")

    def dropped(self, scope: Scope) -> dict[str, dict[str, int]]:
        """How often what was dropped: stage to reason to count."""
        counts: dict[str, dict[str, int]] = {}
        query = (
            "SELECT stage, reason, count(*) FROM drops WHERE scope = ? GROUP BY stage, reason ORDER BY stage, reason"
        )
        for stage, reason, count in self._rows(query, scope):
            counts.setdefault(stage, {})[reason] = count
        return counts

    def ended(self) -> dict[str, int]:
        """How the accepted dialogs came to their length: `complete`, or what ended them early; with counts."""
        query = "SELECT ended, count(*) FROM plans WHERE ended IS NOT NULL GROUP BY ended ORDER BY ended"
        return dict(self._rows(query))

    def usage(self) -> dict[str, Usage]:
        """What the plans that have an outcome cost, by stage."""
        rows = self._rows("SELECT * FROM usage ORDER BY stage")
        return {s: Usage(calls=c, prompt=p, cached=h, completion=o) for s, c, p, h, o in rows}

    def spent(self) -> dict[str, Usage]:
        """What everything cost so far, by stage: the same, and the finished calls of dialogs in the making."""
        total = self.usage()
        with _explained(self.folder):
            for stage, reply in self._db.execute("SELECT stage, reply FROM calls"):
                total[stage] = total.get(stage, Usage()) + ChatReply.model_validate_json(reply).usage
        return dict(sorted(total.items()))

    def _rows(self, query: str, *values: object) -> list[Any]:
        with _explained(self.folder):
            return self._db.execute(query, values).fetchall()

    def _row(self, query: str) -> Any:
        return self._rows(query)[0]

    def _records(self, kind: type[_Kept], query: str) -> Iterator[_Kept]:
        with _explained(self.folder):
            for (text,) in self._db.execute(query):
                yield kind.model_validate_json(text)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with _explained(self.folder):
            # SQLite would go on in a file that was deleted, and nobody could open it any more.
            if _identified(self.folder / "run.db") != self._file:
                raise RunError(
                    f"{self.folder}: run.db is gone or another file now; put it back and the same command continues"
                )
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._writing():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a disk that is full may have ended it
                    self._db.execute("ROLLBACK")
                raise


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn what the disk says, or what is wrong with the file, into one line."""
    try:
        yield
    except (OSError, sqlite3.Error, ValidationError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        if isinstance(error, OSError) or getattr(error, "sqlite_errorcode", -1) & 0xFF in _OF_THE_DISK:
            raise RunError(
                f"{folder}: can't write the run ({reason}); free space or mend the folder, "
                "and the same command continues"
            ) from error
        raise RunError(
            f"{folder}: run.db is damaged, or from another version of this program ({reason}); "
            "restore it, or give another run_dir=…, or fresh=true to begin anew"
        ) from error


def _identified(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to, if any."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _empty(folder: Path) -> None:
    """Remove what an earlier run left, not what this one has there; last the file that shows the folder to be ours."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == "run.db"):
        if path.is_dir():
            shutil.rmtree(path)
        elif not _is_kept(path):
            path.unlink()


def _is_kept(path: Path) -> bool:
    """Whether a file may stand in a run folder that isn't begun yet: our lock, and the log of a server for this run."""
    return path.name == ".lock" or path.suffix == ".log"
