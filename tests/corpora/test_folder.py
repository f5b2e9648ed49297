"""A folder as a corpus, and the sample."""

import os
from pathlib import Path

import pytest

from generator.corpora.folder import FolderCorpus
from generator.schema import SkippedRecord
from tests.support.corpora import corpus, good, message, read


def test_the_sample_has_documents_of_all_lengths_in_groups() -> None:
    sample = good(read("sample"))
    lengths = [len(document.text.split()) for document in sample]
    assert len(sample) == 15 and min(lengths) >= 300 and 1200 <= max(lengths) <= 1500
    assert all(document.title and not document.text.lstrip().startswith("# ") for document in sample)


def test_files_that_are_read_in_another_way_are_another_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Text.")
    settings = corpus("folder", path=str(tmp_path))
    before = settings.fingerprint()
    monkeypatch.setattr(FolderCorpus, "reading", "another")
    assert settings.fingerprint() != before, "else a cache with the old text would be taken"


def test_a_folder_is_read_in_the_order_of_its_paths_whatever_the_kind_of_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "z.TXT").write_bytes(b"\xef\xbb\xbfFirst line.\r\nSecond line.")
    (tmp_path / "b" / "deep" / "a.md").write_text("\n# A *title*\n\nText with a # sign.\n")
    (tmp_path / "a.htm").write_text("<p>Hello.")
    for ignored in ("c.docx", ".hidden.txt", ".git/x.txt", "d.docx", "README"):
        (tmp_path / ignored).write_text("ignored")
    found = good(read("folder", path=str(tmp_path)))
    corpus("folder", path=str(tmp_path)).fingerprint()  # as each run asks for, also if it reads no documents again
    told = capsys.readouterr().err
    assert told.count("skipped 3 files") == 1 and "2 .docx, 1 without a suffix" in told
    assert "corpus.reader=office reads .docx" in told
    assert [(document.id, document.title) for document in found] == [
        ("a.htm", "a"),
        ("b/deep/a.md", "A title"),
        ("z.TXT", "z"),
    ]
    assert [document.text for document in found][1:] == ["Text with a # sign.", "First line.\nSecond line."]
    assert [document.id for document in good(read("folder", path=str(tmp_path / "z.TXT")))] == ["z.TXT"]
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "a.zip").touch()
    assert "corpus.path=ARCHIVE.zip reads" in message(lambda: read("folder", path=str(tmp_path / "packed")))
    (tmp_path / "office").mkdir()
    (tmp_path / "office" / "a.docx").touch()
    assert "corpus.reader=office reads .docx" in message(lambda: read("folder", path=str(tmp_path / "office")))


def test_a_file_name_that_is_no_unicode_still_gives_a_document(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("Hello.")
    (document,) = good(read("folder", path=str(tmp_path)))
    assert document.id == "caf\N{REPLACEMENT CHARACTER}.txt"
    document.model_dump_json()


@pytest.mark.parametrize("name", ["a.md", "a.pdf"])
def test_a_pointer_of_git_lfs_is_no_document(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    (skipped,) = read("folder", path=str(tmp_path), max_broken=1)
    assert isinstance(skipped, SkippedRecord) and "git lfs pull" in skipped.reason
