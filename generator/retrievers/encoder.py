"""Texts as vectors, by sentence-transformers, which is imported when the first encoder is made."""

import hashlib
import logging
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generator.errors import RetrieverError

# Seconds that the hub gets to say whether it has a model; its own client tries for a minute and prints each failure.
HUB_PATIENCE = 10


class Encoder:
    """A sentence encoder; similar texts get vectors with a high dot product. Safe to use from one thread at a time.

    Args:
        model: a name on the Hugging Face hub, or a local folder. What the hub's cache holds isn't asked for again.

    Attributes:
        dimensions: length of a vector.

    Raises:
        RetrieverError: sentence-transformers isn't installed, or the model can't be loaded.
    """

    dimensions: int

    def __init__(self, model: str) -> None:
        self._name = model
        self._model = _loaded(model)
        self.dimensions = self.encode([""]).shape[1]

    def __reduce__(self) -> tuple[type["Encoder"], tuple[str]]:
        """In another process it is the same model, loaded there."""
        return Encoder, (self._name,)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors; shape (texts, dimensions). What is longer than the model reads is cut off by it.

        The last bits of a vector depend on the texts that it is encoded with.

        Raises:
            RetrieverError: the model fails, such as for want of memory.
        """
        try:
            vectors: NDArray[np.float32] = self._model.encode(
                list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
        except RuntimeError as error:  # PyTorch's, for a device that is full or gone as well
            raise RetrieverError(
                f"retriever.model={self._name}: can't encode ({_line(error)}); free the device's memory, or hide it "
                "with CUDA_VISIBLE_DEVICES="
            ) from error
        return vectors.astype(np.float32, copy=False)

    def identity(self) -> str:
        """Says which model it is: equal ones make equal vectors. A folder's changes with what is in it."""
        folder = Path(self._name).expanduser()
        if not folder.is_dir():
            return self._name
        content = hashlib.sha256()
        try:
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                content.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
                with file.open("rb") as stream:
                    while piece := stream.read(1 << 20):
                        content.update(piece)
        except OSError as error:
            raise RetrieverError(f"retriever.model={self._name}: can't be read ({_line(error)})") from error
        return content.hexdigest()


@cache
def _loaded(model: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it warns about forks that nobody makes
    try:
        from huggingface_hub import HfApi
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error
    except ImportError as error:
        raise RetrieverError(
            f"vectors need the package sentence-transformers ({error}): install the extra 'dense' (uv sync --extra "
            "dense), or choose retriever=bm25"
        ) from error
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    set_verbosity_error()
    disable_progress_bar()  # a bar for the fraction of a second that loading takes
    folder = Path(model).expanduser()
    try:
        if folder.exists():
            return SentenceTransformer(str(folder), local_files_only=True)
        try:
            return SentenceTransformer(model, local_files_only=True)
        except Exception:  # not in the cache, or not whole
            HfApi().model_info(model, timeout=HUB_PATIENCE)
            return SentenceTransformer(model)
    except Exception as error:  # it raises what its libraries raise
        raise RetrieverError(
            f"retriever.model={model}: can't be loaded ({_line(error)}); give a folder, or a name that the Hugging "
            "Face hub has"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
