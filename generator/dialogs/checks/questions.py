"""Check a question before it is answered: it must be whole, new, and in a user's own words."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, permutations
from math import ceil

from generator.common.language import dialog_language
from generator.common.language_file import PatternName
from generator.common.passages import find_tokens
from generator.common.prose import told_in
from generator.common.scripts import has_question_mark, has_words, words
from generator.common.sentences import sentences
from generator.common.shingles import content_stems
from generator.common.support import read_terms, shares_nothing
from generator.dialogs.checks.later_turns import (
    REPEATS,
    asks,
    content_of,
    find_later_fault,
    list_question_words,
    points_back,
    refers_back,
)
from generator.dialogs.checks.requests import find_request_fault
from generator.dialogs.dedup import Repetition
from generator.prompts.sections import Documents, said_in
from generator.schema import Passage, Turn
from taxonomy import QuestionType

# “What do you mean?”, “And how hot?”, “Not necessarily.”: what has fewer content words may well be about what was said.
LEAST_SAID = 3
OFF_SUBJECT = "shares no word with the documents and the dialog"
UNFINISHED = "is only the beginning of a question"
LIKE_THE_AGENT = "speaks as the Agent does"
# Ten of people's 3,828 later questions do (“What else did you find interesting?”), 4 of some 560 of Qwen 1.5B.
OF_THE_AGENT = "asks what the Agent did"
NAMELESS = "names nothing that it is about"
COPIED = "copies the documents"
TELLS = "tells what it should ask for"
# So many words in a row, and this share of its words: none of the 637 messages of mtRAG's people, and 10 of 1,701 in
# DialDoc21's dialogs on MultiDoc2Dial, whose writers copied headings.
_LEAST_COPIED, _MOST_COPIED = 8, 2 / 3
# So many are copied in a question, too: mtRAG's people have 13 at most, and 3 of 2,809 in DialDoc21's have as many; of
# Qwen 1.5B 9 of 334.
_COPIED_RUN = 17
# A message that tells a sentence has so many of its stems, of at least so many, and these are so many of its own: so do
# 5 of 637 messages of mtRAG's people.
_MOST_TOLD, _LEAST_TOLD, _MOST_TELLING = 0.6, 3, 0.75
# Content words of a question that may be all about what “it” is.
_FEW_NAMED = 2
# What cites in any language: “It is free [2, 5].”, “【2】”, “【4:0†source】”; in Japanese headings are, too
CITED = re.compile(r"(?<![\w\])])\[\d+(?:(?:, ?|[-–])\d+)*\]|【\d[^【】]*】")
_MAY_BE_OWN = re.compile(r"\d$|^\[\d+[^\d\]]")

# Small models copy the gap that a phrasing leaves for the subject of the question.
GAP = re.compile(r"(?:^|\s)(?:…|\.{3})(?:\s|$)")
# What our prompts, which are English whatever the dialog, call those who speak and what they said last.
_PROMPT_WORDS = re.compile(
    r"\b[Tt]he (User|Agent|last answer|last question|"
    r"user(?= (?:\w+s|to|can|must|should|will|would|may|might|who)\b)|"
    r"user (?:asked?|meant?|said|want(?:ed)?|think|believe))\b"
)
# “To write a different one, you should say: …”, “I don't have information on your last attempt.”, “I am an ordinary
# person who …”, “You don't have information on …”, which a prompt tells the Agent to say of itself
_RETORT = re.compile(
    r"\bwrite a different one\b|\byour last attempt\b|\ban ordinary person\b"
    r"|^you (?:do not|don[’']t) have information on\b",
    re.IGNORECASE,
)

_LABEL = re.compile(
    r"\W*(?:(?:user|agent|assistant|question|answer|response|[qa]|the kind of question)[\"*]* ?[:>]|"
    r"th(?:e|is) question (?:is|asks)\b|I(?:[’']?m| am) a user\b|the user (?:wants to know|is asking|asks)\b)",
    re.IGNORECASE,
)
# What small models say around the question that they were asked for; none of people's 7,325 has it.
_AROUND = re.compile(
    r"\W*(?:(?:sure|certainly|of course)!.*\?|(?:here(?:[’']s| is)|(?:the |rephrased |reworded )?question\b"
    r"|re(?:phrased|worded)|in other words)[^:?]{0,40}:)"
    r"|.*\([^()]*\b(?:question|other words|re(?:phrased|worded))\b[^()]*\)$",
    re.IGNORECASE,
)
LIKE_THE_PROMPT = "speaks of the User, the Agent or their last words"
WRITE_AS_THEY_SPEAK = f"{LIKE_THE_PROMPT}: write “you” and “I”"


def speaks_like_the_prompt(text: str, passages: Sequence[Passage]) -> bool:
    """Return True if a text begins with a speaker's name or has words of our prompts, “the User”, as no passage has."""
    if _LABEL.match(text) or _RETORT.search(text):
        return True
    known = " ".join(p.titled for p in passages)
    found = _PROMPT_WORDS.findall(text)
    return any(word not in (known.lower() if word.islower() else known) for word in found)


def _speaks_like_the_agent(message: str) -> bool:
    """Return True for “I don't have information on …”, “I am a language model”, “Do you have any other questions?”.

    So does none of 868 messages of mtRAG's, QuAC's, CoQA's and Doc2Dial's people, and 2% of 4,433 of Qwen 1.5B, asked
    in plain words.
    """
    language = dialog_language()
    unknown = language.unknown.casefold()
    return bool(
        (unknown and message.casefold().startswith(unknown))
        or language.matches("disclaimer", message)
        or language.matches("offers_help", message)
    )


def _speaks_for_the_office(question: str, passages: Sequence[Passage]) -> bool:
    """Return True for “How do they give us information?” if passages say “give us information” of who wrote them.

    So does one of mtRAG's people's 637 questions.
    """
    we = dialog_language().listed("we")
    copied = {three for three in _list_triples(question) if not we.isdisjoint(three)}
    return bool(copied) and any(not copied.isdisjoint(_list_triples(p.text)) for p in passages)


def _list_triples(text: str) -> set[tuple[str, ...]]:
    tokens = [token.group() for token in find_tokens(text)]  # as they are spelt: “in the US” isn't “us”
    return set(zip(tokens, tokens[1:], tokens[2:], strict=False))


def speaks_of_documents(text: str, passages: Sequence[Passage] = ()) -> bool:
    """Return True if a text shows that its author saw the documents: it has a phrase that points at the prompt.

    "The passage of the bill", "the documents I must bring", "in the context of the war" are a user's own words, so no
    noun is enough by itself, or with what it belongs to. A miss costs a worse question, a false alarm a second attempt.
    """
    return find_talk_of_documents(text, passages, "scaffolding") is not None


def find_talk_of_documents(text: str, passages: Sequence[Passage], name: PatternName) -> str | None:
    """Return the first words of a text that cite, or match the pattern of that name.

    "Paragraph 5" may be the contract's, if a passage names it, and so may be "[4, 5]"; "[5]" may not, since the prompt
    numbers sentences so. “Aus den Quellen” may be of a program, and “dans le document” of what the reader writes, but
    “in diesem Dokument” may not.
    """
    language, known = dialog_language(), " ".join(p.titled for p in passages).casefold()
    noun, sort = language.parts.get("documents"), language.pattern("sort")

    def is_own(talk: str) -> bool:
        names = noun and sort and re.search(rf"\b{noun}\Z", talk, re.IGNORECASE) and not sort.search(talk)
        return talk.casefold() in known and bool(names or _MAY_BE_OWN.search(talk))

    found = (match.group() for each in (language.pattern(name), CITED) if each for match in each.finditer(text))
    return next((talk for talk in found if not is_own(talk)), None)


def copies_documents(message: str, passages: Sequence[Passage]) -> bool:
    """Return True if a message has a long run of words of a passage, or asks nothing and is mostly such a run."""
    if not dialog_language().spaced:
        return False
    said, known = words(message), [_join_words(p.text) for p in passages]
    length = _COPIED_RUN
    if not has_question_mark(message):
        length = min(length, max(_LEAST_COPIED, ceil(_MOST_COPIED * len(said))))
    runs = (f" {' '.join(said[start : start + length])} " for start in range(len(said) - length + 1))
    return any(run in text for run in runs for text in known)


@lru_cache(maxsize=1024)
def _join_words(text: str) -> str:
    return f" {' '.join(words(text))} "


def find_length_fault(question: str, question_type: QuestionType, last: bool = False) -> str | None:
    """Return the reason why a question is too long, or None; in the last attempt it may be twice as long."""
    times = 2 if last else 1
    too_long = question_type.is_exceeded(question, times)
    return f"has more than {question_type.tell_length(times)}" if too_long else None


def find_fault(
    question: str,
    documents: Documents,
    history: Sequence[Turn],
    question_type: QuestionType,
    repetition: Repetition,
    focus: str = "",
) -> str | None:
    """Return the reason why a question can't be used, or None.

    Args:
        focus: what the question was to touch on, if anything.
    """
    if fault := _find_form_fault(question, documents.passages, question_type):
        return fault
    sources = [*(p.titled for p in documents.passages), *said_in(history), focus]
    if is_off_subject(question, documents.passages, history, focus):
        return OFF_SUBJECT
    if copies_documents(question, documents.passages):
        return COPIED
    facts = [focus, *(text for p in documents.passages for text in told_in(p))]
    *_, (start, end) = sentences(question)
    if any(tells_fact(text, facts) for text in (question, question[start:end])):
        return TELLS
    # What earlier questions meant, since slips would hide a repetition; and as the model saw them, which it may copy.
    earlier, rest = [text for t in history for text in (t.meant, t.query)], _cut_beginning(question, question_type)
    history = [t.model_copy(update={"query": t.meant}) for t in history]
    if any(repetition.find(text, earlier) is not None for text in (question, rest)):
        return REPEATS
    if _asks_twice(question):
        return "asks the same twice"
    shared = _example_stems(question, question_type)
    borrowed = shared.difference(*map(content_of, sources))
    alone = len(shared) >= 2 and shared == content_of(question)
    if len(borrowed) >= 2 or (borrowed and (alone or shares_nothing(question, sources))):
        return "is on the topic of an example"
    if fault := find_request_fault(question, documents.passages, question_type):
        return fault
    if history:
        return find_later_fault(question, documents, history, question_type, focus)
    return NAMELESS if is_nameless(question) else None


def is_off_subject(question: str, passages: Sequence[Passage], history: Sequence[Turn], focus: str = "") -> bool:
    """Return True if a question shares no word with the documents and the dialog, and doesn't lean on the latter."""
    leans = history and (len(read_terms(question)) < LEAST_SAID or points_back(question))
    return not leans and shares_nothing(question, [*(p.titled for p in passages), *said_in(history), focus])


def _find_form_fault(question: str, passages: Sequence[Passage], question_type: QuestionType) -> str | None:
    """Return the reason why a question can't be used that it shows by itself, without the dialog; or None."""
    if not has_words(question):
        return "no question"
    if GAP.search(question) or ("…" in question and not dialog_language().spaced):
        return "leaves the gap of a phrasing"
    if _is_beginning(question, question_type):
        return UNFINISHED
    rest = _cut_beginning(question, question_type)
    if question_type.part_taken_up in ("answer", "question") and rest != question and not read_terms(rest):
        return NAMELESS  # “Do you mean what it says?”: none of the 77 clarifications of mtRAG's people
    if speaks_of_documents(question, passages):
        return "speaks of the documents"
    if speaks_like_the_prompt(question, passages):
        return LIKE_THE_PROMPT
    if _AROUND.match(question) or _speaks_like_the_agent(question) or _speaks_for_the_office(question, passages):
        return LIKE_THE_AGENT
    return OF_THE_AGENT if dialog_language().matches("asks_agent", question) else None


def is_nameless(question: str) -> bool:
    """Return True if a first question has no content word, or a pronoun without a name before it (“this fee”, “she”).

    So do 3 of people's 2,995, and two more ask of “it” or “they” with two content words at most and no name: “How long
    does it take?”
    """
    language, named = dialog_language(), set[str]()
    points, person = language.pattern("points"), language.pattern("points_at_person")
    if person and (found := person.search(question)) and not content_of(question[: found.start()]):
        return True
    first, *others = points.split(question) if points else [question]
    for before, after in pairwise((first, *others)):
        named.update(content_stems(before))
        if not {*content_stems(after)[:1]} <= named:
            return True
    terms = read_terms(question)
    few = len(terms) <= _FEW_NAMED and all(term.kind == "word" for term in terms)
    return not read_terms(first) or (few and language.matches("asks_of_it", question) and refers_back(question))


def tells_fact(message: str, facts: Sequence[str]) -> bool:
    """Return True if a message asks nothing and says most of a fact: “No, I meant the crossing takes 22 minutes.”

    Bare words say none: “ferry crossing minutes”.
    """
    language, content = dialog_language(), content_of(message)
    if language.idle and language.idle.isdisjoint(words(message)):
        return False
    if asks(message) or list_question_words(message, language) or language.matches("request", message):
        return False
    shared = ((len(content & told), len(told)) for told in map(content_of, facts) if len(told) >= _LEAST_TOLD)
    return any(both >= _MOST_TOLD * told and both >= _MOST_TELLING * len(content) for both, told in shared)


def _asks_twice(question: str) -> bool:
    """Return True if a sentence asks no more than another: “How long is it? How long is the tour?”"""
    language, parts = dialog_language(), [question[start:end] for start, end in sentences(question)]
    asked = [(list_question_words(part, language), content_of(part)) for part in parts]
    return any(
        mine and mine == theirs and about and about <= more for (mine, about), (theirs, more) in permutations(asked, 2)
    )


def _is_beginning(question: str, question_type: QuestionType) -> bool:
    """Return true if a question is a phrasing of its type up to the gap, and no more."""
    phrasings = [phrasing.partition("…")[0] for phrasing in question_type.phrasings if "…" in phrasing]
    return question.casefold().strip(" …?.,:") in [phrasing.casefold().strip(" .,") for phrasing in phrasings]


def _cut_beginning(question: str, question_type: QuestionType) -> str:
    """Return a question without a beginning of its type: “No, I meant” makes no new question of an old one."""
    beginnings = (text for text in question_type.beginnings() if question.casefold().startswith(text.casefold()))
    return question[len(next(beginnings, "")) :]


def _example_stems(question: str, question_type: QuestionType) -> set[str]:
    """Return the stems of content that a question shares with the topics of its type's examples."""
    texts = [text for e in question_type.examples for pair in e.dialog for text in (pair.user, pair.agent, e.question)]
    topics = set(content_stems(" ".join(texts))) - set(content_stems(" ".join(question_type.phrasings)))
    return topics & content_of(question)
