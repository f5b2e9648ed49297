"""Read the conversations of mtRAG (Katsis et al. 2025), as such and as tasks for generators."""

import hashlib
import re
from collections.abc import Iterator, Sequence, Set
from itertools import count, takewhile
from typing import Any, NamedTuple

from generator.common.sanitize import drop_thoughts
from generator.corpora.files import File
from generator.corpora.human import HUMAN, human_dialog, human_turn
from generator.corpora.json_records import list_records, read_json, read_json_lines, validate_record
from generator.corpora.mtrag import forms
from generator.corpora.mtrag.names import NO_LABEL, SPEAKER, domain_of, format_turn_id, from_published_label
from generator.schema import UNLABELLED, Dialog, Evidence, Hit, Passage, SkippedRecord, Turn


class _Exchange(NamedTuple):
    """A turn; `relevant` are indices of `contexts`."""

    query: str
    answer: str
    labels: forms.Labels
    contexts: list[forms.Context]
    relevant: Set[int] = frozenset()
    original: str = ""
    others: Sequence[str] = ()


class Queries:
    """The queries of mtRAG's retrieval tasks, which have the ids of conversations and the rewrites of questions.

    A conversation has no id. It is recognised by its questions up to a turn, which is what a line of
    `<domain>_questions.jsonl` holds.
    """

    def __init__(self) -> None:
        self._conversations: dict[str, str] = {}
        self._rewrites: dict[tuple[str, int], str] = {}

    def read(self, file: File) -> Iterator[SkippedRecord]:
        """Add a `<domain>_questions.jsonl` or `<domain>_rewrite.jsonl`, and yield the lines that can't be read."""
        for where, line in read_json_lines(file):
            query = validate_record(forms.Query, where, line)
            if isinstance(query, SkippedRecord):
                yield query
            elif "_rewrite." in file.name:
                self._rewrites[query.id] = query.text.removeprefix(SPEAKER).removeprefix(" ")
            else:
                self._conversations[query.text], _ = query.id

    def conversation_id(self, questions: Sequence[str]) -> str:
        """Return the id of the conversation with these questions; a hash of them if the queries don't have it."""
        for length in range(len(questions), 0, -1):
            asked = "\n".join(f"{SPEAKER} {question}" for question in questions[:length])
            if asked in self._conversations:
                return self._conversations[asked]
        return hashlib.sha256("\n".join(questions).encode()).hexdigest()[:32]

    def rewrite(self, conversation: str, turn: int) -> str:
        """Return the standalone form of a question; empty if there is none."""
        return self._rewrites.get((conversation, turn), "")


def read_dialogs(file: File, corpus: str, domain: str | None, queries: Queries) -> Iterator[Dialog | SkippedRecord]:
    """Yield the dialogs of a file: conversations (a JSON array), or generation tasks (JSON lines, or an object with
    `tasks`).

    Args:
        corpus: its name, for the dialogs.
        domain: the domain whose dialogs are read; None: all.

    Raises:
        CorpusError: the file can't be read to its end, or is none of these.
    """
    content = _read_content(file)
    if isinstance(content, list):
        yield from _conversations(file, content, corpus, domain, queries)
    else:
        yield from _tasks(_read_tasks(file, content), corpus, domain, queries)


def _conversations(
    file: File, items: list[Any], corpus: str, domain: str | None, queries: Queries
) -> Iterator[Dialog | SkippedRecord]:
    for index, item in enumerate(items):
        where = f"{file.where}: [{index}]"
        record = validate_record(forms.Conversation, where, item)
        if isinstance(record, SkippedRecord):
            yield record
            continue
        if domain not in (None, domain_of(record.collection)):
            continue
        user = [message for message in record.messages[::2] if isinstance(message, forms.UserMessage)]
        agent = [message for message in record.messages[1::2] if isinstance(message, forms.AgentMessage)]
        if len(user) + len(agent) < len(record.messages) or len(user) != len(agent):
            yield SkippedRecord(where=where, reason="messages: user and agent don't take turns")
            continue
        exchanges = [
            _Exchange(
                question.text,
                answer.text,
                question.enrichments,
                answer.contexts,
                {place for place, context in enumerate(answer.contexts) if context.relevant},
                original=answer.original_text,
            )
            for question, answer in zip(user, agent, strict=True)
        ]
        conversation = queries.conversation_id([question.text for question in user])
        yield _dialog(where, corpus, record.collection, conversation, exchanges, queries)


def _tasks(
    items: Iterator[tuple[str, Any]], corpus: str, domain: str | None, queries: Queries
) -> Iterator[Dialog | SkippedRecord]:
    conversations: dict[str, dict[int, tuple[str, forms.Task]]] = {}
    for where, item in items:
        task = validate_record(forms.Task, where, item)
        if isinstance(task, SkippedRecord):
            yield task
            continue
        if domain not in (None, domain_of(task.collection)):
            continue
        conversation, number = task.task_id
        turns = conversations.setdefault(conversation, {})
        if number in turns:
            yield SkippedRecord(where=where, reason=f"task_id: {turns[number][0]} is the same turn")
            continue
        turns[number] = where, task
    for conversation, turns in conversations.items():
        only = len(turns) == 1
        joined = [] if only else list(takewhile(turns.__contains__, count(1)))
        if joined:
            where, first = turns[1]
            exchanges = [_asked(turns[number][1]) for number in joined]
            yield _dialog(where, corpus, first.collection, conversation, exchanges, queries)
        for number in sorted(turns)[len(joined) :]:  # of these the input alone says what came before
            where, task = turns[number]
            dialog_id = conversation if only else format_turn_id(conversation, number)
            yield _last_turn(where, corpus, dialog_id, task, _asked(task), queries.rewrite(*task.task_id))


def _asked(task: forms.Task) -> _Exchange:
    answer, *others = (target.text for target in task.targets)
    return _Exchange(task.input[-1].text, answer, task, task.contexts, task.relevant, others=others)


def read_responses(file: File, corpus: str) -> Iterator[Dialog | SkippedRecord]:
    """Yield the responses of models to generation tasks, a dialog each: each task's `predictions` (JSON lines), or the
    `evaluations` (an object with `tasks`).

    The last turn is the model's, and its `other_answers` are the task's targets; those before were given with the task
    and have no labels (`ended` is `task`). The id is `<conversation><::><turn>/<model>`, the corpus
    `<corpus>-<domain>`. A prediction without a model's name gets that of the file.

    Raises:
        CorpusError: the file can't be read to its end, or is neither.
    """
    content = _read_content(file)
    tasks: dict[tuple[str, int], forms.AnsweredTask] = {}
    file_model = re.sub(r"\.jsonl(\.gz)?$", "", file.name.rpartition("/")[2], flags=re.IGNORECASE)
    for where, item in _read_tasks(file, content):
        task = validate_record(forms.AnsweredTask, where, item)
        if isinstance(task, SkippedRecord):
            yield task
        elif content is not None:
            tasks[task.task_id] = task
        elif not task.predictions:
            yield SkippedRecord(where=where, reason="predictions: there are none")
        else:
            for number, prediction in enumerate(task.predictions, start=1):
                model = file_model if len(task.predictions) == 1 else f"{file_model}-{number}"
                yield _response(where, corpus, task, prediction.model_id or model, prediction.text)
    for where, item in list_records(file, content, "evaluations", "mtRAG") if content is not None else ():
        record = validate_record(forms.Evaluation, where, item)
        if isinstance(record, SkippedRecord):
            yield record
        elif record.task_id not in tasks:
            yield SkippedRecord(where=where, reason="task_id: no such task, or it can't be read")
        else:
            yield _response(where, corpus, tasks[record.task_id], record.model, record.response)


def _response(where: str, corpus: str, task: forms.AnsweredTask, model: str, answer: str) -> Dialog | SkippedRecord:
    exchange = _Exchange(task.input[-1].text, drop_thoughts(answer), task, task.contexts)
    dialog_id = f"{format_turn_id(*task.task_id)}/{model}"
    dialog = _last_turn(where, f"{corpus}-{domain_of(task.collection)}", dialog_id, task, exchange, "", model)
    if isinstance(dialog, SkippedRecord):
        return dialog
    *given, last = dialog.turns
    # Targets are references, even where the model's answer is the same.
    last = last.model_copy(update={"other_answers": tuple(target.text for target in task.targets)})
    return dialog.model_copy(update={"turns": (*given, last)})


def _last_turn(
    where: str,
    corpus: str,
    dialog_id: str,
    task: forms.Task | forms.AnsweredTask,
    exchange: _Exchange,
    rewrite: str,
    model: str = HUMAN,
) -> Dialog | SkippedRecord:
    """Return a task with the answer of its last turn; those before it were given with the task."""
    if [message.speaker for message in task.input] != [*(["user", "agent"] * (len(task.input) // 2)), "user"]:
        return SkippedRecord(where=where, reason="input: user and agent don't take turns up to a question")
    pairs = zip(task.input[:-1:2], task.input[1::2], strict=True)
    turns = [human_turn(number, user.text, agent.text) for number, (user, agent) in enumerate(pairs, start=1)]
    passages: dict[str, Passage] = {}
    last = _turn(where, len(turns) + 1, exchange, passages, rewrite)
    if isinstance(last, SkippedRecord):
        return last
    found = list(passages.values())
    return human_dialog(
        where, corpus, dialog_id, "multi", [*turns, last], found, task.collection, model=model, last_only=True
    )


def _read_content(file: File) -> Any:
    """Return what a JSON file holds, or None for JSON lines."""
    return None if file.name.lower().endswith((".jsonl", ".jsonl.gz")) else read_json(file)


def _read_tasks(file: File, content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tasks of a file with their places: its lines, or those of its JSON `content`, where the texts of the
    contexts stand apart.
    """
    if content is None:
        yield from read_json_lines(file)
        return
    documents = list_records(file, content, "documents", "mtRAG")
    texts = {item.get("document_id"): item for _, item in documents if isinstance(item, dict)}
    for where, task in list_records(file, content, "tasks", "mtRAG"):
        if isinstance(task, dict) and isinstance(task.get("contexts"), list):
            task["contexts"] = [
                texts.get(context.get("document_id"), {}) | context if isinstance(context, dict) else context
                for context in task["contexts"]
            ]
        yield where, task


def _dialog(
    where: str, corpus: str, collection: str, conversation: str, exchanges: Sequence[_Exchange], queries: Queries
) -> Dialog | SkippedRecord:
    passages: dict[str, Passage] = {}
    turns = []
    for number, exchange in enumerate(exchanges, start=1):
        turn = _turn(where, number, exchange, passages, queries.rewrite(conversation, number))
        if isinstance(turn, SkippedRecord):
            return turn
        turns.append(turn)
    return human_dialog(where, corpus, conversation, "multi", turns, list(passages.values()), collection)


def _turn(
    where: str, number: int, exchange: _Exchange, passages: dict[str, Passage], rewrite: str
) -> Turn | SkippedRecord:
    """Return the turn of an exchange, and add its passages to those of the turns before."""
    hits = []
    evidence: dict[str, Evidence] = {}
    for place, context in enumerate(exchange.contexts):
        passage = context.passage()
        if passages.get(passage.id, passage).text != passage.text:
            return SkippedRecord(where=where, reason=f"passage {passage.id} has two texts")
        new = passage.id not in passages
        hits.append(Hit(passage_id=passage.id, score=context.score or 0, rank=place + 1, new=new))
        passages.setdefault(passage.id, passage)
        if place in exchange.relevant:
            evidence[passage.id] = Evidence(passage_id=passage.id, start=0, end=len(passage.text), text=passage.text)
    labels = exchange.labels
    return human_turn(
        number,
        exchange.query,
        exchange.answer,
        labels.answerability,
        other_answers=exchange.others,
        original_answer=exchange.original,
        rewrite=rewrite,
        hits=hits,
        evidence=tuple(evidence.values()),
        question_type=_join(labels.question_type) or UNLABELLED,
        multi_turn_type=None if number == 1 else _join(labels.multi_turn),
    )


def _join(labels: Sequence[str]) -> str | None:
    """Return labels such as `factoid+how-to`; None if there is none."""
    return "+".join(from_published_label(label) for label in labels if label != NO_LABEL) or None
