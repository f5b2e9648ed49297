"""Check an answer before it is kept: it must answer, be new, agree with its passages, and say nothing of documents.

What a program can see: a miss costs a call of the judge, a false alarm a second attempt. How often people's
own answers fail a check is measured by `benchmarks/evidence.py`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from generator.common.denials import find_flips
from generator.common.language import dialog_language
from generator.common.language_file import PatternName
from generator.common.misattribution import find_misattributed
from generator.common.opposites import find_opposites
from generator.common.refusals import drop_closings, drop_refusals, has_refusal
from generator.common.scripts import has_words, words
from generator.common.sentences import sentences
from generator.common.shingles import content_stems
from generator.common.support import read_terms, shares_nothing, term_keys
from generator.dialogs.checks.asked_for import find_missing, gives_number
from generator.dialogs.checks.asks_back import INSIDE, drop_requests, find_request, is_question
from generator.dialogs.checks.later_turns import asks, content_of
from generator.dialogs.checks.questions import (
    CITED,
    LEAST_SAID,
    OFF_SUBJECT,
    WRITE_AS_THEY_SPEAK,
    find_talk_of_documents,
    speaks_like_the_prompt,
)
from generator.prompts.sections import said_in
from generator.schema import Passage, Turn

# Of stems, of both answers. Fewer may well be the same: “Yes, it does.”, “In May 1983.”
_LEAST_STEMS, _REPEATED = 5, 0.8
# Of words that an answer adds to its question, and one before it added to its own: in none of mtRAG's 637 answers, and
# in 3 of 2,824 of DialDoc21's.
_LEAST_ADDED = 2
# Words of a sentence that comes twice in a dialog's answers: in 1 of 637 of mtRAG, in 13 of 2,292 of Doc2Dial (10 of
# 8 words). “The first emperor of Rome was Octavian.” has seven.
_LONG = 5
# Characters before “in the documents,” that only lead up to it.
_OPENING = 40
# How alike the letters of a question are to those of the same with two slips, at least.
_ECHOED = 0.85
# Words in a row of a question that a sentence of its answer has twice: so do none of people's 3,535 answers (SQuAD 2.0,
# mtRAG, ClapNQ and others), and 10 of 334 of Qwen 1.5B.
_ROUND = 4
# Words of a question with which none of these answers begins.
_BEGUN = 3
_TITLE = re.compile(r"\w[^|]* \| [A-Z][^|]*[^|.!?]$")  # “Fees and fares | City of Bern”, no table and no “ls | wc”
_CITED = re.compile(rf"\s?(?:{CITED.pattern})(?:\[\d+\])*")


def find_answer_fault(
    answer: str, question: str, history: Sequence[Turn], passages: Sequence[Passage] = ()
) -> str | None:
    """Return the reason why an answer to the question after `history` can't be used, or None.

    What stands behind its first colon is for the next prompt alone.
    An honest “I don't have information on …” passes.
    """
    if not has_words(answer):
        return "empty answer"
    if fault := find_voice_fault(answer, passages):
        return fault
    if not _says_something(answer, question):
        return "answers nothing"
    if dialog_language().spaced and _goes_round(answer, question):
        return "answers nothing: say something else than the question's own words"
    if dialog_language().matches("unfinished", answer):
        return "ends in the middle of a sentence"
    told = drop_refusals(answer)  # what isn't known may be said twice
    # What isn't known can't be given.
    if drop_requests(answer) and not has_refusal(answer) and (missing := find_missing(answer, question)):
        return f"answers nothing: {missing}"
    # Where an answer had several things to tell of, the one that was meant is told again.
    answered = [turn for turn in history if turn.answerability != "underspecified"]
    # Beside “I don't know” the nearest thing that is known may be told again, and what is asked to be confirmed.
    replies = has_refusal(answer) or _confirms(answer, question)
    if not replies and _repeats(told, question, answered):
        return "repeats an earlier answer"
    if (again := _find_sentence_again(told, answered)) is not None:
        return f"repeats a sentence: write “{again}”" if again else "repeats a sentence"
    if contradiction := _find_contradiction(told, question, passages):
        return contradiction
    least = 1 if any(map(str.isdigit, told)) else LEAST_SAID
    if passages and shares_nothing(told, [*(p.titled for p in passages), question, *said_in(history)], least):
        return OFF_SUBJECT
    return None


def _find_contradiction(told: str, question: str, passages: Sequence[Passage]) -> str | None:
    """Return the reason why what an answer tells can't be true if its passages are, or None.

    `judge=grounding` leaves the contrary of what is told unjudged, and so kept.
    """
    texts = [p.titled for p in passages]
    if contrary := [*find_flips(told, texts), *find_opposites(told, texts)]:
        return f"says the contrary of what is told: “{contrary[0]}”"
    if wrong := find_misattributed(told, question, texts):
        return f"has the number of something else: “{wrong[0]}”"
    return None


def find_voice_fault(answer: str, passages: Sequence[Passage]) -> str | None:
    """Return the reason why an answer isn't what an agent would say who knows all this by heart, or None."""
    if spoken := _find_talk(answer, passages):
        plain = _without_talk(answer, passages)
        remedy = f"write “{plain}”" if plain else f"say the fact itself, without “{spoken}”"
        return f"speaks of the documents: {remedy}"
    return WRITE_AS_THEY_SPEAK if speaks_like_the_prompt(answer, passages) else None


def _find_talk(answer: str, passages: Sequence[Passage]) -> str | None:
    names: tuple[PatternName, ...] = ("scaffolding", "speaks_of_documents")
    return next(filter(None, (find_talk_of_documents(answer, passages, name) for name in names)), None)


def _without_talk(answer: str, passages: Sequence[Passage]) -> str | None:
    """Return an answer without “[2]”, “According to the documents,”, “, as the documents say”, or else whole sentences.

    None if nothing is left, or still such talk.
    """
    answer = _CITED.sub("", answer).strip()
    if not (spoken := _find_talk(answer, passages)):
        return answer if has_words(answer) else None
    before, _, after = answer.partition(spoken)
    opening = re.match(r"(?:[^,.:;、，،。।]{0,40}[,:、，،]| that\b)\s*(?!but\b|and\b)(?=\S)", after)
    if len(before) <= _OPENING and opening:
        rest = after[opening.end() :]
        answer = rest[0].upper() + rest[1:]
    elif aside := re.search(r",[^,.:;]{0,20}$", before):
        ending = re.match(r"[^,.:;]{0,20}(?=[.!?,;])", after)
        answer = before[: aside.start()] + after[ending.end() :] if ending else answer
    said = [answer[start:end] for start, end in sentences(answer)]
    return " ".join(text for text in said if not _find_talk(text, passages)) or None


def _repeats(told: str, question: str, history: Sequence[Turn]) -> bool:
    """Return True if an answer has the words of an earlier one, or adds to its question what that added to its own.

    Two questions may well have the same number or name as an answer.
    """
    mine = content_of(told)
    others = [content_of(turn.answer) for turn in history] if len(mine) >= _LEAST_STEMS else []
    added = _find_added(told, question)
    words_alone = len(added) >= _LEAST_ADDED and {kind for _, kind in added} == {"word"}
    again = words_alone and any(added == _find_added(turn.answer, turn.meant) for turn in history)
    return again or any(len(mine & other) >= _REPEATED * len(mine | other) for other in others)


def _confirms(answer: str, question: str) -> bool:
    """Return True for “Yes, …” and “No, …” to “Do you mean …?”"""
    language = dialog_language()
    replies = language.begins_with("affirms", answer) or language.begins_with("denies", answer)
    return replies and language.matches("clarifies", question)


def _find_added(answer: str, question: str) -> set[tuple[str, str]]:
    """Return the keys and kinds of what an answer adds to its question."""
    asked = term_keys(question)
    return {(term.key, term.kind) for term in read_terms(answer) if term.key not in asked}


def _find_sentence_again(told: str, history: Sequence[Turn]) -> str | None:
    """Return an answer without the sentences that come twice in it or were in an earlier one; None if none does."""
    known = {said for turn in history for said, _ in _split(turn.answer)}
    kept, parts = list[str](), _split(told)
    for said, sentence in parts:
        if len(said) < _LONG or said not in known:
            kept.append(sentence)
        known.add(said)
    return None if len(kept) == len(parts) else " ".join(kept)


def _split(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Return the words of each sentence, and the sentence."""
    parts = [text[start:end] for start, end in sentences(text)]
    return [(tuple(words(part)), part) for part in parts]


def _echoes(answer: str, question: str) -> bool:
    """Return True if an answer is the question in more words, or without its slips."""
    if content_of(question) and content_of(question) <= content_of(answer):
        return all(is_question(answer[start:end]) for start, end in sentences(answer))
    said, asked = (" ".join(words(text)) for text in (answer, question))
    return SequenceMatcher(None, said, asked).ratio() >= _ECHOED


def _goes_round(answer: str, question: str) -> bool:
    """Return True for “It is the world's largest city because it is the world's largest city by population.”

    And for “Who parks here is fined.” to “Who parks here?”
    """
    asked, said = words(question), words(answer)
    if asks(question) and len(asked) >= _BEGUN and said[: len(asked)] == asked:
        return True
    asked_runs = set(_runs(question))
    runs = (Counter(_runs(answer[start:end])) for start, end in sentences(answer))
    return any(count > 1 and run in asked_runs for each in runs for run, count in each.items())


def _runs(text: str) -> list[tuple[str, ...]]:
    every = words(text)
    return list(zip(*(every[first:] for first in range(_ROUND)), strict=False))


def _says_something(answer: str, question: str) -> bool:
    """Return False for what tells nothing: an announcement, a question, a page's title, and a question's own words.

    “Yes” and these are an answer where no others are asked for, as to words typed into a search box.

    What users tell of themselves wants others, too: none of 788 answers of mtRAG's, QuAC's, CoQA's and Doc2Dial's
    people repeats a statement, or is a question that asks nothing back (“What is term investing?”).
    """
    language = dialog_language()
    announcement, open_question = language.pattern("announcement"), language.pattern("open_question")
    rest = announcement.sub("", answer) if announcement else answer
    if asks(question) and not has_words(drop_closings(answer)):
        return False
    if not has_words(rest) or words(answer) == words(question) or rest.endswith((":", "：")) or _TITLE.match(answer):
        return False
    opener = language.pattern("opener")
    begun = opener.match(answer) if opener else None
    start = begun.end() if begun else 0  # “Yes, what is …?”
    openly = open_question and (open_question.match(answer) or open_question.match(answer, start))
    if is_question(answer) and (openly or _echoes(answer, question)) and not find_request(answer):
        return False
    told = drop_refusals(answer)
    names = {word.lower() for word in INSIDE.findall(told) if word[0].isupper()}  # “in May”
    numbers = {term.key for term in read_terms(told) if term.key.isdigit()} - term_keys(question)  # “second”
    said = content_of(told) | names | numbers
    is_statement = said and not asks(question) and not (begun and not language.find("first_person", question))
    is_open = (open_question and open_question.match(question)) or is_statement
    if language.matches("asks_number", question) and gives_number(told):  # “They don't pay.”
        return True
    chooses = language.begins_with("auxiliary", question) and language.find("alternative", question) and not begun
    takes_all = chooses and content_of(question) <= said  # “It's better to walk or swim.”
    return not (is_open or takes_all) or not told or not said <= {*content_stems(question), *words(question)}
