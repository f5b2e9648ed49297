"""Paths of every kind: links, archives, URLs, damaged files, and the fingerprint of what they hold."""

import errno
import gzip
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pydantic import ValidationError

from generator.schema import Document, SkippedRecord
from tests.support.corpora import Quiet, broken, corpus, good, message, read, served, write_lines

# What each corpus is asked for: the ending of its files, and one with the text "One." or another.
KINDS = {
    "folder": (".txt", "{}"),
    "jsonl": (".jsonl", '{{"text": "{}"}}\n'),
    "huggingface": (".jsonl", '{{"text": "{}"}}\n'),
    "quac": (".json", '{{"data": [{{"title": "T", "paragraphs": [{{"id": "{0}", "context": "{0}"}}]}}]}}'),
}


def write(name: str, path: Path, text: str) -> Path:
    """Write a file with one document as the corpus `name` reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(KINDS[name][1].format(text))
    return path


def link(path: Path, target: str | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def found(name: str, path: Path | str) -> tuple[list[str], dict[str, str]]:
    """The texts of the documents, and the reasons of what was skipped by the place below `path`."""
    records = read(name, path=str(path), max_broken=1, **({"id_field": None} if name == "jsonl" else {}))
    skipped = {where.removeprefix(f"{path}/"): reason for where, reason in broken(records)}
    return sorted(record.text for record in records if isinstance(record, Document)), skipped


# Links


@pytest.mark.parametrize("name", KINDS)
def test_a_tree_of_git_annex_is_read_and_what_is_not_there_is_listed(name: str, tmp_path: Path) -> None:
    """Files link to .git/annex/objects or a cache elsewhere; those that weren't fetched are dangling."""
    end, root = KINDS[name][0], tmp_path / "data"
    write(name, root / ".git" / "annex" / "objects" / "x1", "One.")
    write(name, tmp_path / "dvc" / "cache" / "y2", "Two.")
    link(root / f"a{end}", ".git/annex/objects/x1")
    link(root / "sub" / f"b{end}", tmp_path / "dvc" / "cache" / "y2")
    link(root / "sub" / f"c{end}", "../.git/annex/objects/gone")
    os.mkfifo(root / f"pipe{end}")
    skipped = {f"sub/c{end}": "dangling link to ../.git/annex/objects/gone", f"pipe{end}": "not a regular file"}
    assert found(name, root) == (["One.", "Two."], skipped)
    before = corpus(name, path=str(root)).fingerprint()
    write(name, root / ".git" / "annex" / "objects" / "gone", "Three.")
    assert corpus(name, path=str(root)).fingerprint() != before


@pytest.mark.parametrize("name", KINDS)
def test_linked_folders_are_read_and_loops_end(name: str, tmp_path: Path) -> None:
    end, root = KINDS[name][0], tmp_path / "docs"
    write(name, root / f"a{end}", "One.")
    write(name, tmp_path / "elsewhere" / "deep" / f"b{end}", "Two.")
    link(root / "linked", tmp_path / "elsewhere")
    link(root / "here", ".")
    link(root / "sub" / "up", "..")
    link(tmp_path / "elsewhere" / "back", root)
    link(root / f"self{end}", f"self{end}")
    assert found(name, root) == (["One.", "Two."], {f"self{end}": "Too many levels of symbolic links"})


def test_a_folder_below_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("jsonl", tmp_path / "private" / "a.jsonl", "One.")
    listed = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        if folder.name == "private":  # root may read everything
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    told = message(lambda: read("jsonl", path=str(tmp_path)))
    assert told.startswith(f"corpus.path={tmp_path}: ") and f"{tmp_path / 'private'}: Permission denied" in told


# URLs


@pytest.fixture
def memory() -> Iterator[Any]:
    """An fsspec file system in memory."""
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def test_a_url_of_any_protocol_is_read(memory: Any, tmp_path: Path) -> None:
    line = b'{"id": "%s", "text": "One."}\n'
    with zipfile.ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("v1/z.jsonl", line % b"z")
    content = {"a.jsonl": line % b"a", "sub/b.jsonl.gz": gzip.compress(line % b"b"), ".git/c.jsonl": b"hidden"}
    content["docs.zip"] = (tmp_path / "docs.zip").read_bytes()
    for name, data in content.items():
        memory.pipe(f"/docs/{name}", data)
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_bytes(data)
    for path, ids in {
        "memory://docs": ["a", "z", "b"],
        "memory://docs/sub/b.jsonl.gz": ["b"],
        "memory://docs/docs.zip": ["z"],
        "zip://v1/z.jsonl::memory://docs/docs.zip": ["z"],
        f"file://{tmp_path}/here": ["a", "z", "b"],
        f"zip://v1::file://{tmp_path}/docs.zip": ["z"],
        "simplecache::memory://docs/a.jsonl": ["a"],
    }.items():
        assert [document.id for document in good(read("jsonl", path=path))] == ids, path
    prints = {corpus("jsonl", path=p).fingerprint() for p in ("memory://docs", str(tmp_path / "here"))}
    assert len(prints) == 1, "wherever the files lie"
    memory.pipe("/texts/a.txt", b"One.")
    assert [document.id for document in good(read("folder", path="memory://texts"))] == ["a.txt"]
    assert found("huggingface", "memory://docs/a.jsonl") == (["One."], {})


@pytest.mark.parametrize("name", ["folder", "jsonl"])
def test_a_zip_archive_behind_an_address_is_fetched_and_read(name: str, tmp_path: Path) -> None:
    """The server can't send a part of a file, as many can't."""
    with zipfile.ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("v1/a.txt", "One. " * 20_000)
        archive.writestr("v1/b.jsonl", '{"id": "b", "text": "Two."}')
    with served(tmp_path) as address:
        for path in (f"{address}/docs.zip", f"{address}/docs.zip?download=1"):
            (document,) = good(read(name, path=path))
            assert document.id == {"folder": "docs.zip/v1/a.txt", "jsonl": "b"}[name]
    (local,) = good(read(name, path=str(tmp_path / "docs.zip")))
    assert (local.id, local.text) == (document.id, document.text)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nonsense://docs", "Protocol not known: nonsense"),
        ("memory://nowhere", "doesn't exist"),
        ("http://127.0.0.1:9/a.jsonl", "can't be read (Connect call failed"),
        ("http://127.0.0.1:9/docs/", "Connect call failed"),
        ("file:///dev/zero", "isn't a folder"),
    ],
)
@pytest.mark.parametrize("name", ["jsonl", "quac", "huggingface"])
def test_a_url_that_cannot_be_read_is_one_line(name: str, path: str, words: str) -> None:
    told = message(lambda: read(name, path=path))
    assert told.startswith(f"corpus.path={path}") and words in told


@pytest.mark.parametrize(("status", "words"), [(403, "can't be read (403"), (404, "doesn't exist (404")])
def test_an_address_that_is_refused_is_not_called_missing(
    status: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Quiet, "send_head", lambda self: self.send_error(status))
    with served(tmp_path) as address:
        assert words in message(lambda: read("jsonl", path=f"{address}/a.jsonl"))


@pytest.mark.parametrize(
    "path",
    [
        "https://me:secret@host/a.jsonl",
        *(f"https://host/a.jsonl?{name}=secret" for name in ("X-Amz-Signature", "sig", "AWSAccessKeyId", "api_key")),
    ],
)
def test_a_url_holds_no_key(path: str) -> None:
    with pytest.raises(ValidationError, match="no password or key"):
        corpus("jsonl", path=path)


@pytest.mark.parametrize("name", ["keyword", "design", "assigned"])
def test_a_parameter_that_is_no_key_is_taken(name: str) -> None:
    corpus("jsonl", path=f"https://host/a.jsonl?{name}=tram")


# Archives and damaged files


def test_the_files_in_an_archive_are_read_in_place_and_nothing_is_written(tmp_path: Path) -> None:
    line, path = b'{"id": "%d", "text": "One."}\n', tmp_path / "in" / "docs.zip"
    path.parent.mkdir()
    members = ["v1/b.jsonl", "../../up.jsonl", "a/../../c.jsonl", "d\\..\\e.jsonl", "./f.jsonl"]
    escape = zipfile.ZipInfo("link.jsonl")
    escape.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(members):
            archive.writestr(name, line % number)
        archive.writestr("v1/a.jsonl.gz", gzip.compress(line % 5))
        archive.writestr(escape, b"/etc/passwd")
        for other in ("__MACOSX/v1/._a.jsonl", "v1/.hidden.jsonl", "v1/readme.md", "inner.zip", "/absolute.jsonl"):
            archive.writestr(other, b"other")
    before = sorted(tmp_path.rglob("*"))
    for given in (path, path.parent):
        documents = [record for record in read("jsonl", path=str(given)) if isinstance(record, Document)]
        assert sorted(document.id for document in documents) == list("012345")
        skipped = {where.removeprefix(f"{path}/"): why for where, why in broken(read("jsonl", path=str(given)))}
        assert skipped.keys() == {"inner.zip", "/absolute.jsonl", "link.jsonl:1"}
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_that_is_none_or_holds_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    path.write_bytes(b"PK no archive")
    assert message(lambda: read("jsonl", path=str(path))).startswith(f"{path}: can't be read as a zip archive")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.md", b"# About")
    assert "found 1 .md" in message(lambda: read("jsonl", path=str(path)))


def test_an_archive_of_a_folder_that_is_none_is_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "docs.zip").write_bytes(b"PK no archive")
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "a", "text": "One."}\n')
    document, archive = read("jsonl", path=str(tmp_path))
    assert isinstance(document, Document) and document.id == "a"
    assert isinstance(archive, SkippedRecord) and archive.where == str(tmp_path / "docs.zip")
    assert archive.reason.startswith("can't be read as a zip archive: ")


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("cp932", ["利用案内/料金のご案内.txt", "利用案内/2024年PDF.txt"]),
        ("cp932", ["報告書.txt", "取扱説明書（改訂）.txt"]),
        ("gbk", ["报告.txt", "图书馆/借阅规则（二）.txt", "2023年度总结.txt"]),
        ("gbk", ["朱镕基与图书馆借阅规则的年度总结报告.txt"]),  # the second isn't in GB 2312
        ("cp949", ["보고서.txt", "도서관/대출 규정.txt"]),
        ("utf-8", ["Gebühren/Höhe.txt", "Gebühren/a.txt"]),
        ("cp437", ["été.txt", "à.txt", "öl.txt", "ä/ö.txt"]),
        ("cp437", ["Gebühren/Höhe.txt", "château/mère.txt"]),
    ],
)
def test_names_in_a_zip_archive_are_read_as_they_were_written(encoding: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for place in range(len(names)):
            archive.writestr(f"{place}" + "_" * (len(names[place].encode(encoding)) - 1), "Text.")
    data = path.read_bytes()
    for place, name in enumerate(names):  # as programs do that leave out the flag of UTF-8
        raw = name.encode(encoding)
        data = data.replace(f"{place}".encode() + b"_" * (len(raw) - 1), raw)
    path.write_bytes(data)
    found = good(read("folder", path=str(path)))
    assert {document.id.removeprefix("a.zip/") for document in found} == set(names)


@pytest.mark.parametrize(("name", "begin"), [("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\0"), ("bzip2", b"BZh9")])
def test_another_compression_than_gzip_is_named(name: str, begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.packed"
    path.write_bytes(begin + b"\xff" * 99)
    fault = f"is packed by {name}; unpack it, or pack it by gzip"
    assert message(lambda: read("jsonl", path=str(path))).endswith(fault)


@pytest.mark.parametrize("damage", ["cut short", "overwritten", "zip"])
def test_a_damaged_file_is_an_error_that_says_how_far_it_goes(tmp_path: Path, damage: str) -> None:
    text = b"".join(b'{"id": "%d", "text": "Line %d %d."}\n' % (n, n, n * n) for n in range(9000))
    path, packed = tmp_path / "a.jsonl.gz", bytearray(gzip.compress(text))
    if damage == "cut short":
        path.write_bytes(packed[:-1000])
    elif damage == "overwritten":
        packed[-2000:-1960] = bytes(40)
        path.write_bytes(packed)
    else:
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.jsonl", text)
        path.write_bytes(path.read_bytes().replace(b"Line 8999 ", b"Line 8998 "))
    told = message(lambda: read("jsonl", path=str(path)))
    assert int(told.partition("can't be read after line ")[2].partition(":")[0]) > 1000


# Paths


@pytest.mark.parametrize("name", ["coqa", "folder", "jsonl", "mtrag", "multidoc2dial", "orquac", "quac", "squad"])
def test_a_path_that_leads_nowhere_is_an_error(name: str, tmp_path: Path) -> None:
    assert "corpus.path is empty" in message(lambda: read(name, path=" "))
    nowhere = str(tmp_path / "nowhere")
    assert f"corpus.path={nowhere}: doesn't exist; give a file" in message(lambda: read(name, path=nowhere))
    assert message(lambda: read(name, path="long" * 100)).endswith(": File name too long")
    (tmp_path / ".git").touch()
    assert ": is empty, or has hidden files only; give another" in message(lambda: read(name, path=str(tmp_path)))
    for other in ("a.doc", "b.doc", "c"):
        (tmp_path / other).touch()
    assert message(lambda: read(name, path=str(tmp_path))).endswith("found 2 .doc, 1 without a suffix")


def test_a_path_is_relative_to_the_current_directory_or_to_the_home_directory(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(here / "a.jsonl", {"id": "a", "text": "Hello."})
    monkeypatch.setenv("HOME", str(here))
    assert len(good(read("jsonl", path="~/a.jsonl"))) == len(good(read("jsonl", path="a.jsonl"))) == 1
    assert "doesn't exist" in message(lambda: read("jsonl", path="b.jsonl"))


def test_the_fingerprint_is_that_of_names_contents_and_settings_alone(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "sub").mkdir(parents=True)
        write_lines(tmp_path / place / "sub" / "a.jsonl", {"id": "a", "text": "Hello."})
        write_lines(tmp_path / place / "b.jsonl", {"id": "b", "text": "Hello."})
    os.utime(tmp_path / "there" / "b.jsonl", (0, 0))

    def fingerprint(**settings: Any) -> str:
        return corpus("jsonl", **({"path": str(tmp_path / "here")} | settings)).fingerprint()

    before = fingerprint()
    same = {"licence": "CC0-1.0", "source": "me", "name": "mine", "language": "de"}
    assert before == fingerprint(path=str(tmp_path / "there"), **same)
    others = {fingerprint(title_field=None), fingerprint(strict=True), fingerprint(path=str(tmp_path / "here/b.jsonl"))}
    (tmp_path / "here" / "b.jsonl").rename(tmp_path / "here" / "c.jsonl")
    others.add(fingerprint())
    write_lines(tmp_path / "there" / "b.jsonl", {"id": "b", "text": "Hullo."})
    others.add(fingerprint(path=str(tmp_path / "there")))
    assert len(others | {before}) == 6
