"""BM25 and vectors together."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.retrievers.bm25 import Bm25
from generator.retrievers.dense import Dense
from generator.retrievers.fusion import fused
from generator.retrievers.hybrid import Hybrid, HybridSettings
from generator.schema import Document, Scored, Split
from tests.retrievers.test_dense import many, minilm
from tests.support.encoders import WordModel, word_model
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.runs import Site

__all__ = ["openai_server", "word_model"]

CONF = Path(__file__).parents[2] / "conf" / "retriever"
SETTINGS = compose_choice("retriever", "hybrid")
SETTINGS.pop("_target_")


def library(folder: Path, documents: list[Document]) -> Library:
    return Library.open("sample", "f" * 64, lambda: documents, folder, 512, 100)


def opened(lib: Library, held: range = range(0), **settings: object) -> Hybrid:
    mask = np.isin(np.arange(len(lib)), held)
    return HybridSettings(**{**SETTINGS, **settings}).open(lib, mask)


def search(retriever: Hybrid | Bm25 | Dense, query: str, k: int, split: Split = "train") -> list[Scored]:
    return asyncio.run(retriever.search(query, k, split))


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("depth", [4, 100])
def test_is_the_fusion_of_its_parts(tmp_path: Path, word_model: WordModel, split: Split, depth: int) -> None:
    lib, held = library(tmp_path, many(40)), range(10, 30)
    mask = np.isin(np.arange(40), held)
    query = many(40)[7].text[:40]
    parts = (
        Bm25(lib, mask, SETTINGS["k1"], SETTINGS["b"]),
        Dense(lib, mask, SETTINGS["model"], SETTINGS["window"], SETTINGS["window_overlap"]),
    )
    rankings = [[row for row, _ in asyncio.run(part.ranked(query, depth, split))] for part in parts]
    assert rankings[0] != rankings[1]
    expected = fused(rankings, [0.3, 1], 7)[:4]
    found = search(opened(lib, held, bm25_weight=0.3, constant=7, depth=depth), query, 4, split)
    assert [(hit.passage, hit.score) for hit in found] == [(lib.passage(row), score) for row, score in expected]
    assert all((hit.passage.document_id in {f"d{n}" for n in held}) == (split == "validation") for hit in found)


def test_what_only_one_part_finds_is_found(tmp_path: Path, word_model: WordModel) -> None:
    lib = library(tmp_path, [Document(id="a", text="The zeppelin."), Document(id="b", text="A river runs.")])
    assert search(opened(lib), "zeppelins", 5)[0].passage.document_id == "a"  # BM25, by its stem
    assert len(search(opened(lib), "no word in common", 5)) == 2  # vectors: everything is near to some degree


def test_more_than_depth_can_be_asked_for(tmp_path: Path, word_model: WordModel) -> None:
    assert len(search(opened(library(tmp_path, many(40)), depth=2), "river", 30)) == 30


def test_the_parts_have_the_defaults_that_they_have_alone() -> None:
    for name in ("bm25", "dense"):
        alone = compose_choice("retriever", name)
        assert {key: SETTINGS[key] for key in alone.keys() - {"_target_"}} == {
            key: value for key, value in alone.items() if key != "_target_"
        }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bm25_weight": 0}, "greater than 0"),
        ({"constant": -1}, "greater than or equal to 0"),
        ({"depth": 0}, "greater than or equal to 1"),
        ({"window_overlap": 192}, "must be less than window"),
        ({"threshold": 1}, "Extra inputs are not permitted"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        HybridSettings(**SETTINGS | change)


@pytest.mark.parametrize("query", ["last_turn", "rewrite", "user_turns", "full"])
def test_a_run_with_both(tmp_path: Path, openai_server: OpenAIServer, word_model: WordModel, query: str) -> None:
    site = Site(tmp_path)
    asked = ("retriever=hybrid", "retriever.model=tiny", f"retriever.query={query}", "validation=0")
    done = site.run(openai_server, *asked, "dialogs=3")
    assert done.code == 0, done.err
    site.check_ledger()
    hits = [turn["hits"] for dialog in site.dialogs() for turn in dialog["turns"]]
    best = (SETTINGS["bm25_weight"] + 1) / (SETTINGS["constant"] + 1)
    assert all(len(found) == 5 and best >= found[0]["score"] >= found[4]["score"] > 0 for found in hits)
    encoded = len(word_model.encoded)
    assert site.run(openai_server, *asked, "dialogs=4").code == 0
    assert len(word_model.encoded) - encoded < 20, "the passages were encoded again"


@pytest.mark.engines
def test_a_run_with_minilm(tmp_path: Path, openai_server: OpenAIServer) -> None:
    model = minilm()
    site = Site(tmp_path)
    done = site.run(openai_server, "retriever=hybrid", f"retriever.model={model}", "dialogs=2", "validation=0")
    assert done.code == 0, done.err
    assert "Loading weights" not in done.err + done.out
    site.check_ledger()
    assert all(len(turn["hits"]) == 5 for dialog in site.dialogs() for turn in dialog["turns"])
