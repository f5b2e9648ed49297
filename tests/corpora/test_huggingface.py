import gzip
import json
import random
import socketserver
import time
import tracemalloc
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from datasets import Dataset, DatasetDict
from pyarrow import parquet

from generator.schema import Document
from tests.support.corpora import broken, corpus, good, message, read, write_lines

ROWS: list[dict[str, Any]] = [
    {"id": 7, "text": "One.", "title": "A", "link": "https://example.org/a", "n": 1.5},
    {"id": 8, "text": "Two.", "title": None, "link": None, "n": 2.5},
]
FIELDS = {"id_field": "id", "title_field": "title", "url_field": "link"}


def save(kind: str, folder: Path) -> str:
    """`ROWS` in a file or folder of this kind."""
    path = folder / f"rows{kind}"
    rows = Dataset.from_list(ROWS)
    match kind:
        case ".parquet":
            rows.to_parquet(path)
        case ".csv":
            rows.to_csv(path, index=False)
        case ".tsv":
            rows.to_csv(path, index=False, sep="\t")
        case ".jsonl":
            write_lines(path, *ROWS)
        case ".jsonl.gz":
            path.write_bytes(gzip.compress(Path(save(".jsonl", folder)).read_bytes()))
        case ".json":
            path.write_text(json.dumps(ROWS))
        case "-saved":
            rows.save_to_disk(path)
        case "-splits-saved":
            DatasetDict(train=rows, test=rows.select([1])).save_to_disk(path)
        case "-folder":
            path.mkdir()
            rows.to_parquet(path / "train.parquet")
            rows.select([1]).to_parquet(path / "test.parquet")
    return str(path)


KINDS = [".parquet", ".csv", ".tsv", ".jsonl", ".jsonl.gz", ".json", "-saved", "-splits-saved", "-folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_documents(tmp_path: Path, kind: str) -> None:
    path = save(kind, tmp_path)
    found = [(d.id, d.title, d.text, d.url) for d in good(read("huggingface", path=path, **FIELDS))]
    assert found == [("7", "A", "One.", "https://example.org/a"), ("8", "", "Two.", None)]
    assert [(d.id, d.title) for d in good(read("huggingface", path=path))] == [("0", ""), ("1", "")]


@pytest.mark.parametrize("kind", ["-splits-saved", "-folder"])
def test_a_split_is_chosen(tmp_path: Path, kind: str) -> None:
    path = save(kind, tmp_path)
    assert [d.text for d in good(read("huggingface", path=path, split="test"))] == ["Two."]
    told = message(lambda: read("huggingface", path=path, split="dev"))
    assert told.startswith("corpus.split=dev: ") and "train" in told and "test" in told


def test_a_subset_is_chosen(tmp_path: Path) -> None:
    card = "---\nconfigs:\n" + "".join(f"- config_name: {n}\n  data_files: {n}.jsonl\n" for n in ("north", "south"))
    (tmp_path / "README.md").write_text(f"{card}---\n")
    for name in ("north", "south"):
        write_lines(tmp_path / f"{name}.jsonl", {"text": f"In the {name}."})
    assert [d.text for d in good(read("huggingface", path=str(tmp_path), subset="south"))] == ["In the south."]
    assert "north" in message(lambda: read("huggingface", path=str(tmp_path), subset="west"))
    file = write_lines(tmp_path / "a.jsonl", {"text": "One."})
    assert message(lambda: read("huggingface", path=str(file), subset="west")).startswith("corpus.subset=west: ")


def test_a_field_that_no_object_has_is_an_error(tmp_path: Path) -> None:
    path = str(write_lines(tmp_path / "a.jsonl", {"text": "One.", "meta": {"url": "u"}}))
    assert [d.url for d in good(read("huggingface", path=path, url_field="meta.url"))] == ["u"]
    assert "no column meta.uri, only meta.url; " in message(
        lambda: read("huggingface", path=path, url_field="meta.uri")
    )


def test_a_row_that_cannot_be_read_is_told_by_its_number_and_field(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    Dataset.from_dict({"text": ["One.", None, " "], "n": [1.5, 2.5, 3.5]}).to_parquet(path)
    assert [reason for _, reason in broken(read("huggingface", path=str(path)))] == [
        "`text` is null",
        "it holds no text",
    ]
    ((where, reason), *_) = broken(read("huggingface", path=str(path), id_field="n"))
    assert (where, reason) == (f"{path}: train[0]", "`n` must be a string, not 1.5")


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ([Decimal("7"), Decimal("8.50")], ["7.00", "8.50"]),
        ([date(2025, 3, 4), date(2025, 3, 5)], ["2025-03-04", "2025-03-05"]),
        ([7.0, 8.0], ["7", "8"]),
    ],
)
def test_decimals_dates_and_whole_numbers_are_ids(values: list[object], ids: list[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"id": values, "text": ["One.", "Two."]}), path)
    assert [document.id for document in good(read("huggingface", path=str(path), id_field="id"))] == ids


def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are(tmp_path: Path) -> None:
    told = message(lambda: read("huggingface", path=save(".jsonl", tmp_path), text_field="body"))
    assert told.startswith(f"corpus.path={tmp_path}/rows.jsonl: no column body, only id, text, title, link, n")


def test_a_table_of_its_first_line_alone_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n")
    assert read("huggingface", path=str(tmp_path / "a.csv")) == []


def test_what_is_no_data_set_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "bad.docx").touch()
    (tmp_path / "empty").mkdir()
    told = message(lambda: read("huggingface", path=str(tmp_path / "bad.parquet")))
    assert told.startswith(f"corpus.path={tmp_path}/bad.parquet: can't be read: ")
    assert "URL that ends in .parquet" in message(lambda: read("huggingface", path=str(tmp_path / "bad.docx")))
    assert ": is empty, or has hidden" in message(lambda: read("huggingface", path=str(tmp_path / "empty")))
    (tmp_path / "excel.csv").write_bytes("text;title\nFür alle.;Münze\n".encode("cp1252"))
    assert message(lambda: read("huggingface", path=str(tmp_path / "excel.csv"))).endswith("; save it as UTF-8")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.md").write_text("# A\n\nText.")
    told = message(lambda: read("huggingface", path=str(tmp_path / "texts")))
    assert "no file ends in .parquet" in told and told.endswith("; found 1 .md; corpus=folder reads .md")
    assert "corpus.path is empty" in message(lambda: read("huggingface"))
    assert "doesn't exist" in message(lambda: read("huggingface", path=str(tmp_path / "nowhere")))
    assert capfd.readouterr().err == "", "it is said once"


@pytest.mark.parametrize("content", [b"\n null\n", b""])
def test_a_file_of_null_or_nothing_is_an_error(content: bytes, tmp_path: Path) -> None:
    """At null, `datasets` ends the process."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert message(lambda: read("huggingface", path=str(path))).startswith(f"{path}: begins with neither {{ nor [")


def test_a_file_that_breaks_off_is_an_error_and_not_a_short_corpus(tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"Row {number}. " + "x" * 1000}) for number in range(30_000)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*rows, "oops"]))
    where = corpus("huggingface", path=str(path))
    assert " after train[" in message(lambda: list(where.readable(where.read(), lambda record: None)))


def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    draw = random.Random(0)
    Dataset.from_dict({"text": [draw.randbytes(1000).hex() for _ in range(8000)]}).to_parquet(path, batch_size=400)
    read("huggingface", path=str(path))  # imports happen before we measure
    before, peak = pyarrow.total_allocated_bytes(), 0
    tracemalloc.start()  # sees what was read from the file; Arrow counts what it made of that
    try:
        for number, _ in enumerate(corpus("huggingface", path=str(path)).read(), start=1):
            if number % 200 == 0:
                made = pyarrow.total_allocated_bytes() - before
                peak = max(peak, tracemalloc.get_traced_memory()[0] + made)
    finally:
        tracemalloc.stop()
    assert number == 8000
    assert peak < path.stat().st_size / 2


# The hub


def test_the_hub_is_asked_for_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def loaded(*arguments: object, **options: object) -> object:
        asked.extend((arguments, options))
        return Dataset.from_list(ROWS).to_iterable_dataset()

    monkeypatch.setattr("datasets.load_dataset", loaded)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda api, *names, **options: asked.append(names))
    settings = {"subset": "north", "split": "test", "revision": "v2"}
    assert len(good(read("huggingface", path="someone/articles", **settings))) == 2
    assert asked == [
        ("someone/articles",),
        ("someone/articles", "north"),
        {"split": "test", "revision": "v2", "streaming": True},
    ]


def test_without_a_connection_what_was_loaded_before_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(path: str, *_: object, **options: object) -> Dataset:
        assert not options.get("streaming"), "datasets streams nothing from its cache"
        if path != "someone/articles":
            raise ConnectionError("Couldn't reach it")
        return Dataset.from_list(ROWS)

    monkeypatch.setattr("datasets.load_dataset", loaded)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: pytest.fail("there is no connection"))
    assert [d.text for d in good(read("huggingface", path="someone/articles"))] == ["One.", "Two."]
    assert "HF_HUB_OFFLINE" in message(lambda: read("huggingface", path="someone/else"))


@pytest.mark.parametrize("name", ["someone/articles", "articles", "folder/rows.parquet"])
def test_a_hub_that_cannot_be_reached_is_one_line_at_once(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as free:
        port = free.server_address[1]
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{port}")
    waits = list[float]()
    monkeypatch.setattr(time, "sleep", waits.append)
    told = message(lambda: read("huggingface", path=name))
    assert not waits
    assert told.startswith(f"corpus.path={name}: no such file or folder, and the Hugging Face hub has no such data set")
    assert "refused" in told
    assert capfd.readouterr().err == ""


def test_the_fingerprint_on_the_hub_is_that_of_name_and_settings_and_the_hub_is_not_asked() -> None:
    def fingerprint(path: str = "someone/articles", **settings: Any) -> str:
        return corpus("huggingface", path=path, **settings).fingerprint()

    assert fingerprint() == fingerprint(licence="CC0-1.0")
    others = {fingerprint(**{name: "x"}) for name in ("path", "split", "subset", "revision", "text_field")}
    assert len(others | {fingerprint()}) == 6


@pytest.mark.parametrize(("mark", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16"), ("|", "utf-8")])
def test_values_of_csv_stay_as_they_are(tmp_path: Path, mark: str, encoding: str) -> None:
    path = tmp_path / "rows.csv"
    rows = [("sku", "text", "title"), ("007", "Kettle", "NA"), ("1E5", "2024", "null")]
    path.write_text("\n".join(map(mark.join, rows)), encoding=encoding)
    found = good(read("huggingface", path=str(path), id_field="sku", title_field="title"))
    assert [(d.id, d.text, d.title) for d in found] == [("007", "Kettle", "NA"), ("1E5", "2024", "null")]


def test_quotation_marks_between_tabs_are_text_unless_they_enclose_cells(tmp_path: Path) -> None:
    texts = ['"Hi" is short.', "Two.", '"Open.', "Four.", '"Another" one.', "Six."]
    lines = [f"{number}\t{text}" for number, text in enumerate(texts)]
    (tmp_path / "a.tsv").write_text("\n".join(["id\ttext", *lines, ""]))
    assert [d.text for d in good(read("huggingface", path=str(tmp_path / "a.tsv"), id_field="id"))] == texts
    texts[1] = 'Two\n“lines”\twith "marks".'
    Dataset.from_dict({"id": [*range(6)], "text": texts}).to_csv(tmp_path / "b.tsv", sep="\t", index=False)
    assert [d.text for d in good(read("huggingface", path=str(tmp_path / "b.tsv"), id_field="id"))] == texts


def test_values_of_a_folder_of_csv_stay_as_they_are(tmp_path: Path) -> None:
    for name in ("train-1", "train-2"):
        (tmp_path / f"{name}.csv").write_text(f"sku;text\n00{name[-1]};Kettle {name[-1]}\n")
    (tmp_path / "README.md").write_text("# Kettles\n")
    found = good(read("huggingface", path=str(tmp_path), id_field="sku"))
    assert [(d.id, d.text) for d in found] == [("001", "Kettle 1"), ("002", "Kettle 2")]


def test_a_row_of_csv_with_more_cells_than_columns_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = ["1,Dogs, cats travel free.,Fares", "2,Cats pay.,Fares"]
    for order in (rows, rows[::-1]):
        path.write_text("\n".join(["id,text,title", *order, ""]))
        assert "put cells with the separating mark in quotes" in message(lambda: read("huggingface", path=str(path)))


def test_empty_rows_of_a_spreadsheet_are_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text,title\r\n1,Kettle,\r\n"","",\r\n,,\r\n2,,Lid\r\n,,\r\n')
    found = read("huggingface", path=str(tmp_path / "a.csv"), id_field="id", title_field="title")
    assert [where.rpartition(":")[2] for where, _ in broken(found)] == [" train[3]"] and len(found) == 2


def test_a_field_of_an_object_in_a_row_is_named_with_a_dot(tmp_path: Path) -> None:
    rows = [
        {"text": "Hello.", "metadata": {"source": "a", "n": 1}},
        {"text": "Hi.", "metadata": {"source": "b", "n": 2}},
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    found = good(read("huggingface", path=str(tmp_path / "a.json"), id_field="metadata.source"))
    assert [(d.id, d.text) for d in found] == [("a", "Hello."), ("b", "Hi.")]


def test_text_of_a_json_list_stays_as_it_is_where_other_rows_have_a_number_in_its_place(tmp_path: Path) -> None:
    rows = [{"text": "Two lines:\n“one” and – two.", "title": "A"}, {"text": "Hello.", "title": 1984}, {"text": 5}]
    (tmp_path / "a.json").write_text(json.dumps([{"text": "First.", "title": "0"}]))
    (tmp_path / "b.json").write_text(json.dumps(rows))
    first, found, *others = read("huggingface", path=str(tmp_path), title_field="title")
    assert isinstance(first, Document) and isinstance(found, Document)
    assert (first.text, first.title, found.text, found.title) == ("First.", "0", "Two lines:\n“one” and – two.", "A")
    reasons = [reason for _, reason in broken(others)]
    assert reasons == ["`title` must be a string, not 1984", "`text` must be a string, not 5"]


def test_files_of_a_folder_that_are_no_part_of_the_data_set_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train.jsonl", "more.jsonl"):
        write_lines(tmp_path / name, *ROWS)
    (tmp_path / "dataset_info.json").write_text("{}")
    assert len(good(read("huggingface", path=str(tmp_path)))) == 2
    assert f"corpus.path={tmp_path}: 1 of 2 files not read, such as more.jsonl" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_part_of_parquet_may_be_empty(tmp_path: Path) -> None:
    table = pyarrow.table({"text": [row["text"] for row in ROWS]})
    for number, part in enumerate((table[:1], table[:0], table[1:])):
        parquet.write_table(part, tmp_path / f"part-{number}.parquet")
    assert [d.text for d in good(read("huggingface", path=str(tmp_path)))] == ["One.", "Two."]


def test_values_of_json_lines_stay_as_they_are_whatever_the_others_look_like(tmp_path: Path) -> None:
    rows = [{"id": f"2025-03-{day:02}", "text": f"Two lines:\n“{day}”."} for day in range(1, 30)]
    filler = {"id": "filler", "text": "x" * 400_000}
    mixed = [{"id": 4, "text": 5}, {"id": "z", "text": "Z.", "note": "of another column"}]
    for name, several in (("train-0", [*rows, *[filler | {"id": f"f{n}"} for n in range(30)]]), ("train-1", mixed)):
        write_lines(tmp_path / f"{name}.jsonl", *several)
    found = read("huggingface", path=str(tmp_path), id_field="id")
    texts = {document.id: document.text for document in found if isinstance(document, Document)}
    assert [texts[row["id"]] for row in rows] == [row["text"] for row in rows]
    assert texts["z"] == "Z."
    assert [reason for _, reason in broken([row for row in found if not isinstance(row, Document)])] == [
        "`text` must be a string, not 5"
    ]


def test_files_with_other_columns_are_an_error_that_names_them(tmp_path: Path) -> None:
    Dataset.from_dict({"text": ["One."]}).to_parquet(tmp_path / "a.parquet")
    Dataset.from_dict({"text": ["Two."], "note": ["x"]}).to_parquet(tmp_path / "b.parquet")
    assert "have the columns text, note, the first text;" in message(lambda: read("huggingface", path=str(tmp_path)))
