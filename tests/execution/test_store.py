"""The file of a run: what survives a crash, who may open it, and its errors."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from generator.dialogs.journal import Journal
from generator.errors import RunError
from generator.execution.store import Outcome, Store
from generator.models.lm import ChatReply
from generator.schema import Cost, Dialog, Drop, Usage
from tests.support.records import make_dialog, make_passage, make_turn

IDENTITY: dict[str, object] = {"seed": 0, "turns": "2-4", "lm.model": "m"}
SPENT = Usage(calls=1, prompt=100, cached=64, completion=10)


def reply(text: str = "A reply.") -> ChatReply:
    return ChatReply(text=text, finish_reason="stop", model="m", usage=SPENT)


def dialog(name: str = "a", answer: str = "It opens at nine.") -> Dialog:
    turn = make_turn(1, answer=answer, usage=Cost(calls=2, prompt=200, completion=20))
    return make_dialog(turn, passages=[make_passage("d:0-4", "text")], id=name)


def accepted(name: str = "a") -> Outcome:
    return Outcome(dialog=dialog(name), drops=(), usage=(("ask", SPENT),))


def dropped(name: str) -> Outcome:
    drop = Drop(dialog_id=name, scope="dialog", stage="ask", reason="unusable reply", text="{")
    return Outcome(dialog=None, drops=(drop,), usage=(("ask", SPENT + SPENT),))


def message(error: pytest.ExceptionInfo[RunError], folder: Path) -> str:
    """Return the error's line, which names the folder."""
    text = str(error.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with one accepted dialog, one dropped, and a third in the making."""
    folder = tmp_path / "run"
    with Store(folder, IDENTITY) as store:
        store.add(0, "a", accepted(), 1.5)
        store.add(1, "b", dropped("b"), 1.5)
        store.add_seconds(0.5)
        Journal(store, "c").add("key", "ask", 1, reply())
    return folder


def test_a_run_is_read_back_as_it_was_written(run: Path) -> None:
    with Store(run, IDENTITY) as store:
        assert (store.attempted, store.accepted, store.seconds) == (2, 1, 3.5)
        assert list(store.dialogs()) == [dialog()]
        assert [drop.dialog_id for drop in store.drops()] == ["b"]
        assert store.dropped("dialog") == {"ask": {"unusable reply": 1}}
        assert store.dropped("turn") == {}
        assert store.endings() == {"complete": 1}
        assert store.usage() == {"ask": SPENT + SPENT + SPENT}
        assert store.spent() == {"ask": SPENT + SPENT + SPENT + SPENT}, "with the call of the dialog in the making"


def test_a_call_outlives_a_crash_before_its_dialog_is_done(run: Path) -> None:
    with Store(run, IDENTITY) as store:
        journal = Journal(store, "c")
        assert journal.find("key", "ask", 1) == reply()
        assert journal.find("another", "ask", 1) is None
        assert Journal(store, "d").find("key", "ask", 1) is None, "a dialog has its own calls"


def test_a_call_counts_once_whether_made_or_remembered(run: Path) -> None:
    with Store(run, IDENTITY) as store:
        journal = Journal(store, "c")
        journal.find("key", "ask", 1)
        journal.add("key 2", "answer", 1, reply())
        journal.add("key 3", "ask", 2, reply())
        assert journal.by_stage() == (("answer", SPENT), ("ask", SPENT + SPENT))
        assert journal.cost(1) == Cost(calls=2, prompt=200, completion=20)
        assert journal.cost(3) == Cost()
        before = store.usage()["ask"].calls
        store.add(2, "c", Outcome(dialog=dialog("c"), drops=(), usage=journal.by_stage()), 0)
        assert store.usage()["ask"].calls == before + 2


def test_the_calls_of_a_finished_dialog_are_let_go(run: Path) -> None:
    with Store(run, IDENTITY) as store:
        store.add_call("d", "key", "ask", 1, reply())
        store.add(2, "c", accepted("c"), 0)
        assert store.calls("c") == {}
        assert store.calls("d") == {"key": reply()}, "another dialog's are not"


def test_an_outcome_is_written_whole_or_not_at_all(run: Path) -> None:
    with Store(run, IDENTITY) as store:
        twice = dropped("c").model_copy(update={"usage": (("ask", SPENT), ("ask", SPENT))})
        with pytest.raises(RunError, match="UNIQUE constraint"):
            store.add(2, "c", twice, 1)  # plan, drop and usage are written by then
        assert (store.attempted, store.seconds) == (2, 3.5)
        assert [drop.dialog_id for drop in store.drops()] == ["b"]
        assert store.usage()["ask"].calls == 3
        assert "key" in store.calls("c")
        store.add(2, "c", dropped("c"), 1)
        assert store.attempted == 3


# Opening


def test_other_settings_are_named_with_both_values(run: Path) -> None:
    with pytest.raises(RunError) as error, Store(run, {"seed": 1, "turns": "2-4", "retriever.k": 5}):
        pass
    text = message(error, run)
    for part in ("seed (was 0, is 1)", "lm.model (was m, is unset)", "retriever.k (was unset, is 5)"):
        assert part in text
    assert "turns" not in text
    assert "fresh=true" in text
    with Store(run, IDENTITY) as store:  # neither harmed nor locked
        assert store.attempted == 2


def test_a_range_is_named_as_it_is_set_and_a_file_without_hashes(tmp_path: Path) -> None:
    """And of a group with another setting, a hash is not called other content: it may be the setting's."""

    def identity(most: int, weight: float, content: str) -> dict[str, object]:
        hashes = {f"{name} (content)": content for name in ("taxonomy.path", "corpus.path")}
        return {"turns.least": 2, "turns.most": most, "taxonomy.first.direct": weight, **hashes}

    with Store(tmp_path, identity(2, 0.3, "1fcc")) as store:
        store.add_call("d", "k", "ask", 1, reply())
    with pytest.raises(RunError) as error, Store(tmp_path, identity(3, 0.5, "3d56")):
        pass
    text = message(error, tmp_path)
    assert "corpus.path (other content), taxonomy.first.direct (was 0.3, is 0.5), turns (was 2, is 2-3);" in text
    assert "taxonomy.path" not in text and "3d56" not in text


def test_a_run_without_a_call_or_an_outcome_takes_other_settings(tmp_path: Path) -> None:
    """As an error at the first call advises."""
    with Store(tmp_path / "run", IDENTITY):
        pass
    with Store(tmp_path / "run", {"seed": 9}) as store:
        Journal(store, "c").add("key", "ask", 1, reply())
    with pytest.raises(RunError, match="seed"):
        Store(tmp_path / "run", IDENTITY)
    with Store(tmp_path / "run", {"seed": 9}):
        pass


def test_fresh_begins_anew_with_any_settings(run: Path) -> None:
    (run / "dataset").mkdir()
    (run / "dialogs.jsonl").touch()
    with Store(run, {"seed": 9}, fresh=True) as store:
        assert (store.attempted, store.accepted, store.usage()) == (0, 0, {})
        assert store.calls("c") == {}
        assert not (run / "dataset").exists()
        assert not (run / "dialogs.jsonl").exists()
    with Store(run, {"seed": 9}):
        pass


def test_one_at_a_time(run: Path) -> None:
    with Store(run, IDENTITY):
        for fresh in (False, True):
            with pytest.raises(RunError, match="is writing here") as error, Store(run, IDENTITY, fresh):
                pass
            message(error, run)
    with Store(run, IDENTITY) as store:
        assert store.attempted == 2


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_of_other_files_is_left_alone(fresh: bool, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / ".lock").touch()  # many programs leave one
    with pytest.raises(RunError, match="is not a run folder") as error, Store(tmp_path, IDENTITY, fresh):
        pass
    message(error, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "thesis.txt"]


# Damage


@pytest.mark.parametrize("left", ["", "x", "not a database, but a text of some length\n" * 200])
def test_a_file_that_is_no_database(left: str, run: Path) -> None:
    (run / "dialogs.jsonl").write_text("{}\n")
    (run / "run.db").write_text(left)
    with pytest.raises(RunError) as error, Store(run, IDENTITY):
        pass
    text = message(error, run)
    assert "damaged" in text and "fresh=true" in text
    assert (run / "dialogs.jsonl").read_text() == "{}\n"
    assert len(left) < 2 or (run / "run.db").read_text() == left, "it may be the file of another program"
    with Store(run, IDENTITY, fresh=True) as store:
        assert store.attempted == 0


def test_records_of_another_version(run: Path) -> None:
    with closing(sqlite3.connect(run / "run.db")) as db:
        db.execute("""UPDATE plans SET dialog = '{"id": "a", "speakers": 2}' WHERE number = 0""")
        db.execute("""UPDATE calls SET reply = '{"content": "hello"}'""")
        db.commit()
    with Store(run, IDENTITY) as store:
        with pytest.raises(RunError) as error:
            list(store.dialogs())
        assert "fresh=true" in message(error, run)
        with pytest.raises(RunError) as error:
            store.calls("c")
        assert "fresh=true" in message(error, run)


def test_a_full_disk_is_one_line_and_loses_nothing_written(run: Path) -> None:
    """SQLite is told that the file may not grow; tests/test_resume.py lets the system say so to a whole run."""
    long = reply("x" * 100_000)
    with Store(run, IDENTITY) as store:
        store._db.execute("PRAGMA max_page_count = 1")  # as it is now: no less is possible
        with pytest.raises(RunError) as error:
            store.add_call("d", "key", "ask", 1, long)
        text = message(error, run)
        assert "full" in text
        assert "same command" in text
        big = dialog("c", answer="x" * 100_000)
        with pytest.raises(RunError, match="full"):
            store.add(2, "c", Outcome(dialog=big, drops=(), usage=()), 1)
        assert store.attempted == 2
        store._db.execute("PRAGMA max_page_count = 1000000")  # room again, in the same process
        store.add(2, "c", Outcome(dialog=big, drops=(), usage=()), 1)
    with Store(run, IDENTITY) as store:
        assert [d.id for d in store.dialogs()] == ["a", "c"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_removed_or_replaced_stops_the_run(replaced: bool, run: Path) -> None:
    """Otherwise hours of work would go into a file that nobody can open."""
    with Store(run, IDENTITY) as store:
        run.rename(run.with_name("moved"))
        if replaced:
            run.mkdir()
            (run / "run.db").touch()
        with pytest.raises(RunError) as error:
            store.add(2, "c", accepted("c"), 1)
        assert "deleted or replaced" in message(error, run)


def test_a_run_of_another_release_is_one_line_and_left_alone(run: Path) -> None:
    with closing(sqlite3.connect(run / "run.db")) as db:
        db.execute("PRAGMA user_version = 0")
    with pytest.raises(RunError, match=r"another release.*run_dir.*fresh=true") as error:
        Store(run, {"seed": 1})
    assert "seed" not in str(error.value) and "\n" not in str(error.value)
    with Store(run, {"seed": 1}, fresh=True) as store:
        assert store.attempted == 0
