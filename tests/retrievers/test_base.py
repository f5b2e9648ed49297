import asyncio
from pathlib import Path

import numpy as np
import pytest

from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.retrievers.base import Ranker, Ranking
from generator.schema import Document, Split


class Returning(Ranker):
    """Ranks the passages of all queries by their rows, as a retriever of the user's own may."""

    rows: tuple[int, ...] = ()

    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        return [(row, 1.0) for row in self.rows]


@pytest.mark.parametrize("rows", [(2,), (0, 2), (1, -1), (3,), (0, 0)])
def test_passages_of_the_other_split_and_rows_that_are_none_are_an_error(rows: tuple[int, ...], tmp_path: Path) -> None:
    documents = [Document(id=name, text=f"The {name} boat.") for name in ("red", "blue", "late")]
    library = Library.open("boats", "f" * 64, lambda: documents, tmp_path, 512, 100)
    retriever = Returning(library, np.array([False, False, True]))
    retriever.rows = (1, 0)
    found = asyncio.run(retriever.search("boat", 5, "train"))
    assert [hit.passage.document_id for hit in found] == ["blue", "red"]
    with pytest.raises(RetrieverError, match=r"Returning\.rank"):
        asyncio.run(retriever.search("boat", 5, "train", "red"))
    retriever.rows = rows
    with pytest.raises(RetrieverError, match=r"Returning\.rank"):
        asyncio.run(retriever.search("boat", 5, "train"))
