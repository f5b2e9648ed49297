"""Judge if an answer says only what its passages say, without asking a model.

A logistic regression on the words that an answer shares with passages and dialog, fitted to people's labels of
attribution (BEGIN's, Dziri et al. 2022; Q²'s, Honovich et al. 2021). `benchmarks/grounding.py` writes its weights to
`grounding.json`; how far it agrees with people is in `docs/judges.md`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, log1p
from pathlib import Path

from generator.common.alignment import find_swaps
from generator.common.denials import find_flips
from generator.common.detection import find_other_language
from generator.common.language import cached_by_language, dialog_language, languages
from generator.common.misattribution import find_misattributed
from generator.common.numbers import THOUSANDS, drop_item_numbers, has_digits, write_plainly
from generator.common.numerals import digits_of, may_be_spelt_out
from generator.common.opposites import find_opposites
from generator.common.refusals import drop_closings, drop_referrals, drop_refusals
from generator.common.scripts import has_question_mark, has_words, is_unspaced, words
from generator.common.sentences import sentences
from generator.common.support import (
    Unsupported,
    content_keys,
    find_new,
    find_unsupported,
    joins,
    read_terms,
    stem_words,
    term_keys,
)
from generator.common.units import convert_units, find_other_units, find_sums
from generator.dialogs.checks.asks_back import drop_requests
from generator.dialogs.checks.evidence import drop_counts, find_evidence_language, find_uncovered, is_telling
from generator.schema import Evidence, Passage, Record, Turn, Verdict
from judges.base import UNJUDGED, ComputingJudge, ComputingJudgeSettings

# The most that an answer is worth with a number in digits, with a unit, or above three, that stands nowhere: among the
# responses that it learned from, people found no more than so many of these grounded.
WRONG_NUMBER = 0.2
# Content words and numbers of an answer that passages have, from which its others may be other words for theirs. Of
# 1,843 responses that people labelled (`benchmarks/grounding.py`) this changes 15, 9 of them not grounded.
_REWORDED = 7
SHORT = 12  # words: longer ones with a refusal in each clause mostly claim something
SOME_LENGTH = 20  # words: English texts of that length without “the”, “of” and the like are lists
NO_CLAIM = "claims nothing"  # why a refusal or a courtesy is correct
# “[1]”, “[2, 3]”, “(Passage 1)”: where models of others say what they rest on.
_CITATION = re.compile(
    r" ?(?:\[(?:\^|(?:doc|document|passage|source)s? ?)?\d{1,2}(?:(?:, ?|[-–])\d{1,2})*\]"
    r"|\((?:see )?(?:doc|document|passage|source|context)s? \d{1,2}(?:(?:,| and) ?\d{1,2})*\))",
    re.IGNORECASE,
)
LONG = 12  # content words and numbers: nine in ten of the responses that it learned from have fewer


class Weights(Record):
    """The fitted model: log odds of being grounded.

    Attributes:
        source: of the labels that it learned from.
        start: the intercept.
        weights: by the names of `features`.
        incorrect, correct: the probabilities below and from which an answer gets that label; `unjudged` between.
    """

    source: str
    start: float
    weights: Mapping[str, float]
    incorrect: float
    correct: float

    def probability(self, found: Mapping[str, float]) -> float:
        """Return the probability that an answer with these features is grounded."""
        odds = self.start + sum(weight * found[name] for name, weight in self.weights.items())
        return 1 / (1 + exp(-odds))


@cache
def load_weights() -> Weights:
    """Return the weights in the package."""
    return Weights.model_validate_json(Path(__file__).with_suffix(".json").read_bytes())


@cached_by_language(4096)  # passages come again with every turn
def _count_words(text: str) -> Counter[str]:
    text = write_plainly(text)
    if has_digits(text):
        text = THOUSANDS.sub("", text).replace(":00", "")  # “nine” is “9:00”
    counts = Counter(words(text))
    for word in dialog_language().listed("address").intersection(counts):
        del counts[word]  # how an agent speaks to the user is no claim
    for word, digits in [*digits_of(counts)]:
        counts[digits] += counts.pop(word)  # “two” as “2”
    return counts


def strip_refusal(answer: str, sources: Sequence[str]) -> str:
    """Return what an answer claims beside saying that it doesn't know.

    "I don't have information on …", "The brochure doesn't mention …", "I'm not sure, but": no claim up to there. That
    is narrower than `refusals`, which drops whole clauses and with which the judge agrees less with people. All is
    claimed where that would hide a number or a name of its own ("I'm not sure, it costs £19").

    Args:
        sources: passages and dialog.
    """
    claim = _drop_unknown(answer)
    return answer if claim != answer and _makes_up(answer, sources) else claim


@cached_by_language(64)  # an answer's features ask for it again
def _drop_unknown(answer: str) -> str:
    unknown, concession = (dialog_language().pattern(name, answer) for name in ("unknown_claim", "concession"))
    if not unknown or not unknown.search(answer):
        return answer
    # “While I don't have details about a pool, the sauna is hot.”
    return unknown.sub(" ", concession.sub(r"\1; ", answer) if concession else answer)


def _makes_up(answer: str, sources: Sequence[str]) -> bool:
    """Return True if an answer has a number or a name that none of the sources has."""
    return bool(find_new([term for term in read_terms(answer) if term.kind == "name" or is_telling(term)], sources))


def features(answer: str, passages: Sequence[str], said: Sequence[str]) -> dict[str, float]:
    """Return the features of an answer, by name.

    Args:
        passages: texts that support it, with their titles.
        said: the dialog up to it. Its words count as half known: a question may have put them wrongly.
    """
    claim = strip_refusal(answer, [*passages, *said])
    counts = _count_words(drop_item_numbers(claim))
    total = max(1, counts.total())
    sources = [_count_words(text) for text in passages]
    told = Counter[str]()
    for source in sources:
        told.update({word: source[word] for word in counts.keys() & source.keys()})
    shared = (told & counts).total()
    terms = read_terms(claim)
    known = [term_keys(text) for text in passages]
    others = [word for word in counts if word not in told]
    forms = zip(others, stem_words(others), strict=True)  # “5.2bn” of “5.2 billion”, “costs” of “cost”
    shared += sum(counts[word] for word, stem in forms if any(stem in keys or joins(stem, keys) for keys in known))
    unheard = find_new(terms, [*passages, *said])
    return {
        "words without support": 1 - shared / total,
        # A long answer may reword more; how many of twelve terms, so that length alone counts against none.
        "terms said by nobody": log1p(len(unheard) * min(1, LONG / max(1, len(terms)))),
        "numbers said by nobody": log1p(len(list(filter(is_telling, unheard)))),
        "first person": sum(counts[word] for word in dialog_language().listed("first_person").intersection(others))
        / total,
        "asks": float(has_question_mark(claim)),
        "refuses": float(claim != answer),
    }


@cached_by_language(64)
def _courtesy() -> frozenset[str]:
    return term_keys(" ".join(sorted(dialog_language().listed("courtesy"))))


@cached_by_language(64)
def _days() -> frozenset[str]:
    language = dialog_language()
    return language.listed("weekday").union(month.casefold() for month in language.months)


def _find_other_language(passages: Sequence[Passage]) -> str | None:
    """Return the language of a passage that isn't in the dialog's: of a collection in several, some may be."""
    expected = dialog_language()
    # Loading the detector takes as long as judging a thousand answers.
    foreign = (p.text for p in passages if len(words(p.text)) >= SOME_LENGTH and not expected.is_in(p.text))
    return next(filter(None, (find_other_language(text, expected) for text in foreign)), None)


def _changes_one_term(claim: str, missing: Unsupported, texts: Sequence[str], said: Sequence[str]) -> bool:
    """Return True if a name, day, number or code may stand in place of another: a small share of the words."""
    low = set(map(str.casefold, missing.words))
    comparison = dialog_language().pattern("comparison")
    compared = comparison.findall(claim.casefold()) if comparison else []
    return bool(
        missing.names
        or not low.isdisjoint(compared)  # “older” may be the question's word alone
        or low & _days()
        or any(c.isdigit() for word in low for c in word)
        or any(is_telling(term) for number in missing.numbers for term in read_terms(number))
        or find_unsupported(claim, [*texts, *said]).numbers
    )


def _find_sweeping(claim: str, sources: Sequence[str]) -> list[str]:
    """Return the words of a claim that none of the sources has and that make of some all (“all dogs are free”)."""
    find = dialog_language().find
    return sorted(
        word for word in find("sweeping", claim) if not any(word in find("sweeping", text) for text in sources)
    )


def _declines(turn: Turn) -> bool:
    """Return True if a reply to an unanswerable question declines it or finds no sense in it."""
    language = dialog_language()
    return turn.answerability == "unanswerable" and (
        language.matches("declines", turn.answer) or language.matches("doubts_sense", turn.answer)
    )


def _may_reword(answer: str, passages: Sequence[str]) -> bool:
    """Return True if an answer may say in other words what passages say, as the long answers of large models do.

    Passages have seven of its content words and numbers, half of those of each of its sentences with two or more, and
    all of its names and numbers.
    """
    terms = read_terms(answer)
    if len(terms) < _REWORDED:
        return False
    known = set[str]().union(*(term_keys(text) for text in passages))
    own = [term for term in terms if term.key not in known]
    if len(terms) - len(own) < _REWORDED or any(term.kind == "name" or is_telling(term) for term in own):
        return False
    parts = (read_terms(answer[start:end]) for start, end in sentences(answer))
    told = ((sum(term.key in known for term in part), len(part)) for part in (terms, *parts))
    return all(size < 2 or 2 * shared >= size for shared, size in told)


class GroundingJudge(ComputingJudge):
    """Labels an answer `correct` if passages support what it says, else `incorrect`, or `unjudged` between.

    A generated answer that its own evidence doesn't cover is `incorrect`, too (`generator.dialogs.checks.evidence`).

    Passages count with their titles. `unjudged` doesn't decide: another judge's verdict stands.

    Args:
        weights: those in the package if not given.
    """

    name = "grounding"
    decides = True

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights or load_weights()

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        if turn.answerability == "conversational":
            return self.verdict("correct", NO_CLAIM, 1.0)
        shown = {p.id for p in passages}
        # An earlier answer that rests on these passages adds only what it made up.
        own = [t for t in history if not t.evidence or not shown.issuperset(e.passage_id for e in t.evidence)]
        said = [*(t.meant for t in history), *(t.answer for t in own), turn.meant]
        verdict = self.judge_answer(turn.answer, passages, said, turn.evidence)
        if (
            verdict.label == "incorrect"
            and _declines(turn)
            and not _makes_up(turn.answer, [*(p.titled for p in passages), *said])
        ):
            return self.verdict(UNJUDGED, "declines, or finds no sense in the question", verdict.score)
        why = find_uncovered(passages, history, turn)
        if why is None or verdict.label == "incorrect" or is_unspaced(turn.answer) or _find_other_language(passages):
            return verdict
        return self.verdict("incorrect", why, verdict.score)

    def judge_answer(
        self, answer: str, passages: Sequence[Passage], said: Sequence[str], evidence: Sequence[Evidence] = ()
    ) -> Verdict:
        """Return the verdict on an answer; its score is the probability that people find it grounded.

        Args:
            said: the dialog up to the answer.
            evidence: what it cites, if that is known.
        """
        if not has_words(answer):
            return self.verdict(UNJUDGED, "no answer")
        if is_unspaced(answer):
            return self.verdict(UNJUDGED, "needs spaces between words; a judge that asks a model does not")
        if languages().differ:
            of = languages()
            return self.verdict(UNJUDGED, f"no words can be compared: {of.dialog.name} about {of.documents.name}")
        texts, weights, answer = [p.titled for p in passages], self.weights, drop_counts(_CITATION.sub("", answer))
        told = drop_requests(answer)
        makes_up_options = bool(texts) and told != answer and _makes_up(answer, [*texts, *said])
        if not makes_up_options:
            answer = drop_referrals(drop_closings(told))
        answer = convert_units(answer, texts)
        claim = strip_refusal(answer, [*texts, *said])
        stated = content_keys(claim)
        refuses = len(words(answer)) <= SHORT and not has_words(drop_refusals(answer))
        polite = stated <= _courtesy() and (stated or claim != answer or not words(claim))
        if polite or (refuses and not _makes_up(answer, [*texts, *said])):
            return self.verdict("correct", NO_CLAIM, 1.0)
        if not passages:
            return self.verdict(UNJUDGED, "no passages")
        found = features(answer, texts, said)
        score = weights.probability(found)
        missing = find_unsupported(claim, texts)
        others = find_other_units(claim, texts)
        if found["numbers said by nobody"] or others:
            score = min(score, WRONG_NUMBER)
        supported = score >= weights.correct
        swaps = find_swaps(claim, texts) if supported else []
        titles = [p.title for p in passages] if swaps else []  # what a page is about stands for any part of it
        swaps = [swap for swap in swaps if any(find_unsupported(swap.text, titles))]
        flips = [*find_flips(claim, texts), *find_opposites(claim, texts)] if supported else []
        # What the passages have of something else.
        elsewhere = find_misattributed(claim, said[-1] if said else "", texts) if score >= weights.incorrect else []
        if elsewhere or any(swap.number for swap in swaps):
            score = min(score, WRONG_NUMBER)
        elif flips or swaps:
            score = min(score, (weights.incorrect + weights.correct) / 2)
        if not stated:
            return self.verdict(UNJUDGED, "no word of it tells what it claims", round(score, 3))
        label = "correct" if score >= weights.correct else "incorrect" if score < weights.incorrect else UNJUDGED
        swept = _find_sweeping(claim, [*texts, *said]) if label == "correct" else []
        others = (*others, *elsewhere)
        changed = [*flips, *(f"{swap.text} for {swap.source}" for swap in swaps)]
        named = [*changed, *missing.numbers, *others, *missing.names, *missing.words, *swept]
        small = label == "correct" and (swept or _changes_one_term(claim, missing, texts, said))
        # Where a language has no such patterns, any answer may be an honest refusal that names nothing, and where its
        # numbers in words aren't known, one of the passages' may be a small one of the answer.
        telling = [number for number in missing.numbers if not may_be_spelt_out(number)]
        unread = dialog_language().pattern("refusal") is None or len(telling) < len(missing.numbers)
        vague = unread and not (missing.names or telling)
        vague = vague or (makes_up_options and not missing.numbers)  # a person may know what could be meant
        # Nobody can have told what an agent feels.
        reworded = not (others or swaps or found["first person"]) and label == "incorrect" and _may_reword(claim, texts)
        sums = find_sums(claim, [*texts, *said]) if telling and label == "incorrect" and not (others or swaps) else {}
        computed = bool(sums) and all(read_terms(number)[0].key in sums for number in telling)
        if small or reworded or computed or (label == "incorrect" and (vague or not named)):
            label = UNJUDGED
        other = label == "incorrect" and (
            _find_other_language(passages) or find_evidence_language(evidence, missing.numbers)
        )
        if other:
            return self.verdict(UNJUDGED, f"no words can be compared: {dialog_language().name} about {other}")
        lead = "all but these are supported" if label == "correct" else "words without support"
        why = f"{lead}: {', '.join(named[:12])}" if named else "all of its content words are supported"
        if computed:
            why += f"; may be computed: {', '.join(sums.values())}"
        if label == UNJUDGED and not named:
            why += ", and few of the others"
        return self.verdict(label, why, round(score, 3))


class GroundingSettings(ComputingJudgeSettings):
    judge = GroundingJudge
