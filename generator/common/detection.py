"""Find the language of a text (py3langid, a naive Bayes classifier of 140 languages; its model takes 130 MB).

The model is loaded when a text is the first that it is needed for: most texts show by their words alone that they are
in the language that they should be in.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from tempfile import gettempdir
from typing import Any

from generator.common.language import ENGLISH, known_codes, load_language
from generator.common.language_file import Language
from generator.common.scripts import count_scripts, words
from generator.errors import RunError, describe

# Texts of a sample, and characters of each.
SAMPLE, BEGINNING = 40, 2000
# The share of a sample below which a corpus may be of several languages: of short texts some aren't recognised.
MOST = 0.9
# The share of stop words from which a text is in English: English texts have 0.25 to 0.45, others below 0.1.
_ENGLISH = 0.2
# A text is in another language than the expected one only if it has so many words, fewer than this share of them among
# the commonest of the expected one and no more than of the other, and the detector is as sure as this.
LEAST_WORDS, PLAIN, SURE = 6, 0.3, 0.95
# Letters of a foreign script, and their share of all letters, from which a text isn't in the language.
LEAST_LETTERS, FOREIGN = 8, 0.3
# A language that isn't written in Latin letters may have so large a share of them, in names and the like; and more
# where fewer of the words than this share are common ones: “Maria Lindqvist”, `max_retries`. Of sentences more are.
_LATIN, _PROSE = 0.85, 0.2


def detect_language(texts: Sequence[str]) -> tuple[str | None, int]:
    """Return the ISO 639 code of the language that at least half of the texts surely are in, and how many are.

    None if there is no such language.
    """
    found = [("en", 1.0) if _is_evidently_english(text) else _classify(text, _common_codes()) for text in texts]
    codes = Counter(code for code, sure in found if sure >= SURE)
    code, count = codes.most_common(1)[0] if codes else ("", 0)
    return (code, count) if 2 * count >= len(texts) else (None, count)


def find_other_language(text: str, expected: Language) -> str | None:
    """Return the name of the language that a text is in if it surely isn't the expected one, else None.

    Letters of another script decide alone; else it takes some words, few of them among the commonest of the expected
    language, and a sure detector. Short texts, names, commands and addresses are in any language.
    """
    scripts = count_scripts(text)
    letters = sum(scripts.values())
    for name, count in scripts.items() if expected.scripts else ():
        share = _LATIN if name == "Latin" else FOREIGN
        if name not in (*expected.scripts, "other") and count >= LEAST_LETTERS and count > share * letters:
            other = load_language(_classify(text, {*known_codes(), expected.code})[0])
            if name == "Latin" and _share_of_common_words(text, other) < _PROSE:
                return None
            return _name(other, expected) or f"{name} letters"
    share = _share_of_common_words(text, expected)
    long = letters >= 2 * LEAST_WORDS if not expected.spaced else len(words(text)) >= LEAST_WORDS
    if not long or share >= PLAIN:
        return None
    # Of rarer languages the detector takes too many texts to be.
    code, sure = _classify(text, {*known_codes(), expected.code})
    other = load_language(code)
    if expected.code == "ja" and code == "zh" and _is_in_kanji(text):
        return None
    return _name(other, expected) if sure >= SURE and share <= _share_of_common_words(text, other) else None


def is_left_in_english(text: str, expected: Language) -> bool:
    """Return True if the words of a text tell that it is in English and not in the expected language.

    It asks no detector: of a half-translated manual every sentence is looked at.
    """
    if expected.code == ENGLISH.code or not _is_evidently_english(text):
        return False
    return _share_of_common_words(text, ENGLISH) > _share_of_common_words(text, expected)


def _name(other: Language, expected: Language) -> str | None:
    return None if other.code == expected.code else other.name


def _is_in_kanji(text: str) -> bool:
    """Return True if Japan's standard has all letters of a text; of 60 Chinese sentences it has those of 2."""
    letters = "".join(filter(str.isalpha, text))
    return letters.encode("cp932", "ignore").decode("cp932") == letters


def _share_of_common_words(text: str, language: Language) -> float:
    """Return the share of a text's words that are among the commonest of a language; 0 where none are known."""
    tokens, known = words(text), language.commonest
    return sum(token in known for token in tokens) / max(1, len(tokens))


def _is_evidently_english(text: str) -> bool:
    tokens, stop = words(text[:BEGINNING]), ENGLISH.listed("stop")
    return sum(token in stop for token in tokens) > _ENGLISH * len(tokens)


def _classify(text: str, among: Collection[str]) -> tuple[str, float]:
    """Return the most probable of some languages, and its probability among them."""
    ranked = [(code, sure) for code, sure in load_detector().rank(text[:BEGINNING]) if code in among]
    return ranked[0][0], ranked[0][1] / (sum(sure for _, sure in ranked) or 1)


@cache
def load_detector() -> Any:
    """Return the detector, which unpacks its model into a file for temporary files.

    Raises:
        RunError: there is no room for it.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    except OSError as error:
        raise RunError(
            f"{gettempdir()}: no room for the language detector's model ({describe(error)}); free space, or set "
            "TMPDIR, and run the same command"
        ) from error


@cache
def _common_codes() -> frozenset[str]:
    """Return the languages that have two letters, or a file of ours: no dialects, which short texts are taken for."""
    return frozenset(code for code in load_detector().labels if len(code) == 2) | {*known_codes()}
