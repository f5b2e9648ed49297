from pathlib import Path

import pytest

from generator.human import COMMAND
from tests.support.corpora import corpus, dialogs, message, read_dialogs, write_lines
from tests.support.runs import command

GOOD = {"task": "SC", "id": 7, "history": [{"user": "Which?", "bot": "That {one}."}, {"user": "No.", "bot": "Right."}]}


def test_a_record_is_a_dialog_of_its_task_without_documents(tmp_path: Path) -> None:
    (found,) = dialogs("mt_bench_101", write_lines(tmp_path / "a.jsonl", GOOD))
    assert (found.id, found.task, found.algorithm, found.ended) == ("7", "SC", "whole", "complete")
    assert (found.document_ids, found.passages) == ((), ())
    assert [(t.query, t.answer) for t in found.turns] == [("Which?", "That {one}."), ("No.", "Right.")]
    assert [(t.question_type, t.multi_turn_type) for t in found.turns] == [("SC", None), ("SC", "SC")]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"task": "SC", "id": 1, "turns": []}, "history: Field required"),
        ({**GOOD, "id": "7"}, "id: Input should be a valid integer"),
        ({**GOOD, "task": ""}, "task: String should have at least 1 character"),
        ({**GOOD, "history": []}, "it has no question with an answer"),
        ({**GOOD, "history": [{"user": "Which?"}]}, "history.0.bot: Field required"),
        ({**GOOD, "history": [{"user": "Which?", "bot": " "}]}, "turn 1 has an empty question or answer"),
        ('{"task": "SC", "id": 1, "hist', "not JSON: Unterminated string"),
    ],
)
def test_a_bad_record_is_skipped_and_named(tmp_path: Path, record: object, reason: str) -> None:
    read, ((where, why),) = read_dialogs("mt_bench_101", write_lines(tmp_path / "a.jsonl", record, GOOD))
    assert [dialog.id for dialog in read] == ["7"]
    assert where == "1"
    assert why.startswith(reason)


def test_what_the_command_refuses_is_one_line(tmp_path: Path) -> None:
    twice = write_lines(tmp_path / "a.jsonl", GOOD, GOOD)
    arguments = ["corpus=mt_bench_101", f"run_dir={tmp_path / 'run'}"]
    done = command(*arguments, f"corpus.path={twice}", program=COMMAND)
    assert (done.code, done.error.partition(":")[0]) == (2, "corpus.path")
    assert "two dialogs have the id '7'" in done.error
    done = command(*arguments, program=COMMAND)
    assert (done.code, done.error.partition(";")[0]) == (2, "corpus.path is empty")
    done = command(
        *arguments, f"corpus.path={write_lines(tmp_path / 'b.jsonl', GOOD)}", f"cache_dir={tmp_path / 'cache'}"
    )
    assert (done.code, done.error.partition(":")[0]) == (2, "corpus=mt_bench_101")
    done = command(
        *arguments, f"corpus.path={write_lines(tmp_path / 'b.jsonl', GOOD)}", "export=mtrag", program=COMMAND
    )
    assert (done.code, done.error.partition(":")[0]) == (2, "export=mtrag")
    assert "no documents" in message(lambda: list(corpus("mt_bench_101", path=twice).read()))
