import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.corpora import broken, corpus, good, read, write_lines


def test_jsonl_is_read_plain_and_gzipped_with_any_field_names(tmp_path: Path) -> None:
    records = [{"_id": 7, "body": "Hello.", "name": "A", "link": "https://example.org"}, {"_id": "x", "body": "Hi."}]
    write_lines(tmp_path / "b.jsonl", *records)
    (tmp_path / "a").mkdir()
    line = b'\xef\xbb\xbf{"_id": "y", "body": "Hey.", "name": null, "n": NaN}\n'
    (tmp_path / "a" / "c.jsonl.gz").write_bytes(gzip.compress(line))
    fields = {"id_field": "_id", "text_field": "body", "title_field": "name", "url_field": "link"}
    found = good(read("jsonl", path=str(tmp_path), **fields))
    assert [(d.id, d.title, d.text, d.url) for d in found] == [
        ("y", "", "Hey.", None),
        ("7", "A", "Hello.", "https://example.org"),
        ("x", "", "Hi.", None),
    ]
    assert set(found[0].model_dump()) == {"id", "text", "title", "url", "collection"}
    numbered = good(read("jsonl", path=str(tmp_path), **fields | {"id_field": None, "title_field": None}))
    assert [(d.id, d.title) for d in numbered] == [("a/c.jsonl.gz:1", ""), ("b.jsonl:1", ""), ("b.jsonl:2", "")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "a", "text": NaN}', "`text` is null"),
        (b'{"id": "a", "text": "K\xf6ln"}', "not JSON: byte 22 isn't UTF-8"),
        (b'{"id": }', "not JSON: Expecting value (column 8)"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b'["a", "b"]', "not a JSON object"),
        (b'{"text": "b"}', "no field `id`, only text"),
        (b'{"id": "a", "body": "b"}', "no field `text`, only body, id"),
        (b'{"id": true, "text": "b"}', "`id` must be a string, not true"),
        (b'{"id": " ", "text": "b"}', "its id is empty"),
        (b'{"id": "a\\n", "text": "b"}', "its id holds a control character"),
        (b'{"id": "a", "text": " \\n\\u00a0"}', "it holds no text"),
        (b'{"id": "a", "text": "b", "title": ["c"]}', '`title` must be a string, not ["c"]'),
        (b'{"id": "a", "text": "half \\ud83d"}', "not valid Unicode (surrogates not allowed)"),
    ],
)
def test_a_bad_line_is_broken_and_the_next_one_is_read(tmp_path: Path, line: bytes, reason: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n" + line + b'\n{"id": "fine", "text": "Hello."}')
    bad, fine = read("jsonl", path=str(tmp_path))
    ((where, told),) = broken([bad])
    assert where == f"{tmp_path}/a.jsonl:2"
    assert told.startswith(reason)
    assert good([fine])[0].id == "fine"


def peak_bytes(action: Callable[[], object]) -> int:
    """Return the most memory that an action takes: the least of three times, since other threads take some too."""

    def traced() -> int:
        tracemalloc.start()
        try:
            action()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return min(traced() for _ in range(3))


def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    write_lines(path, *({"id": n, "text": f"{n} " + "word " * 1000} for n in range(1000)))
    assert peak_bytes(lambda: sum(1 for _ in corpus("jsonl", path=str(path)).read())) < path.stat().st_size / 4


def test_a_field_of_an_object_in_a_record_is_named_with_a_dot(tmp_path: Path) -> None:
    inner = {"source": "fares.html", "loc": {"page": 3}}
    write_lines(
        tmp_path / "a.jsonl", {"page_content": "Hello.", "metadata": inner, "a.b": "dotted"}, {"page_content": "Hi."}
    )
    fields = {"id_field": "metadata.loc.page", "text_field": "page_content", "url_field": "metadata.source"}
    first, bad = read("jsonl", path=str(tmp_path), title_field="a.b", **fields)
    ((_, told),) = broken([bad])
    assert "no field `metadata.loc.page`, only page_content" in told
    assert [(d.id, d.title, d.text, d.url) for d in good([first])] == [("3", "dotted", "Hello.", "fares.html")]


@pytest.mark.parametrize(
    ("text_format", "text", "title", "body"),
    [
        ("html", "<meta charset=iso-8859-1><h1>Fares</h1><p>A s&uuml;ße<br>ride.<ul><li>Dogs", "Fares", "A süße"),
        ("markdown", "# Fares\n\nA *süße*\nride.\n\n- Dogs", "Fares", "A süße ride."),
        (
            "txt",
            "The ferry that goes from the pier to the island and\nback takes dogs.",
            "",
            "The ferry that goes from the pier to the island and back takes dogs.",
        ),
        (None, "# Fares\n\nA *süße*\nride.", "", "# Fares"),
    ],
)
def test_a_text_is_read_in_its_format(
    text_format: str | None, text: str, title: str, body: str, tmp_path: Path
) -> None:
    write_lines(tmp_path / "a.jsonl", {"id": "1", "text": text}, {"id": "2", "text": text, "title": "Own"})
    unnamed, named = good(read("jsonl", path=str(tmp_path), text_format=text_format))
    assert (unnamed.title, named.title) == (title, "Own")
    assert unnamed.text.startswith(body)


@pytest.mark.parametrize("text", ['[{"id": "a", "text": "T."}]', '[\n {"id": "a", "text": "T."}\n]'])
def test_a_list_of_records_is_told_apart_from_json_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    (_, reason), *_ = broken(read("jsonl", path=str(tmp_path / "a.json")))
    assert "corpus=huggingface reads" in reason
