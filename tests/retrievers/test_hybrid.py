"""Reciprocal rank fusion, and BM25 and vectors joined by it."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.retrievers.base import Ranker
from generator.retrievers.bm25 import Bm25
from generator.retrievers.dense import Dense
from generator.retrievers.hybrid import HybridSettings, fuse
from generator.schema import Document, Scored, Split
from tests.retrievers.test_bm25 import library
from tests.retrievers.test_dense import many
from tests.support.encoders import WordModel
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site

SETTINGS = compose_choice("retriever", "hybrid")
SETTINGS.pop("_target_")


def opened(lib: Library, held: range = range(0), **settings: object) -> Ranker:
    mask = np.isin(np.arange(len(lib)), held)
    return HybridSettings(**{**SETTINGS, **settings}).open(lib, mask)


def search(retriever: Ranker, query: str, k: int, split: Split = "train") -> list[Scored]:
    return asyncio.run(retriever.search(query, k, split))


def fused(rankings: list[list[int]], weights: list[float], rrf_k: float) -> list[tuple[int, float]]:
    return fuse([[(row, 0.0) for row in ranking] for ranking in rankings], weights, rrf_k)


def test_scores_are_those_of_the_formula() -> None:
    # By hand: row 7 is 1st and 2nd, row 3 only 2nd of the first, row 5 only 1st of the second.
    assert fused([[7, 3], [5, 7]], [1, 1], 60) == [
        (7, pytest.approx(1 / 61 + 1 / 62)),
        (5, pytest.approx(1 / 61)),
        (3, pytest.approx(1 / 62)),
    ]
    assert fused([[1, 2], [2, 1]], [1, 2], 10) == [
        (2, pytest.approx(1 / 12 + 2 / 11)),
        (1, pytest.approx(1 / 11 + 2 / 12)),
    ]
    assert [row for row, _ in fused([[9, 2], [2, 9]], [1, 1], 60)] == [2, 9], "equal ones in the order of rows"
    assert [row for row, _ in fused([[], [3, 1]], [1, 1], 60)] == [3, 1]


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("depth", [4, 100])
def test_hybrid_is_the_fusion_of_its_rankings(tmp_path: Path, word_model: WordModel, split: Split, depth: int) -> None:
    lib, held = library(tmp_path, many(40)), range(10, 30)
    mask = np.isin(np.arange(40), held)
    query = many(40)[7].text[:40]
    parts = (Bm25(lib, mask, SETTINGS["k1"], SETTINGS["b"]), Dense(lib, mask, HybridSettings(**SETTINGS)))
    rankings = [asyncio.run(part.rank(query, depth, split)) for part in parts]
    assert [row for row, _ in rankings[0]] != [row for row, _ in rankings[1]]
    expected = fuse(rankings, [0.3, 1], 7)[:4]
    found = search(opened(lib, held, bm25_weight=0.3, rrf_k=7, depth=depth), query, 4, split)
    assert [(hit.passage, hit.score) for hit in found] == [(lib.passage(row), score) for row, score in expected]
    assert all((hit.passage.document_id in {f"d{n}" for n in held}) == (split == "validation") for hit in found)


def test_a_passage_needs_one_ranking_only(tmp_path: Path, word_model: WordModel) -> None:
    lib = library(tmp_path, [Document(id="a", text="The zeppelin."), Document(id="b", text="A river runs.")])
    assert search(opened(lib), "zeppelins", 5)[0].passage.document_id == "a"  # BM25, by its stem
    assert len(search(opened(lib, depth=1), "no word in common", 5)) == 2  # vectors: everything is near to some degree


def test_a_run_with_both(site: Site, openai_server: OpenAIServer, word_model: WordModel) -> None:
    settings = ("retriever=hybrid", "retriever.model=tiny", "validation=0")
    done = site.run(openai_server, *settings, "dialogs=3")
    assert done.code == 0, done.err
    site.check_ledger()
    hits = [turn["hits"] for dialog in site.dialogs() for turn in dialog["turns"]]
    best = (SETTINGS["bm25_weight"] + 1) / (SETTINGS["rrf_k"] + 1)
    assert all(len(found) == 5 and best >= found[0]["score"] >= found[4]["score"] > 0 for found in hits)
    encoded = len(word_model.encoded)
    assert site.run(openai_server, *settings, "dialogs=4").code == 0
    assert len(word_model.encoded) - encoded < 20, "the passages were encoded again"
