"""Quality of BM25 in each shipped language, with and without its stemmer, against chance, as Markdown.

    uv run python -m benchmarks.languages

Twenty documents of two paragraphs a language and a question on each, written for this project (`tests/data/languages`):
the paragraph that answers is to be found among all forty. Questions inflect words otherwise than the paragraphs do.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from math import log2
from pathlib import Path
from statistics import fmean

import numpy as np

from generator.common.language import ENGLISH, load_language
from generator.common.language_file import Language
from generator.corpora.library import Library
from generator.retrievers.bm25 import Bm25
from generator.schema import Document

DATA = Path(__file__).parent.parent / "tests/data/languages"
SHIPPED = ("en", "de", "fr", "es", "ar", "hi", "ja", "zh")
CUT = 5
HEADER = ["language", "BM25", "without stemmer", "without stop words", "as English", "n-grams 1", "n-grams 2"]


def read_paragraphs(code: str) -> list[Document]:
    """Return the paragraphs of a language's documents, each as a document `<id>/<number>`."""
    records = map(json.loads, (DATA / f"{code}.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Document(id=f"{record['id']}/{number}", title=record["title"], text=text)
        for record in records
        for number, text in enumerate(record["text"].split("\n\n"))
    ]


def read_questions(code: str) -> list[tuple[str, str]]:
    """Return a language's questions, each with the id of the paragraph that answers it."""
    records = map(json.loads, (DATA / f"{code}.questions.jsonl").read_text(encoding="utf-8").splitlines())
    return [(record["question"], f"{record['document']}/{record['paragraph']}") for record in records]


def measure(
    documents: Sequence[Document], questions: Sequence[tuple[str, str]], language: Language
) -> tuple[float, float]:
    """Return nDCG@5 and Recall@5 of BM25, each 0 to 1."""
    with tempfile.TemporaryDirectory() as folder:
        library = Library.open("languages", "f" * 12, lambda: documents, Path(folder), 512, 100)
        library.language = language
        retriever = Bm25(library, np.zeros(len(library), dtype=np.bool_), 1.5, 0.75)
        gains, recalls = [], []
        for question, answer in questions:
            found = asyncio.run(retriever.search(question, CUT, "train"))
            ranks = [rank for rank, each in enumerate(found, 1) if each.passage.document_id == answer]
            gains.append(1 / log2(1 + ranks[0]) if ranks else 0.0)
            recalls.append(float(bool(ranks)))
        library.close()
    return fmean(gains), fmean(recalls)


def chance(paragraphs: int) -> tuple[float, float]:
    """Return nDCG@5 and Recall@5 of a random ranking of so many paragraphs, one of which answers."""
    return sum(1 / log2(1 + rank) for rank in range(1, CUT + 1)) / paragraphs, CUT / paragraphs


def variants(language: Language) -> Iterator[Language | None]:
    """Yield a language as it is and with one thing changed, as in `HEADER`; None where that changes nothing."""
    yield language
    yield _change(language, stemmer=None) if language.stemmer else None
    words = {name: listed for name, listed in language.words.items() if name != "stop"}
    yield _change(language, words=words) if language.spaced else None
    yield ENGLISH if language != ENGLISH else None
    for length in (1, 2):
        yield None if language.spaced else _change(language, ngrams=(length,))


def _change(language: Language, **fields: object) -> Language:
    return Language.model_validate(language.model_dump() | fields)  # a copy would keep what was compiled


def main() -> None:
    print(f"| {' | '.join(HEADER)} |\n| --- |{' --- |' * (len(HEADER) - 1)}")
    for code in SHIPPED:
        documents, questions = read_paragraphs(code), read_questions(code)
        language = load_language(code)
        cells: list[str] = [language.name]
        for each in variants(language):
            cells.append("" if each is None else "{:.2f} / {:.2f}".format(*measure(documents, questions, each)))
        print(f"| {' | '.join(cells)} |")
    gain, recall = chance(len(documents))
    print(f"| chance | {gain:.2f} / {recall:.2f} |{' |' * (len(HEADER) - 2)}")


if __name__ == "__main__":
    main()
