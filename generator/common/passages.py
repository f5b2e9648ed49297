"""Split documents into passages and passages into sentences, all as exact character spans of their text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from operator import itemgetter

from generator.common.language import languages, load_language
from generator.common.scripts import WORD, count_words, ends_in_question_mark, is_plain, words
from generator.schema import Document, Passage

TOKEN, _PLAIN_TOKEN = re.compile(rf"(?:{WORD})|[^\w\s]"), re.compile(r"\w{1,64}|[^\w\s]")  # the latter is faster
LONGEST_SENTENCE = 600
# A line is segmented in chunks of so many characters, since segmentation takes quadratic time in some scripts; the
# last part of a chunk only serves as context, and is segmented again with the next one.
_AT_ONCE, _AFTER = 6 * LONGEST_SENTENCE, LONGEST_SENTENCE
_LONG = 100_000

_LINE_BREAK = re.compile(r"\n\s*")
# also “2.17.”, “## 2.17.” and “# Chapter 2.”
_LIST_MARKER = re.compile(r"\s*(?:#{1,6} (?:\w+ )?)?(?:\w{1,3}\.)*\w{1,3}[.)]\s*")
_HEADING = re.compile(r"#{1,6} ")
# “See scrapy.http.Response” goes on behind its dots, and “after controlled burns.Wildland fires” doesn't.
_NAME_BEFORE = re.compile(r"(?:(?<!\S)|_\w*|[a-z][A-Z]\w*|[^\W\d]\w*\.\w+)\.$")
_NAME_AFTER = re.compile(r"[ºª_*(){}\[\]/$<|]|\w*_|\w*[a-z][A-Z]|\w+\(|\w+\.\w|[A-Z]\.")
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
_OPENING, _CLOSING = re.compile(r'(?<![^\s(\[{,:=–—-])"(?=\S)'), re.compile(r'"(?!\w)')
_QUOTE, _WORDS = re.compile(r"[\"“”„«»‹›「」『』]"), re.compile(r"\w")
# Of a sentence before: “… they say.” [Anarchy, p. 30] That is …”, and the second mark of “… called ""yes."" He …”.
_BEHIND = re.compile(r'\[[^\[\]\n]*\bpp?\. ?\d[^\[\]\n]*\]\s*|(?<=["”])["”](?!\w)\s*')
# Of a list of sources: lines that begin like “[3] QuAC”, “Feinberg, R. (1998).”, “Feinberg, Richard. 1998.” or “Choi et
# al. (2018) Eunsol Choi”, and what sentences of others have. Of 2,025 sentences that people cite none is one (ClapNQ,
# SQuAD 2.0, QuAC, CoQA, Doc2Dial).
_NAME = r"[^\W\d_][\w’'-]+"
_SOURCE_LINE = re.compile(
    rf"[ \t]*(?:[-•*] |\d{{1,3}}[.)] )?(?:\[\d{{1,3}}\]:? (?=\S)|{_NAME}(?: et\sal\.| and {_NAME}) \(\d{{4}}\w?\) [A-Z]"
    rf"|{_NAME}, (?:(?:[^\W\d_a-z]\. ?-?){{1,3}}(?:[,&(]|and\b|et al|\d{{4}})|[^.,;:\d]{{2,40}}\. \(?\d{{4}}\)?[.,]))"
)
_SOURCE = re.compile(
    r"\bIn (?:Proceedings|Advances in)\b|\b(?:ISBN|ISSN|DOI|doi|arXiv)\W{1,2}\d|\bdoi\.org\b"
    r"|\bpp\. ?\d|\bpages \d+[–-]\d"
)
# A heading of plain text: the first line of a paragraph, With Capitals Like This, and a sentence in the next line.
_CAPITAL = r"\(?[^\W\d_a-zß-ÿ][\w'’-]*\)?"
_PLAIN_HEADING = re.compile(
    rf"(?:\A|\n[^\S\n]*\n)({_CAPITAL}(?: (?:{_CAPITAL}|\w{{1,4}}|&))* {_CAPITAL})[^\S\n]*\n(?=\S[^\n]*[.!?])"
)
_LEAST_TELLING = 3  # words: “Yes, certainly.” needs the question before it
_ASKED = 16  # words of a question, at most; in more a page has run one into what it tells: “Open till 5 Where is it?”
_FENCE = re.compile(r"^```([^`\n]*)$", re.MULTILINE)
_MENU, _MARK = 8, re.compile(r"[.,;!?](?:\s|$)")  # words with a capital letter that a menu has; what parts a sentence
# From two characters before what may be cut: “6|.3” and “6.|3”.
_INSIDE_NUMBER = re.compile(r"(?s:.)\d[.,:]\d|\d[.,:]\d")
_PIECE = re.compile(rf"\S(?:.{{0,{LONGEST_SENTENCE - 2}}}\S)?(?!\S)|\S{{{LONGEST_SENTENCE}}}", re.DOTALL)


def find_tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the words and punctuation marks of a text; see `windows`."""
    return (_PLAIN_TOKEN if is_plain(text) else TOKEN).finditer(text)


def count_tokens(text: str) -> int:
    """Return the number of words and punctuation marks in `text`, as `windows` counts them."""
    return sum(1 for _ in find_tokens(text))


def has_more_tokens(text: str, count: int) -> bool:
    """Return whether `text` has more tokens than `count`, reading no further than needed."""
    return next(islice(find_tokens(text), count, None), None) is not None


def windows(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    r"""Yield the spans (start, end; characters) of the passages of `text`.

    Each holds `size` tokens (the last one may hold fewer) and shares `overlap` with the one before it (Lee et al. 2024,
    section 2.4.2). A cut that would divide a number (36|.3) is made before it. A token is a word or a punctuation mark,
    `\w+|[^\w\s]` with the vowel signs of the word's script, not a piece of a model's vocabulary: passages need no
    tokenizer and are the same for every model. In scripts without spaces between words each letter is a token, and
    longer runs than 64 letters are split, so that no passage is endless.
    """
    held: list[tuple[int, int]] = []  # the tokens of one window, and the next
    for match in find_tokens(text):
        held.append(match.span())
        if len(held) > size:  # a further window would not only repeat this one's end
            end = _find_cut(text, held, size, overlap + 1)
            yield held[0][0], held[end - 1][1]
            held = held[_find_cut(text, held, end - overlap, 1) :]
    if held:
        yield held[0][0], held[-1][1]


def _find_cut(text: str, tokens: Sequence[tuple[int, int]], place: int, least: int) -> int:
    """Return the place of a token, at most `place`, before which no number is divided; `least` if there is none."""
    while place > least and _INSIDE_NUMBER.match(text, max(0, tokens[place][0] - 2)):
        place -= 1
    return place


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


def told_in(passage: Passage) -> list[str]:
    """Return the sentences of a passage that tell something, without its title, with which the text of some begins.

    A heading tells nothing, nor does a question, unless it is long, or “Yes.” or the like follows it.
    """
    texts = [passage.text[start:end] for start, end in sentences(passage.text)]
    headings = {found[1] for found in _PLAIN_HEADING.finditer(passage.text)}
    return [
        text
        for text, after in pairwise([*texts, ""])
        if text != passage.title
        and not is_heading(text)
        and text not in headings
        and (not ends_in_question_mark(text) or count_words(text) > _ASKED or 0 < len(words(after)) < _LEAST_TELLING)
    ]


def find_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of blocks of code with their fences, as Markdown writes them; a passage may cut one.

    What ends a block has no language behind its marks; so has its beginning in some texts, where two follow each other.
    """
    fences = [(fence.start(), fence.end(), fence[1].strip()) for fence in _FENCE.finditer(text)]
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


def prose(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the sentences of `text` that are no code, menu, or source in a list of them; else of all."""
    code, spans = [(0, 0), *find_code(text)], sentences(text)
    line = before = 0  # where the line of the sentence before began, and that sentence: a line may be all of a book

    def is_prose(start: int, end: int) -> bool:
        nonlocal line, before
        line, before = max(line, text.rfind("\n", before, start) + 1), start
        in_code = start < code[bisect_right(code, start, key=itemgetter(0)) - 1][1]
        cites = _SOURCE_LINE.match(text, line) or _SOURCE.search(text, start, end)
        return not (in_code or cites or is_menu(text[start:end]))

    return tuple(span for span in spans if is_prose(*span)) or spans


def is_menu(sentence: str) -> bool:
    """Return True for the links of a web page: a run of words without a mark, most of them with a capital letter."""
    letters = [word.lstrip("“\"'(")[:1] for word in sentence.split()]
    few_marks = len(_MARK.findall(sentence)) * 10 <= len(letters)
    capitals, small = (sum(map(test, letters)) for test in (str.isupper, str.islower))
    return capitals >= _MENU and small * 2 < capitals and few_marks and sentence[-1] not in ".!?:"


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
    no_end = known.pattern("no_end")
    for block_start, block_end, is_code in _blocks(text):
        if is_code:
            spans.extend(piece.span() for piece in _PIECE.finditer(text, block_start, block_end))
            continue
        start = block_start
        while start < block_end:
            end = min(start + _AT_ONCE, block_end)
            # Only the starts of sentences are used, so that nothing between two of them is lost.
            begun = (start + at for at in _find_starts(text[start:end], language))
            begun = (at for at in begun if not (_is_in_name(text, at) or _is_abbreviated(text, at, no_end)))
            begun = (at for at in begun if not _NAMED_MARK.search(text[max(0, at - _ABBREVIATION) : at]))
            begun = (behind.end() if (behind := _BEHIND.match(text, at, end)) else at for at in begun)
            places = sorted({*begun, *(unit.end() for unit in _AFTER_UNIT.finditer(text, start, end))})
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
    before, after = text[max(0, at - _LONGEST_NAME) : at], text[at : at + _LONGEST_NAME]
    is_file = _FILE_TYPE.match(after) and _FILE_BEFORE.search(before)
    return before.endswith(".") and bool(_NAME_BEFORE.search(before) or _NAME_AFTER.match(after) or is_file)


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
