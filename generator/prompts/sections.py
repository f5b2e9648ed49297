"""Render the parts of a prompt that its tasks share: the documents with numbered sentences, and the dialog so far.

Both only grow at their end, so the prompt of a later call starts like that of an earlier one, and a server's prefix
cache holds it (`docs/decisions.md`). The numbers are the evidence pointers: a model names a number, and the sentence
behind it is verbatim by construction. Knows nothing of tasks or models.
"""

import re
from collections.abc import Iterable
from functools import cached_property

from generator.common.language import cached_by_language
from generator.common.sentences import find_code, sentences
from generator.schema import Evidence, Passage, Record, Turn

# With anything between bracket and word, invisible characters too; one character class, so matching takes linear time.
_TAG = re.compile(r"<(?=[^\w<>]*(?:documents?|dialog|task)\b)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def neutralize(text: str) -> str:
    """Return the text with the prompt's own tags disarmed, so that no document or reply can close a section."""
    return _TAG.sub("‹", text)


def quote(text: str) -> str:
    """Return the text as it stands in a prompt: on one line, with the prompt's own tags disarmed."""
    return _SPACE.sub(" ", neutralize(text)).strip()


def _quote_lines(text: str) -> str:
    return "\n  ".join(neutralize(text).strip().splitlines())


class Documents(Record):
    """The passages of a prompt, in order of first retrieval; sentences are numbered from 1 throughout."""

    passages: tuple[Passage, ...]

    @cached_property
    def spans(self) -> tuple[tuple[Passage, int, int], ...]:
        """Return (passage, start, end) of each numbered sentence; offsets in characters of the passage."""
        return tuple((p, start, end) for p in self.passages for start, end in sentences(p.text))

    def render(self) -> str:
        """Return the `<documents>` section."""
        parts, first = ["<documents>"], 1
        for p in self.passages:
            parts.append(_render_passage(p.title, p.text, first))
            first += len(sentences(p.text))
        return "\n".join([*parts, "</documents>"])

    def evidence(self, numbers: list[int]) -> tuple[Evidence, ...]:
        """Return the sentences behind `numbers`, each once, in the order given.

        Raises:
            IndexError: a number is out of range.
        """
        spans = [self.spans[number - 1] for number in dict.fromkeys(numbers)]
        return tuple(Evidence(passage_id=p.id, start=start, end=end, text=p.text[start:end]) for p, start, end in spans)


@cached_by_language(4096)  # every prompt of a dialog shows the same passages again
def _render_passage(title: str, text: str, first: int) -> str:
    """Return the `<document>` section of a passage whose sentences are numbered from `first`."""
    name = quote(title).replace('"', "'")
    numbered = (f"[{number}] {sentence}" for number, sentence in enumerate(_quote_sentences(text), first))
    return "\n".join([f'<document title="{name}">' if name else "<document>", *numbered, "</document>"])


@cached_by_language(4096)  # other prompts show the same passage with other numbers
def _quote_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text; code has its lines, and an item of a list within another is indented."""
    code = [*find_code(text)]

    def show(start: int, end: int) -> str:
        if any(first <= start < last for first, last in code):
            return _quote_lines(text[start:end])
        indent = text[text.rfind("\n", 0, start) + 1 : start]
        return ("" if indent.strip(" ") else indent) + quote(text[start:end])

    return tuple(show(start, end) for start, end in sentences(text))


def said_in(turns: Iterable[Turn]) -> list[str]:
    """Return all questions and answers of a dialog, in their order."""
    return [text for turn in turns for text in (turn.query, turn.answer)]


class Conversation(Record):
    """The turns so far; of a turn without an answer the question alone.

    Attributes:
        lines: show the lines of a text, not one line; the others than the first are indented, so none is like a turn.
    """

    turns: tuple[Turn, ...] = ()
    lines: bool = False

    def render(self) -> str:
        """Return the `<dialog>` section."""
        shown = _quote_lines if self.lines else quote
        parts = ["<dialog>"]
        for t in self.turns:
            parts += [f"User: {shown(t.query)}", *([f"Agent: {shown(t.answer)}"] if t.answer else ())]
        return "\n".join([*parts, "</dialog>"])
