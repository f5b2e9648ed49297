"""mtRAG's three retrieval settings (Katsis et al. 2025, section 6.1), from the files of `export=mtrag`.

    python -m benchmarks.retrieval_settings outputs/RUN/mtrag --retriever bm25

The export has `generation_tasks/reference.jsonl`, whose contexts are the relevant passages, or tell them from others by
`feedback` (`export.contexts=retrieved`). Beside it are written `RAG.jsonl`, with the five passages that are retrieved,
and `reference+RAG.jsonl`, with the relevant passages and then the best of those retrieved up to five, for tasks that
have at most two relevant passages. The query is a task's rewrite, or the question if it has none, as an unanswerable
one. Conversational turns ask for nothing and are left out of both.
"""

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.command_line import errors_on_one_line
from benchmarks.retrieval import retriever_settings
from generator.common.atomic_files import atomic_write
from generator.corpora.mtrag.names import parse_turn_id
from generator.errors import CorpusError
from generator.retrievers.base import RetrieverSettings
from generator.schema import Retriever
from judges.benchmarks.mtrag.retrieval import open_library, open_retriever
from judges.benchmarks.mtrag.retrieval_tasks import read_queries

PASSAGES, MOST_RELEVANT = 5, 2
Task = dict[str, Any]


async def retrieve(retriever: Retriever, query: str) -> list[Task]:
    """Return the best passages, as contexts of a task."""
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


def relevant_contexts(task: Task) -> list[Task]:
    """Return the contexts of a task that nobody marked as irrelevant."""

    def is_relevant(context: Task) -> bool:
        marks = context.get("feedback", {}).get("relevant", {}).values()
        return any(mark["value"] == "yes" for mark in marks) or not marks

    return list(filter(is_relevant, task["contexts"]))


def supplement(relevant: list[Task], passages: list[Task]) -> list[Task]:
    """Return the relevant passages and then the best others of those retrieved, up to five in all."""
    known = {context["document_id"] for context in relevant}
    return [*relevant, *(context for context in passages if context["document_id"] not in known)][:PASSAGES]


async def contexts(export: Path, settings: RetrieverSettings, cache: Path) -> dict[str, list[Task]]:
    """Return the passages that are retrieved for each task, by its id.

    Raises:
        CorpusError: the collection of a task isn't known.
    """
    collections = sorted((export / "retrieval_tasks").iterdir())
    queries = {
        folder: read_queries(file) for folder in collections for file in folder.glob(f"{folder.name}_rewrite.jsonl")
    }
    folders = {parse_turn_id(query)[0]: folder for folder, of in queries.items() for query in of}
    libraries = {folder: open_library(folder.name, folder / "corpus.jsonl", settings, cache) for folder in queries}
    retrievers = {folder: open_retriever(library, settings) for folder, library in libraries.items()}
    result = {}
    for task in rows(export / "generation_tasks" / "reference.jsonl"):
        folder = folders.get(task["conversation_id"])
        if folder is None:
            raise CorpusError(
                f"{export}: no collection in retrieval_tasks has rewritten queries of {task['task_id']}; "
                "export a run with retriever.query=rewrite"
            )
        query = queries[folder].get(task["task_id"], task["input"][-1]["text"])
        result[task["task_id"]] = await retrieve(retrievers[folder], query)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("export", type=Path, help="the folder mtrag/ that export=mtrag wrote")
    parser.add_argument("--retriever", default="bm25", help="a choice of retriever= (default: bm25)")
    parser.add_argument("--cache", type=Path, default=Path("outputs/.cache/settings"), help="for indexes")
    parser.add_argument("changes", nargs="*", help="settings of the retriever, such as model=FOLDER")
    given = parser.parse_args()
    with errors_on_one_line():
        settings = retriever_settings(given.retriever, given.changes)
        retrieved = asyncio.run(contexts(given.export, settings, given.cache))
    folder = given.export / "generation_tasks"
    tasks = [t for t in rows(folder / "reference.jsonl") if t["Answerability"] != ["CONVERSATIONAL"]]
    few = [(task, found) for task in tasks if len(found := relevant_contexts(task)) <= MOST_RELEVANT]
    both = [{**t, "contexts": supplement(found, retrieved[t["task_id"]])} for t, found in few]
    for name, written in (
        ("RAG", [{**task, "contexts": retrieved[task["task_id"]]} for task in tasks]),
        ("reference+RAG", both),
    ):
        with atomic_write(folder / f"{name}.jsonl") as file:
            file.writelines(json.dumps(task, ensure_ascii=False) + "\n" for task in written)
        sizes = Counter(len(task["contexts"]) for task in written)
        counts = ", ".join(f"{count} with {size} passages" for size, count in sorted(sizes.items()))
        print(f"{folder / name}.jsonl: {len(written)} tasks, {counts}")


def rows(path: Path) -> list[Task]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
