"""Documents into passages, passages into sentences, all as exact character spans of the text they came from."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

from generator.errors import ConfigError
from generator.schema import Document, Passage

# Thai, Lao, Burmese, Khmer, Chinese and Japanese: their letters stand for words, which no spaces part.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
TOKEN = re.compile(rf"[^\W{_UNSPACED}]{{1,64}}|[^\w\s]|[{_UNSPACED}]")
LONGEST_SENTENCE = 600
# Characters of a line that are looked at together for its sentences, since finding them takes time by the square of
# their number in some scripts; and how many of those are only there to tell where the sentences before them end.
_AT_ONCE, _AFTER = 6 * LONGEST_SENTENCE, LONGEST_SENTENCE
_LONG = 100_000

_LINE_BREAK = re.compile(r"\n\s*")
_LIST_MARKER = re.compile(r"\s*\w{1,3}[.)]\s*")
_PIECE = re.compile(rf"\S(?:.{{0,{LONGEST_SENTENCE - 2}}}\S)?(?!\S)|\S{{{LONGEST_SENTENCE}}}", re.DOTALL)


def count_tokens(text: str) -> int:
    """The number of words and punctuation marks in `text`, as `windows` counts them."""
    return sum(1 for _ in TOKEN.finditer(text))


def has_more_tokens(text: str, count: int) -> bool:
    """Whether `text` has more tokens than `count`; looks no further than it must."""
    return next(islice(TOKEN.finditer(text), count, None), None) is not None


def windows(text: str, size: int = 512, overlap: int = 100) -> Iterator[tuple[int, int]]:
    r"""Spans (start, end; characters) of the passages of `text`.

    Each holds exactly `size` tokens (the last one may hold fewer) and shares exactly `overlap` with the one before
    it (Lee et al. 2024, section 2.4.2). A token is a word or a punctuation mark, `\w+|[^\w\s]`, and not a piece of
    some model's vocabulary: passages then need no download and are the same whichever model reads them. Of scripts
    that write no spaces between words each letter is a token, and of what is longer than any word each 64 letters:
    no passage is endless.

    Raises:
        ConfigError: unless `size > overlap >= 0`.
    """
    if not size > overlap >= 0:
        raise ConfigError(
            f"passages of {size} tokens can't overlap by {overlap}: give an overlap of 0 or more and below the size"
        )
    held: list[tuple[int, int]] = []  # of one window, so that a text of any length takes no more memory
    for match in TOKEN.finditer(text):
        if len(held) == size:  # and there is more: else a further window would only repeat the end of this one
            yield held[0][0], held[-1][1]
            held = held[size - overlap :]
        held.append(match.span())
    if held:
        yield held[0][0], held[-1][1]


def passage(document: Document, start: int, end: int) -> Passage:
    """The piece of `document` between two character offsets, as a record."""
    return Passage(
        id=f"{document.id}:{start}-{end}",
        document_id=document.id,
        title=document.title,
        text=document.text[start:end],
        url=document.url,
        start=start,
        end=end,
    )


def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Spans (start, end; characters) of the sentences of `text`, without the white space around them.

    They are in order, don't overlap, and cover all that isn't white space. Headings, list items and table rows,
    each on a line of its own, are sentences of their own; a line that goes on in lower case is a wrapped one.
    What is longer than 600 characters is cut between words.
    """
    # Every prompt of a dialog numbers the sentences of the same texts; of whole books, a few are enough to remember.
    return _of_long(text) if len(text) > _LONG else _of_short(text)


def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    from sentencex import get_sentence_boundaries

    spans: list[tuple[int, int]] = []
    for block_start, block_end in _blocks(text):
        start = block_start
        while start < block_end:
            end = min(start + _AT_ONCE, block_end)
            # Only where sentences start is taken over, so that nothing between two of them can get lost.
            found = get_sentence_boundaries("en", text[start:end])
            starts = [start, *(start + boundary["start_index"] for boundary in found[1:]), end]
            if start == block_start and len(starts) > 2 and _LIST_MARKER.fullmatch(text, starts[0], starts[1]):
                del starts[1]
            pieces = [piece.span() for first, last in pairwise(starts) for piece in _PIECE.finditer(text, first, last)]
            # What ends near the cut could end elsewhere with what follows: it is read again with that.
            sure = [piece for piece in pieces if piece[1] <= end - _AFTER or end == block_end]
            spans.extend(sure)
            start = pieces[len(sure)][0] if len(sure) < len(pieces) else end
    return tuple(spans)


_of_short, _of_long = lru_cache(maxsize=4096)(_sentences), lru_cache(maxsize=4)(_sentences)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans of lines, each with the wrapped lines that continue it."""
    start = 0
    for gap in _LINE_BREAK.finditer(text):
        wrapped = gap.group().count("\n") == 1 and text[gap.end() : gap.end() + 1].islower()
        if not wrapped:
            yield start, gap.start()
            start = gap.end()
    yield start, len(text)
