"""Recall and nDCG, against numbers worked out by hand and those of mtRAG's pools; and the command's messages."""

import csv
import io
import json
import math
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from generator.errors import CorpusError
from judges.benchmarks.mtrag.retrieval_tasks import read_collections, read_run
from judges.metrics.ranking import Figures, mean, measure, to_scores
from judges.retrieval import COMMAND
from tests.support import runs
from tests.support.search_server import SearchServer

pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier isn't installed (extra metrics)")

# Of two conversations: questions whose rewrite says the same or differs, and one without a relevant passage.
QUERIES = {
    "a<::>1": ("Which colour is the tram?", "Which colour is the tram?"),
    "a<::>2": ("Where does the BUS  stop?", "where does the bus stop"),
    "a<::>3": ("And the ferry?", "Where does the ferry land?"),
    "b<::>2": ("Thanks!", "Thanks!"),
}
PASSAGES = {
    "p1": "The tram is green and its colour never changes.",
    "p2": "The bus will stop at the market.",
    "p3": "The ferry will land at the north pier.",
    "p4": "Nobody knows who painted the bridge.",
}
RELEVANT = {"a<::>1": ["p1"], "a<::>2": ["p2", "p4"], "a<::>3": ["p3"]}


def tasks(folder: Path, name: str = "transport") -> Path:
    """Write a collection of `QUERIES`, in the folder of its name."""
    collection = folder / name
    (collection / "qrels").mkdir(parents=True)
    for form, texts in {
        "lastturn": {query: f"|user|: {question}" for query, (question, _) in QUERIES.items()},
        "rewrite": {query: f"|user|: {rewrite}" for query, (_, rewrite) in QUERIES.items()},
    }.items():
        rows = [json.dumps({"_id": query, "text": text}) for query, text in texts.items()]
        (collection / f"{name}_{form}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    passages = [json.dumps({"_id": passage, "title": "", "text": text}) for passage, text in PASSAGES.items()]
    (collection / "corpus.jsonl").write_text("\n".join(passages) + "\n", encoding="utf-8")
    lines = [f"{query}\t{passage}\t1" for query, found in RELEVANT.items() for passage in found]
    (collection / "qrels" / "dev.tsv").write_text(
        "\n".join(["query-id\tcorpus-id\tscore", *lines, ""]), encoding="utf-8"
    )
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tasks(tmp_path / "tasks")


command = partial(runs.command, program=COMMAND)
Table = Callable[..., dict[tuple[str, str], dict[str, str]]]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a function that runs the command and returns its rows as CSV, by ranking and subset."""

    def run(*arguments: str | Path) -> dict[tuple[str, str], dict[str, str]]:
        done = command(*arguments, f"cache_dir={tmp_path / 'cache'}", "format=csv")
        assert done.code == 0, done.err
        rows = list(csv.DictReader(io.StringIO(done.out)))
        return {(row["ranking"], row["subset"]): row for row in rows}

    return run


def refused(*arguments: str | Path) -> str:
    """Return the error, which stands below the notes."""
    done = command(*arguments)
    assert (done.code, done.out) == (2, ""), done.err
    return done.error


def test_figures_by_hand() -> None:
    found = measure({"q": {"a": 1, "b": 1, "c": 2}}, {"q": to_scores(["x", "c", "a", "y", "z", "b"])})["q"]
    assert found.recall == pytest.approx((0, 2 / 3, 2 / 3, 1))
    ideal = 2 + 1 / math.log2(3) + 1 / math.log2(4)
    at_3 = 2 / math.log2(3) + 1 / math.log2(4)
    assert found.ndcg == pytest.approx((0, at_3 / ideal, at_3 / ideal, (at_3 + 1 / math.log2(7)) / ideal))


def test_a_ranking_keeps_its_order_and_a_query_without_one_counts_as_0() -> None:
    assert list(to_scores("abc")) == sorted(to_scores("abc"), key=lambda name: -to_scores("abc")[name])
    each = measure({"q": {"a": 1}, "r": {"a": 1}, "s": {"a": 1}}, {"q": {"a": 1.0}, "r": {}, "other": {"a": 1.0}})
    assert {query: found.recall[0] for query, found in each.items()} == {"q": 1, "r": 0, "s": 0}
    assert mean(each.values()) == Figures(number=3, recall=(1 / 3,) * 4, ndcg=(1 / 3,) * 4)
    assert mean([]) is None


def test_the_table_has_all_subsets(folder: Path, table: Table) -> None:
    rows = table(folder, "queries=lastturn")
    numbers = {subset: row["queries"] for (_, subset), row in rows.items()}
    assert numbers == {
        "all": "3",
        "first": "1",
        "later": "2",
        "rewrite says the same": "1",
        "rewrite differs": "1",
        "transport": "3",
    }
    assert {ranking for ranking, _ in rows} == {"bm25, lastturn"}
    # The tram's passage; one of two about the bus, at the first rank; the ferry's.
    assert rows["bm25, lastturn", "rewrite says the same"]["R@10"] == "0.5"
    assert float(rows["bm25, lastturn", "all"]["R@1"]) == pytest.approx(2.5 / 3, abs=1e-6)


def test_a_search_of_ones_own_is_asked_for_all_forms(folder: Path, table: Table) -> None:
    found = [{"id": name, "text": text} for name, text in PASSAGES.items()]
    with SearchServer(lambda body: found[: body["k"]]) as server:
        rows = table(folder, "retriever=http", f"retriever.url={server.url}", "retriever.concurrency=1")
    assert {rows[f"http, {form}", "all"]["R@10"] for form in ("lastturn", "rewrite")} == {"1.0"}


def test_a_search_of_ones_own_may_name_the_documents_of_the_passages(folder: Path, table: Table) -> None:
    found = [{"id": name, "text": text, "document_id": "transport.pdf"} for name, text in PASSAGES.items()]
    with SearchServer(lambda body: found[: body["k"]]) as server:
        rows = table(folder, "retriever=http", f"retriever.url={server.url}")
    assert rows["http, lastturn", "all"]["R@10"] == "1.0"


def test_passages_that_are_not_in_the_collection_are_named(folder: Path, tmp_path: Path) -> None:
    found = [{"id": f"uuid-{name}", "text": text} for name, text in PASSAGES.items()]
    with SearchServer(lambda body: found[: body["k"]]) as server:
        done = command(folder, "retriever=http", f"retriever.url={server.url}", f"cache_dir={tmp_path / 'cache'}")
    assert "transport: 4 of 4 passages that were found are not in" in done.err


@pytest.mark.parametrize("given", [[], ["language=ja"]])
def test_passages_are_searched_in_their_language(given: list[str], tmp_path: Path, table: Table) -> None:
    folder = tasks(tmp_path / "tasks")
    texts = {
        "p1": "路面電車は緑色で、その色は変わりません。",
        "p2": "バスは市場の前に止まります。",
        "p3": "渡し船は北の桟橋に着きます。",
        "p4": "橋を塗った人は誰も知りません。",
    }
    passages = [json.dumps({"_id": name, "text": text}) for name, text in texts.items()]
    (folder / "transport" / "corpus.jsonl").write_text("\n".join(passages), encoding="utf-8")
    query = json.dumps({"_id": "a<::>1", "text": "|user|: 路面電車は何色ですか？"})
    (folder / "transport" / "transport_lastturn.jsonl").write_text(query, encoding="utf-8")
    (folder / "transport" / "transport_rewrite.jsonl").unlink()
    assert table(folder, *given)["bm25, lastturn", "all"]["R@1"] == "1.0"
    assert table(folder, "language=en")["bm25, lastturn", "all"]["R@1"] == "0.0"


def test_the_ids_of_passages_in_a_run_may_have_spaces(tmp_path: Path) -> None:
    run = tmp_path / "made.trec"
    run.write_text("a<::>1 Q0 User manual.pdf:0-90 1 9.5 x\na<::>1\tQ0\tUser manual.pdf:80-200\t2\t0.1\tx\n")
    assert read_run(run) == {"a<::>1": {"User manual.pdf:0-90": 9.5, "User manual.pdf:80-200": 0.1}}


def test_queries_that_are_left_out_are_reported(folder: Path) -> None:
    run = folder / "made.trec"
    run.write_text(
        "a<::>1 Q0 p1 1 9.5 x\na<::>2 Q0 p3 1 0.1 x\na<::>2 Q0 p2 2 0.9 x\nb<::>2 Q0 p2 1 1 x\nz<::>1 Q0 p2 1 1 x\n"
    )
    with (folder / "transport" / "qrels" / "dev.tsv").open("a") as file:
        file.write("y<::>1\tp1\t1\n")
    shown = command(folder, f"run={run}", "format=json")
    assert "transport: 1 of 4 queries have no relevant passage" in shown.err
    assert "transport: 1 queries of the qrels are in no query file" in shown.err
    assert "made.trec: no ranking for 1 of 3 queries" in shown.err
    assert "made.trec: 1 of 4 queries are not in the tasks" in shown.err
    everything, first, *_ = json.loads(shown.out)
    # The score counts and not the rank: p2 before p3.
    assert everything["recall"] == pytest.approx({"1": 0.5, "3": 0.5, "5": 0.5, "10": 0.5})
    assert (everything["ranking"], everything["by"], everything["queries"]) == ("made.trec", None, 3)
    assert (first["by"], first["subset"], first["ndcg"]["1"]) == ("turn", "first", 1)


def test_relevant_passages_that_the_corpus_lacks_are_reported(folder: Path, tmp_path: Path) -> None:
    qrels = folder / "transport" / "qrels" / "dev.tsv"
    qrels.write_text(qrels.read_text().replace("\tp2\t", "\ttransport-p2\t"))
    shown = command(folder, f"cache_dir={tmp_path / 'cache'}", "format=csv")
    assert shown.code == 0
    assert "transport: 1 of 4 relevant passages of the qrels are not in " in shown.err


def test_a_subset_without_queries_has_no_figures(folder: Path, table: Table) -> None:
    (folder / "transport" / "transport_rewrite.jsonl").unlink()
    (folder / "transport" / "transport_questions.jsonl").write_text('{"_id": "a<::>1", "text": "Tram?"}\n')
    rows = table(folder / "transport")  # a collection by itself
    assert {ranking for ranking, _ in rows} == {"bm25, lastturn", "bm25, questions"}, "all forms that exist"
    absent = rows["bm25, lastturn", "rewrite differs"]
    assert (absent["queries"], absent["R@1"], absent["nDCG@10"]) == ("0", "", "")
    run = folder / "one.trec"
    run.write_text("a<::>1 Q0 p1 1 1 x\n")
    output = folder / "table.md"
    for arguments in (["format=terminal"], ["format=markdown", f"output={output}"]):
        told = command(folder, f"run={run}", *arguments).out
        shown = output.read_text(encoding="utf-8") if output.exists() else told
        line = next(line for line in shown.splitlines() if "rewrite differs" in line)
        assert line.replace("|", " ").split() == ["rewrite", "differs", "0", *(["–"] * 8)]


@pytest.mark.parametrize("form", ["terminal", "csv"])
def test_a_name_controls_no_terminal(tmp_path: Path, form: str) -> None:
    tasks(tmp_path / "tasks", "trans\x1bport")
    done = command(tmp_path / "tasks", f"cache_dir={tmp_path / 'cache'}", "queries=lastturn", f"format={form}")
    assert done.code == 0 and "trans\N{REPLACEMENT CHARACTER}port" in done.out and "\x1b" not in done.out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("qrels/dev.tsv", "query-id\tcorpus-id\tscore\na<::>1\tp1\tyes\n", "qrels/dev.tsv:2: expected"),
        ("qrels/dev.tsv", "query-id\tcorpus-id\tscore\n", "no query has a relevant passage"),
        ("transport_lastturn.jsonl", '{"_id": "a", "text": "x"}\n', "'a': its id must end in its turn"),
        ("transport_lastturn.jsonl", '{"_id": "a<::>1"}\n', "transport_lastturn.jsonl:1: text"),
        ("transport_lastturn.jsonl", '{"_id": "a<::>1", "text": "x"}\n' * 2, ":2: duplicate id a<::>1"),
        ("corpus.jsonl", '{"_id": "p1", "text": " "}\n', "corpus.jsonl:1: it holds no text"),
        ("corpus_pooled.jsonl", "", "several corpora (corpus.jsonl, corpus_pooled.jsonl)"),
    ],
)
def test_a_broken_file_is_one_line(name: str, text: str, message: str, folder: Path, tmp_path: Path) -> None:
    (folder / "transport" / name).write_text(text, encoding="utf-8")
    (folder / "transport" / "transport_rewrite.jsonl").unlink()
    if message.startswith("'a'"):
        (folder / "transport" / "qrels" / "dev.tsv").write_text("a\tp1\t1\n")  # no header, which may be missing
    assert message in refused(folder, f"cache_dir={tmp_path / 'cache'}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a<::>1 Q0 p1 1 x", ":1: expected"),
        ("a<::>1 Q0 p1 1 nan x", ":1: expected"),
        ("a<::>1 Q0 p1 1 2 x\na<::>1 Q0 p1 2 1 x", ":2: duplicate passage p1"),
        ("", "holds no rankings"),
    ],
)
def test_a_broken_run_is_one_line(line: str, message: str, folder: Path) -> None:
    run = folder / "run.trec"
    run.write_text(line)
    assert message in refused(folder, f"run={run}")


def test_bad_arguments_are_one_line(folder: Path, tmp_path: Path) -> None:
    assert "no test.tsv" in refused(folder, "split=test")
    assert "transport_questions.jsonl is missing" in refused(folder, "queries=questions")
    assert "holds no retrieval tasks" in refused(tmp_path)
    assert "is not a folder" in refused(tmp_path / "nowhere")
    assert "can't be read" in refused(folder, f"run={tmp_path / 'nowhere'}")
    assert "retriever.foo" in refused(folder, "retriever.foo=1")
    assert "retriever.k1" in refused(folder, "retriever.k1=0")
    assert "retriever=bm52" in refused(folder, "retriever=bm52")
    for ignored in ("passage_tokens=100", "overlap=10", "k=20", "query=full"):
        assert f"retriever.{ignored.partition('=')[0]}" in refused(folder, f"retriever.{ignored}")
    (folder / "transport" / "corpus.jsonl").unlink()
    assert "no passages to search" in refused(folder)
    tasks(folder, "again")
    assert "query a<::>1 is in again and in transport" in refused(folder)


def test_the_only_split_is_the_default(folder: Path) -> None:
    qrels = folder / "transport" / "qrels"
    (qrels / "dev.tsv").rename(qrels / "test.tsv")
    assert read_collections(folder)[0].relevant == read_collections(folder, "test")[0].relevant != {}
    shutil.copy(qrels / "test.tsv", qrels / "train.tsv")
    with pytest.raises(CorpusError, match=r"has no dev\.tsv; .*split=… from test, train"):
        read_collections(folder)


def test_a_missing_package_is_named_with_its_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder / "one.trec"
    run.write_text("a<::>1 Q0 p1 1 1 x\n")
    monkeypatch.setitem(sys.modules, "pytrec_eval", None)
    assert "install the extra 'metrics'" in refused(folder, f"run={run}")


def test_bm25_on_mtrags_pools_gives_the_figures_of_the_documents(data: Path, table: Table) -> None:
    pools = data / "mtrag" / "retrieval_tasks"
    if not pools.is_dir():
        pytest.skip("mtrag/retrieval_tasks isn't there")
    rows = table(pools, "queries=lastturn")
    found = {name: float(rows["bm25, lastturn", name]["nDCG@10"]) for name in ("clapnq", "fiqa", "govt")}
    assert found == pytest.approx({"clapnq": 0.622, "fiqa": 0.454, "govt": 0.573}, abs=5e-4)
    numbers = {subset: int(row["queries"]) for (_, subset), row in rows.items()}
    assert (numbers["all"], numbers["first"], numbers["later"]) == (589, 77, 512)
