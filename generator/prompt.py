"""What of a dialog goes into a prompt: the documents with numbered sentences, and the dialog so far.

Both only ever grow at their end, so that the prompt of a later call starts like that of an earlier one and a
server's prefix cache holds it (`docs/decisions.md`). The numbers are the evidence pointers: a model names a
number, and the span it stands for is verbatim by construction. Knows nothing of tasks or models.
"""

import re
from functools import cached_property

from generator.passages import sentences
from generator.schema import Evidence, Passage, Record, Turn

_TAG = re.compile(r"<(?=\s*/?\s*(?:documents?|dialog|task)\b)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def harmless(text: str) -> str:
    """Text with our own delimiters made harmless, so that no document or reply can close a section of the prompt."""
    return _TAG.sub("‹", text)


def quote(text: str) -> str:
    """Text as it stands in a prompt: harmless, and on one line."""
    return _SPACE.sub(" ", harmless(text)).strip()


class Documents(Record):
    """The passages a prompt is grounded on, in order of first retrieval, sentences numbered from 1 throughout."""

    passages: tuple[Passage, ...]

    @cached_property
    def spans(self) -> tuple[tuple[Passage, int, int], ...]:
        """(passage, start, end) of each numbered sentence; offsets in characters of the passage."""
        return tuple((p, start, end) for p in self.passages for start, end in sentences(p.text))

    def render(self) -> str:
        """The `<documents>` section."""
        lines, number = ["<documents>"], 0
        for p in self.passages:
            title = quote(p.title).replace('"', "'")
            lines.append(f'<document title="{title}">' if title else "<document>")
            for start, end in sentences(p.text):
                number += 1
                lines.append(f"[{number}] {quote(p.text[start:end])}")
            lines.append("</document>")
        return "\n".join([*lines, "</documents>"])

    def evidence(self, numbers: list[int]) -> tuple[Evidence, ...]:
        """The sentences behind `numbers`, each once, in the order named; numbers out of range are an IndexError."""
        spans = [self.spans[number - 1] for number in dict.fromkeys(numbers)]
        return tuple(Evidence(passage_id=p.id, start=start, end=end, text=p.text[start:end]) for p, start, end in spans)


class Conversation(Record):
    """The turns so far."""

    turns: tuple[Turn, ...] = ()

    def render(self) -> str:
        """The `<dialog>` section."""
        said = [f"User: {quote(t.query)}\nAgent: {quote(t.answer)}" for t in self.turns]
        return "\n".join(["<dialog>", *said, "</dialog>"])
