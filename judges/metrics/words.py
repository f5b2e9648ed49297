"""Metrics of the words that a response shares with reference answers or with its passages.

Plain functions, and a judge for each. Words are those of SQuAD's evaluation (Rajpurkar et al. 2016): lower case, no
punctuation, no articles.
"""

import asyncio
import re
import string
import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from statistics import harmonic_mean
from typing import Any, Literal

from pydantic import Field

from generator.common.scripts import UNSPACED, has_words
from generator.errors import ConfigError, Rejected
from generator.schema import Judge, Passage, Turn, Verdict
from judges.base import SCORED, UNJUDGED, ComputingJudge, ComputingJudgeSettings

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def words(text: str) -> list[str]:
    """Return the words of a text as SQuAD's evaluation counts them; `don't` is one, `dont`.

    In addition, punctuation outside ASCII (`–`, `…`) is no word, and in scripts without spaces each letter is one, as
    in MLQA's evaluation of Chinese (Lewis et al. 2020).
    """
    text = _UNSPACED.sub(r" \g<0> ", text.lower().translate(_PUNCTUATION))
    return [word for word in _ARTICLE.sub(" ", text).split() if has_words(word)]


def token_recall(response: str, reference: str) -> float:
    """Return the share of the reference's words that are in the response, 0 to 1; each counts as often as both have it.

    0 if one of them has no words.
    """
    expected = words(reference)
    return _common(words(response), expected) / len(expected) if expected else 0.0


def token_f1(response: str, reference: str) -> float:
    """Return the harmonic mean of the shares of the response's and the reference's words that the other has, 0 to 1.

    0 if one of them has no words.
    """
    given, expected = words(response), words(reference)
    return 2 * _common(given, expected) / (len(given) + len(expected)) if given and expected else 0.0


def k_precision(response: str, passages: Sequence[str]) -> float:
    """Return the share of the response's words that are in all passages together, 0 to 1 (Adlakha et al. 2024).

    Each word counts at most as often as the passages have it. 0 for a response without words.
    """
    given = words(response)
    return _common(given, words("\n".join(passages))) / len(given) if given else 0.0


def rouge_l(response: str, reference: str) -> float:
    """Return ROUGE-L F (Lin 2004), of the longest common subsequence of words, 0 to 1.

    Words are those of rouge-score (of a-z and 0-9, so none in other scripts; with articles), unstemmed, as in mtRAG's
    published scores.
    """
    return float(_rouge().score(reference, response)["rougeL"].fmeasure)


def rb_alg(rouge_l: float, bert_recall: float, bert_k_precision: float) -> float:
    """Return RB_alg, 0 to 1: the harmonic mean of three metrics (Katsis et al. 2025, section 6.3.1).

    BERT scores, which can be below 0, enter as (x + 1) / 2. That is not in the paper; its published values show it.
    """
    parts = (rouge_l, (bert_recall + 1) / 2, (bert_k_precision + 1) / 2)
    return harmonic_mean(parts) if min(parts) > 0 else 0.0


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return (Counter(one) & Counter(other)).total()


@cache
def _rouge() -> Any:
    try:
        from absl import logging
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise ConfigError(
            f"ROUGE-L needs the package rouge-score ({error}): install the extra 'metrics' (uv sync --inexact --extra "
            "metrics), or that package alone"
        ) from error
    # absl's log handler keeps the standard error of its import, and closes it when logging is configured again (by
    # Hydra, for instance), unless it is that of the process.
    logging.get_absl_handler().python_handler.stream = sys.__stderr__
    return RougeScorer(["rougeL"], use_stemmer=False)


class Metric(ComputingJudge):
    """A judge whose label is `scored`, or `unjudged` if there is nothing to compare with."""

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Score `turn.answer`; raise `ConfigError` where a package or an encoder that the metric needs is missing."""
        references = [text for text in turn.other_answers if text.strip()]
        try:
            score = await asyncio.to_thread(self.score, turn.answer, references, [p.text for p in passages])
        except Rejected as failure:
            return self.verdict(UNJUDGED, failure.reason)
        return self.verdict(SCORED, "", score)

    @abstractmethod
    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        """Return the metric's value; 0 for a response without words.

        Args:
            references: correct answers; the one that gives the highest score counts.
            passages: texts that the response was grounded on.

        Raises:
            Rejected: there is nothing to compare with.
        """


def best_score(metric: Callable[[str, str], float], response: str, references: Sequence[str]) -> float:
    """Return the highest score against a reference; raise `Rejected` if there is none."""
    if not references:
        raise Rejected("judge", "no reference answer")
    return max(metric(response, reference) for reference in references)


_AGAINST_REFERENCES = {"token_f1": token_f1, "token_recall": token_recall, "rouge_l": rouge_l}


def check_latin(references: Sequence[str]) -> None:
    """Raise `Rejected` if there are references and ROUGE-L sees no words in any: it knows the letters a to z alone."""
    if references and not any(map(_is_latin, references)):
        raise Rejected("judge", "no reference in the letters a to z")


def _is_latin(text: str) -> bool:
    letters = list(filter(str.isalpha, text))
    return 2 * sum(map(str.isascii, letters)) >= len(letters)


class WordMetric(Metric):
    """A metric of words: the function of this module that is called `name`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        if self.name == "rouge_l":
            check_latin(references)
        if self.name in _AGAINST_REFERENCES:
            return best_score(_AGAINST_REFERENCES[self.name], response, references)
        if not passages:
            raise Rejected("judge", "no passages")
        return k_precision(response, passages)


class WordMetricSettings(ComputingJudgeSettings):
    name: Literal["token_f1", "token_recall", "k_precision", "rouge_l"] = Field(description="Name of the metric.")

    def build(self, model: str) -> Judge:
        return WordMetric(self.name)
