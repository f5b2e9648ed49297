"""What of a dialog goes into a prompt: the documents with numbered sentences, and the dialog so far.

Both only ever grow at their end, so that the prompt of a later call starts like that of an earlier one and a
server's prefix cache holds it (`docs/decisions.md`). The numbers are the evidence pointers: a model names a
number, and the span it stands for is verbatim by construction. Knows nothing of tasks or models.
"""

import re
from functools import cached_property, lru_cache

from generator.common.passages import sentences
from generator.schema import Evidence, Passage, Record, Turn

# Whatever stands between bracket and word, invisible characters too; in one class, so that a long gap costs no more
# than its length.
_TAG = re.compile(r"<(?=[^\w<>]*(?:documents?|dialog|task)\b)", re.IGNORECASE)
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

    @property
    def count(self) -> int:
        """How many sentences there are."""
        return sum(len(sentences(p.text)) for p in self.passages)

    def render(self) -> str:
        """The `<documents>` section."""
        parts, first = ["<documents>"], 1
        for p in self.passages:
            parts.append(_rendered(p.title, p.text, first))
            first += len(sentences(p.text))
        return "\n".join([*parts, "</documents>"])

    def evidence(self, numbers: list[int]) -> tuple[Evidence, ...]:
        """The sentences behind `numbers`, each once, in the order named; numbers out of range are an IndexError."""
        spans = [self.spans[number - 1] for number in dict.fromkeys(numbers)]
        return tuple(Evidence(passage_id=p.id, start=start, end=end, text=p.text[start:end]) for p, start, end in spans)


@lru_cache(maxsize=4096)  # every prompt of a dialog shows the same passages again
def _rendered(title: str, text: str, first: int) -> str:
    """One passage, its sentences numbered from `first`."""
    name = quote(title).replace('"', "'")
    said = (f"[{number}] {sentence}" for number, sentence in enumerate(_quoted(text), first))
    return "\n".join([f'<document title="{name}">' if name else "<document>", *said, "</document>"])


@lru_cache(maxsize=4096)  # which stand elsewhere in another prompt
def _quoted(text: str) -> tuple[str, ...]:
    """The sentences of a passage."""
    return tuple(quote(text[start:end]) for start, end in sentences(text))


class Conversation(Record):
    """The turns so far."""

    turns: tuple[Turn, ...] = ()

    def render(self) -> str:
        """The `<dialog>` section."""
        said = [f"User: {quote(t.query)}\nAgent: {quote(t.answer)}" for t in self.turns]
        return "\n".join(["<dialog>", *said, "</dialog>"])
