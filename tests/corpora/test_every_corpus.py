"""Every published corpus from its real file to a dataset: the whole command, with a model server that invents."""

import json
from pathlib import Path

import pytest

from generator.config.choices import compose_choice
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site, command

# Each corpus, what of the real data it is read from, its settings beside, and the algorithm. A single document of CoQA
# or Doc2Dial holds too few of the words that the server's questions are made of for the multi-document one.
CASES = [
    ("coqa", "coqa/coqa-dev-v1.0.sample.json", [], "single"),
    ("squad", "squad2", [], "single"),
    ("quac", "quac", ["corpus.rewrites={data}/canard/dev.json"], "multi"),
    ("multidoc2dial", "doc2dial/v0.9", [], "single"),
    ("mtrag", "mtrag", ["corpus.domain=govt"], "multi"),
    ("huggingface", "multidoc2dial_docs/va.jsonl", ["corpus.id_field=id", "corpus.title_field=title"], "single"),
]


@pytest.mark.parametrize(("name", "path", "more", "algorithm"), CASES)
def test_a_run_on_the_real_file(
    site: Site, data: Path, openai_server: OpenAIServer, name: str, path: str, more: list[str], algorithm: str
) -> None:
    given = [f"corpus={name}", f"corpus.path={data / path}", *(setting.format(data=data) for setting in more)]
    # Searched with a question in made-up words, few documents are found.
    usual = [argument for argument in site.arguments(openai_server) if not argument.startswith("corpus")]
    done = command(*usual, *given, f"algorithm={algorithm}", "dialogs=2", "max_attempts=300", "lm.context=32768")
    assert done.code == 0, done.err
    assert {dialog["corpus"] for dialog in site.dialogs()} == {name}
    assert site.rows()
    licence = compose_choice("corpus", name)["licence"]
    assert f"**{licence}**" in (site.run_dir / "dataset" / "README.md").read_text()
    site.check_ledger()


def test_a_run_on_a_collection_as_or_quac_has_it(tmp_path: Path, site: Site, openai_server: OpenAIServer) -> None:
    """No file of its publisher's is at hand: one of ours in the same layout, opened by the questions of another run."""
    source = Site(tmp_path / "source")
    assert source.run(openai_server, "algorithm=single", "taxonomy=direct", "dialogs=3", "dedup=none").code == 0
    texts = [json.loads(line)["text"] for line in source.documents.read_text().splitlines()]
    blocks = [{"id": f"{n}@0", "aid": f"{n}", "bid": 0, "title": "", "text": text} for n, text in enumerate(texts)]
    (tmp_path / "all_blocks.txt").write_text("".join(json.dumps(block) + "\n" for block in blocks))
    given = ["experiment=lee2024_orquac", "scale=0.01", "corpus=orquac", "retriever=bm25", f"corpus.path={tmp_path}"]
    given += ["dialogs=300", "dedup=none"]
    done = site.run(openai_server, *given, f"algorithm.first_questions={source.run_dir}")
    assert done.code == 0, done.err
    first = [[dialog["turns"][0]["query"] for dialog in run.dialogs()] for run in (source, site)]
    lost = [drop for drop in site.drops() if drop["scope"] == "dialog"]
    assert first[1] == [query for query in first[0] if query in first[1]]
    assert 0 < len(first[1]) == len(first[0]) - len(lost)
    assert all(p["document_id"].endswith("@0") for dialog in site.dialogs() for p in dialog["passages"])
    site.check_ledger()
