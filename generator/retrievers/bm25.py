"""BM25 over the passages, in the process and without a model (Robertson and Zaragoza 2009, as `bm25s` computes it)."""

import asyncio
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.common.concurrency import Spread, one_by_one
from generator.common.console import paced
from generator.common.language import ENGLISH, languages
from generator.common.language_file import Language
from generator.common.scripts import words
from generator.corpora.library import Library, as_retriever_error, built_once
from generator.retrievers.base import Ranker, Ranking, RetrieverSettings, divide
from generator.schema import Dialog, Evidence, Passage, Split

# Where JAX is installed, bm25s runs something on it, and JAX would take most of a GPU's memory for that.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Documents that are tokenized as one piece of work.
DOCUMENTS = 256
_WORD = re.compile(r"\b\w\w+\b")
# Passages before the evidence that are compared with each other: reading more of them takes long, for a rank far down.
_COMPARED = 100
# The fields of a language that decide what is indexed.
_SEARCHED = ("code", "stemmer", "ngrams", "words")
# Sentences, each with the passage that it was taken from.
Evidences = Sequence[tuple[Evidence, Passage]]


class Bm25Settings(RetrieverSettings):
    k1: float = Field(
        gt=0, description="BM25: term frequency saturation; the higher, the more further occurrences of a word count."
    )
    b: float = Field(ge=0, le=1, description="BM25: how much long passages are discounted, from 0 to 1.")

    def build(self, library: Library, spread: Spread) -> None:
        build_index(library, self.k1, self.b, spread)

    def open(self, library: Library, validation: NDArray[np.bool_]) -> Ranker:
        return Bm25(library, validation, self.k1, self.b)


class Bm25(Ranker):
    """Searches titles and texts of passages by their words, in lower case, stemmed, without the language's stop words.

    Where no spaces part words, letter n-grams stand for them.

    Word statistics are those of the whole corpus, so a score doesn't depend on the split; passages of the other split
    are never returned. The index is stored beside the passages, built once, and memory-mapped.
    """

    def __init__(self, library: Library, validation: NDArray[np.bool_], k1: float, b: float) -> None:
        super().__init__(library, validation)
        import bm25s

        folder = build_index(library, k1, b, one_by_one)
        with as_retriever_error(folder):
            self._index = bm25s.BM25.load(folder, mmap=True, show_progress=False)

    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        """Rank as `Ranker.rank`. Only passages that share a word with the query are hits, so there may be none."""
        terms = tokenize(query, self._library.language)
        if not terms:
            return []
        scores: NDArray[np.float32] = await asyncio.to_thread(self._index.get_scores, terms)
        rows = np.flatnonzero((scores > 0) & self._searched(split, within))
        if len(rows) > k:
            rows = rows[scores[rows] >= np.partition(scores[rows], -k)[-k]]
        best = rows[np.lexsort((rows, -scores[rows]))][:k]
        return [(int(row), float(scores[row])) for row in best]

    async def rank_evidence(self, query: str, evidence: Evidences, split: Split) -> int | None:
        """Return the place, from 1, of the first passage that holds a sentence of the evidence; None without words.

        Passages with equal scores share the better place; those that share no word with the query, the last of all.
        Copies of a passage count once, as in a search, unless the place is far down.

        Args:
            evidence: each sentence with the passage that it was taken from.

        Raises:
            RetrieverError: the library has no such document.
        """
        rows = {row for sentence, passage in evidence for row in self._library.rows_of(sentence, passage)}
        terms = tokenize(query, self._library.language)
        if not rows or not terms:
            return None
        scores: NDArray[np.float32] = await asyncio.to_thread(self._index.get_scores, terms)
        best = scores[list(rows)].max()
        if not best:
            return int(self._allowed[split].sum())
        above = np.flatnonzero((scores > best) & self._allowed[split])
        if len(above) > _COMPARED:
            return 1 + len(above)
        own = {self._library.passage(row).text_key for row in rows}
        by_score = [(scores[row], self._library.passage(row).text_key) for row in above]
        best = max((score for score, text in by_score if text in own), default=best)
        return 1 + len({text for score, text in by_score if score > best})


class PassagePool:
    """A search over the passages of dialogs that have no library, such as human ones: of all of them together.

    Args:
        dialogs: read once; only the words of their passages are kept.
    """

    def __init__(self, dialogs: Iterable[Dialog]) -> None:
        import bm25s

        self._rows: dict[str, int] = {}
        texts: dict[str, int] = {}
        self._language = language = languages().documents
        vocabulary = {"": 0}
        ids: list[NDArray[np.int32]] = []
        text_of = list[int]()
        for dialog in dialogs:
            for passage in dialog.passages:
                if self._rows.setdefault(passage.id, len(self._rows)) == len(ids):
                    text_of.append(texts.setdefault(passage.text_key, len(ids)))
                    terms = tokenize(_indexed(passage), language)
                    ids.append(
                        np.array([vocabulary.setdefault(term, len(vocabulary)) for term in terms], dtype=np.int32)
                    )
        self._text_of = np.array(text_of)  # the first row with each row's text
        self._index = bm25s.BM25()
        with np.errstate(invalid="ignore"):
            if ids:  # else there is no evidence either
                self._index.index((ids, vocabulary), create_empty_token=False, show_progress=False)

    async def rank_evidence(self, query: str, evidence: Evidences, split: Split) -> int | None:
        """Return a place as `Bm25.rank_evidence` does, among the passages of both splits."""
        rows, terms = {self._rows[passage.id] for _, passage in evidence}, tokenize(query, self._language)
        if not rows or not terms:
            return None
        scores: NDArray[np.float32] = self._index.get_scores(terms)
        best = scores[np.isin(self._text_of, self._text_of[list(rows)])].max()
        return 1 + len(np.unique(self._text_of[scores > best])) if best else len(np.unique(self._text_of))


def build_index(library: Library, k1: float, b: float, spread: Spread) -> Path:
    """Return the folder of the index, building it unless it exists."""
    import bm25s

    language = library.language
    # The number is raised when texts in other languages than English are cut otherwise.
    searched = "" if language == ENGLISH else f" 3 {language.model_dump_json(include=set(_SEARCHED))}"
    settings = hashlib.sha256(f"{bm25s.__version__} {k1} {b}{searched}".encode()).hexdigest()[:12]
    return built_once(library.folder / f"bm25-{settings}", lambda path: _build(library, path, k1, b, spread))


def _build(library: Library, folder: Path, k1: float, b: float, spread: Spread) -> None:
    import bm25s

    vocabulary = {"": 0}  # bm25s divides by the length of the vocabulary, so it must not be empty
    ids: list[NDArray[np.int32]] = []
    pieces, tell = divide(len(library), DOCUMENTS), paced()
    for rows, (found, passages) in zip(pieces, spread(partial(_tokenize_documents, library), pieces), strict=True):
        known = np.array([vocabulary.setdefault(word, len(vocabulary)) for word in found], dtype=np.int32)
        ids.extend(known[passage] for passage in passages)
        tell(f"indexing words: {rows.stop} of {len(library)} documents")
    index = bm25s.BM25(k1=k1, b=b)
    with np.errstate(invalid="ignore"):
        index.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    index.save(folder, show_progress=False)


def _tokenize_documents(library: Library, rows: range) -> tuple[list[str], list[NDArray[np.int32]]]:
    """Return the words of some documents in order of first occurrence, and each passage as indices into them."""
    places: dict[str, int] = {}
    language = library.language
    passages = [
        np.array([places.setdefault(word, len(places)) for word in tokenize(_indexed(p), language)], dtype=np.int32)
        for _, of_document in library.documents(rows)
        for p in of_document
    ]
    return list(places), passages


def _indexed(passage: Passage) -> str:
    # Of a text that begins with its title, too: indexes that exist and the figures of the documentation have it twice.
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def tokenize(text: str, language: Language) -> list[str]:
    """Return the words of a text as they are indexed: in lower case, stemmed, without stop words; or letter n-grams."""
    if not language.spaced:
        return list(language.cut(text))
    stop_words = language.listed("stop")
    english = language.code == "en"
    found = _WORD.findall(text.lower()) if english else (word for word in words(text) if len(word) > 1)
    return language.stem([word for word in found if word not in stop_words])
