"""Classify a question by mtRAG's ten question types (Katsis et al. 2025, appendices A and G.1).

A logistic regression for each type, fitted to human labels, on features of the question alone. The weights are in
`question_type.json`, which `benchmarks/question_types.py` writes; its accuracy is in `docs/question_types.md`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, log1p
from pathlib import Path

from generator.common.language import dialog_language
from generator.schema import Passage, Record, Turn, Verdict
from judges.base import UNJUDGED, ComputingJudge, ComputingJudgeSettings

# Least probability of a type that is named beside the most probable one.
ALSO = 0.4

# Signs of a comparison. The rule below also takes a choice ("x or y"), which may be a question of opinion or of fact.
_COMPARES = (
    r"\b(vs\.?|versus|compar\w*|differ\w*|distinction|similar\w*|same as|pros and cons|between .+ and"
    r"|advantages? and disadvantages?)\b"
)
# The first pattern that matches is the one type that rules alone would give (definitions of table 9).
_RULES = {
    "composite": r"\?.*\?|(\band|\balso|,) (also )?(what|who|when|where|why|how|which|is|are|does|do|can)\b",
    "comparative": rf"{_COMPARES}|\b(than|better|worse)\b|\b\w+ or \w+",
    "how-to": r"\bhow (can|do|should|could|would|might|may) (i|we|you|one|someone|people)\b|\bhow to\b|\bsteps?\b"
    r"|\bwhat (do|should|can) i (need to )?do\b|\bways? to\b",
    "explanation": r"\bwhy\b|\bhow come\b|\b(explain|reasons?|causes?|meaning|mean)\b"
    r"|^how (do|does|did|is|are|was|were) (?!i\b|we\b|you\b)",
    "troubleshooting": r"\b(error|problem|issue|fix|broken|fails?|failed|trouble\w*|stuck"
    r"|(doesn'?t|does not|isn'?t|not) work\w*)\b",
    "factoid": r"^(who|whose|when|where|which|is|are|was|were|does|do|did|has|have|had|can|will)\b"
    r"|\bhow (many|much|long|old|often|far|big|large|tall|fast)\b"
    r"|\bwhat ((is|was|are|were) the (name|date|number|capital|population|year|age|price|cost)"
    r"|year|time|date|day|percent\w*|age)\b",
    "opinion": r"\b(best|worst|should|think|thoughts?|opinion|recommend\w*|suggest\w*|advice|worth|good|bad|better"
    r"|favorite|agree|believe|advisable|great|safe)\b",
    "summarization": r"\b(tell me|know) (more )?about\b|^what are\b|\bmore about\b|\b(summar\w*|overview|describe"
    r"|outline|details?|information|history|main|benefits|types|kinds|advantages|process|policy|policies|list)\b",
}
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE | re.DOTALL) for name, pattern in _RULES.items()}
_WORD = re.compile(r"[\w']+")
_INTERROGATIVES = {"what", "who", "whose", "whom", "when", "where", "why", "how", "which"}
_ASKING = _INTERROGATIVES | set(
    _WORD.findall(
        "is are was were do does did can could should would will has have had am may "
        "tell explain describe give list name show any"
    )
)
# With one of these words a query is a sentence, not keywords.
_SENTENCE = {"i", "you", "it", "this", "that", "is", "are", "was", "thanks", "thank", "ok", "yes", "no"}


class Weights(Record):
    """Log odds in the order of `types`: the intercepts (`start`), and the weights of each feature (`cues`)."""

    source: str
    types: tuple[str, ...]
    start: tuple[float, ...]
    cues: Mapping[str, tuple[float, ...]]

    def probabilities(self, query: str) -> tuple[float, ...]:
        """Return the probability of each type; they need not sum to 1, since a question may have several."""
        seen = [(self.cues[name], value) for name, value in cues(query).items() if name in self.cues]
        odds = (first + sum(of[place] * value for of, value in seen) for place, first in enumerate(self.start))
        return tuple(1 / (1 + exp(-value)) for value in odds)


@cache
def load_weights() -> Weights:
    """Return the weights in the package."""
    return Weights.model_validate_json(Path(__file__).with_suffix(".json").read_bytes())


def rules(query: str) -> list[str]:
    """Return the types whose patterns a question matches, the most specific first; at least one."""
    words = _words(query)
    asks = "?" in query or bool(words[:1] and words[0] in _ASKING) or bool(_INTERROGATIVES & set(words[:4]))
    matches = [name for name, pattern in _PATTERNS.items() if pattern.search(query.strip())]
    if not asks:
        alone = 0 < len(words) <= 5 and not _SENTENCE & set(words)
        return ["keyword" if alone else "non-question", *matches]
    return matches or ["summarization"]


def cues(query: str) -> dict[str, float]:
    """Return the features of a question that are not 0, by name."""
    text, words = query.strip(), _words(query)
    matches = rules(query)
    names = [f"rule {name}" for name in matches] + [f"first rule {matches[0]}"]
    names += [f"begins {' '.join(words[:count])}" for count in (1, 2) if len(words) >= count]
    flags = {
        "ends with a question mark": text.endswith("?"),
        "ends without a mark": not text.endswith((".", "?", "!")),
        "exclaims": "!" in text,
        "three words at most": len(words) <= 3,
        "five words at most": len(words) <= 5,
        "begins as questions do": bool(words[:1] and words[0] in _ASKING),
        "has a word that asks": bool(_ASKING & set(words)),
        "joins": "and" in words,
        "compares": bool(re.search(_COMPARES, text, re.IGNORECASE)),
        "of the user": bool({"i", "my", "me"} & set(words)),
    }
    numbers = {
        "words": log1p(len(words)),
        "sentences": min(len(re.findall(r"[.!?]+(?:\s|$)", text)), 5),
        "question marks": min(text.count("?"), 3),
        "words that ask": min(sum(word in _INTERROGATIVES for word in words), 3),
    }
    return dict.fromkeys(names, 1.0) | {name: float(value) for name, value in (flags | numbers).items()}


def _words(query: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(query)]


def question_types(query: str) -> tuple[tuple[str, float], ...]:
    """Return the types of a question with their probabilities, the most probable first; at least one.

    The turns before are no input: they did not improve the classifier (`docs/question_types.md`).
    """
    weights = load_weights()
    probabilities = (round(value, 3) for value in weights.probabilities(query))
    ranked = sorted(zip(weights.types, probabilities, strict=True), key=lambda pair: (-pair[1], pair[0]))
    return (ranked[0], *(pair for pair in ranked[1:] if pair[1] >= ALSO))


class QuestionTypeJudge(ComputingJudge):
    """Labels a turn with the types of its question, such as `factoid+how-to`; the score is the first type's.

    Questions in other languages than English are `unjudged`, so that the type that they were asked as stays.
    """

    name = "question_type"

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        if dialog_language().code != "en":
            return self.verdict(UNJUDGED, "knows English only")
        types = question_types(turn.meant)
        explanation = ", ".join(f"{name} {probability:.2f}" for name, probability in types)
        return self.verdict("+".join(name for name, _ in types), explanation, types[0][1])


class QuestionTypeSettings(ComputingJudgeSettings):
    judge = QuestionTypeJudge
