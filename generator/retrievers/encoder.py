"""Text embeddings by sentence-transformers, which is imported when the first encoder is created."""

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

# How long to wait for the hub; its own client tries for a minute and prints each failure.
HUB_TIMEOUT_S = 10


class Encoder:
    """A sentence encoder; similar texts get vectors with a high dot product. Not thread-safe.

    Args:
        model: a name on the Hugging Face hub, or a local folder. The hub is asked only for what isn't in its cache.

    Raises:
        RetrieverError: sentence-transformers isn't installed, or the model can't be loaded.
    """

    def __init__(self, model: str) -> None:
        self._name = model
        self._model = _load(model)
        self.dimensions: int = self.encode([""]).shape[1]

    def __reduce__(self) -> tuple[type["Encoder"], tuple[str]]:
        """Load the same model in another process."""
        return Encoder, (self._name,)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors; shape (texts, dimensions). The model truncates texts that are too long for it.

        The last bits of a vector depend on the texts that are encoded with it.
        """
        try:
            vectors: NDArray[np.float32] = self._model.encode(
                list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
        except RuntimeError as error:  # PyTorch's, also for a device that is out of memory or gone
            raise RetrieverError(
                f"retriever.model={self._name}: encoding failed ({_line(error)}); free memory on the device, or use "
                "the CPU with CUDA_VISIBLE_DEVICES="
            ) from error
        return vectors.astype(np.float32, copy=False)

    def identity(self) -> str:
        """Return what identifies the model: the name of one on the hub, a hash of the content of a local folder."""
        folder = Path(self._name).expanduser()
        if not folder.is_dir():
            return self._name
        content = hashlib.sha256()
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            content.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
            with file.open("rb") as stream:
                while piece := stream.read(1 << 20):
                    content.update(piece)
        return content.hexdigest()


@cache
def _load(model: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # otherwise it warns about forks
    try:
        from huggingface_hub import HfApi
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error
    except ImportError as error:
        raise RetrieverError(
            f"retriever: the package sentence-transformers is missing ({error}); install the extra 'dense' (uv sync "
            "--extra dense), or choose retriever=bm25"
        ) from error
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    set_verbosity_error()
    disable_progress_bar()  # loading takes a fraction of a second
    folder = Path(model).expanduser()
    try:
        if folder.exists():
            return SentenceTransformer(str(folder), local_files_only=True)
        try:
            return SentenceTransformer(model, local_files_only=True)
        except Exception:  # not in the cache, or incomplete there
            HfApi().model_info(model, timeout=HUB_TIMEOUT_S)
            return SentenceTransformer(model)
    except Exception as error:  # whatever its libraries raise
        raise RetrieverError(
            f"retriever.model={model}: can't be loaded ({_line(error)}); give a local folder or a name on the Hugging "
            "Face hub"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
