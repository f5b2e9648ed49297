"""Forty documents to search, and no key for a search server."""

from pathlib import Path

import pytest

from generator.corpora.library import Library
from generator.schema import Document
from tests.support.encoders import word_model

__all__ = ["word_model"]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETRIEVER_API_KEY", raising=False)


@pytest.fixture
def lib(tmp_path: Path) -> Library:
    documents = [Document(id=f"d{n}", title=f"T{n}", text=f"Lead {n}. The tram stops here {n}.") for n in range(40)]
    return Library.open("c", "f" * 64, lambda: documents, tmp_path, 512, 100)


@pytest.fixture
def lib_with_copies(tmp_path: Path) -> Library:
    """Sixty documents, of which twenty have the text of each of two."""
    documents = [Document(id=f"d{n}", text=f"harbour number{n if n < 20 else n % 2}") for n in range(60)]
    return Library.open("c", "e" * 64, lambda: documents, tmp_path, 512, 100)
