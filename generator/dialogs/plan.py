"""What dialog to make next. A plan is a pure function of the run's seed and the plan's number, made before any call.

So the same configuration gives the same plans at any concurrency, and a run can be continued. Dialogs on one document
stand next to each other, for the server's prefix cache; each starts from sentences that the ones before did not.
"""

import hashlib
import random
import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from generator.common.passages import count_tokens, has_more_tokens, passage, sentences
from generator.corpora.library import Library
from generator.dialogs.first_questions import Opening
from generator.dialogs.focus import FOCUS_CHARS
from generator.schema import Document, Passage, Split, Turns
from taxonomy import QuestionType, Taxonomy, first_type, turn_types

# Of the number in brackets that stands before every sentence of a prompt.
NUMBER_TOKENS = 3


@dataclass(frozen=True)
class Plan:
    """One dialog to be made.

    `source` is what the first question comes from (in Algorithm 1, every turn): the document, or as much of it around
    `focus` as a prompt holds; or it is the question itself, if there already is one.
    """

    dialog_id: str
    seed: int
    split: Split
    kinds: tuple[QuestionType, ...]
    source: Passage | str
    focus: str

    @property
    def about(self) -> str:
        """The same for dialogs that share much of their prompts: the document, if there is one."""
        return self.dialog_id if isinstance(self.source, str) else self.source.document_id


class Planner:
    """Makes plan number `index`.

    Args:
        library: the documents.
        validation: for each document row, whether it belongs to the validation split.
        taxonomy: the question types and their shares.
        turns: the number of turns of a dialog.
        seed: of the run.
        per_document: dialogs in a row on the same document.
        window: tokens (`generator.common.passages.count_tokens`) of a document, sentences numbered, that a prompt may hold.
        openings: the first questions, one for each plan; without any they are asked of the documents.
    """

    def __init__(
        self,
        library: Library,
        validation: np.ndarray,
        taxonomy: Taxonomy,
        turns: Turns,
        seed: int,
        per_document: int,
        window: int,
        openings: Sequence[Opening] = (),
    ) -> None:
        self.library, self.taxonomy, self.turns, self.seed = library, taxonomy, turns, seed
        self.per_document, self.window, self.openings = per_document, window, openings
        order = np.random.default_rng(seed).permutation(len(library))
        self.rows: dict[Split, np.ndarray] = {
            "train": order[~validation[order]],
            "validation": order[validation[order]],
        }

    @property
    def limit(self) -> int:
        """How many plans there can be."""
        return len(self.openings) or sys.maxsize

    def plan(self, index: int) -> Plan:
        """Plan number `index`, from 0."""
        draw = random.Random(f"{self.seed}/{index}")
        source: Passage | str
        if self.openings:
            opening = self.openings[index]
            split, _ = self._split(index)
            first = next(share.type for share in self.taxonomy.first if share.type.name == opening.question_type)
            source, name, focus = opening.query, opening.query, ""
        else:
            split, document, use = self._document(index)
            first = first_type(self.taxonomy, self.seed, index)
            span = self._focus(document, use)
            source, name = self._window(document, span), document.id
            focus = "" if self.taxonomy.focus == "none" else document.text[slice(*span)]
        turns = first.turns or draw.randint(self.turns.least, self.turns.most)
        return Plan(
            dialog_id=hashlib.sha256(f"{self.seed}/{index}/{name}".encode()).hexdigest()[:16],
            seed=draw.getrandbits(31),
            split=split,
            kinds=turn_types(self.taxonomy, self.seed, index, first, turns),
            source=source,
            focus=focus,
        )

    def _split(self, slot: int) -> tuple[Split, int]:
        """The split of slot number `slot`, and how many slots before it are of that split.

        Validation comes round evenly: after n slots, as many of them as the documents' share of it, rounded.
        """
        held, total = len(self.rows["validation"]), len(self.library)
        before, after = (((2 * n * held + total) // (2 * total)) for n in (slot, slot + 1))
        return ("validation", before) if after > before else ("train", slot - before)

    def _document(self, index: int) -> tuple[Split, Document, int]:
        """The split, the document, and how many earlier plans used it."""
        slot, place = divmod(index, self.per_document)
        split, before = self._split(slot)
        past, at = divmod(before, len(self.rows[split]))
        return split, self.library.document(int(self.rows[split][at])), past * self.per_document + place

    def _focus(self, document: Document, use: int) -> tuple[int, int]:
        """A few sentences (a span of the document) that earlier plans did not use, while there are any."""
        chunks: list[tuple[int, int]] = []
        for start, end in sentences(document.text):
            if chunks and end - chunks[-1][0] <= FOCUS_CHARS:
                chunks[-1] = (chunks[-1][0], end)
            else:
                chunks.append((start, end))
        shuffled = random.Random(f"{self.seed}/{document.id}").sample(chunks, len(chunks))
        return shuffled[use % len(shuffled)]

    def _window(self, document: Document, focus: tuple[int, int]) -> Passage:
        """The whole document, or the sentences around the focus that fit the window."""
        start, end = 0, len(document.text)
        spans = sentences(document.text)
        if has_more_tokens(document.text, max(0, self.window - NUMBER_TOKENS * len(spans))):

            def size(number: int) -> int:  # only of those near the focus: there may be a whole book of others
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
