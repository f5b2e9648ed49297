"""Split documents into passages, as exact character spans of their text."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from generator.common.scripts import WORD, is_plain
from generator.schema import Document, Passage

TOKEN, _PLAIN_TOKEN = re.compile(rf"(?:{WORD})|[^\w\s]"), re.compile(r"\w{1,64}|[^\w\s]")  # the latter is faster
# From two characters before what may be cut: “6|.3” and “6.|3”.
_INSIDE_NUMBER = re.compile(r"(?s:.)\d[.,:]\d|\d[.,:]\d")
_SENTENCE_END = re.compile(r"""\n\s*$|[.!?…؟।][)\]"'”’»]*\s+$|[。！？][」』）”]*\s*$""")


def find_tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the words and punctuation marks of a text; see `windows`."""
    return (_PLAIN_TOKEN if is_plain(text) else TOKEN).finditer(text)


def count_tokens(text: str) -> int:
    """Return the number of words and punctuation marks in `text`, as `windows` counts them."""
    return sum(1 for _ in find_tokens(text))


def has_more_tokens(text: str, count: int) -> bool:
    """Return whether `text` has more tokens than `count`, reading no further than needed."""
    return next(islice(find_tokens(text), count, None), None) is not None


def windows(text: str, size: int, overlap: int, slack: int = 0) -> Iterator[tuple[int, int]]:
    r"""Yield the spans (start, end; characters) of the passages of `text`.

    Each holds `size` tokens (the last one may hold fewer) and shares `overlap` with the one before it (Lee et al. 2024,
    section 2.4.2). A cut that would divide a number (36|.3) is made before it. A token is a word or a punctuation mark,
    `\w+|[^\w\s]` with the vowel signs of the word's script, not a piece of a model's vocabulary: passages need no
    tokenizer and are the same for every model. In scripts without spaces between words each letter is a token, and
    longer runs than 64 letters are split, so that no passage is endless.

    Args:
        slack: tokens by which a cut may be made earlier, so that a passage begins and ends with a sentence or a line,
            or else between words: it then has fewer tokens, and shares more.
    """
    held: list[tuple[int, int]] = []  # the tokens of one window, and the next
    least = 1  # tokens that a window has more than it shares with the one before
    for match in find_tokens(text):
        held.append(match.span())
        if len(held) > size:  # a further window would not only repeat this one's end
            end = _find_cut(text, held, size, max(least, overlap + 1), slack)
            yield held[0][0], held[end - 1][1]
            start = _find_cut(text, held, end - overlap, 1, slack)
            held, least = held[start:], end - start + 1
    if held:
        yield held[0][0], held[-1][1]


def _find_cut(text: str, tokens: Sequence[tuple[int, int]], place: int, least: int, slack: int) -> int:
    """Return the place of a token, at most `place`, before which a sentence begins, or else a word, or no number is
    divided; `least` if there is none.
    """
    places = range(place, max(least, place - slack) - 1, -1)
    for begins in (_begins_sentence, _begins_word) if slack else ():
        if found := next((each for each in places if begins(text, tokens[each][0])), None):
            return found
    while place > least and _INSIDE_NUMBER.match(text, max(0, tokens[place][0] - 2)):
        place -= 1
    return place


def _begins_sentence(text: str, at: int) -> bool:
    """Return True for a place where a sentence or a line seems to begin: no “p. 7”, nor a wrapped line."""
    if not (end := _SENTENCE_END.search(text, max(0, at - 16), at)):
        return False
    lines = end[0].count("\n")
    return lines > 1 or not (text[at].islower() or (not lines and text[at].isdigit()))


def _begins_word(text: str, at: int) -> bool:
    return text[at - 1].isspace()


def passage(document: Document, start: int, end: int, name: str | None = None) -> Passage:
    """Return the passage of `document` between two character offsets, under its usual id or `name`."""
    return Passage(
        id=name or f"{document.id}:{start}-{end}",
        document_id=document.id,
        title=document.title,
        text=document.text[start:end],
        url=document.url,
        start=start,
        end=end,
    )
