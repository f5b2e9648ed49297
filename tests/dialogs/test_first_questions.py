"""First questions of one run open the dialogs of another, as Lee et al. 2024 generate theirs on OR-QuAC."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from generator.config.choices import compose_choice
from generator.config.parts import build
from generator.dialogs.first_questions import read_first_questions
from generator.errors import ConfigError
from generator.schema import Dialog
from taxonomy import QuestionType, Share, load
from tests.support.openai_server import OpenAIServer, prompt
from tests.support.runs import Ended, Site


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A finished run of Algorithm 1."""
    site = Site(tmp_path_factory.mktemp("source"))
    with OpenAIServer() as server:
        assert site.run(server, "algorithm=single", "taxonomy=mixed", "dialogs=8", "dedup=none").code == 0
    yield site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "target")


def shares(name: str, *changes: str) -> Sequence[Share[QuestionType]]:
    """Return the first types of a mix."""
    return load(build("taxonomy", compose_choice("taxonomy", name, changes))).first


def opened(site: Site, server: OpenAIServer, source: Path, *more: str) -> Ended:
    return site.run(server, f"algorithm.first_questions={source}", "dedup=none", *more)


def test_the_questions_come_in_their_order_and_none_is_generated(
    site: Site, source: Site, openai_server: OpenAIServer
) -> None:
    assert opened(site, openai_server, source.run_dir, "dialogs=5", "taxonomy=mixed", "validation=0").code == 0
    there, here = source.dialogs(), site.dialogs()
    lost = {drop["text"] for drop in site.drops()}  # the made-up words of one may be in no document
    expected = [(d["turns"][0]["query"], d["turns"][0]["question_type"]) for d in there]
    kept = [(query, kind) for query, kind in expected if query not in lost]
    assert [(d["turns"][0]["query"], d["turns"][0]["question_type"]) for d in here] == kept[:5]
    for dialog in here:
        assert dialog["turns"][0]["retrieval_query"] == dialog["turns"][0]["query"]
        assert dialog["turns"][0]["hits"]
        assert dialog["document_ids"] == list(dict.fromkeys(p["document_id"] for p in dialog["passages"]))
    assert not any("opens the conversation" in prompt(body).rpartition("<task>")[2] for body in openai_server.bodies)
    site.check_ledger()


def test_only_types_of_the_taxonomy_are_used_and_the_last_of_them_ends_the_run(
    site: Site, source: Site, openai_server: OpenAIServer
) -> None:
    first = [dialog["turns"][0] for dialog in source.dialogs()]
    name, _ = Counter(turn["question_type"] for turn in first).most_common(1)[0]
    known = [turn["query"] for turn in first if turn["question_type"] == name]
    assert 0 < len(known) < 8
    done = opened(site, openai_server, source.run_dir, "dialogs=100", f"taxonomy={name}", "max_attempts=500")
    lost = [drop["text"] for drop in site.drops()]  # as above
    assert sorted(lost + [dialog["turns"][0]["query"] for dialog in site.dialogs()]) == sorted(known)
    assert "the last of algorithm.first_questions" in done.err
    assert f"{8 - len(known)} of 8 first questions are left out" in done.err
    again = opened(site, openai_server, source.run_dir, "dialogs=100", f"taxonomy={name}", "max_attempts=900")
    assert "this run is finished; fresh=true starts over" in again.err, "more dialogs can't continue it"


def test_a_question_of_several_types_counts_as_the_first_that_the_taxonomy_has(
    source: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = ["factoid", "factoid+how-to", "keyword+comparative+direct", "how-to", "direct", "keyword", "how-to", "x"]
    dialogs = [Dialog.model_validate(dialog) for dialog in source.dialogs()]
    lines = []
    for dialog, question_type in zip(dialogs, measured, strict=True):
        first = dialog.turns[0]
        typed = {"question_type": question_type, "query": f"{first.query} slpi", "clean_query": first.query}
        turns = (first.model_copy(update=typed), *dialog.turns[1:])
        lines.append(dialog.model_copy(update={"turns": turns}).model_dump_json())
    (file := tmp_path / "measured.jsonl").write_text("\n".join(lines))
    questions = read_first_questions(file, shares("mixed", "first.unanswerable=0"))
    assert [question.question_type for question in questions] == ["comparative", "direct"]
    assert [question.query for question in questions] == [dialogs[n].turns[0].query for n in (2, 4)]
    assert "6 of 8 first questions are left out" in (err := capsys.readouterr().err)
    assert err.endswith(": 2 how-to, 1 factoid, 1 factoid+how-to, 1 keyword, 1 x\n")


def test_the_questions_and_not_their_place_decide_whether_a_run_can_be_continued(
    site: Site, source: Site, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    opened(site, openai_server, source.run_dir, "dialogs=2")
    text = (source.run_dir / "dialogs.jsonl").read_text()
    (file := tmp_path / "moved.jsonl").write_text(text)
    assert opened(site, openai_server, file, "dialogs=3").code == 0
    file.write_text(text.partition("\n")[2])
    changed = opened(site, openai_server, file, "dialogs=4")
    assert changed.code == 2 and "first_questions" in changed.error


def test_what_is_not_a_run_is_reported_in_one_line(source: Site, tmp_path: Path) -> None:
    (tmp_path / "two.jsonl").write_text((source.run_dir / "dialogs.jsonl").read_text() + "{}\n")
    (tmp_path / "empty.jsonl").touch()
    for path, message in (
        (tmp_path, "can't read .*dialogs.jsonl"),
        (tmp_path / "two.jsonl", "line 9 of .*two.jsonl"),
        (tmp_path / "empty.jsonl", r"taxonomy\.first"),
    ):
        with pytest.raises(ConfigError, match=rf"^algorithm\.first_questions={path}: .*{message}.*$"):
            read_first_questions(path, shares("direct"))


def test_algorithm_1_has_no_first_questions(site: Site, source: Site, openai_server: OpenAIServer) -> None:
    done = opened(site, openai_server, source.run_dir, "algorithm=single")
    assert done.code == 2 and "algorithm.first_questions" in done.error
    assert not (site.run_dir / "run.db").exists()
