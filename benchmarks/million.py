"""Measure exact search: `Dense` on random vectors, one query at a time and 64 at a time.

    uv run python -m benchmarks.million 1000000

Each passage has one vector of 384 dimensions; encoding a query isn't measured.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.retrievers import dense
from generator.retrievers.encoder import Encoder
from generator.schema import Document, Scored


class RandomEncoder(Encoder):
    def __init__(self) -> None:
        self.dimensions, self.passage_prefix, self._query_prefix = 384, "", ""
        self._chance = np.random.default_rng(0)

    def encode(self, texts: Sequence[str], prefix: str = "") -> NDArray[np.float32]:
        vectors = self._chance.standard_normal((len(texts), self.dimensions), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def identity(self) -> str:
        return "random"


class RandomSettings(dense.DenseSettings):
    """The settings of `retriever=dense`, with random vectors."""

    def load(self) -> Encoder:
        return RandomEncoder()


async def search_at_once(retriever: dense.Dense, at_once: int) -> list[list[Scored]]:
    return await asyncio.gather(*(retriever.search(str(number), 10, "train") for number in range(at_once)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="COUNT", help="of vectors")
    count = parser.parse_args().count
    vars(dense).update(note=lambda text: None)
    names = compose_choice("retriever", "dense")
    del names["_target_"]
    with tempfile.TemporaryDirectory() as folder:
        documents = (Document(id=str(number), text="word") for number in range(count))
        library = Library.open("random", "f" * 64, lambda: documents, Path(folder), 512, 100)
        retriever = dense.Dense(library, np.zeros(count, dtype=np.bool_), RandomSettings(**names))
        asyncio.run(search_at_once(retriever, 1))  # reads the vectors from disk
        for at_once, rounds in ((1, 9), (64, 3)):
            times = []
            for _ in range(rounds):
                start = time.perf_counter()
                asyncio.run(search_at_once(retriever, at_once))
                times.append(time.perf_counter() - start)
            each = float(np.median(times)) / at_once
            print(f"{count} vectors, {at_once} at once: {each * 1000:.0f} ms a query")


if __name__ == "__main__":
    main()
