"""mtRAG's three retrieval settings (Katsis et al. 2025, section 6.1), made of what `export=mtrag` writes.

    python -m benchmarks.retrieval_settings outputs/RUN/mtrag --retriever bm25

`generation_tasks/reference.jsonl` is there already: the relevant passages alone. Beside it come `RAG.jsonl`, with the
five passages that are found, and `reference+RAG.jsonl`, with the relevant ones and then the best of those found up to
five, of the tasks that have at most two relevant passages. The query is a task's rewrite; where it has none, as an
unanswerable question, it is the question. Conversational turns ask for nothing and are left out of both.
"""

import argparse
import asyncio
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir

from generator.__main__ import CONF
from generator.config import load
from generator.errors import CorpusError, GroundedDialogsError
from generator.files import written
from generator.library import Library
from generator.retrievers.base import RetrieverSettings
from generator.schema import Document, Retriever

PASSAGES, MOST_RELEVANT = 5, 2
# A passage of a collection stays whole.
WHOLE = 1_000_000
Task = dict[str, Any]


def settings(name: str, changes: list[str]) -> RetrieverSettings:
    """A retriever of `conf/retriever/`, which leaves passages as they are."""
    whole = [f"retriever.passage_tokens={WHOLE}", "retriever.overlap=0"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        chosen = compose("config", ["+corpus=sample", "+taxonomy=mixed", f"retriever={name}", *whole, *changes])
        return load(chosen).retriever


def opened(folder: Path, chosen: RetrieverSettings, cache: Path) -> Retriever:
    """The retriever on a collection."""
    path = folder / "corpus.jsonl"
    documents = [Document(id=row["_id"], title=row.get("title") or "", text=row["text"]) for row in rows(path)]
    fingerprint = hashlib.sha256(path.read_bytes()).hexdigest()
    library = Library.open(folder.name, fingerprint, lambda: documents, cache, chosen.passage_tokens, chosen.overlap)
    return chosen.open(library, np.zeros(len(library), dtype=np.bool_))


async def found(retriever: Retriever, query: str) -> list[Task]:
    """The best passages, as contexts of a task."""
    hits = await retriever.search(query, PASSAGES, "train")
    return [
        {
            "document_id": hit.passage.document_id,
            "text": hit.passage.text,
            "title": hit.passage.title,
            "score": hit.score,
        }
        for hit in hits
    ]


def supplemented(relevant: list[Task], passages: list[Task]) -> list[Task]:
    """The relevant passages, and of those found the best that aren't among them, up to five together."""
    known = {context["document_id"] for context in relevant}
    return [*relevant, *(context for context in passages if context["document_id"] not in known)][:PASSAGES]


async def contexts(export: Path, chosen: RetrieverSettings, cache: Path) -> dict[str, list[Task]]:
    """What is found for each task, by its id.

    Raises:
        CorpusError: of a task it isn't known which collection it is about.
    """
    collections = sorted((export / "retrieval_tasks").iterdir())
    queries = {
        folder: {row["_id"]: row["text"].removeprefix("|user|:").strip() for row in rows(file)}
        for folder in collections
        for file in folder.glob(f"{folder.name}_rewrite.jsonl")
    }
    about = {query.partition("<::>")[0]: folder for folder, of in queries.items() for query in of}
    retrievers = {folder: opened(folder, chosen, cache) for folder in queries}
    result = {}
    for task in rows(export / "generation_tasks" / "reference.jsonl"):
        folder = about.get(task["conversation_id"])
        if folder is None:
            raise CorpusError(
                f"{export}: no collection in retrieval_tasks has rewritten queries of {task['task_id']}; "
                "export a run with retriever.query=rewrite"
            )
        query = queries[folder].get(task["task_id"], task["input"][-1]["text"])
        result[task["task_id"]] = await found(retrievers[folder], query)
    return result


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("export", type=Path, help="the folder mtrag/ that export=mtrag wrote")
    parser.add_argument("--retriever", default="bm25", help="a choice of retriever= (default: bm25)")
    parser.add_argument("--cache", type=Path, default=Path("outputs/.cache/settings"), help="for indexes")
    parser.add_argument("changes", nargs="*", help="settings, such as retriever.model=FOLDER")
    given = parser.parse_args()
    try:
        retrieved = asyncio.run(contexts(given.export, settings(given.retriever, given.changes), given.cache))
    except (GroundedDialogsError, OSError) as error:
        sys.exit(f"error: {error}")
    folder = given.export / "generation_tasks"
    tasks = [t for t in rows(folder / "reference.jsonl") if t["Answerability"] != ["CONVERSATIONAL"]]
    few = [task for task in tasks if len(task["contexts"]) <= MOST_RELEVANT]
    both = [{**t, "contexts": supplemented(t["contexts"], retrieved[t["task_id"]])} for t in few]
    for name, made in (
        ("RAG", [{**task, "contexts": retrieved[task["task_id"]]} for task in tasks]),
        ("reference+RAG", both),
    ):
        with written(folder / f"{name}.jsonl") as file:
            file.writelines(json.dumps(task, ensure_ascii=False) + "\n" for task in made)
        sizes = Counter(len(task["contexts"]) for task in made)
        told = ", ".join(f"{count} with {size} passages" for size, count in sorted(sizes.items()))
        print(f"{folder / name}.jsonl: {len(made)} tasks, {told}")


def rows(path: Path) -> list[Task]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
