"""Texts as vectors, by sentence-transformers, which is imported when the first encoder is made."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generator.errors import RetrieverError


class Encoder:
    """A sentence encoder; similar texts get vectors with a high dot product. Safe to use from one thread at a time.

    Args:
        model: a name on the Hugging Face hub, or a local folder.

    Raises:
        RetrieverError: sentence-transformers isn't installed, or the model can't be loaded.
    """

    def __init__(self, model: str) -> None:
        self._model = _loaded(model)
        self.dimensions = int(self._model.get_sentence_embedding_dimension())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors; shape (texts, dimensions). What is longer than the model reads is cut off by it."""
        vectors: NDArray[np.float32] = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return vectors.astype(np.float32, copy=False)


@cache
def _loaded(model: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it warns about forks that nobody makes
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise RetrieverError(
            f"vectors need the package sentence-transformers ({error}): install the extra 'dense', or choose "
            "retriever=bm25"
        ) from error
    path = Path(model).expanduser()
    try:
        return SentenceTransformer(str(path) if path.exists() else model)
    except Exception as error:  # it raises what its libraries raise
        why = " ".join(str(error).split())[:300]
        raise RetrieverError(
            f"retriever.model={model}: can't be loaded ({why}); give a folder, or a name that the Hugging Face hub has"
        ) from error
