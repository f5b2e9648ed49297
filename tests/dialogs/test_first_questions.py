"""First questions of one run open the dialogs of another, as Lee et al. 2024 make theirs on OR-QuAC."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.dialogs.first_questions import openings
from generator.schema import Dialog
from taxonomy import load
from tests.config.test_conf_files import settings
from tests.support.openai_server import OpenAIServer, openai_server, prompt
from tests.support.runs import Ended, Site

__all__ = ["openai_server"]

SOURCE = ["algorithm=single", "taxonomy=mixed", "dialogs=8", "dedup=none"]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Site]:
    """A run of Algorithm 1, made."""
    (tmp_path / "source").mkdir()
    site = Site(tmp_path / "source")
    with OpenAIServer() as server:
        assert site.run(server, *SOURCE).code == 0
    yield site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "target").mkdir()
    return Site(tmp_path / "target")


def opened(site: Site, server: OpenAIServer, source: Site, *more: str) -> Ended:
    return site.run(server, f"algorithm.first_questions={source.run_dir}", "dedup=none", *more)


def refused(done: Ended) -> str:
    assert done.code == 2
    return done.error


def test_the_questions_come_in_their_order_and_are_asked_of_no_document(
    site: Site, source: Site, openai_server: OpenAIServer
) -> None:
    assert opened(site, openai_server, source, "dialogs=5", "taxonomy=mixed", "validation=0").code == 0
    there, here = source.dialogs(), site.dialogs()
    wanted = [(d["turns"][0]["query"], d["turns"][0]["question_type"]) for d in there[:5]]
    assert [(d["turns"][0]["query"], d["turns"][0]["question_type"]) for d in here] == wanted
    for dialog in here:
        assert dialog["turns"][0]["retrieval_query"] == dialog["turns"][0]["query"]
        assert dialog["turns"][0]["hits"]
        assert dialog["document_ids"] == list(dict.fromkeys(p["document_id"] for p in dialog["passages"]))
    assert not any("opens the conversation" in prompt(body).rpartition("<task>")[2] for body in openai_server.bodies)
    site.check_ledger()


def test_only_types_of_the_taxonomy_are_taken_and_the_last_of_them_ends_the_run(
    site: Site, source: Site, openai_server: OpenAIServer
) -> None:
    direct = [t["turns"][0]["query"] for t in source.dialogs() if t["turns"][0]["question_type"] == "direct"]
    assert 0 < len(direct) < 8
    done = opened(site, openai_server, source, "dialogs=100", "taxonomy=direct", "max_attempts=500")
    assert [dialog["turns"][0]["query"] for dialog in site.dialogs()] == direct
    assert f"stopped at the last of algorithm.first_questions: {len(direct)} of 100 dialogs accepted" in done.err
    left_out = f"{8 - len(direct)} of 8 first questions are left out"
    assert f"{left_out}, not of a type in taxonomy.first (direct): " in done.err


def test_a_question_of_several_types_counts_as_the_first_that_the_taxonomy_has(
    source: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = ["factoid", "factoid+how-to", "keyword+comparative+direct", "how-to", "direct", "keyword", "how-to", "x"]
    dialogs = [Dialog.model_validate(dialog) for dialog in source.dialogs()]
    lines = [
        dialog.model_copy(
            update={"turns": (dialog.turns[0].model_copy(update={"question_type": kind}), *dialog.turns[1:])}
        ).model_dump_json()
        for dialog, kind in zip(dialogs, measured, strict=True)
    ]
    (file := source.folder / "measured.jsonl").write_text("\n".join(lines))
    wanted = load(settings("taxonomy=mixed", "taxonomy.without=[unanswerable]").taxonomy).first
    taken = openings(file, wanted)
    assert [opening.question_type for opening in taken] == ["comparative", "direct"]
    assert [opening.query for opening in taken] == [dialogs[2].turns[0].query, dialogs[4].turns[0].query]
    said = capsys.readouterr().err
    assert said.endswith("(aggregate, comparative, direct): 2 how-to, 1 factoid, 1 factoid+how-to, 1 keyword, 1 x\n")
    assert f"algorithm.first_questions={file}: 6 of 8 first questions are left out" in said


def test_another_run_of_questions_is_another_configuration_wherever_it_lies(
    site: Site, source: Site, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    opened(site, openai_server, source, "dialogs=2")
    file = tmp_path / "moved.jsonl"
    text = (source.run_dir / "dialogs.jsonl").read_text()
    file.write_text(text)
    assert site.run(openai_server, f"algorithm.first_questions={file}", "dedup=none", "dialogs=3").code == 0
    file.write_text(text.partition("\n")[2])
    message = refused(site.run(openai_server, f"algorithm.first_questions={file}", "dedup=none", "dialogs=4"))
    assert "the first questions" in message


def test_what_is_no_run_is_said_in_a_line(site: Site, source: Site, openai_server: OpenAIServer) -> None:
    def told(path: object, *more: str) -> str:
        return refused(site.run(openai_server, f"algorithm.first_questions={path}", *more))

    assert "nowhere: can't read nowhere (No such file or directory); give the folder of a run" in told("nowhere")
    assert "dialogs.jsonl (No such file or directory)" in told(site.folder)
    assert f"line 1 of {site.documents} is no dialog" in told(site.documents)
    (lines := site.folder / "two.jsonl").write_text((source.run_dir / "dialogs.jsonl").read_text() + "{}\n")
    assert f"line 9 of {lines} is no dialog" in told(lines)
    (empty := site.folder / "empty.jsonl").touch()
    assert "no first question is of a type in taxonomy.first (direct); it has none" in told(empty, "taxonomy=direct")
    message = refused(site.run(openai_server, "algorithm=single", f"algorithm.first_questions={source.run_dir}"))
    assert message == "algorithm.first_questions: only algorithm=multi has this setting"
    assert not (site.run_dir / "run.db").exists()
