"""Dense retrieval finds what a plain computation finds; its vectors are computed once and kept on disk."""

import asyncio
import random
import sys
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from generator.common.passages import windows
from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.retrievers import dense
from generator.retrievers.base import Ranker
from generator.retrievers.dense import DenseSettings
from generator.retrievers.encoder import Encoder
from generator.schema import Document, Passage, Scored, Split
from tests.support.encoders import WordModel, find_minilm
from tests.support.openai_server import OpenAIServer, words
from tests.support.runs import Site

SETTINGS = compose_choice("retriever", "dense")
SETTINGS.pop("_target_")


def many(count: int) -> list[Document]:
    """Documents of 1 to 60 words out of few, some with a title, some alike."""
    chance = random.Random(3)
    some = [words(chance, 1) for _ in range(40)]
    texts = [" ".join(chance.choices(some, k=chance.randint(1, 60))) for _ in range(count)]
    titles = [chance.choice(["", *some]) for _ in range(count)]
    texts[1], titles[1] = texts[2], titles[2]
    return [Document(id=f"d{n}", title=titles[n], text=text) for n, text in enumerate(texts)]


def library(folder: Path, documents: Sequence[Document], size: int = 30, overlap: int = 5) -> Library:
    return Library.open("sample", "f" * 64, lambda: documents, folder, size, overlap)


def opened(lib: Library, validation: Set[str] = frozenset(), **settings: object) -> Ranker:
    mask = np.array([lib.document(row).id in validation for row in range(len(lib))])
    return DenseSettings(**{**SETTINGS, "window": 12, **settings}).open(lib, mask)


def search(retriever: Ranker, query: str, k: int = 5, split: Split = "train") -> list[Scored]:
    return asyncio.run(retriever.search(query, k, split))


def plain(lib: Library, model: WordModel, query: str, held: Set[str], k: int, split: Split) -> list[tuple[str, float]]:
    """Return the expected ids of passages and scores, by numpy alone."""
    found: list[tuple[str, float]] = []
    for passage in lib.passages():
        if (passage.document_id in held) != (split == "validation"):
            continue
        texts = [passage.text[start:end] for start, end in windows(passage.text, 12, 6)]
        texts = [f"{passage.title}\n{text}" if passage.title else text for text in texts]
        cosines = model.encode(texts).astype(np.float64) @ model.encode([query])[0]
        found.append((passage.id, float(cosines[0] + cosines.max()) / 2))
    return sorted(found, key=lambda item: -round(item[1], 12))[:k]


def test_prefixes_are_those_given_or_of_the_models_own_configuration(tmp_path: Path, word_model: WordModel) -> None:
    lib = library(tmp_path, [Document(id="a", text="Hello.")])
    word_model.prompts = {"query": "Q: ", "document": ""}
    search(opened(lib), "own")
    search(opened(lib, query_prefix="", passage_prefix="passage: "), "given")
    assert {"Q: own", "Hello.", "given", "passage: Hello."} <= set(word_model.encoded)


@pytest.mark.parametrize(("chunk", "block"), [(256, 8192), (7, 5), (1, 1)])
def test_finds_what_a_plain_computation_finds(
    tmp_path: Path, word_model: WordModel, monkeypatch: pytest.MonkeyPatch, chunk: int, block: int
) -> None:
    monkeypatch.setattr(dense, "CHUNK", chunk)
    monkeypatch.setattr(dense, "BLOCK", block)
    documents, held = many(40), {f"d{n}" for n in range(0, 40, 3)}
    lib = library(tmp_path, documents)
    assert lib.passage_count > 50
    retriever = opened(lib, held)
    chance = random.Random(4)
    for split in ("train", "validation"):
        for k in (1, 3, 10, 1000):
            query = " ".join(chance.choices(documents[chance.randrange(40)].text.split(), k=4))
            expected = plain(lib, word_model, query, held, k, split)
            found = search(retriever, query, k, split)
            assert [hit.passage.id for hit in found] == [name for name, _ in expected]
            assert [hit.score for hit in found] == pytest.approx([score for _, score in expected], abs=1e-6)


def test_a_score_is_the_same_whatever_other_queries_there_are(tmp_path: Path, word_model: WordModel) -> None:
    """To the last bit: datasets must not depend on the concurrency."""
    documents = many(40)
    retriever = opened(library(tmp_path, documents), {"d1", "d2", "d3"})
    splits: list[Split] = ["train", "validation"]
    queries = [(document.text, 1 + n % 5, splits[n % 2]) for n, document in enumerate(documents)]
    alone = [search(retriever, *query) for query in queries]

    async def together() -> list[list[Scored]]:
        return await asyncio.gather(*(retriever.search(*query) for query in queries))

    assert asyncio.run(together()) == alone


def test_vectors_are_computed_once_for_each_model_and_window(
    tmp_path: Path, word_model: WordModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_bytes(b"one")
    lib = library(tmp_path, many(10))

    def encode(**settings: object) -> int:
        word_model.encoded.clear()
        opened(lib, **settings)
        return len(word_model.encoded) - 1  # one text to see how long vectors are

    first = encode(model=str(model))
    assert first >= lib.passage_count
    assert encode(model=str(model)) == 0
    (model / "weights").write_bytes(b"two")
    assert encode(model=str(model)) == first
    assert encode(model="some/name", window=1000) == lib.passage_count
    assert encode(model="some/name", window=1000) == 0


@pytest.mark.parametrize(("window", "told"), [(30, True), (20, False)])
def test_text_that_the_model_does_not_read_is_reported_when_the_index_is_built(
    window: int, told: bool, tmp_path: Path, word_model: WordModel, capsys: pytest.CaptureFixture[str]
) -> None:
    word_model.max_seq_length = 21
    lib = library(tmp_path, [Document(id="a", title="A", text="word " * 100)])
    opened(lib, window=window)
    shown = capsys.readouterr().err
    assert (f"retriever.window={window}" in shown) == ("retriever.window=20 fits" in shown) == told
    opened(lib, window=window)
    assert not capsys.readouterr().err


def test_an_interrupted_build_continues(tmp_path: Path, word_model: WordModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "CHUNK", 4)
    expected = search(opened(library(tmp_path / "whole", many(20))), "river", 30)
    before, encode = len(word_model.encoded), word_model.encode
    calls = 0

    def killed(texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return encode(texts)

    lib = library(tmp_path / "broken", many(20))
    monkeypatch.setattr(word_model, "encode", killed)
    with pytest.raises(KeyboardInterrupt):
        opened(lib)
    (partial,) = lib.folder.glob("*.part")
    with partial.open("ab") as file:
        file.write(b"half a chunk")
    monkeypatch.setattr(word_model, "encode", encode)
    word_model.encoded.clear()
    assert search(opened(lib), "river", 30) == expected
    # Three chunks of passages were there; one text shows how long vectors are, and one is the query.
    there = sum(len(list(windows(passage.text, 12, 6))) for passage in lib.passages(range(3 * 4)))
    assert len(word_model.encoded) == before - there
    assert not list(lib.folder.glob("*.part"))


@pytest.mark.parametrize("content", [b"damaged", b""])
@pytest.mark.parametrize("name", ["vectors.f32", "firsts.npy"])
def test_a_damaged_index_says_what_to_delete(tmp_path: Path, word_model: WordModel, name: str, content: bytes) -> None:
    lib = library(tmp_path, many(10))
    opened(lib)
    (file,) = lib.folder.glob(f"dense-*/{name}")
    file.write_bytes(content)
    with pytest.raises(RetrieverError, match=f"{file.parent}.*delete that folder"):
        opened(lib)


def test_a_model_that_fails_is_one_line(tmp_path: Path, word_model: WordModel, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = opened(library(tmp_path, many(10)))

    def full(texts: Sequence[str], **_: object) -> None:
        raise RuntimeError("CUDA out of memory.\nTried to allocate")

    monkeypatch.setattr(word_model, "encode", full)
    with pytest.raises(RetrieverError, match=r"retriever\.model=.*CUDA out of memory\. Tried"):
        search(retriever, "river")


@pytest.mark.parametrize(("window", "shared"), [(1, 0), (12, 6), (192, 32), (384, 32)])
def test_windows_share_32_tokens_but_at_most_half_of_each(window: int, shared: int) -> None:
    passage = Passage(id="p", document_id="d", text=" ".join(map(str, range(1000))), start=0, end=1)
    first, second, *_ = DenseSettings(**SETTINGS | {"window": window}).windows(passage)
    assert len({*first.split()} & {*second.split()}) == shared


def test_without_the_package_one_line_says_which_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    done = Site(tmp_path).run(openai_server, "retriever=dense", "retriever.model=never-loaded")
    assert done.code == 2
    assert "install the extra 'dense'" in done.error
    assert done.err.count("\n") == 1
    assert not openai_server.bodies


# The real model


@pytest.mark.engines
def test_minilm_finds_paraphrases(tmp_path: Path) -> None:
    documents = [
        Document(id="tram", text="A tram runs along the river every ten minutes."),
        Document(id="fees", text="Leaving your car here costs two euros an hour."),
        Document(id="dogs", text="Puppies need to be vaccinated twice in their first year."),
    ]
    pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed (extra dense)")
    model = find_minilm()
    retriever = opened(library(tmp_path, documents, 512, 100), model=model, window=192)
    found = search(retriever, "How much is parking?", 3)
    assert found[0].passage.document_id == "fees"
    assert search(retriever, "When must a young animal see the vet?", 1)[0].passage.document_id == "dogs"
    vectors = Encoder(model).encode([document.text for document in documents] + ["How much is parking?"])
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    expected = sorted((vectors[:3] @ vectors[3]).tolist(), reverse=True)
    assert [hit.score for hit in found] == pytest.approx(expected, abs=1e-5)


@pytest.mark.engines
def test_an_unknown_model_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers isn't installed (extra dense)")
    import huggingface_hub

    asked: list[tuple[str, Any]] = []

    def gone(self: object, name: str, timeout: float) -> None:
        asked.append((name, timeout))
        raise OSError("404 Client Error.\nRepository Not Found")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", gone)
    with pytest.raises(RetrieverError, match=r"^retriever\.model=some/missing-model: .*Repository Not Found"):
        Encoder("some/missing-model")
    with pytest.raises(RetrieverError, match=r"^retriever\.model=/.*can't be loaded"):
        Encoder(str(tmp_path))
    assert asked == [("some/missing-model", 10)], "the hub is asked for a name, once, and never for a folder"


def test_a_search_in_one_document_finds_its_passages_alone(word_model: WordModel, tmp_path: Path) -> None:
    lib = library(tmp_path, many(20))
    retriever = opened(lib)
    everywhere = search(retriever, "river", 50)
    name = everywhere[-1].passage.document_id
    inside = asyncio.run(retriever.search("river", 50, "train", name))
    assert inside == [scored for scored in everywhere if scored.passage.document_id == name] != []
