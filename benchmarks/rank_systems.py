"""The retrievers whose rankings `benchmarks.rank_agreement` compares, and their searches, kept on disk."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.retrieval import retriever_settings
from generator.common.atomic_files import atomic_write, digest
from generator.common.language import ENGLISH
from generator.common.language_file import Language
from generator.retrievers.base import RetrieverSettings
from generator.retrievers.dense import DenseSettings
from generator.retrievers.encoder import Encoder, EncoderSettings
from generator.retrievers.hybrid import HybridSettings
from judges.benchmarks.mtrag.retrieval import WHOLE, open_library, rank_documents

CUT = 5
UNSTEMMED = Language.model_validate({**ENGLISH.model_dump(), "stemmer": None})


class SharedEncoder(EncoderSettings):
    """Encodes each query once for all retrievers: nearly all of their time."""

    def load(self) -> Encoder:
        return _load(self.model, self.query_prefix, self.passage_prefix)


class SharedDense(SharedEncoder, DenseSettings):
    """`DenseSettings`, with the shared encoder."""


class SharedHybrid(SharedEncoder, HybridSettings):
    """`HybridSettings`, with the shared encoder."""


SHARED: dict[type[RetrieverSettings], type[RetrieverSettings]] = {
    DenseSettings: SharedDense,
    HybridSettings: SharedHybrid,
}


@cache
def _load(model: str, query_prefix: str | None, passage_prefix: str | None) -> Encoder:
    encoder = Encoder(model, query_prefix, passage_prefix)
    encoder.encode_query = cache(encoder.encode_query)  # type: ignore[method-assign]
    return encoder


class Variant(NamedTuple):
    """A retriever of `conf/retriever/` with changed settings; `passages`: their tokens and overlap."""

    retriever: str
    changes: tuple[str, ...] = ()
    passages: tuple[int, int] = (WHOLE, 0)
    stemmed: bool = True


# Chosen before any figure was seen: what we have, each beside what others use or what is its plain form.
VARIANTS = {
    "bm25": Variant("bm25"),
    "bm25, not stemmed": Variant("bm25", stemmed=False),
    "bm25, k1=0.9 b=0.4": Variant("bm25", ("k1=0.9", "b=0.4")),  # Anserini's
    "bm25, b=0": Variant("bm25", ("b=0",)),
    "bm25, passages of 200": Variant("bm25", passages=(200, 40)),
    "bm25, passages of 100": Variant("bm25", passages=(100, 20)),
    "dense": Variant("dense"),
    "dense, beginnings": Variant("dense", ("window=512",)),
    "dense, passages of 100": Variant("dense", passages=(100, 20)),
    "hybrid": Variant("hybrid"),
    "hybrid, rrf_k=60, equal weights": Variant("hybrid", ("rrf_k=60", "bm25_weight=1")),
}


def rank_texts(domain: str, pool: Path, variant: Variant, texts: Iterable[str], folder: Path) -> dict[str, list[str]]:
    """Return the ids of each text's first passages, best first; what is kept in `folder` isn't searched again."""
    given = retriever_settings(variant.retriever, variant.changes, *variant.passages)
    settings = SHARED.get(type(given), type(given)).model_validate(given.model_dump())
    identity = f"{digest(pool)} {given.model_dump_json()} {variant.stemmed}"
    if isinstance(settings, EncoderSettings):
        identity += f" {settings.load().identity()}"
    file = folder / f"rankings-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    known: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if missing := sorted(set(texts) - known.keys()):
        library = open_library(domain, pool, settings, folder)
        library.language = ENGLISH if variant.stemmed else UNSTEMMED
        retriever = settings.open(library, np.zeros(len(library), dtype=np.bool_))
        # Where passages are cut, several of those found may be of the same one.
        k = CUT if settings.passage_tokens == WHOLE else 10 * CUT
        rankings = asyncio.run(rank_documents(retriever, {text: text for text in missing}, k))
        known |= {text: ranking[:CUT] for text, ranking in rankings.items()}
        with atomic_write(file) as output:
            json.dump(known, output, ensure_ascii=False)
    return known
