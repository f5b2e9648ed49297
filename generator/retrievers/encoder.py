"""Text embeddings by sentence-transformers, which is imported when the first encoder is created."""

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.common.console import note
from generator.common.hub import load_model
from generator.common.passages import windows
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.retrievers.base import RetrieverSettings
from generator.schema import Passage

# Tokens that neighbouring windows share, but at most half of each.
_WINDOW_OVERLAP = 32
# Passages that are looked at, and the share of their text from which it is reported that the encoder truncates it.
SAMPLE, UNREAD = 200, 0.05


class EncoderSettings(RetrieverSettings):
    """The base of the settings of retrievers with a sentence encoder, which runs here."""

    model: str = Field(
        min_length=1, description="Sentence encoder that runs here: a name on the Hugging Face hub, or a local folder."
    )
    window: int = Field(
        ge=1,
        description="Tokens of a passage that make one vector. all-MiniLM-L6-v2 reads 256 word pieces, title included: "
        "some 192 tokens.",
    )
    query_prefix: str | None = Field(
        description="Text before each query, for encoders that want it, such as `query: ` for E5; null: the prompt "
        "that the model's own configuration has for queries, if any."
    )
    passage_prefix: str | None = Field(
        description="Text before each window of a passage, such as `passage: ` for E5; null: the prompt that the "
        "model's own configuration has for passages, if any."
    )

    @property
    def window_overlap(self) -> int:
        """Tokens that neighbouring windows share."""
        return min(_WINDOW_OVERLAP, self.window // 2)

    def load(self) -> "Encoder":
        """Return the encoder; errors as of `Encoder`."""
        return Encoder(self.model, self.query_prefix, self.passage_prefix)

    def windows(self, passage: Passage) -> list[str]:
        """Return the texts whose vectors make up a passage: its windows, each below the title."""
        title = f"{passage.title}\n" if passage.title else ""
        spans = windows(passage.text, self.window, self.window_overlap)
        return [f"{title}{passage.text[start:end]}" for start, end in spans]

    def note_unread(self, library: Library, encoder: "Encoder") -> None:
        """Tell the user if the encoder truncates much of the windows of a sample of the passages."""
        rows = range(0, library.passage_count, library.passage_count // SAMPLE + 1)
        lengths = encoder.count_pieces([text for row in rows for text in self.windows(library.passage(row))])
        limit = encoder.limit or 0
        unread = sum(max(0, length - limit) for length in lengths) / (sum(lengths) or 1)
        if unread > UNREAD:
            fits = int(self.window * limit / np.quantile(lengths, 0.9))
            note(
                f"retriever.window={self.window}: windows are longer than the {limit} word pieces that the encoder "
                f"reads; about {unread:.0%} of the text can't be found by it. retriever.window={fits} fits nearly all"
            )


class Encoder:
    """A sentence encoder; similar texts get vectors with a high dot product. Not thread-safe.

    Args:
        model: a name on the Hugging Face hub, or a local folder. The hub is asked only for what isn't in its cache.
        query_prefix, passage_prefix: as in `EncoderSettings`.

    Raises:
        RetrieverError: sentence-transformers isn't installed, or the model can't be loaded.
    """

    def __init__(self, model: str, query_prefix: str | None = None, passage_prefix: str | None = None) -> None:
        self._name, self._given = model, (query_prefix, passage_prefix)
        self._model = _load(model)
        prompts = getattr(self._model, "prompts", {})
        self._query_prefix = _first(query_prefix, prompts, "query")
        self.passage_prefix = _first(passage_prefix, prompts, "document", "passage", "corpus")
        # Word pieces that the model reads of a text; None: all, or unknown.
        limit, tokenizer = (getattr(self._model, name, None) for name in ("max_seq_length", "tokenizer"))
        self.limit = limit if isinstance(limit, int) and callable(tokenizer) else None
        self.dimensions: int = self.encode([""]).shape[1]

    def __reduce__(self) -> tuple[type["Encoder"], tuple[str, str | None, str | None]]:
        """Load the same model in another process."""
        return Encoder, (self._name, *self._given)

    def encode_query(self, query: str) -> NDArray[np.float32]:
        """Return the vector of a query; shape (dimensions,).

        A query is encoded alone, since the last bits of a vector depend on the texts that are encoded with it.
        """
        vector: NDArray[np.float32] = self.encode([query], self._query_prefix)[0]
        return vector

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of windows of passages; shape (texts, dimensions)."""
        return self.encode(texts, self.passage_prefix)

    def encode(self, texts: Sequence[str], prefix: str = "") -> NDArray[np.float32]:
        """Return unit vectors; shape (texts, dimensions). The model truncates texts that are too long for it."""
        try:
            vectors: NDArray[np.float32] = self._model.encode(
                list(texts), prompt=prefix, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
        except RuntimeError as error:  # PyTorch's, also for a device that is out of memory or gone
            raise RetrieverError(
                f"retriever.model={self._name}: encoding failed ({_line(error)}); free memory on the device, or use "
                "the CPU with CUDA_VISIBLE_DEVICES="
            ) from error
        return vectors.astype(np.float32, copy=False)

    def count_pieces(self, passages: Sequence[str]) -> list[int]:
        """Return the numbers of word pieces of windows of passages; none if it isn't known how many are read."""
        texts = [self.passage_prefix + text for text in passages]
        return [] if self.limit is None else [len(pieces) for pieces in self._model.tokenizer(texts)["input_ids"]]

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


def _first(given: str | None, prompts: Mapping[str, str | None], *names: str) -> str:
    """Return the prefix that was given, or the first that the model's configuration has."""
    return given if given is not None else next((found for name in names if (found := prompts.get(name))), "")


@cache
def _load(model: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # otherwise it warns about forks
    for library in ("sentence_transformers", "bitsandbytes"):  # the latter warns of a package that nothing here needs
        logging.getLogger(library).setLevel(logging.ERROR)
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error
    except ImportError as error:
        raise RetrieverError(
            f"retriever: the package sentence-transformers is missing ({error}); install the extra 'dense' (uv sync "
            "--inexact --extra dense), or choose retriever=bm25"
        ) from error
    set_verbosity_error()
    disable_progress_bar()  # loading takes a fraction of a second
    try:
        return load_model(model, lambda name, local: SentenceTransformer(name, local_files_only=local))
    except Exception as error:  # whatever its libraries raise
        raise RetrieverError(
            f"retriever.model={model}: can't be loaded ({_line(error)}); give a local folder or, with a connection to "
            "the Hugging Face hub, a name there"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
