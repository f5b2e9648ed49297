"""Dialogs in the files of mtRAG (Katsis et al. 2025), for its tools and for those made for it.

    conversations.json                                  whole conversations, with all retrieved passages
    generation_tasks/reference.jsonl                    a task for each pair, by default with the relevant passages
    retrieval_tasks/<name>/                             queries and passages (`mtrag_retrieval.py`)

A passage is relevant to a turn if it holds a sentence of the turn's evidence. `docs/export.md` describes each field.
"""

import random
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from generator.common.console import count_noun, note
from generator.corpora.mtrag.names import NO_LABEL, format_turn_id, to_published_label
from generator.errors import CorpusError
from generator.output.base import ExportSource, open_text, to_json
from generator.output.chat import kept_turns
from generator.output.mtrag_retrieval import Collections, RetrievalTask, write_collections
from generator.schema import TASK, UNLABELLED, Dialog, Operational, Passage, Record, Turn

Contexts = Literal["relevant", "retrieved"]
Tasks = Literal["all", "one"]


class MtragExport(Record):
    """Writes the files of mtRAG; see `generator.output.base.Exporter`."""

    name: ClassVar[str] = "mtrag"

    contexts: Annotated[Contexts, Operational] = Field(
        default="relevant",
        description="Passages of a generation task: `relevant`, as published, whose number tells unanswerable "
        "questions, most of which have none, and often underspecified ones; `retrieved`: what else the search found, "
        "too, as many for every task.",
    )

    tasks: Annotated[Tasks, Operational] = Field(
        default="all",
        description="Turns of a conversation that are tasks: `all`; `one`, drawn by its id from those after the first, "
        "as MTRAG-UN has them.",
    )

    def write(self, source: ExportSource, folder: Path) -> None:
        """Write all files; the same dialogs and documents give the same bytes."""
        tasks, retrieval = folder / "generation_tasks", folder / "retrieval_tasks"
        tasks.mkdir()
        try:
            collections = write_collections(source, retrieval, source.documents())
        except CorpusError as error:
            note(f"export=mtrag: the collections hold only the passages of the dialogs, because {error}")
            shutil.rmtree(retrieval)
            collections = write_collections(source, retrieval, ())
        with ExitStack() as stack:
            conversations = stack.enter_context(open_text(folder / "conversations.json"))
            reference = stack.enter_context(open_text(tasks / "reference.jsonl"))
            queries = {
                name: stack.enter_context(RetrievalTask(retrieval / name, name)) for name in collections.names.values()
            }
            before = "[\n"
            shown = _Contexts(self.contexts, source)
            for dialog in source.dialogs():
                collection = collections.collection_of(dialog)
                if dialog.ended != TASK:  # whose turns before the last have neither labels nor passages
                    size = collections.sizes[collection]
                    conversations.write(before + to_json(_conversation(dialog, collections, size)))
                    before = ",\n"
                turns = kept_turns(dialog, source.filter)
                if self.tasks == "one" and turns:
                    turns = random.Random(dialog.id).choices([turn for turn in turns if turn.turn > 1] or turns)
                for turn in turns:
                    relevant = collections.relevant(dialog, turn)
                    if (contexts := shown.of(dialog, turn, relevant)) is not None:
                        reference.write(to_json(_task(dialog, turn, collection, contexts, relevant)) + "\n")
                        queries[collections.names[collection]].add(dialog, turn, relevant, source.rewritten)
            conversations.write("\n]\n")
        if before == "[\n":
            (folder / "conversations.json").unlink()
        shown.report()


class _Contexts:
    """Chooses the passages of generation tasks, and counts the tasks whose number of passages tells what they are."""

    def __init__(self, contexts: Contexts, source: ExportSource) -> None:
        self._contexts = contexts
        self._contradicted = 0
        # With each of the settings, tasks by answerability and number of passages.
        self._sizes: dict[Contexts, Counter[tuple[str, int]]] = {"relevant": Counter(), "retrieved": Counter()}
        # Of every task alike, so that the number of passages tells nothing: what a search returns, as a rule.
        searches = Counter(len(t.hits) for d in source.dialogs() for t in d.turns if t.hits)
        self._count = max(searches, key=lambda count: (searches[count], count), default=0)

    def of(self, dialog: Dialog, turn: Turn, relevant_ids: Collection[str]) -> list[Passage] | None:
        """Return the passages of a turn's task; None if it can't be one, since its passages answer what they shouldn't.

        With `retrieved` they are the relevant ones, filled up with the best other hits of the turn and of those before
        it, all in this order. The judge `answerability` was shown these, so that none of them answers an unanswerable
        question that it found unanswerable.
        """
        measured = {verdict.label for verdict in turn.verdicts if verdict.judge == "answerability"}
        if (
            self._contexts == "retrieved"
            and turn.answerability == "unanswerable"
            and measured & {"answerable", "partial"}
        ):
            self._contradicted += 1
            return None
        relevant = [passage for passage in _candidates(dialog, turn) if passage.id in relevant_ids]
        found = list(_candidates(dialog, *dialog.turns[turn.turn - 1 :: -1]))
        wanted = {passage.id for passage in relevant}
        others = [passage.id for passage in found if passage.id not in wanted]
        wanted.update(others[: max(0, self._count - len(relevant))] if self._count else others)
        chosen: dict[Contexts, list[Passage]] = {
            "relevant": relevant,
            "retrieved": [passage for passage in found if passage.id in wanted],
        }
        for contexts, passages in chosen.items():
            self._sizes[contexts][turn.answerability, len(passages)] += 1
        return chosen[self._contexts]

    def report(self) -> None:
        """Report tasks whose number of passages tells that they aren't answerable, and those left out."""
        told, least = self._told(self._contexts), self._told("retrieved").total()
        if told:
            classes = " and ".join(f"{count} {name}" for name, count in told.items())
            remedy = f"; export.contexts=retrieved lowers that to {least}" if least < told.total() else ""
            note(f"export=mtrag: the number of passages tells {classes} tasks from answerable ones{remedy}")
        if self._contradicted:
            tasks = count_noun(self._contradicted, "unanswerable task")
            note(
                f"export=mtrag: left out {tasks} that the judge answerability found answerable; "
                "export.contexts=relevant keeps them"
            )

    def _told(self, contexts: Contexts) -> Counter[str]:
        """Return by class the tasks with a number of passages that no answerable or partial task has."""
        sizes = self._sizes[contexts]
        answered = {size for name, size in sizes if name in ("answerable", "partial")}
        told: Counter[str] = Counter()
        for (name, size), count in sorted(sizes.items()):
            if name in ("unanswerable", "underspecified") and answered and size not in answered:
                told[name] += count
        return told


def _conversation(dialog: Dialog, collections: Collections, size: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in dialog.turns:
        messages.append({"speaker": "user", "text": turn.query, "enrichments": _labels(dialog, turn, [NO_LABEL])})
        relevant = collections.relevant(dialog, turn)
        contexts = [_context(dialog, turn, passage, relevant) for passage in _candidates(dialog, turn)]
        original = {"original_text": turn.original_answer} if turn.original_answer else {}
        messages.append({"speaker": "agent", "text": turn.answer, "contexts": contexts, **original})
    return {
        "author": dialog.lm,
        "retriever": {"collection": {"name": collections.collection_of(dialog), "size": str(size)}},
        "generator": {"id": dialog.lm, "name": Path(dialog.lm).name},
        "messages": messages,
        "status": "accepted",
    }


def _task(
    dialog: Dialog, turn: Turn, collection: str, passages: Sequence[Passage], relevant: Collection[str]
) -> dict[str, Any]:
    contexts = [_context(dialog, turn, passage, relevant) for passage in passages]
    labels: dict[str, Any] = {"turn": turn.turn, **_labels(dialog, turn, [])}
    if dialog.ended == TASK:  # as MTRAG-UN writes them
        labels |= {"turn": str(turn.turn), "Multi-Turn": labels["Multi-Turn"] or [NO_LABEL]}
        labels["answerability"] = labels.pop("Answerability")
        if not any(context["score"] for context in contexts) and all(p.id in relevant for p in passages):
            contexts = [{k: v for k, v in c.items() if k not in ("score", "feedback")} for c in contexts]
    messages = [
        {"speaker": speaker, "text": text}
        for t in dialog.turns
        for speaker, text in (("user", t.query), ("agent", t.answer))
    ]
    return {
        "conversation_id": dialog.id,
        "task_id": format_turn_id(dialog.id, turn.turn),
        "task_type": "rag",
        "Collection": collection,
        "dataset": dialog.corpus,
        "contexts": contexts,
        "input": messages[: 2 * turn.turn - 1],
        "targets": [{"speaker": "agent", "text": text} for text in (turn.answer, *turn.other_answers)],
        **labels,
    }


def _labels(dialog: Dialog, turn: Turn, of_first: list[str]) -> dict[str, list[str]]:
    """Return the three dimensions of a turn; `of_first` is the multi-turn type of a first turn."""
    # A task is a type of question. The later types of Lee et al. 2024 (`correction`) are multi-turn types.
    link = None if dialog.task else turn.multi_turn_type
    types = [name for name in turn.question_type.split("+") if name not in (UNLABELLED, link)]
    later = link.split("+") if link else []
    return {
        "Question Type": [to_published_label(name) for name in types],
        "Multi-Turn": of_first if turn.turn == 1 else [to_published_label(name) for name in later],
        "Answerability": [turn.answerability.upper()],
    }


def _candidates(dialog: Dialog, turn: Turn, *before: Turn) -> Iterator[Passage]:
    """Yield the passages retrieved for a turn, then those that it cites from earlier turns, then those of `before`.

    In a dialog without retrieval these are all its passages.
    """
    if not any(t.hits for t in dialog.turns):
        yield from dialog.passages
        return
    by_id = {passage.id: passage for passage in dialog.passages}
    ids = [*(hit.passage_id for hit in turn.hits), *(evidence.passage_id for evidence in turn.evidence)]
    ids += [hit.passage_id for earlier in before for hit in earlier.hits]
    yield from (by_id[name] for name in dict.fromkeys(ids))


def _context(dialog: Dialog, turn: Turn, passage: Passage, relevant: Collection[str]) -> dict[str, Any]:
    """Return a passage with the score of the last search that found it; 0 without one."""
    scores = [hit.score for t in dialog.turns[: turn.turn] for hit in t.hits if hit.passage_id == passage.id]
    return {
        "document_id": passage.id,
        "text": passage.text,
        **({"title": passage.title} if passage.title else {}),
        **({"url": passage.url} if passage.url else {}),
        "score": scores[-1] if scores else 0.0,
        "feedback": {"relevant": {dialog.lm: {"value": "yes" if passage.id in relevant else "no"}}},
    }
