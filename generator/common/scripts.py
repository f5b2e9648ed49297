"""Tell scripts apart by the code points of their letters, and cut text into words in any of them."""

import re
import unicodedata
from functools import cache
from math import ceil

# Thai, Lao, Burmese, Khmer, Chinese and Japanese, which write no spaces between words: each letter counts as a word,
# also 々, 〆 and 〇.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)


def _list_marks() -> str:
    """Return the accents, vowel signs and the like of scripts up to Balinese that stand inside words.

    Python's `\\w` has none of them, so that it cuts a Hindi word at every vowel, and one with accents of their own, as
    macOS writes “é” and Russian shows stress, at each. With them, the two invisible joiners.
    """
    marks = (chr(code) for code in range(0x0300, 0x1B80) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    return "".join(mark for mark in marks if not re.match(f"[{UNSPACED}]", mark)) + "\u200c\u200d"


MARKS = _list_marks()
# A word of at most so many letters, or more where it has marks; or a letter of a script without spaces.
WORD = rf"[^\W{UNSPACED}]{{1,64}}(?:[{MARKS}]{{1,8}}[^\W{UNSPACED}]{{0,64}}){{0,32}}|[{UNSPACED}]"
_WORD = re.compile(WORD.replace("{1,64}", "+").replace("{0,64}", "*").replace("{0,32}", "*"))
_PLAIN_WORD = re.compile(r"\w+")  # the same for plain texts, faster
_SPECIAL = re.compile("[\u0300-\u036f\u0483-\u0487\u0590-\u1b7f\u200c\u200d\u3005-\U0010ffff]")
_MARKS_ALONE = re.compile(r"(?<=\S\s)[?!:;»]+(?!\S)|(?<!\S)«(?!\S)")
_ASCII = re.compile(r"[\x00-\x7f]+")
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_RUN = re.compile(rf"([\da-zª-ɏ]+)|((?:[^\W\da-zª-ɏ]|[{MARKS}])+)")
# The Greek ones are U+037E and, as people type it, “;”.
_GREEK = "\u0370-\u03ff\u1f00-\u1fff"
QUESTION_MARK = rf"(?:[?？؟\u037e]|(?<=[{_GREEK}]);)"
_QUESTION_MARK = re.compile(QUESTION_MARK)

SCRIPTS = {
    "Latin": "A-Za-zª\u00b5-\u024f\u1e00-\u1eff",
    "Greek": _GREEK,
    "Cyrillic": "\u0400-\u052f",
    "Armenian": "\u0530-\u058f",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Tamil": "\u0b80-\u0bff",
    "Thai": "\u0e00-\u0e7f",
    "Georgian": "\u10a0-\u10ff",
    "Kana": "\u3040-\u30ff",
    "Han": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "Hangul": "\u1100-\u11ff\uac00-\ud7af",
}


def words(text: str) -> list[str]:
    """Return the words of a text in their order, case-folded and without punctuation.

    In scripts without spaces between words each letter is one.
    """
    text = _fold(text)
    return (_PLAIN_WORD if is_plain(text) else _WORD).findall(text)


def has_words(text: str) -> bool:
    """Return True if a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def has_question_mark(text: str) -> bool:
    """Return True if a text has a question mark of any script."""
    if text.isascii():
        return "?" in text
    return _QUESTION_MARK.search(text) is not None or ends_in_question_mark(text)


def ends_in_question_mark(text: str) -> bool:
    """Return True if a text's last character is a question mark of any script."""
    greek = text.endswith(";") and _letters()["Greek"].search(text)  # “Τι είναι το PostgreSQL;”
    return bool(greek or _QUESTION_MARK.match(text[-1:]))


def is_plain(text: str) -> bool:
    r"""Return True if `\w+` finds a text's words: it has no vowel signs, and no letters of scripts without spaces."""
    return text.isascii() or _SPECIAL.search(text) is None


def find_runs(text: str) -> list[tuple[str, str]]:
    """Return the runs of letters and digits of a text in their order, case-folded.

    Each is a pair of which one is empty: a run of Latin letters and digits, which is a word wherever it stands, or a
    run in other scripts.
    """
    return _RUN.findall(_fold(text))


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    # The case-folded “İ” of Turkish is an “i” with a dot that stands alone, and cut words there.
    return unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i")


def count_words(text: str, each: float | None = None) -> int:
    """Return how many words a text has between spaces, without the marks that French parts from its words.

    In scripts without spaces about as many as English has: two letters of Chinese make one, two and a half of Japanese
    (of 20 questions in both languages 2.2 make one, of ten longer ones 2.3), and four of Thai, Lao, Burmese or Khmer,
    whose vowel signs and tones are letters here (of ten Thai questions a word has 4.5). Marks are none, which stand
    between letters without a space.

    Args:
        each: how many letters of Chinese and Japanese make a word; None: whether the text has kana tells.
    """
    letters = [] if is_plain(text) else _UNSPACED_LETTER.findall(text)
    text = _MARKS_ALONE.sub("", text)
    if not letters:
        return len(text.split())
    spelt = sum(letter < "\u3000" for letter in letters)
    others = [sum(map(str.isalnum, run)) for run in _UNSPACED_LETTER.sub(" ", text).split()]
    words, digits = sum(size > 1 for size in others), others.count(1)  # “4” of “4回” is a letter beside others
    each = each or (2.5 if _letters()["Kana"].search(text) else 2)
    return words + ceil((len(letters) - spelt + digits) / each) + ceil(spelt / 4)


def is_unspaced(text: str) -> bool:
    """Return True if most of the text's letters are of scripts that write no spaces between words."""
    if text.isascii():
        return False
    letters = sum(map(str.isalpha, text))
    return 2 * len(_UNSPACED_LETTER.findall(text)) > letters


def count_scripts(text: str) -> dict[str, int]:
    """Return how many letters a text has of each script that it has any of; `other` of those not known by name."""
    others = "".join(letter for letter in _ASCII.sub("", text) if letter.isalpha())
    counts = {name: len(letters.findall(others)) for name, letters in _letters().items()} if others else {}
    counts["other"] = len(others) - sum(counts.values())
    counts["Latin"] = counts.get("Latin", 0) + sum(map(str.isalpha, text)) - len(others)
    return {name: count for name, count in counts.items() if count > 0}


@cache
def _letters() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{ranges}]") for name, ranges in SCRIPTS.items()}
