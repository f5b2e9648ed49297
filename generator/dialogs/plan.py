"""Plan the next dialog: a pure function of the run's seed and the plan's number, computed before any model call.

So the same configuration gives the same plans at any concurrency, and a run can be continued. Dialogs on one document
are neighbours, for the server's prefix cache; each starts from sentences that the ones before it did not use, and a
document too short for that has fewer.
"""

import hashlib
import random
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from generator.common.detection import is_left_in_english
from generator.common.language import languages
from generator.common.passages import count_tokens, has_more_tokens, passage
from generator.common.prose import prose
from generator.common.scripts import words
from generator.common.sentences import is_heading, sentences
from generator.corpora.library import Library
from generator.dialogs.first_questions import StoredQuestion
from generator.dialogs.focus import FOCUS_CHARS, put_title
from generator.schema import Document, Passage, Split, Turns
from taxonomy import (
    PLAIN,
    Facet,
    QuestionType,
    Scenario,
    Share,
    Task,
    TaskDraw,
    Taxonomy,
    User,
    draw_evenly,
    draw_one,
    leave_topic,
    turn_types,
)

# The number in brackets before every sentence of a prompt.
NUMBER_TOKENS = 3
_LINE = re.compile(r"\S.*")
_TELLING = 5  # words of a line that tells something
# A sentence of three of so many documents, whose first and last letters are looked at, is no document's own.
_SAMPLE, _EDGES, _SHARED = 24, 5000, 3


@dataclass(frozen=True)
class Plan:
    """One dialog to generate.

    Attributes:
        source: what the first question comes from (in Algorithm 1, every turn): the document, or as much of it around
            `focus` as a prompt holds; or the first question itself, if another run asked it.
        focus: sentences of the source that the first question is to touch on; empty leaves that to the model.
        turns: the number of turns; `question_types` has one for each, or none where there is a task.
        task: what the dialog is to be as a whole: a task, or an item of a scenario.
        aims: of a task's turns, how much of each the documents should answer; empty if that isn't planned.
        user: who asks.
        switch: the place of the turn, from 0, that leaves the topic for good; None: none does.
        new_focus: what the question of that turn is to touch on.
    """

    dialog_id: str
    seed: int
    split: Split
    question_types: tuple[QuestionType, ...]
    source: Passage | str
    focus: str
    turns: int
    task: Task | Scenario | None = None
    aims: tuple[Facet, ...] = ()
    user: User = PLAIN
    switch: int | None = None
    new_focus: str = ""

    @property
    def affinity(self) -> str:
        """Return a key that is equal for dialogs whose prompts share much: the document's id, if there is one."""
        return self.dialog_id if isinstance(self.source, str) else self.source.document_id


@dataclass
class Planner:
    """Computes plan number `index`.

    Attributes:
        library: the documents.
        validation: for each document row, true if it belongs to the validation split.
        taxonomy: the question types, or the tasks, and their shares.
        turns: the number of turns of a dialog, unless its type or task has its own.
        seed: the run's.
        per_document: consecutive dialogs on the same document, unless dialogs are of tasks.
        window: tokens (`generator.common.passages.count_tokens`) of a document with numbered sentences that a prompt
            may hold.
        first_questions: one for each plan; without any, first questions are generated from the documents.
        topics: documents are topics, a line each for a dialog to start from.
        users: who asks, and their shares; without any, the plain user.
        searches: passages are retrieved, so that a new topic can be another document's.
    """

    library: Library
    validation: np.ndarray
    taxonomy: Taxonomy
    turns: Turns
    seed: int
    per_document: int
    window: int
    first_questions: Sequence[StoredQuestion] = ()
    topics: bool = False
    users: Sequence[Share[User]] = ()
    searches: bool = False

    def __post_init__(self) -> None:
        order = np.random.default_rng(self.seed).permutation(len(self.library))
        if copies := self.library.copies:  # dialogs of a text and of its copy would be much the same
            order = order[~np.isin(order, [row for row, _ in copies])]
        if self.taxonomy.tasks:  # of a large corpus, the order takes memory
            self.tasks, self.order = TaskDraw(self.taxonomy, self.seed), order
        self.rows: dict[Split, np.ndarray] = {
            "train": order[~self.validation[order]],
            "validation": order[self.validation[order]],
        }

    @property
    def limit(self) -> int:
        """Return the number of plans that there can be."""
        return len(self.first_questions) or sys.maxsize

    def plan(self, index: int) -> Plan:
        """Return plan number `index`, from 0."""
        draw = random.Random(f"{self.seed}/{index}")
        if self.taxonomy.tasks:
            return self._plan_task(index, draw)
        source: Passage | str
        if self.first_questions:
            stored = self.first_questions[index]
            split, _ = self._split_of(index)
            first = next(share.type for share in self.taxonomy.first if share.type.name == stored.question_type)
            source, name, focus = stored.query, stored.query, ""
        else:
            split, document, use = self._pick_document(index)
            first = draw_one(self.taxonomy.first, index, f"{self.seed}/first")
            span = self._pick_focus(document, use, "")
            source, name = self._cut_window(document, span), document.id
            focus = "" if self.taxonomy.focus == "none" else document.text[slice(*span)]
        turns = first.turns or draw.randint(self.turns.least, self.turns.most)
        types = turn_types(self.taxonomy, self.seed, index, first, turns)
        user = draw_one(self.users, index, f"{self.seed}/user") if self.users else PLAIN
        switching = random.Random(f"{self.seed}/{index}/switch")  # its own, so that the rest of a plan stays as it is
        switch, new_focus = None, ""
        if switching.random() < user.switch:
            types, switch = leave_topic(self.taxonomy, types, switching)
            new_focus = self._pick_new_focus(split, source, focus, switching) if switch else ""
        return Plan(
            dialog_id=self._dialog_id(index, name),
            seed=draw.getrandbits(31),
            split=split,
            question_types=types,
            source=source,
            focus=focus,
            turns=turns,
            user=user,
            switch=switch,
            new_focus=new_focus,
        )

    def _plan_task(self, index: int, draw: random.Random) -> Plan:
        """Return plan number `index` of a run whose dialogs are of tasks.

        A task takes one document after another, all of them before one returns, and then other sentences of it. An item
        of a scenario chooses freely in a document that no earlier one had. Each task begins at another place of the
        order, so that one document doesn't serve all tasks at a time.
        """
        task, use = self.tasks.draw(index)
        names = [share.type.name for share in self.taxonomy.tasks]
        rounds, place = divmod(use, len(self.order))
        first = len(self.order) * names.index(task.name) // len(names)
        row = int(self.order[(first + place) % len(self.order)])
        document = self.library.document(row)
        start, end = self._pick_focus(document, rounds, task.name)
        aims: tuple[Facet, ...] = ()
        if isinstance(task, Scenario):
            turns = len(task.turns)
        else:
            lengths = task.turns or self.turns
            turns = draw.randint(lengths.least, lengths.most)
            if task.open_ended:
                aims = draw_evenly(self.taxonomy.answerability, turns, index, f"{self.seed}/answerability")
        return Plan(
            dialog_id=self._dialog_id(index, document.id),
            seed=draw.getrandbits(31),
            split="validation" if self.validation[row] else "train",
            question_types=(),
            source=self._cut_window(document, (start, end)),
            focus="" if isinstance(task, Scenario) and not rounds else document.text[start:end],
            turns=turns,
            task=task,
            aims=aims,
        )

    def _dialog_id(self, index: int, name: str) -> str:
        return hashlib.sha256(f"{self.seed}/{index}/{name}".encode()).hexdigest()[:16]

    def _split_of(self, slot: int) -> tuple[Split, int]:
        """Return the split of slot number `slot`, and how many slots before it belong to that split.

        Validation slots come at even distances: after n slots, as many as the documents' share of validation, rounded.
        """
        held, total = len(self.rows["validation"]), sum(map(len, self.rows.values()))
        before, after = (((2 * n * held + total) // (2 * total)) for n in (slot, slot + 1))
        return ("validation", before) if after > before else ("train", slot - before)

    def _pick_document(self, index: int) -> tuple[Split, Document, int]:
        """Return the split, the document, and how many earlier plans used it."""
        slot, place = divmod(index, self.per_document)
        split, before = self._split_of(slot)
        rows = self.rows[split]
        rounds, row = divmod(before, len(rows))
        document, use = self.library.document(int(rows[row])), rounds * self.per_document + place
        if place and place >= len(self._list_starts(document)):  # it is too short: one far from it takes its place
            further = place * -(-len(rows) // self.per_document)
            document, use = self.library.document(int(rows[(row + further) % len(rows)])), -1 - rounds
        return split, document, use

    def _pick_focus(self, document: Document | Passage, use: int, purpose: str) -> tuple[int, int]:
        """Return the span of a few sentences that earlier plans with the same purpose did not use, while there are any.

        Use -1 is the last of them.
        """
        chunks = self._list_starts(document)
        key = f"{self.seed}/{document.id}" + (f"/{purpose}" if purpose else "")
        shuffled = random.Random(key).sample(chunks, len(chunks))
        return shuffled[use % len(shuffled)]

    def _list_starts(self, document: Document | Passage) -> list[tuple[int, int]]:
        """Return the spans of a few sentences each that a dialog on a document can start from.

        Code, contents, headings and other lines of a few words are among them where a document has nothing else, as is
        what is left in English of a translation, and notices that many documents share. None goes on behind a heading.
        """
        chunks: list[tuple[int, int]] = []
        if self.topics:
            chunks = [match.span() for match in _LINE.finditer(document.text)]
        else:
            opened: int | None = None  # where a heading, or what ends in a colon, begins: it is of what follows
            for start, end in prose(document.text):
                first, opened = start if opened is None else opened, None
                if document.text[end - 1] in ":：" or is_heading(document.text[start:end]):
                    opened = first
                elif chunks and end - chunks[-1][0] <= FOCUS_CHARS and not is_heading(document.text[first:end]):
                    chunks[-1] = (chunks[-1][0], end)
                else:
                    chunks.append((first if end - first <= FOCUS_CHARS else start, end))
            chunks = chunks or list(prose(document.text))
            chunks = [span for span in chunks if self._tells(document.text[slice(*span)])] or chunks
            own = languages().documents
            chunks = [span for span in chunks if not is_left_in_english(document.text[slice(*span)], own)] or chunks
        return chunks

    @cached_property
    def _notices(self) -> frozenset[str]:
        """The sentences that several of some documents share: licences, disclaimers, the dates of an export."""
        places = np.linspace(0, len(self.library) - 1, min(_SAMPLE, len(self.library)))
        texts = (self.library.document(round(place)).text for place in places)
        edges = (text if len(text) <= 2 * _EDGES else f"{text[:_EDGES]}\n\n{text[-_EDGES:]}" for text in texts)
        found = Counter(each for text in edges for each in {text[start:end] for start, end in prose(text)})
        return frozenset(each for each, count in found.items() if count >= _SHARED)

    def _tells(self, text: str) -> bool:
        """Return True if a line of the text tells something, which isn't what many documents tell."""
        own = (text[start:end] for start, end in sentences(text))
        lines = (line for each in own if each not in self._notices for line in each.split("\n"))
        return any(len(words(line)) >= _TELLING and not is_heading(line) for line in lines)

    def _pick_new_focus(self, split: Split, source: Passage | str, focus: str, draw: random.Random) -> str:
        """Return a few sentences, below their title, of another document, or where none is searched, of the source.

        They are others than the focus, if there are any.
        """
        document: Document | Passage
        if self.searches or isinstance(source, str):
            rows = self.rows[split]
            at = int(draw.random() * len(rows))
            document = self.library.document(int(rows[at]))
            if not isinstance(source, str) and document.id == source.document_id:
                document = self.library.document(int(rows[(at + 1) % len(rows)]))
        else:
            document = source
        use = int(draw.random() * len(document.text))
        texts = [document.text[slice(*self._pick_focus(document, use + more, "switch"))] for more in (0, 1)]
        text = next((text for text in texts if text != focus), texts[0])
        return put_title(document.title, text)

    def _cut_window(self, document: Document, focus: tuple[int, int]) -> Passage:
        """Return the whole document, or the sentences around the focus that fit the window."""
        start, end = 0, len(document.text)
        spans = sentences(document.text)
        if has_more_tokens(document.text, max(0, self.window - NUMBER_TOKENS * len(spans))):

            def size(number: int) -> int:  # computed only near the focus: the document may be a book
                return NUMBER_TOKENS + count_tokens(document.text[slice(*spans[number])])

            first, last = bisect_left(spans, (focus[0], 0)), bisect_left(spans, (focus[1], 0)) - 1
            used = sum(map(size, range(first, last + 1)))
            while True:
                nearest = [i for i in (last + 1, first - 1) if 0 <= i < len(spans) and used + size(i) <= self.window]
                if not nearest:
                    break
                used += size(nearest[0])
                first, last = min(first, nearest[0]), max(last, nearest[0])
            start, end = spans[first][0], spans[last][1]
        return passage(document, start, end)
