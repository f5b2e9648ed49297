"""What a response shares with reference answers, or with the passages it was given, counted in words.

Plain functions, and a judge for each. Words are those of SQuAD's evaluation (Rajpurkar et al. 2016): lower case, no
punctuation, no articles.
"""

import asyncio
import re
import string
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

from generator.errors import ConfigError, Rejected
from generator.schema import Passage, Turn, Verdict

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def words(text: str) -> list[str]:
    """The words of a text as SQuAD's evaluation counts them; `don't` is one, `dont`.

    Beyond it, signs outside ASCII (`–`, `…`) are no words either.
    """
    return [word for word in _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split() if spoken(word)]


def spoken(text: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return any(character.isalnum() for character in text)


def token_recall(response: str, reference: str) -> float:
    """The share of the reference's words that are in the response, 0 to 1; each counts as often as both have it.

    0 if one of them has no words.
    """
    expected = words(reference)
    return _common(words(response), expected) / len(expected) if expected else 0.0


def token_f1(response: str, reference: str) -> float:
    """The harmonic mean of the shares of the response's and of the reference's words that the other has, 0 to 1.

    0 if one of them has no words.
    """
    said, expected = words(response), words(reference)
    return 2 * _common(said, expected) / (len(said) + len(expected)) if said and expected else 0.0


def k_precision(response: str, passages: Sequence[str]) -> float:
    """The share of the response's words that are in the passages taken together, 0 to 1 (Adlakha et al. 2024).

    Each word counts at most as often as the passages have it. 0 for a response without words.
    """
    said = words(response)
    return _common(said, words("\n".join(passages))) / len(said) if said else 0.0


def rouge_l(response: str, reference: str) -> float:
    """ROUGE-L F (Lin 2004): how long a sequence of words response and reference have in common, 0 to 1.

    Words are those of rouge-score (of a-z and 0-9, so none in other scripts; articles as well), unstemmed, as in
    mtRAG's published scores.

    Raises:
        ConfigError: rouge-score isn't installed.
    """
    return float(_rouge().score(reference, response)["rougeL"].fmeasure)


def harmonic_mean(parts: Sequence[float]) -> float:
    """The harmonic mean; 0 if one part is 0 or less."""
    return len(parts) / sum(1 / part for part in parts) if min(parts) > 0 else 0.0


def rb_alg(rouge_l: float, bert_recall: float, bert_k_precision: float) -> float:
    """RB_alg, 0 to 1: the harmonic mean of three metrics (Katsis et al. 2025, section 6.3.1).

    The BERT scores, which can be below 0, enter as (x + 1) / 2. The paper doesn't say so; its published values do.
    """
    return harmonic_mean([rouge_l, (bert_recall + 1) / 2, (bert_k_precision + 1) / 2])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return (Counter(one) & Counter(other)).total()


@cache
def _rouge() -> Any:
    try:
        from absl import logging
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise ConfigError(
            f"ROUGE-L needs the package rouge-score ({error}): install the extra 'metrics' (uv sync --extra metrics), "
            "or that package alone"
        ) from error
    # rouge-score's log keeps the standard error of its import, and closes it when logging is configured again (Hydra
    # does), unless it is that of the process.
    logging.get_absl_handler().python_handler.stream = sys.__stderr__
    return RougeScorer(["rougeL"], use_stemmer=False)


class Metric(ABC):
    """A judge that computes and asks no model. Its label is `scored`; `unjudged`: there is nothing to compare with.

    Args:
        model: as every judge gets it; not used.

    Attributes:
        name: of the metric, and of its file in `conf/judge/`.
    """

    name: ClassVar[str]
    asks_model = False

    def __init__(self, model: str = "") -> None:
        del model

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """The score of `turn.answer`; its reference answers are `turn.other_answers`. See `generator.schema.Judge`.

        Raises:
            ConfigError: a package or model that the metric needs isn't there.
        """
        references = [text for text in turn.other_answers if text.strip()]
        try:
            score = await asyncio.to_thread(self.score, turn.answer, references, [p.text for p in passages])
        except Rejected as failure:
            return self._verdict("unjudged", failure.reason, None)
        return self._verdict("scored", "", score)

    @abstractmethod
    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        """The metric's value; 0 for a response without words.

        Args:
            references: answers that are right; of several the one that gives the best score counts.
            passages: texts that the response was to rest on.

        Raises:
            Rejected: there is nothing to compare with.
        """

    def _verdict(self, label: str, explanation: str, score: float | None) -> Verdict:
        return Verdict(judge=self.name, label=label, explanation=explanation, model="", score=score, decides=False)


def best(metric: Callable[[str, str], float], response: str, references: Sequence[str]) -> float:
    """The metric against the reference that it is highest for.

    Raises:
        Rejected: there is no reference.
    """
    if not references:
        raise Rejected("judge", "no reference answer")
    return max(metric(response, reference) for reference in references)


class TokenF1(Metric):
    """See `token_f1`."""

    name = "token_f1"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        return best(token_f1, response, references)


class TokenRecall(Metric):
    """See `token_recall`."""

    name = "token_recall"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        return best(token_recall, response, references)


class KPrecision(Metric):
    """See `k_precision`."""

    name = "k_precision"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        if not passages:
            raise Rejected("judge", "no passages")
        return k_precision(response, passages)


class RougeL(Metric):
    """See `rouge_l`."""

    name = "rouge_l"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        return best(rouge_l, response, references)
