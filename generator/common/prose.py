"""Find the sentences that tell something: no headings, code, menus, cross-references, or lists of sources."""

import re
from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter

from generator.common.language import languages
from generator.common.scripts import count_words, ends_in_question_mark, words
from generator.common.sentences import find_code, is_heading, sentences
from generator.schema import Passage

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
# That a question can start from. Of 1,654 sentences that people cite none has fewer, or only points elsewhere.
_LEAST_WORDS = 2
_LEAST_TELLING = 3  # words: “Yes, certainly.” needs the question before it
_ASKED = 16  # words of a question, at most; in more a page has run one into what it tells: “Open till 5 Where is it?”
_MENU, _MARK = 8, re.compile(r"[.,;!?](?:\s|$)")  # words with a capital letter that a menu has; what parts a sentence


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


def prose(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the sentences that a question can start from, else of all.

    These are no code, menu, source in a list of them, reference to another place, or single word.
    """
    code, spans = [(0, 0), *find_code(text)], sentences(text)
    line = before = 0  # where the line of the sentence before began, and that sentence: a line may be all of a book

    def is_prose(start: int, end: int) -> bool:
        nonlocal line, before
        line, before = max(line, text.rfind("\n", before, start) + 1), start
        in_code = start < code[bisect_right(code, start, key=itemgetter(0)) - 1][1]
        cites = _SOURCE_LINE.match(text, line) or _SOURCE.search(text, start, end)
        sentence = text[start:end]
        points = languages().documents.matches("cross_reference", sentence)
        return not (in_code or cites or points or is_menu(sentence) or count_words(sentence) < _LEAST_WORDS)

    return tuple(span for span in spans if is_prose(*span)) or spans


def is_menu(sentence: str) -> bool:
    """Return True for the links of a web page: a run of words without a mark, most of them with a capital letter."""
    letters = [word.lstrip("“\"'(")[:1] for word in sentence.split()]
    few_marks = len(_MARK.findall(sentence)) * 10 <= len(letters)
    capitals, small = (sum(map(test, letters)) for test in (str.isupper, str.islower))
    return capitals >= _MENU and small * 2 < capitals and few_marks and sentence[-1] not in ".!?:"
