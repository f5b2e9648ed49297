"""Find where a response asks the user back: for what it needs to know before, or beside, an answer.

A clarification response asks to choose among readings or to name what is missing, as a question or as a request
(Rosenthal et al. 2026, section 3.1 and figure 6). Offers ("Do you have any other question?", "Would you like to know
more?") are none. The patterns are those of the dialog's language; `benchmarks/asks_back.py` compares the English ones
with people's labels.
"""

import re
from collections.abc import Iterator
from functools import partial

from generator.common.language import dialog_language
from generator.common.refusals import drop_closings
from generator.common.scripts import ends_in_question_mark, has_question_mark, has_words
from generator.common.sentences import sentences

INSIDE = re.compile(r"(?<=\w )\w+")  # words behind others


def find_request(response: str) -> str:
    """Return the first sentence of a response that asks the user back; empty if none does."""
    return next((" ".join(response[start:end].split()) for start, end in _find_requests(response)), "")


def drop_requests(response: str) -> str:
    """Return a response without what asks the user back, or says before that there are several (“It depends: …”)."""
    requests = list(_find_requests(response))
    for start, end in reversed(requests):
        response = response[:start] + response[end:]
    if requests:
        several = partial(dialog_language().matches, "several")
        for start, end in reversed(list(sentences(response, dialog_language().code))):
            lead, _, told = response[start:end].partition(":")
            if several(response[start:end]) or several(lead):
                response = response[:start] + told + response[end:]
    return response


def asks_alone(response: str) -> bool:
    """Return true if a response tells nothing beside what asks or offers something and courtesy.

    So do eight of 3,030 of people in mtRAG, QuAC, CoQA, Doc2Dial and SQuAD 2.0: five ask back, three reply to thanks.
    """
    rest = drop_closings(drop_requests(response))
    told = (rest[start:end] for start, end in sentences(rest, dialog_language().code))
    asks = has_question_mark(response) or find_request(response)
    return bool(asks) and all(is_question(text) or not has_words(text) for text in told)


def is_question(sentence: str) -> bool:
    """Return true if a sentence ends in a question mark that isn't a title's (“His last film was Who Is It?”)."""
    return ends_in_question_mark(sentence) and not _ends_in_title(sentence)


def _ends_in_title(sentence: str) -> bool:
    """Return true for a statement with a question word in capitals: “The single was Are You Ready?”"""
    language = dialog_language()
    asking = language.listed("question") | language.listed("auxiliary")
    titled = (word for word in INSIDE.findall(sentence) if word.istitle())  # “WHO” isn't
    capitals = {*map(str.casefold, titled)} - language.listed("proper")
    begins = any(language.begins_with(name, sentence) for name in ("question", "auxiliary"))
    return not begins and not asking.isdisjoint(capitals)


def _find_requests(response: str) -> Iterator[tuple[int, int]]:
    language = dialog_language()

    def asks(text: str) -> bool:
        asks_back = has_question_mark(text) and language.matches("asks_back", text)
        return asks_back or language.matches("asks_to_tell", text)

    if not asks(" ".join(response.split())):  # most don't, and needn't be split
        return
    for start, end in sentences(response, language.code):
        sentence = " ".join(response[start:end].split())
        if not language.matches("offers", sentence) and asks(sentence) and not _ends_in_title(sentence):
            yield start, end
