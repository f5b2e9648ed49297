"""Find the language of a text (py3langid, a naive Bayes classifier of 140 languages; its model takes 130 MB).

The model is loaded when a text is the first that it is needed for: most texts show by their words alone that they are
in the language that they should be in.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from generator.common.language import ENGLISH, Language, known_codes, load_language
from generator.common.scripts import count_scripts, words

# Texts of a sample, and characters of each.
SAMPLE, BEGINNING = 40, 2000
# The share of stop words from which a text is in English: English texts have 0.25 to 0.45, others below 0.1.
_ENGLISH = 0.2
# A text is in another language than the expected one only if it has so many words, at most this share of them function
# words of the expected one, and the detector is as sure as this.
LEAST_WORDS, EXPECTED, SURE = 6, 0.1, 0.95
# Letters of a foreign script, and their share of all letters, from which a text isn't in the language.
LEAST_LETTERS, FOREIGN = 8, 0.3
# A language that isn't written in Latin letters may have so large a share of them, in names and the like.
_LATIN = 0.85


def detect_language(texts: Sequence[str]) -> tuple[str, int]:
    """Return the ISO 639 code of the language that most texts are in, and how many of them are."""
    codes = Counter("en" if _is_evidently_english(text) else _classify(text, _common_codes())[0] for text in texts)
    return codes.most_common(1)[0]


def find_other_language(text: str, expected: Language) -> str | None:
    """Return the name of the language that a text is in if it surely isn't the expected one, else None.

    Letters of another script decide alone; else it takes some words, few of them function words of the expected
    language, and a sure detector. Short texts and names are in any language.
    """
    scripts = count_scripts(text)
    letters = sum(scripts.values())
    for name, count in scripts.items() if expected.scripts else ():
        share = _LATIN if name == "Latin" else FOREIGN
        if name not in (*expected.scripts, "other") and count >= LEAST_LETTERS and count > share * letters:
            return _name(_classify(text, {*known_codes(), expected.code})[0], expected) or f"{name} letters"
    if not expected.spaced or _has_function_words(text, expected):
        return None
    tokens = words(text)
    if sum(token.isalpha() for token in tokens) < LEAST_WORDS:
        return None
    # Of rarer languages the detector takes too many texts to be.
    code, sure = _classify(text, {*known_codes(), expected.code})
    return _name(code, expected) if sure >= SURE else None


def _name(code: str, expected: Language) -> str | None:
    return None if code == expected.code else load_language(code).name


def _has_function_words(text: str, language: Language) -> bool:
    """Return True if a text has as many of a language's function words as its texts have; or none are known."""
    tokens, known = words(text), language.listed("stop") | language.listed("function")
    return bool(known) and sum(token in known for token in tokens) > EXPECTED * len(tokens)


def _is_evidently_english(text: str) -> bool:
    tokens, stop = words(text[:BEGINNING]), ENGLISH.listed("stop")
    return sum(token in stop for token in tokens) > _ENGLISH * len(tokens)


def _classify(text: str, among: Collection[str]) -> tuple[str, float]:
    """Return the most probable of some languages, and its probability among them."""
    ranked = [(code, sure) for code, sure in _detector().rank(text[:BEGINNING]) if code in among]
    return ranked[0][0], ranked[0][1] / (sum(sure for _, sure in ranked) or 1)


@cache
def _detector() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _common_codes() -> frozenset[str]:
    """Return the languages that have two letters, or a file of ours: no dialects, which short texts are taken for."""
    return frozenset(code for code in _detector().labels if len(code) == 2) | {*known_codes()}
