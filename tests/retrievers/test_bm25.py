import asyncio
import os
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import numpy as np
import pytest

from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.retrievers.base import Ranker
from generator.retrievers.bm25 import Bm25Settings
from generator.schema import Document, Split

SETTINGS = compose_choice("retriever", "bm25")
SETTINGS.pop("_target_")

DOCUMENTS = [
    Document(id="tram", title="Trams", text="A tram runs along the river every ten minutes."),
    Document(id="ferry", title="Ferries", text="Ferries cross the river at night, and they cross the river by day."),
    Document(id="fees", title="Parking fees", text="You pay two euros an hour."),
    Document(id="twin", title="Trams", text="A tram runs along the river every ten minutes."),
]


def library(folder: Path, documents: list[Document] = DOCUMENTS, size: int = 512, overlap: int = 100) -> Library:
    return Library.open("sample", "f" * 64, lambda: documents, folder, size, overlap)


def bm25(lib: Library, validation: Set[str] = frozenset(), **settings: float) -> Ranker:
    mask = np.array([lib.document(row).id in validation for row in range(len(lib))])
    return Bm25Settings(**SETTINGS | settings).open(lib, mask)


def found(retriever: Ranker, query: str, k: int = 5, split: Split = "train") -> list[str]:
    return [hit.passage.document_id for hit in asyncio.run(retriever.search(query, k, split))]


def test_best_first_by_the_formula(tmp_path: Path) -> None:
    (hit,) = asyncio.run(bm25(library(tmp_path)).search("night", 5, "train"))
    # By hand, Lucene's form. Words without stop words: tram run along river everi ten minut and its title (8),
    # ferri cross river night cross river day and its title (ferri river ... they is a stop word) (8), park fee you
    # pay two euro hour (7); "night" is in one of four passages, once.
    length, mean = 8, (8 + 8 + 7 + 8) / 4
    idf = np.log(1 + (4 - 1 + 0.5) / (1 + 0.5))
    assert hit.score == pytest.approx(idf / (1 + 1.5 * (1 - 0.75 + 0.75 * length / mean)), rel=1e-5)
    assert hit.passage == library(tmp_path).passage(1)


def test_words_are_stemmed_and_titles_count(tmp_path: Path) -> None:
    retriever = bm25(library(tmp_path))
    assert found(retriever, "CROSSING") == ["ferry"]
    assert found(retriever, "fee for parking") == ["fees"]


def test_equal_scores_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    retriever = bm25(library(tmp_path))
    assert found(retriever, "tram minutes") == ["tram", "twin"]
    assert found(retriever, "tram minutes", k=1) == ["tram"]
    assert found(retriever, "river") == ["ferry", "tram", "twin"]
    assert found(retriever, "river", k=2) == ["ferry", "tram"]


@pytest.mark.parametrize("query", ["", " \n", "the and of", "?!", "zeppelin"])
def test_a_query_that_shares_no_word_finds_nothing(tmp_path: Path, query: str) -> None:
    assert found(bm25(library(tmp_path)), query) == []


def test_only_the_documents_of_the_split_are_found(tmp_path: Path) -> None:
    retriever = bm25(library(tmp_path), validation={"ferry", "twin"})
    assert found(retriever, "river tram", split="train") == ["tram"]
    assert found(retriever, "river tram", split="validation") == ["twin", "ferry"]


@pytest.mark.parametrize("content", [b"damaged", b""])
def test_a_damaged_index_says_what_to_delete(tmp_path: Path, content: bytes) -> None:
    bm25(library(tmp_path))
    (file,) = tmp_path.glob("*/bm25-*/indptr.csc.index.npy")
    file.write_bytes(content)
    with pytest.raises(RetrieverError, match=f"{file.parent}.*delete that folder"):
        bm25(library(tmp_path))


def test_a_search_in_one_document_finds_its_passages_alone_with_the_same_scores(tmp_path: Path) -> None:
    lib = library(tmp_path, size=4, overlap=0)
    retriever = bm25(lib, {"fees"})
    everywhere = asyncio.run(retriever.search("river", 9, "train"))
    inside = asyncio.run(retriever.search("river", 9, "train", "ferry"))
    assert inside == [scored for scored in everywhere if scored.passage.document_id == "ferry"] != everywhere
    assert asyncio.run(retriever.search("euros", 9, "train", "fees")) == [], "it is of the other split"
    with pytest.raises(RetrieverError, match="no document 'unknown'"):
        asyncio.run(retriever.search("river", 9, "train", "unknown"))


def test_jax_which_bm25s_starts_takes_no_memory_of_a_gpu(tmp_path: Path) -> None:
    """JAX takes most of a GPU's memory at its first operation, and fails where a model server has it already."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").touch()
    (tmp_path / "jax" / "lax.py").write_text("import os\ndef top_k(*_):\n    print(os.environ.get('JAX_PLATFORMS'))\n")
    environment = {key: value for key, value in os.environ.items() if key != "JAX_PLATFORMS"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", "import generator.retrievers.bm25, bm25s"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "cpu"
