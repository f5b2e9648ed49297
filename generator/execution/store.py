"""The state of a run in one SQLite file: accepted dialogs, drops with their reasons, usage, finished calls.

A model call is recorded when its reply arrives, before the reply is used. An interrupted dialog is generated again:
its plan is the same, so its calls are the same, and the finished ones are read back instead of being paid for twice. A
plan's outcome (its dialog or drops, and its usage) is one transaction, in plan order; then its calls are deleted.
Everything else in the run folder is derived from this file.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from generator.common.atomic_files import lock_folder
from generator.dialogs.filter import Filter, filter_pairs
from generator.errors import RunError, describe
from generator.execution.history import read_usage
from generator.execution.identity import FILTER, describe_changes, encode, list_changes
from generator.execution.run_folder import empty_folder, prepare_folder
from generator.models.lm import ChatReply
from generator.schema import Dialog, Drop, Record, Scope, Usage, add_up

# Raised by a release whose runs the one before it can't continue, or the other way round.
_FORMAT = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (dialog_id TEXT, key TEXT, stage TEXT, turn INTEGER, reply TEXT,
    PRIMARY KEY (dialog_id, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans (number INTEGER PRIMARY KEY, dialog TEXT, ended TEXT);
CREATE TABLE IF NOT EXISTS drops (number INTEGER, scope TEXT, stage TEXT, reason TEXT, record TEXT);
CREATE TABLE IF NOT EXISTS costs (number INTEGER, stage TEXT, calls INTEGER, prompt INTEGER, cached INTEGER,
    completion INTEGER, PRIMARY KEY (number, stage)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (stage TEXT PRIMARY KEY, calls INTEGER, prompt INTEGER, cached INTEGER,
    completion INTEGER);
CREATE TABLE IF NOT EXISTS cache (minute INTEGER PRIMARY KEY, prompt INTEGER, cached INTEGER);
"""

R = TypeVar("R", bound=Record)


class Outcome(Record):
    """The outcome of a plan: accepted with its dialog, or dropped (then one of `drops` has the scope `dialog`)."""

    dialog: Dialog | None
    drops: tuple[Drop, ...]
    usage: tuple[tuple[str, Usage], ...]


class Store:
    """The file `run.db` of a run folder, for one process at a time; use as a context manager."""

    def __init__(self, folder: Path, identity: Mapping[str, object], fresh: bool = False) -> None:
        """Open a run, or start one.

        Args:
            folder: the run folder; it is created if needed.
            identity: the settings that determine the run's data, by name.
            fresh: start over, and remove the files of an earlier run.

        Raises:
            RunError: another run has it open, it was made with other settings, or it can't be written.
        """
        self.folder = folder
        with _as_run_error(folder):
            begun = prepare_folder(folder, fresh)
            self._lock = lock_folder(folder).lock
            try:
                if fresh:
                    empty_folder(folder)
                self._db = sqlite3.connect(folder / "run.db", isolation_level=None)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
                self._db.executescript(_TABLES)
                self._inode = (folder / "run.db").stat().st_ino
                self._same_run(encode(identity), begun)
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
        if begun and not stored:  # SQLite treats an empty file as a new database
            raise sqlite3.DatabaseError("it is empty")
        if stored and self._db.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
            raise RunError(
                f"{self.folder}: this run was started by another release, and this one can't continue it; "
                "set another run_dir, or fresh=true to remove it and start over"
            )
        changed = list_changes(stored, identity)
        if stored and changed and not self._is_empty():
            raise RunError(
                f"{self.folder}: this run was made with other settings, or by another release: "
                f"{describe_changes(stored, identity)}; set another run_dir, or fresh=true to remove it and start over"
            )
        if changed or not stored:
            with self._transaction():
                self._db.execute(f"PRAGMA user_version = {_FORMAT}")
                self._db.execute("DELETE FROM meta")
                self._db.executemany("INSERT INTO meta VALUES (?, ?)", [("=" + k, v) for k, v in identity.items()])

    def _is_empty(self) -> bool:
        return not self._row("SELECT (SELECT count(*) FROM plans) + (SELECT count(*) FROM calls)")[0]

    # Calls of unfinished dialogs

    def calls(self, dialog_id: str) -> dict[str, ChatReply]:
        """Return the finished calls of a dialog without an outcome, by key."""
        with _as_run_error(self.folder):
            rows = self._rows("SELECT key, reply FROM calls WHERE dialog_id = ?", dialog_id)
            return {key: ChatReply.model_validate_json(reply) for key, reply in rows}

    def all_calls(self) -> Iterator[tuple[str, str, ChatReply]]:
        """Yield the finished calls of all such dialogs: dialog id, key and reply."""
        with _as_run_error(self.folder):
            for dialog_id, key, reply in self._db.execute("SELECT dialog_id, key, reply FROM calls"):
                yield dialog_id, key, ChatReply.model_validate_json(reply)

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        with self._writing():
            row = (dialog_id, key, stage, turn, reply.model_dump_json())
            self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?)", row)

    # Outcomes, in plan order

    def add(self, number: int, dialog_id: str, outcome: Outcome, seconds: float) -> None:
        """Record a plan's outcome, and the seconds since the last one."""
        dialog = outcome.dialog
        usage = [(stage, u.calls, u.prompt, u.cached, u.completion) for stage, u in outcome.usage]
        with self._transaction():
            self._db.execute(
                "INSERT INTO plans VALUES (?, ?, ?)",
                (number, dialog and dialog.model_dump_json(), dialog and dialog.ended),
            )
            self._add_drops(number, outcome.drops)
            self._db.executemany(
                "INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT (stage) DO UPDATE SET "
                "calls = calls + excluded.calls, prompt = prompt + excluded.prompt, cached = cached + excluded.cached, "
                "completion = completion + excluded.completion",
                usage,
            )
            self._db.executemany("INSERT INTO costs VALUES (?, ?, ?, ?, ?, ?)", [(number, *spent) for spent in usage])
            self._db.execute("DELETE FROM calls WHERE dialog_id = ?", (dialog_id,))
            self._add_seconds(seconds)
            spent = sum((u for _, u in outcome.usage), Usage())
            self._db.execute(
                "INSERT INTO cache VALUES (?, ?, ?) ON CONFLICT (minute) DO UPDATE SET "
                "prompt = prompt + excluded.prompt, cached = cached + excluded.cached",
                (int(self.seconds // 60), spent.prompt, spent.cached),
            )

    def judge_again(self, judged: Mapping[str, tuple[Dialog, Sequence[Drop]]]) -> None:
        """Replace accepted dialogs, by their ids, and the drops of their pairs: all of them or none."""
        numbers = {i: n for n, i in self._rows("SELECT number, json_extract(dialog, '$.id') FROM plans")}
        with self._transaction():
            for dialog_id, (dialog, drops) in judged.items():
                number = numbers[dialog_id]
                self._db.execute("UPDATE plans SET dialog = ? WHERE number = ?", (dialog.model_dump_json(), number))
                self._db.execute("DELETE FROM drops WHERE number = ? AND scope = 'pair'", (number,))
                self._add_drops(number, drops)

    def filter_again(self, keep: Filter) -> bool:
        """Replace the drops of accepted dialogs' pairs by those of a filter; return False if it is the stored one."""
        value = encode({FILTER: keep})[FILTER]
        if self._row(f"SELECT max(value) FROM meta WHERE name = '={FILTER}'")[0] in (None, value):
            return False
        with self._transaction():
            self._db.execute("UPDATE meta SET value = ? WHERE name = ?", (value, f"={FILTER}"))
            self._db.execute("DELETE FROM drops WHERE scope = 'pair'")
            for number, dialog in self._db.execute("SELECT number, dialog FROM plans WHERE dialog IS NOT NULL"):
                self._add_drops(number, filter_pairs(Dialog.model_validate_json(dialog), keep)[1])
        return True

    def _add_drops(self, number: int, drops: Sequence[Drop]) -> None:
        rows = [(number, d.scope, d.stage, d.reason, d.model_dump_json()) for d in drops]
        self._db.executemany("INSERT INTO drops VALUES (?, ?, ?, ?, ?)", rows)

    def add_seconds(self, seconds: float) -> None:
        """Record the seconds since the last outcome, at the end of a session."""
        with self._transaction():
            self._add_seconds(seconds)

    def _add_seconds(self, seconds: float) -> None:
        total = str(self.seconds + seconds)
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('seconds', ?)", (total,))

    @property
    def command(self) -> str:
        """The command line of the last session that could generate dialogs."""
        return str(self._row("SELECT max(value) FROM meta WHERE name = 'command'")[0] or "")

    @command.setter
    def command(self, command: str) -> None:
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('command', ?)", (command,))

    @property
    def attempted(self) -> int:
        """The number of plans with an outcome, which is also the next plan's number."""
        return int(self._row("SELECT count(*) FROM plans")[0])

    @property
    def accepted(self) -> int:
        return int(self._row("SELECT count(dialog) FROM plans")[0])

    @property
    def seconds(self) -> float:
        """The duration of the run so far, over all its sessions."""
        return float(self._row("SELECT max(value) FROM meta WHERE name = 'seconds'")[0] or 0)

    def dialogs(self) -> Iterator[Dialog]:
        """Yield the accepted dialogs in plan order."""
        return self._records(Dialog, "SELECT dialog FROM plans WHERE dialog IS NOT NULL ORDER BY number")

    def drops(self) -> Iterator[Drop]:
        """Yield all drops in plan order."""
        return self._records(Drop, "SELECT record FROM drops ORDER BY number, rowid")

    def dropped(self, scope: Scope) -> dict[str, dict[str, int]]:
        """Count the drops of a scope: stage to reason to count."""
        counts: dict[str, dict[str, int]] = {}
        query = (
            "SELECT stage, reason, count(*) FROM drops WHERE scope = ? GROUP BY stage, reason ORDER BY stage, reason"
        )
        for stage, reason, count in self._rows(query, scope):
            counts.setdefault(stage, {})[reason] = count
        return counts

    def endings(self) -> dict[str, int]:
        """Count the accepted dialogs by their ending: `complete`, or the cause of an early end."""
        query = "SELECT ended, count(*) FROM plans WHERE ended IS NOT NULL GROUP BY ended ORDER BY ended"
        return dict(self._rows(query))

    def usage(self) -> dict[str, Usage]:
        """Return the usage of all plans with an outcome, by stage."""
        return {stage: read_usage(*rest) for stage, *rest in self._rows("SELECT * FROM usage ORDER BY stage")}

    def cached_by_minute(self) -> list[tuple[int, int, int]]:
        """Return minutes of the run, and prompt tokens, and the cached ones of them, of the ended dialogs."""
        return self._rows("SELECT minute, prompt, cached FROM cache ORDER BY minute")

    def spent(self) -> dict[str, Usage]:
        """Return all usage so far, by stage: with the finished calls of unfinished dialogs."""
        return add_up([*self.usage().items(), *self.unfinished()[1]])

    def unfinished(self) -> tuple[int, list[tuple[str, Usage]]]:
        """Return the number of dialogs with calls and without an outcome, and stage and usage of each of the calls."""
        (dialogs,) = self._row("SELECT count(DISTINCT dialog_id) FROM calls")
        rows = self._rows("SELECT stage, json_extract(reply, '$.usage') FROM calls")
        with _as_run_error(self.folder):
            return dialogs, [(stage, Usage.model_validate_json(usage)) for stage, usage in rows]

    def _rows(self, query: str, *values: object) -> list[Any]:
        with _as_run_error(self.folder):
            return self._db.execute(query, values).fetchall()

    def _row(self, query: str) -> Any:
        return self._rows(query)[0]

    def _records(self, kind: type[R], query: str) -> Iterator[R]:
        with _as_run_error(self.folder):
            for (text,) in self._db.execute(query):
                yield kind.model_validate_json(text)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with _as_run_error(self.folder):
            # SQLite would continue to write to a deleted file, which nobody can open.
            file = self.folder / "run.db"
            if not file.exists() or file.stat().st_ino != self._inode:
                raise RunError(
                    f"{self.folder}: run.db was deleted or replaced while the run was using it; put it back and the "
                    "same command continues"
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
                if self._db.in_transaction:  # an error such as a full disk may have ended it
                    self._db.execute("ROLLBACK")
                raise


@contextmanager
def _as_run_error(folder: Path) -> Iterator[None]:
    """Raise errors of the disk and of the file's content as a RunError."""
    try:
        yield
    except (OSError, sqlite3.Error, ValidationError) as error:
        # Python tells the disk's errors from those of the content, but for missing tables and columns.
        operational = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR
        if isinstance(error, OSError) or operational:
            raise RunError(
                f"{folder}: can't write the run ({describe(error)}); free space or make the folder writable, and the "
                "same command continues"
            ) from error
        raise RunError(
            f"{folder}: run.db is damaged, or from another version of this program ({describe(error)}); restore it, "
            "or set another run_dir, or fresh=true to remove it and start over"
        ) from error
