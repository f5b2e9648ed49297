"""The parts of a run, as its settings make them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from generator.components import Components, WorkerSpec, open_library, skipped_documents
from generator.errors import ConfigError
from generator.retrievers.bm25 import Bm25Settings
from generator.schema import Document, SkippedRecord
from taxonomy import load as load_taxonomy
from tests.support.settings import settings


def test_its_prompts_hold_the_rules_of_their_own_task_alone(tmp_path: Path) -> None:
    assert set(components(tmp_path).tasks) == set()
    assert {"ask_first", "answer", "correctness"} <= set(components(tmp_path, "lm=openai", "lm.model=m").tasks)


def test_without_reasoning_four_candidates_are_drawn(tmp_path: Path) -> None:
    plain = "algorithm.reasoning=false"
    chosen = (), (plain,), (plain, "algorithm.candidates=2")
    assert [components(tmp_path, *each).candidates for each in chosen] == [1, 4, 2]


def test_how_a_dialog_in_one_call_says_that_nothing_is_known_is_part_of_its_prompts_version(tmp_path: Path) -> None:
    """A language file of one's own may change between two commands of a run."""
    own = ("taxonomy=qa", "algorithm=whole", "dialog.language=de", f"dialog.languages={tmp_path}")
    versions = set()
    for unknown in ("Dazu habe ich keine Angaben", "Das weiß ich nicht"):
        (tmp_path / "de.yaml").write_text(f"name: Deutsch\nscripts: [Latin]\nunknown: {unknown}\n", encoding="utf-8")
        versions.add(components(tmp_path, *own).prompt_version)
    assert len(versions) == 2


def test_documents_with_the_same_text_are_told_by_a_run_and_not_by_its_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files").mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / "files" / name).write_text("Dogs are free." if name == "a.txt" else "Trams run daily.")
    made = components(tmp_path, "corpus=folder", f"corpus.path={tmp_path}/files", "corpus.language=en")
    assert [note.split(":")[:2] for note in made.notes] == [["corpus", " documents with the text of another"]]
    assert capsys.readouterr().err == ""


def test_a_retriever_that_is_not_returned_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bm25Settings, "open", lambda *_: None)
    with pytest.raises(ConfigError, match="returned no retriever"):
        components(tmp_path)


def test_two_at_once_with_passages_of_other_sizes_list_the_documents_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: object) -> Iterator[Document | SkippedRecord]:
        yield from (Document(id=str(number), text=f"Text {number}.") for number in range(20))
        yield SkippedRecord(where="file:21", reason="broken")
        time.sleep(0.1)  # until the other one is here, too

    both = [settings(f"cache_dir={tmp_path}", f"retriever.passage_tokens={size}") for size in (128, 512)]
    monkeypatch.setattr(type(both[0].corpus), "read", read)
    with ThreadPoolExecutor() as pool:
        libraries = list(pool.map(lambda each: open_library(each, "f" * 64), both))
    assert list(map(len, libraries)) == [20, 20]
    (skipped,) = skipped_documents(both[0], "f" * 64).read_text().splitlines()
    assert SkippedRecord.model_validate_json(skipped).where == "file:21"


def components(folder: Path, *given: str) -> Components:
    made = settings(*given, f"cache_dir={folder}")
    return Components(WorkerSpec(made, made.corpus.fingerprint(), load_taxonomy(made.taxonomy), 1000, ()))
