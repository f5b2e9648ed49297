"""Split passages into sentences, as exact character spans of their text."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from generator.common.language import languages, load_language
from generator.common.scripts import UNSPACED

LONGEST_SENTENCE = 600
# A line is segmented in chunks of so many characters, since segmentation takes quadratic time in some scripts; the
# last part of a chunk only serves as context, and is segmented again with the next one.
_AT_ONCE, _AFTER = 6 * LONGEST_SENTENCE, LONGEST_SENTENCE
_LONG = 100_000
_LINE_BREAK = re.compile(r"\n\s*")
# also “2.17.”, “## 2.17.”, “# Chapter 2.” and “Table 10.6.”
_LIST_MARKER = re.compile(r"\s*(?:(?:#{1,6} (?:\w+ )?)?(?:\w{1,3}\.)*\w{1,3}[.)]|[A-Z]\w+ (?:\d{1,3}\.){2,})\s*")
_HEADING = re.compile(r"#{1,6} ")
# “See scrapy.http.Response” goes on behind its dots, and “after controlled burns.Wildland fires” doesn't.
_NAME_BEFORE = re.compile(r"(?:(?<!\S)|_\w*|[a-z][A-Z]\w*|[^\W\d]\w*\.\w+)\.$")
_NAME_AFTER = re.compile(r"[ºª_*(){}\[\]/$<|]|\w*_|\w*[a-z][A-Z]|\w+\(|\w+\.\w|[A-Z]\.")
# “signal.SIGINT: …” on a line of its own, “exception queue.Empty: …”: no sentence is one word in small letters.
_ALONE_BEFORE = re.compile(r"^\W*(?:(?:class|exception) )?[a-z]\w*\.$", re.MULTILINE)
_MODULE_BEFORE = re.compile(r"(?<![\w.])[a-z]\w*\.$")
_FILE_BEFORE, _FILE_TYPE = re.compile(r"(?<!\S)[A-Z][\w-]+\.$"), re.compile(r"[A-Z]{2,3}\b")  # “Makefile.PL”
# A mark that is meant as such ends nothing: “A '?' (not in brackets) matches …”, “#! line”, “!/bin”.
_NAMED_MARK = re.compile(r"(?<!\S)(?:[(\[]*[\"'“‘`][.!?]+[\"'”’`][)\]]*\s*|#!\s*|[\"'“‘`]?[.!?]+)$")
_LONGEST_NAME, _ABBREVIATION = 60, 16
_INITIAL = re.compile(r"(?<!\w)(?:[^\W\d_]|[A-Z][a-z]|\d{1,3})\.\s+$")  # “a las 9 a. m. y”, “3. katta”, “An. gambiae”
# A unit without a full stop of its own, where a sentence ends: “within 24 h. Plasma”.
_AFTER_UNIT = re.compile(r"(?:\d\s?(?:[dghlmsy]|[ckm][glm]|min)|\w/(?:[dghlmsy]|min))\.\s+(?=[A-Z]\w|A\s)")
# What sentencex takes for brackets, and no sentence ends in: “(b)” and “(CI)”, some of which it takes for the only
# starts, and “<”, whose other end it looks for.
_NO_BRACKETS = re.compile(r"\(\w{1,16}\)|<(?=[\s\d.=])")
_WITHOUT = str.maketrans("()<", "===")
_START_AFTER_STOP = re.compile(r"(?<=[。！？])[\da-z]")
_DIGIT_AFTER_WORD = re.compile(r"(?<=[a-zäöüß]{3}\. )\d")  # “… eine Brücke leiten. 640 Arbeiter …”
# Sentencex pairs straight quotation marks as they come: behind a quotation that a passage cuts, all others would turn.
# Where no spaces are written they are beside others: “…为"LANG=C"。"LANG=ja"是…”.
_BESIDE = rf"[{UNSPACED}。！？、，；：]"
_OPENING = re.compile(rf'(?:(?<![^\s(\[{{,:=–—-])"(?=\S)|(?<={_BESIDE})"(?=[!-~]))')
_CLOSING = re.compile(rf'"(?!\w)|(?<=[!-~])"(?={_BESIDE})')
_QUOTE, _WORDS = re.compile(r"[\"“”„«»‹›「」『』]"), re.compile(r"\w")
# Of a sentence before: “… they say.” [Anarchy, p. 30] That is …”, and the second mark of “… called ""yes."" He …”.
_BEHIND = re.compile(r'\[[^\[\]\n]*\bpp?\. ?\d[^\[\]\n]*\]\s*|(?<=["”])["”](?!\w)\s*')
_FENCE = re.compile(r"^```([^`\n]*)$", re.MULTILINE)
_CUT_FENCE = re.compile(r"(?<=\n\n)```\Z")  # no code ends in an empty line
_ONE_SENTENCE = re.compile(r"[\w ,'’-]*[.!?]?\s*")  # no mark in it ends a sentence
_PIECE = re.compile(rf"\S(?:.{{0,{LONGEST_SENTENCE - 2}}}\S)?(?!\S)|\S{{{LONGEST_SENTENCE}}}", re.DOTALL)


def find_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of blocks of code with their fences, as Markdown writes them; a passage may cut one.

    What ends a block has no language behind its marks; so has its beginning in some texts, where two follow each other,
    and at the end of a passage, which may cut it before the language.
    """
    fences = [
        (fence.start(), fence.end(), fence[1].strip() or _CUT_FENCE.match(text, fence.start()))
        for fence in _FENCE.finditer(text)
    ]
    opened: int | None = None
    for number, (start, end, language) in enumerate(fences):
        if opened is not None:
            yield opened, end
            opened = None
        elif language or (number + 1 < len(fences) and not fences[number + 1][2]):
            opened = start
        elif number == 0:  # it began before the passage
            yield 0, end
    if opened is not None:
        yield opened, len(text)


def is_heading(sentence: str) -> bool:
    """Return True for a heading as Markdown writes it, which tells nothing by itself."""
    return _HEADING.match(sentence) is not None


def sentences(text: str, language: str = "") -> tuple[tuple[int, int], ...]:
    """Return the spans (start, end; characters) of the sentences of `text`, without surrounding white space.

    They are in order, don't overlap, and cover everything except white space. Headings, list items and table rows,
    each on its own line, are sentences, as is a block of code; a line that starts in lower case continues the one
    before. So is a quotation, unless it is longer than 600 characters, as is no sentence: those are cut between words.

    Args:
        language: ISO 639 code; empty: that of the documents.
    """
    language = language or languages().documents.code
    # Every prompt of a dialog numbers the sentences of the same texts; of long texts, few are worth the memory.
    return (_of_long if len(text) > _LONG else _of_short)(text, language)


def _sentences(text: str, language: str) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    known = next((each for each in languages() if each.code == language), None) or load_language(language)
    no_end, ends = known.pattern("no_end"), [_AFTER_UNIT, *filter(None, [known.pattern("end")])]
    for block_start, block_end, is_code in _blocks(text):
        if is_code or _ONE_SENTENCE.fullmatch(text, block_start, block_end):
            spans.extend(piece.span() for piece in _PIECE.finditer(text, block_start, block_end))
            continue
        start = block_start
        while start < block_end:
            end = min(start + _AT_ONCE, block_end)
            # Only the starts of sentences are used, so that nothing between two of them is lost.
            begun = (start + at for at in _find_starts(text[start:end], language))
            begun = (at for at in begun if not (_is_in_name(text, at) or _is_abbreviated(text, at, no_end)))
            begun = (at for at in begun if text[at] != "|")  # of a row, “Qt | Graphics appl. | Draws”
            begun = (at for at in begun if not _NAMED_MARK.search(text[max(0, at - _ABBREVIATION) : at]))
            begun = (behind.end() if (behind := _BEHIND.match(text, at, end)) else at for at in begun)
            places = sorted({*begun, *(each.end() for of in ends for each in of.finditer(text, start, end))})
            starts = [start, *(at for at, after in pairwise([*places, end]) if _WORDS.search(text, at, after)), end]
            if start == block_start and len(starts) > 2 and _LIST_MARKER.fullmatch(text, starts[0], starts[1]):
                del starts[1]
            pieces = [piece.span() for first, last in pairwise(starts) for piece in _PIECE.finditer(text, first, last)]
            # A sentence that ends near the cut could end elsewhere with more context: it is segmented again.
            sure = [piece for piece in pieces if piece[1] <= end - _AFTER or end == block_end]
            spans.extend(sure)
            start = pieces[len(sure)][0] if len(sure) < len(pieces) else end
    return tuple(spans)


def _find_starts(text: str, language: str) -> Iterator[int]:
    """Yield where each sentence but the first begins; those of a quotation only if together they are too long for one.

    Sentencex sees no end before a digit or small letter where no space stands between, nor before a digit in German: it
    gets a letter in its place.
    """
    from sentencex import get_sentence_boundaries

    def find(text: str) -> list[int]:
        return [boundary["start_index"] for boundary in get_sentence_boundaries(language, text)[1:]]

    digit = _DIGIT_AFTER_WORD if language == "de" else _START_AFTER_STOP
    text = _NO_BRACKETS.sub(lambda found: found[0].translate(_WITHOUT), digit.sub("一", text))
    text = _CLOSING.sub("”", _OPENING.sub("“", text))
    starts = find(text)
    for start, end in pairwise([0, *starts, len(text)]):
        if start:
            yield start
        if end - start > LONGEST_SENTENCE and _QUOTE.search(text, start, end):
            yield from (start + at for at in find(_QUOTE.sub(" ", text[start:end])))


def _is_in_name(text: str, at: int) -> bool:
    """Return True for a place behind the dot of a name, where no sentence begins."""
    first = max(0, at - _LONGEST_NAME)
    before, after = text[first:at], text[at : at + _LONGEST_NAME]
    if not before.endswith("."):
        return False
    is_file = _FILE_TYPE.match(after) and _FILE_BEFORE.search(before)
    if _NAME_BEFORE.search(before) or _NAME_AFTER.match(after) or is_file or _ALONE_BEFORE.search(text, first, at):
        return True
    # “logging.Handler” where “logging.info()” is told of, too
    module = _MODULE_BEFORE.search(before)
    return bool(module and re.search(rf"(?<![\w.]){re.escape(module[0])}[a-z_]\w", text))


def _is_abbreviated(text: str, at: int, no_end: re.Pattern[str] | None) -> bool:
    """Return True for a place behind an abbreviation that sentencex doesn't know, where no sentence begins."""
    start = max(0, at - _ABBREVIATION)
    if not text[start:at].rstrip().endswith("."):
        return False
    found = no_end.finditer(text, start, at + _ABBREVIATION) if no_end else ()
    return any(each.end() == at for each in found) or bool(text[at].islower() and _INITIAL.search(text, start, at))


_of_short, _of_long = lru_cache(maxsize=4096)(_sentences), lru_cache(maxsize=4)(_sentences)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the spans of blocks of code and of lines, each with the wrapped lines that continue it; and which it is."""
    at = 0
    for start, end in find_code(text):
        yield from _lines(text, at, start)
        yield start, end, True
        at = end
    yield from _lines(text, at, len(text))


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    for gap in _LINE_BREAK.finditer(text, start, end):
        wrapped = gap.group().count("\n") == 1 and text[gap.end() : gap.end() + 1].islower()
        if not wrapped or _HEADING.match(text, start):
            yield start, gap.start(), False
            start = gap.end()
    yield start, end, False
