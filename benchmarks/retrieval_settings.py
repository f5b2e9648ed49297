"""mtRAG's three retrieval settings (Katsis et al. 2025, section 6.1), made of what `export=mtrag` writes.

    python -m benchmarks.retrieval_settings outputs/RUN/mtrag --retriever bm25

`generation_tasks/reference.jsonl` is there already: the relevant passages alone. Beside it come `RAG.jsonl`, with the
five passages that are found, and `reference+RAG.jsonl`, with the relevant ones and then the best of those found up to
five, of the tasks that have at most two relevant passages. The query is a task's rewrite; where it has none, as an
unanswerable question, it is the question. Conversational turns ask for nothing and are left out of both.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from generator.common.atomic_files import atomic_write
from generator.corpora.mtrag.names import parse_turn_id
from generator.errors import CorpusError, GroundedDialogsError
from generator.retrievers.base import RetrieverSettings
from generator.schema import Retriever
from judges.benchmarks.mtrag.retrieval_tasks import documents, queries
from judges.retrieval import WHOLE, hashed, opened, settings

PASSAGES, MOST_RELEVANT = 5, 2
Task = dict[str, Any]


def collection(corpus: Path, chosen: RetrieverSettings, cache: Path) -> Retriever:
    """The retriever on the passages of a collection."""
    return opened(corpus.parent.name, partial(documents, corpus), hashed(corpus), chosen, cache)


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
    asked = {folder: queries(file) for folder in collections for file in folder.glob(f"{folder.name}_rewrite.jsonl")}
    about = {parse_turn_id(query)[0]: folder for folder, of in asked.items() for query in of}
    retrievers = {folder: collection(folder / "corpus.jsonl", chosen, cache) for folder in asked}
    result = {}
    for task in rows(export / "generation_tasks" / "reference.jsonl"):
        folder = about.get(task["conversation_id"])
        if folder is None:
            raise CorpusError(
                f"{export}: no collection in retrieval_tasks has rewritten queries of {task['task_id']}; "
                "export a run with retriever.query=rewrite"
            )
        query = asked[folder].get(task["task_id"], task["input"][-1]["text"])
        result[task["task_id"]] = await found(retrievers[folder], query)
    return result


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("export", type=Path, help="the folder mtrag/ that export=mtrag wrote")
    parser.add_argument("--retriever", default="bm25", help="a choice of retriever= (default: bm25)")
    parser.add_argument("--cache", type=Path, default=Path("outputs/.cache/settings"), help="for indexes")
    parser.add_argument("changes", nargs="*", help="settings of the retriever, such as model=FOLDER")
    given = parser.parse_args()
    try:
        chosen = settings(given.retriever, [f"passage_tokens={WHOLE}", "overlap=0", *given.changes])
        retrieved = asyncio.run(contexts(given.export, chosen, given.cache))
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
        with atomic_write(folder / f"{name}.jsonl") as file:
            file.writelines(json.dumps(task, ensure_ascii=False) + "\n" for task in made)
        sizes = Counter(len(task["contexts"]) for task in made)
        told = ", ".join(f"{count} with {size} passages" for size, count in sorted(sizes.items()))
        print(f"{folder / name}.jsonl: {len(made)} tasks, {told}")


def rows(path: Path) -> list[Task]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
