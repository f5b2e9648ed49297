"""Check that the sentences cited for an answer say what it says, and find those that say it best; no model is asked.

What is looked for is what the answer adds to its question: there the right sentence and any other differ most
(`benchmarks/evidence.py`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, takewhile
from math import log
from typing import NamedTuple

from generator.common.detection import find_other_language
from generator.common.language import dialog_language, languages
from generator.common.numerals import may_be_spelt_out
from generator.common.refusals import drop_closings, drop_refusals
from generator.common.scripts import QUESTION_MARK, has_words, words
from generator.common.sentences import is_heading, sentences
from generator.common.support import COUNTS, Term, content_keys, coverage, find_unsupported, read_terms, term_keys
from generator.common.units import convert_units, find_other_units, find_sums
from generator.dialogs.checks.asks_back import drop_requests
from generator.schema import Evidence, Passage, Turn

# Of the sentences that people cite, none (ClapNQ) and 0.1% (SQuAD 2.0) cover less; of other sentences, 99% and 87%.
LEAST_COVERED = 0.5
# Of an answer that adds nothing to a question that begins with a verb, such as “Yes, it is efficient.”
_LEAST_CONFIRMED = 0.7
# An answer rests on a sentence of which it has as much, and on one that shares as much with a fact copied for it: of
# the shorter of both, since a fact may join two sentences.
_MOST_RETOLD, _COPIED = 0.75, 0.75
# Where facts were copied, so many words that a sentence shares with question and answer suffice.
_OF_REASONED = 3
# Of each sentence of an answer that only says what was said before, in three such words or more; costs none of these.
_CLAIM, _LEAST_CLAIMED = 3, 1 / 3
SHOWN = 8

_DIGIT = re.compile(r"\d")
# What leads to a list (“four papers:”, “Yes, four.”), an item of one on a line of its own, and names that are listed.
_LEAD = re.compile(r"(?<![^.!?;:\n])(?:[^.!?;:\n]*:(?=[\s*_])|(?:\w+, )?\w+\. )")
_ITEM = re.compile(r"(?:[-*•–+]|\d{1,2}[.)])\s")
_NAMES = re.compile(r"(?<=[\w,] )[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*")
_COMMA, _SENTENCE_END = re.compile("[,;،、，]"), re.compile(r"[.!?。！？।](?:\s|$)")
_CLAUSE = re.compile(r"[;:；]\s?|,\s(?=(\w+)\s)")
_QUESTION = re.compile(rf"[^.!?。！？؟।\n]+{QUESTION_MARK}")


class Support(NamedTuple):
    """The coverage of an answer by its evidence.

    Attributes:
        covered: it has at least half of what the answer adds to the question, all of its numbers, and a third of each
            sentence that adds nothing; 0.7 of an answer that only confirms its question.
        share: of the words and numbers that the answer adds, or else has, 0 to 1; 1 if it claims nothing. Of “Yes.”
            those of its question.
        missing: those that the evidence lacks, as the answer spells them.
    """

    covered: bool
    share: float
    missing: tuple[str, ...]


def measure_support(answer: str, said: Sequence[str], evidence: Sequence[str], cited: int = 0) -> Support:
    """Return how far sentences cover an answer.

    An answer without a content word, such as “Yes.”, is covered by a sentence that has one of its question. A refusal
    needs no evidence; what it adds does.

    Args:
        said: what the answer needn't prove: the question first, then what was said before it and titles.
        evidence: sentences; without a digit they may spell out numbers below 100. Without any nothing is computed.
        cited: how many of these are cited; others are headings and titles.
    """
    claims = _QUESTION.sub("", drop_refusals(drop_closings(drop_requests(drop_counts(answer, cited)))))
    claims = convert_units(claims, [*evidence, *said])
    in_digits = not evidence or any(map(_DIGIT.search, evidence))
    terms = [t for t in read_terms(claims) if t.kind != "number" or in_digits or not may_be_spelt_out(t.key)]
    have = set[str]().union(*(term_keys(text) for text in evidence))
    if not terms:
        asked = content_keys(said[0])
        covered = not has_words(claims) or bool(asked & have) or (bool(evidence) and not asked)
        partly = covered and has_words(claims) and asked
        return Support(covered, len(asked & have) / len(asked) if partly else float(covered), ())
    known = set[str]().union(*(term_keys(text) for text in said))
    added = {t.key: t for t in terms if t.key not in known}
    wanted, confirms = added or {t.key: t for t in terms}, dialog_language().begins_with("auxiliary", said[0])
    least = _LEAST_CONFIRMED if confirms and not added else LEAST_COVERED
    sums = find_sums(claims, [*evidence, *said]) if evidence else {}
    missing = [term for key, term in wanted.items() if key not in have and key not in sums]
    share, others = 1 - len(missing) / len(wanted), find_other_units(claims, [*evidence, *said])
    covered = share >= least and not others and not any(map(is_telling, missing))
    each = (content_keys(claims[start:end]) for start, end in sentences(claims))
    retold = (keys for keys in each if len(keys) >= _CLAIM and keys.isdisjoint(wanted))
    covered = covered and not any(len(keys & have) < _LEAST_CLAIMED * len(keys) for keys in retold)
    return Support(covered, share, (*(term.text for term in missing), *others))


def is_telling(term: Term) -> bool:
    """Return True for a number but “two” and “three”, mostly a count of what was just named, or is next (“two: …”).

    With a unit they tell something: “two months”.
    """
    return term.kind == "number" and not (term.key in COUNTS and term.text.isalpha())


def drop_counts(answer: str, cited: int = 0) -> str:
    """Return an answer without the numbers that say how many things it lists: “four papers: …”, and then four.

    Args:
        cited: how many sentences it rests on; of three and more, each may tell of one thing.
    """
    told = {str(cited)} if cited > 2 else set[str]()
    units = dialog_language().units  # “four years: …” isn't one
    for lead in reversed([*_LEAD.finditer(answer)]):
        sizes = _count_items(answer[lead.end() :]) | told
        for term in read_terms(lead[0]) if sizes else ():
            before, spelt, after = lead[0].partition(term.text.split()[0])
            if term.kind == "number" and term.key in sizes and spelt and units.isdisjoint(words(after)[:1]):
                answer = f"{answer[: lead.start()]}{before}{after}{answer[lead.end() :]}"
                break
    return answer


def _count_items(text: str) -> set[str]:
    """Return how many items a list has that a text begins with: of lines, or parted by commas."""
    line, *more = text.lstrip("*_ ").split("\n")
    if has_words(line):
        listed = _SENTENCE_END.split(line)[0]
        commas, names = len(_COMMA.findall(listed)), _NAMES.findall(listed) if dialog_language().capitals else ()
        return {*map(str, (commas + 1, commas + 2, len(names)))} - {"0", "1", "2"}
    listed = takewhile(lambda line: not line.strip() or line[0].isspace() or _ITEM.match(line), more)
    return {str(sum(bool(_ITEM.match(line)) for line in listed))}


def _list_clauses(text: str) -> Iterator[str]:
    """Yield the parts of each sentence that a semicolon, a colon, or a comma before “and” or “but” parts."""
    joining = dialog_language().listed("joining")
    for first, last in sentences(text):
        ends = (
            found for found in _CLAUSE.finditer(text, first, last) if not found[1] or found[1].casefold() in joining
        )
        for start, end in pairwise([first, *(found.end() for found in ends), last]):
            yield text[start:end]


def measure_turn(passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Support | None:
    """Return how far a turn's evidence covers its answer.

    None for remarks, for dialogs without documents, and for people's turns without evidence.
    """
    if turn.answerability == "conversational" or not passages or not (turn.evidence or _is_generated(turn)):
        return None
    return support_of(passages, history, turn)


def support_of(passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Support:
    """Return how far a turn's evidence covers its answer, whoever wrote it."""
    if refuses_unread(turn):
        return Support(True, 1.0, ())
    told = list_told(turn.evidence, passages)
    return measure_support(turn.answer, list_said(turn.meant, history, passages), told, len(turn.evidence))


def find_uncovered(passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> str | None:
    """Return why the evidence of a generated answer doesn't cover it, or None; what people cite is left to them.

    A reply that answers nothing may ask back, deny and name things in words of its own. What it tells beside that has
    no number or name but the evidence's. Of evidence in another language only figures can be compared.
    """
    comparable = _is_generated(turn) and not languages().differ
    support = measure_turn(passages, history, turn) if comparable else None
    if support is None or support.covered:
        return None
    if turn.answerability in ("unanswerable", "underspecified"):
        telling = {term.text for term in read_terms(turn.answer) if term.kind == "name" or is_telling(term)}
        if telling.isdisjoint(support.missing):
            return None
    if _retells(drop_refusals(turn.answer), list_told(turn.evidence, passages)):
        return None
    if find_evidence_language(turn.evidence, support.missing):
        return None
    return f"the evidence doesn't cover: {', '.join(support.missing) or 'the answer'}"


def _retells(answer: str, told: Sequence[str]) -> bool:
    """Return True if evidence has 0.7 of an answer's words, three or more, and its names and numbers.

    It may lack the only word that the answer adds to what was said before: “costs” for “pay”.
    """
    own = find_unsupported(answer, told)
    says = len(read_terms(answer)) >= _CLAIM and not (own.numbers or own.names)
    return says and coverage(answer, told) >= _LEAST_CONFIRMED


def find_evidence_language(evidence: Sequence[Evidence], missing: Sequence[str] = ()) -> str | None:
    """Return the language of a cited sentence that isn't in the dialog's, as some of half-translated documents are.

    None if there is none, or something is missing that is the same in any language: a figure but those below 100.
    """
    if any(_DIGIT.search(text) and not (text.isdigit() and len(text) <= len("99")) for text in missing):
        return None
    expected = dialog_language()
    return next(filter(None, (find_other_language(each.text, expected) for each in evidence)), None)


def find_untold(answer: str, question: str, history: Sequence[Turn], passages: Sequence[Passage]) -> str | None:
    """Return what of an answer no passage tells, as the reason to ask for another, or None."""
    if languages().differ:
        return None
    support = measure_support(answer, list_said(question, history, passages), [p.titled for p in passages])
    return None if support.covered else f"says what isn't told: leave out “{'”, “'.join(support.missing) or answer}”"


def refuses_unread(turn: Turn) -> bool:
    """Return True if an answer refuses by its model's word and cites nothing, where no pattern tells refusals."""
    known = dialog_language().pattern("refusal") is not None
    return turn.answerability == "unanswerable" and not turn.evidence and not known


def _is_generated(turn: Turn) -> bool:
    """Return False for people's turns, which have neither a plan nor reasoning."""
    return bool(turn.planned or turn.reasoning)


def list_said(question: str, history: Sequence[Turn], passages: Sequence[Passage]) -> list[str]:
    """Return what an answer to a question needn't prove: the question, the exchange before it, and titles."""
    return [
        question,
        *(text for turn in history[-1:] for text in (turn.meant, turn.answer)),
        *(p.title for p in passages),
    ]


def list_told(evidence: Sequence[Evidence], passages: Sequence[Passage]) -> list[str]:
    """Return what evidence tells: its sentences, the headings above them, and the titles of their passages.

    “Which one?” – “The library.”
    """
    cited = [(each, p) for each in evidence for p in passages if p.id == each.passage_id]
    above = (line for each, p in cited for line in [*filter(is_heading, p.text[: each.start].split("\n"))][-1:])
    return [*(each.text for each in evidence), *above, *{p.id: p.title for _, p in cited}.values()]


def rank_sentences(sentences: Sequence[str], answer: str, question: str) -> list[int]:
    """Return the places of the sentences that share a content word with answer or question, best first.

    A shared word weighs the more, the fewer of the sentences have it; one of the answer weighs double.
    """
    keys = [term_keys(text) for text in sentences]
    counts = Counter(key for of in keys for key in of)
    weights = Counter({term.key: 1 for term in read_terms(question)})
    weights.update({term.key: 2 for term in read_terms(answer)})
    scores = [
        sum(weight * log(1 + len(keys) / counts[key]) for key, weight in weights.items() if key in of) for of in keys
    ]
    return sorted((place for place, score in enumerate(scores) if score), key=lambda place: -scores[place])


def find_telling(sentences: Sequence[str], ranked: Sequence[int], answer: str, said: Sequence[str]) -> int | None:
    """Return the place of the sentence that alone tells all that an answer adds; None unless it is the best one, and
    the only one.

    Args:
        ranked: the places of the sentences, best first, as `rank_sentences` returns them.
        said: as in `measure_support`.
    """
    found = (place for place in ranked if measure_support(answer, said, [sentences[place]])[:2] == (True, 1))
    telling = [*islice(found, 2)]
    return telling[0] if telling and telling == [ranked[0]] else None


def drop_needless(
    evidence: Sequence[Evidence],
    answer: str,
    question: str,
    facts: Sequence[str],
    measure: Callable[[Sequence[Evidence]], Support],
) -> tuple[Evidence, ...]:
    """Return evidence without the sentences that can be spared, tried from the one that shares least with the answer.

    One is left out if the others cover the answer and miss nothing by it, and it repeats another, or question and
    answer have less than 3/4 of its words, none of the facts was copied from it, where there are any two of its words
    at most are in question and answer, and it isn't alone in having all of a clause of two words or more (what the
    question said as well needs no other proof): small models cite what shares a word with their answer, good ones what
    says it in other words (“the trial concluded with his acquittal”). Put beside two other sentences, what people cite
    is all that is left for 95% (ClapNQ) and 97% (SQuAD 2.0) of answers (`benchmarks/evidence.py`). What claims nothing
    has no evidence; that of “Yes.” and what covers no answer stay.

    Args:
        facts: what the model copied from passages before it answered.
        measure: returns how far such evidence covers the answer.
    """
    if measure([]).covered:
        return ()
    kept, texts = list(evidence), [each.text for each in evidence]
    if not read_terms(answer):
        return tuple(kept)
    said, copied = content_keys(answer) | content_keys(question), [*map(content_keys, facts)]
    prepositions = dialog_language().listed("preposition")  # “including” needs no sentence
    clauses = [*map(content_keys, _list_clauses(answer))]
    ranked = rank_sentences(texts, answer, question)
    for place in [*(set(range(len(texts))) - {*ranked}), *reversed(ranked)]:
        rest = [each for each in kept if each != evidence[place]]
        found, keys = measure(rest), content_keys(texts[place])
        least = min(_MOST_RETOLD * len(keys), _OF_REASONED if copied else len(keys))
        used = len(keys & said) >= least or any(
            fact and len(keys & fact) >= _COPIED * min(len(keys), len(fact)) for fact in copied
        )
        again = any(words(each.text) == words(texts[place]) for each in rest)
        others = [term_keys(each.text) for each in rest]
        used = used or any(len(of) > 1 and of <= keys and not any(map(of.issubset, others)) for of in clauses)
        lost = {*found.missing} - {*measure(kept).missing}
        if found.covered and (again or not used) and {*map(str.casefold, lost)} <= prepositions:
            kept = rest
    return tuple(kept)
