"""The conversations of mtRAG (Katsis et al. 2025): as people led them, and as tasks for generators."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from generator.corpora.files import READ_ERRORS, File, opened, reason
from generator.corpora.human import dialog, turn, writable
from generator.corpora.json_file import items, parsed
from generator.corpora.json_lines import lines
from generator.corpora.mtrag.forms import (
    AnsweredTask,
    Asked,
    Context,
    Conversation,
    Evaluation,
    Labels,
    Query,
    Said,
    Task,
)
from generator.corpora.mtrag.names import NO_LABEL, SPEAKER, domain, turn_id
from generator.corpora.mtrag.names import read as as_ours
from generator.errors import CorpusError
from generator.schema import TASK, UNLABELLED, Dialog, Evidence, Hit, Passage, SkippedRecord, Turn


class _Exchange(NamedTuple):
    """A turn; `relevant` are places in `contexts`."""

    query: str
    answer: str
    original: str
    others: list[str]
    labels: Labels
    contexts: list[Context]
    relevant: set[int]


class Queries:
    """The queries of mtRAG's retrieval tasks: they tell what conversations are called and how questions were rewritten.

    A conversation itself has no id. It is known by all that its user has asked up to a turn, which is what a line of
    `<domain>_questions.jsonl` holds.
    """

    def __init__(self) -> None:
        self._conversations: dict[str, str] = {}
        self._rewrites: dict[tuple[str, int], str] = {}

    def read(self, file: File) -> Iterator[SkippedRecord]:
        """Take over a `<domain>_questions.jsonl` or `<domain>_rewrite.jsonl`, but for lines that can't be read."""
        for number, line in lines(file):
            found = parsed(Query, f"{file.where}:{number}", line)
            if isinstance(found, SkippedRecord):
                yield found
            elif "_rewrite." in file.name:
                self._rewrites[found.id] = found.text.removeprefix(SPEAKER).removeprefix(" ")
            else:
                self._conversations[found.text], _ = found.id

    def name(self, asked: Sequence[str]) -> str:
        """The id of the conversation in which these questions were asked, or else a hash of them."""
        for count in range(len(asked), 0, -1):
            found = self._conversations.get("\n".join(f"{SPEAKER} {question}" for question in asked[:count]))
            if found is not None:
                return found
        return hashlib.sha256("\n".join(asked).encode()).hexdigest()[:32]

    def rewrite(self, conversation: str, turn: int) -> str:
        return self._rewrites.get((conversation, turn), "")


def dialogs(file: File, corpus: str, wanted: str | None, queries: Queries) -> Iterator[Dialog | SkippedRecord]:
    """The dialogs of a file: conversations (a JSON array), or generation tasks (JSON lines, or an object with `tasks`).

    Args:
        corpus: its name, for the dialogs.
        wanted: the domain; the others are left out. None: all.

    Raises:
        CorpusError: it can't be read to its end, or is none of these.
    """
    try:
        with opened(file) as stream:
            first = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    except READ_ERRORS as error:
        raise CorpusError(f"{file.where}: can't be read: {reason(error)}") from error
    if first == b"[":
        yield from _conversations(file, corpus, wanted, queries)
    else:
        yield from _tasks(file, corpus, wanted, queries)


def _conversations(file: File, corpus: str, wanted: str | None, queries: Queries) -> Iterator[Dialog | SkippedRecord]:
    for where, item in items(file, "", "mtRAG"):
        found = parsed(Conversation, where, item)
        if isinstance(found, SkippedRecord):
            yield found
            continue
        if wanted not in (None, domain(found.collection)):
            continue
        asked = [message for message in found.messages[::2] if isinstance(message, Asked)]
        said = [message for message in found.messages[1::2] if isinstance(message, Said)]
        if len(asked) + len(said) < len(found.messages) or len(asked) != len(said):
            yield SkippedRecord(where=where, reason="messages: user and agent don't take turns")
            continue
        exchanges = [
            _Exchange(
                query=question.text,
                answer=answer.text,
                original=answer.original_text,
                others=[],
                labels=question.enrichments,
                contexts=answer.contexts,
                relevant={place for place, context in enumerate(answer.contexts) if context.relevant},
            )
            for question, answer in zip(asked, said, strict=True)
        ]
        name = queries.name([question.text for question in asked])
        yield _dialog(where, corpus, found.collection, name, exchanges, queries)


def _tasks(file: File, corpus: str, wanted: str | None, queries: Queries) -> Iterator[Dialog | SkippedRecord]:
    conversations: dict[str, dict[int, tuple[str, _Exchange]]] = {}
    collections: dict[str, str] = {}
    for where, item in _task_items(file):
        task = parsed(Task, where, item)
        if isinstance(task, SkippedRecord):
            yield task
            continue
        if wanted not in (None, domain(task.collection)):
            continue
        conversation, number = task.task_id
        turns = conversations.setdefault(conversation, {})
        if number in turns:
            yield SkippedRecord(where=where, reason=f"task_id: {turns[number][0]} is the same turn")
            continue
        collections.setdefault(conversation, task.collection)
        marked = {place for place, context in enumerate(task.contexts) if context.relevant}
        turns[number] = (
            where,
            _Exchange(
                query=task.input[-1].text,
                answer=task.targets[0].text,
                original="",
                others=[target.text for target in task.targets[1:]],
                labels=task,
                contexts=task.contexts,
                relevant=marked | set(task.annotations.context_relevance.system),
            ),
        )
    for name, turns in conversations.items():
        joined = next(number for number in range(1, len(turns) + 2) if number not in turns)
        for number in sorted(turns):
            if number > joined:
                where, _ = turns[number]
                yield SkippedRecord(
                    where=where, reason=f"task_id: turn {joined} of its conversation can't be read here"
                )
        if joined > 1:
            where, _ = turns[1]
            exchanges = [turns[number][1] for number in range(1, joined)]
            yield _dialog(where, corpus, collections[name], name, exchanges, queries)


def responses(file: File, corpus: str) -> Iterator[Dialog | SkippedRecord]:
    """What models answered to generation tasks, a dialog each: of JSON lines, each task's `predictions`; of an object
    with `tasks`, its `evaluations`.

    The last turn is the model's, and its `other_answers` are the task's targets; those before were given with the task
    and have no labels (`ended` is `task`). The id is `<conversation><::><turn>/<model>`, the corpus
    `<corpus>-<domain>`. A prediction that doesn't say whose it is belongs to the model that the file is named after.

    Raises:
        CorpusError: it can't be read to its end, or is neither.
    """
    tasks: dict[tuple[str, int], AnsweredTask] = {}
    is_lines = file.name.lower().endswith((".jsonl", ".jsonl.gz"))
    named = re.sub(r"\.jsonl(\.gz)?$", "", file.name.rpartition("/")[2], flags=re.IGNORECASE)
    for where, item in _task_items(file):
        task = parsed(AnsweredTask, where, item)
        if isinstance(task, SkippedRecord):
            yield task
        elif not is_lines:
            tasks[task.task_id] = task
        elif not task.predictions:
            yield SkippedRecord(where=where, reason="predictions: there are none")
        else:
            for number, prediction in enumerate(task.predictions, start=1):
                unnamed = named if len(task.predictions) == 1 else f"{named}-{number}"
                yield _response(where, corpus, task, prediction.model_id or unnamed, prediction.text)
    if is_lines:
        return
    for where, item in items(file, "evaluations", "mtRAG"):
        found = parsed(Evaluation, where, item)
        if isinstance(found, SkippedRecord):
            yield found
        elif found.task_id not in tasks:
            yield SkippedRecord(where=where, reason="task_id: there is no such task, or it can't be read")
        else:
            yield _response(where, corpus, tasks[found.task_id], found.model, found.response)


def _response(where: str, corpus: str, task: AnsweredTask, model: str, answer: str) -> Dialog | SkippedRecord:
    if [said.speaker for said in task.input] != [*(["user", "agent"] * (len(task.input) // 2)), "user"]:
        return SkippedRecord(where=where, reason="input: user and agent don't take turns up to a question")
    *given, asked = task.input
    turns = [turn(n, q.text, a.text) for n, (q, a) in enumerate(zip(given[::2], given[1::2], strict=True), start=1)]
    exchange = _Exchange(asked.text, answer, "", [], task, task.contexts, set())
    passages: dict[str, Passage] = {}
    last = _turn(where, len(turns) + 1, exchange, passages, "")
    if isinstance(last, SkippedRecord):
        return last
    conversation, number = task.task_id
    made = Dialog(
        id=f"{turn_id(conversation, number)}/{model}",
        corpus=f"{corpus}-{domain(task.collection)}",
        algorithm="multi",
        split="train",
        document_ids=tuple(dict.fromkeys(p.document_id for p in passages.values())),
        # Targets are references whatever the model said, and even if it said the same.
        turns=(*turns, last.model_copy(update={"other_answers": tuple(target.text for target in task.targets)})),
        passages=tuple(passages.values()),
        ended=TASK,
        lm=model,
        prompt_version="",
        seed=0,
    )
    return writable(where, made)


def _task_items(file: File) -> Iterator[tuple[str, Any]]:
    """The tasks of a file with their places, the texts of their contexts put in where these stand apart."""
    if file.name.lower().endswith((".jsonl", ".jsonl.gz")):
        for number, line in lines(file, nan=True):
            yield f"{file.where}:{number}", line
        return
    texts = {}
    for _, item in items(file, "documents", "mtRAG"):
        if isinstance(item, dict):
            texts[item.get("document_id")] = item
    for where, task in items(file, "tasks", "mtRAG"):
        if isinstance(task, dict) and isinstance(task.get("contexts"), list):
            task["contexts"] = [
                texts.get(context.get("document_id"), {}) | context if isinstance(context, dict) else context
                for context in task["contexts"]
            ]
        yield where, task


def _dialog(
    where: str, corpus: str, collection: str, name: str, exchanges: Sequence[_Exchange], queries: Queries
) -> Dialog | SkippedRecord:
    passages: dict[str, Passage] = {}
    turns = []
    for number, exchange in enumerate(exchanges, start=1):
        made = _turn(where, number, exchange, passages, queries.rewrite(name, number))
        if isinstance(made, SkippedRecord):
            return made
        turns.append(made)
    return dialog(where, corpus, name, "multi", turns, list(passages.values()), collection)


def _turn(
    where: str, number: int, exchange: _Exchange, passages: dict[str, Passage], rewrite: str
) -> Turn | SkippedRecord:
    """The turn of an exchange; its passages join those of the turns before."""
    hits = []
    evidence: dict[str, Evidence] = {}
    for place, context in enumerate(exchange.contexts):
        piece = context.passage()
        if passages.get(piece.id, piece).text != piece.text:
            return SkippedRecord(where=where, reason=f"passage {piece.id} has two texts")
        hits.append(Hit(passage_id=piece.id, score=context.score or 0, rank=place + 1, new=piece.id not in passages))
        passages.setdefault(piece.id, piece)
        if place in exchange.relevant:
            evidence[piece.id] = Evidence(passage_id=piece.id, start=0, end=len(piece.text), text=piece.text)
    labels = exchange.labels
    return turn(
        number,
        exchange.query,
        exchange.answer,
        labels.answerability,
        other_answers=exchange.others,
        original_answer=exchange.original,
        rewrite=rewrite,
        hits=hits,
        evidence=tuple(evidence.values()),
        question_type=_joined(labels.question_type) or UNLABELLED,
        multi_turn_type=None if number == 1 else _joined(labels.multi_turn),
    )


def _joined(labels: Sequence[str]) -> str | None:
    """`factoid+how-to`; None if there is no label."""
    return "+".join(as_ours(label) for label in labels if label != NO_LABEL) or None
