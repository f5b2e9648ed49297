"""`python -m generator.report`, and marks that a run reads back."""

import json
import re
from pathlib import Path

import pytest
from filelock import FileLock

from generator.__main__ import COMMAND as generate
from generator.dialogs.marks import fingerprint
from generator.report import COMMAND
from generator.schema import Dialog, Evidence
from judges.__main__ import COMMAND as JUDGES
from tests.output.html.test_page import unpack
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_dialog, make_passage, make_turn, write_dialogs
from tests.support.runs import Site, command


def marks_of(site: Site, *marks: dict[str, object], run: str = "") -> Path:
    file = site.folder / "marks.json"
    first = Dialog.model_validate(site.dialogs()[0])
    file.write_text(
        json.dumps({"run": run or fingerprint(first), "annotator": "ada", "marks": marks}), encoding="utf-8"
    )
    return file


def test_rejected_pairs_leave_the_dataset_and_stay_out(openai_server: OpenAIServer, site: Site) -> None:
    assert site.run(openai_server, "dialogs=2", "fresh=true").code == 0
    assert (site.run_dir / "report.html").stat().st_size < 1 << 20
    pairs, dialog_id = len(site.rows()), site.dialogs()[0]["id"]
    rejected = {"dialog_id": dialog_id, "turn": 1, "keep": False, "note": "wrong"}
    file = marks_of(site, rejected, {"dialog_id": dialog_id, "turn": 2, "note": "why?"})
    stored = site.run_dir / "config.yaml"  # as the report says; it doesn't start over
    marked = command(str(stored), f"marks={file}", program=generate)
    assert marked.code == 0 and "1 note without" in marked.err
    site.check_ledger()
    assert len(site.rows()) == pairs - 1
    assert [(d["dialog_id"], d["turn"], d["stage"]) for d in site.drops() if d["scope"] == "pair"] == [
        (dialog_id, 1, "human")
    ]
    file.unlink()
    assert site.run(openai_server, "dialogs=3").code == 0  # a run that goes on keeps them
    site.check_ledger()
    assert site.summary()["dropped_pairs"] == {"human": {"rejected": 1}}
    before = site.data()
    for wrong in (marks_of(site, run="f" * 16), marks_of(site, {"dialog_id": "other"})):
        ended = site.run(openai_server, "dialogs=3", f"marks={wrong}")
        assert ended.code == 2
        assert ended.error.startswith(f"marks={wrong}: ")
    assert site.data() == before
    assert site.run(openai_server, "dialogs=3", f"marks={file}", "fresh=true").code == 2
    assert site.data() == before


def test_a_command_without_its_paths_says_how_it_is_called() -> None:
    assert command(program=COMMAND).error.endswith(COMMAND.usage[0])
    assert command("run", "lm.model=x", program=COMMAND).error.startswith("lm.model: this command has no such setting")
    assert "paths: required" in command("--help", program=COMMAND).out


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write_dialogs(folder / "dialogs.jsonl", *(make_dialog(make_turn(1), id=f"d{n}") for n in range(3)))
    (folder / "summary.json").write_text('{"attempted": 3, "accepted": 3, "pairs": 3}', encoding="utf-8")
    return folder


def test_damaged_lines_and_a_run_that_goes_on_are_said_and_shown(run_dir: Path) -> None:
    with (run_dir / "dialogs.jsonl").open("a") as file:
        file.write('{"id": "d4", "turns"')
    (run_dir / "drops.jsonl").write_text("[]\n", encoding="utf-8")
    with FileLock(run_dir / ".lock"):
        ended = command(str(run_dir), program=COMMAND)
    assert ended.code == 0
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    for said in ("1 of 4 records", "1 of 1 records", "a run is writing here"):
        assert said in ended.err
        assert said in page


def test_a_file_of_dialogs_does_not_tell_which_pairs_were_kept(run_dir: Path, tmp_path: Path) -> None:
    (run_dir / "drops.jsonl").touch()
    for path, kept in ((run_dir, True), (run_dir / "dialogs.jsonl", None)):
        assert command(str(path), f"output={tmp_path / 'r.html'}", program=COMMAND).code == 0
        entries = unpack((tmp_path / "r.html").read_text(encoding="utf-8"))["entries"]
        assert [turn["kept"] for entry in entries for turn in entry["turns"]] == [kept] * 3


def test_words_are_counted_in_the_language_of_the_set(tmp_path: Path) -> None:
    text = "Das Museum öffnet um neun Uhr. Am Montag bleibt es geschlossen, und Kinder zahlen nichts."
    turn = make_turn(
        1,
        query="Wann öffnet das Museum in Köln?",
        answer="Es öffnet um neun Uhr.",
        evidence=(Evidence(passage_id="p", start=0, end=30, text=text[:30]),),
    )
    dialogs = write_dialogs(tmp_path / "dialogs.jsonl", make_dialog(turn, passages=[make_passage("p", text)]))
    output = tmp_path / "page.html"
    assert command(str(dialogs), f"output={output}", program=COMMAND).code == 0
    line = re.search(r"overlap of question and evidence.*?(\d\.\d+)", output.read_text(encoding="utf-8"), re.DOTALL)
    assert line and line[1] == "0.500"  # by English rules, where “das” counts, 0.6


def test_no_setting_is_named_that_a_command_lacks(tmp_path: Path) -> None:
    said = (
        "Das Museum öffnet um neun Uhr, und am Montag bleibt es geschlossen.",
        "Le musée ouvre à neuf heures et reste fermé le lundi toute la journée.",
        "El museo abre a las nueve de la mañana y los lunes está cerrado todo el día.",
    )
    dialogs = [make_dialog(make_turn(1, query=text, answer=text), id=text[:3]) for text in said]
    path = write_dialogs(tmp_path / "dialogs.jsonl", *dialogs)
    report = command(str(path), f"output={tmp_path / 'page.html'}", program=COMMAND)
    assert "one language, so English is assumed\n" in report.err
    judging = command(f"input={path}", "judge=k_precision", f"run_dir={tmp_path / 'judged'}", program=JUDGES)
    assert "one language, so English is assumed; set language if not\n" in judging.err


def test_what_is_no_run_is_one_line(tmp_path: Path, run_dir: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "marks.json").write_text('{"run": "0", "annotator": "ada", "marks": []}', encoding="utf-8")
    marks = command(str(run_dir), f"marks={tmp_path / 'marks.json'}", program=COMMAND)
    assert marks.code == 2 and "another run" in marks.error and not (run_dir / "report.html").exists()
    for path in ("empty", "missing"):
        ended = command(str(tmp_path / path), program=COMMAND)
        assert (ended.code, ended.out) == (2, "")
        assert path in ended.error
    (run_dir / "dialogs.jsonl").write_text("half", encoding="utf-8")
    (run_dir / "summary.json").unlink()
    assert "1 of 1 records" in command(str(run_dir), program=COMMAND).error
    assert not (run_dir / "report.html").exists()
