"""Check that a later question goes on with its dialog as its type says (Lee et al. 2024, section 2.1).

A correction takes up the question before, a clarification the answer, a follow-up neither; no question asks the same
again, or leaves the dialog where no switch was planned. All of it compares stems of content words, with the lists and
patterns of the dialog's language; without such lists nothing is checked.
"""

from collections.abc import Sequence
from itertools import pairwise, zip_longest

from generator.common.language import cached_by_language, dialog_language, languages
from generator.common.language_file import Language, WordList
from generator.common.scripts import ends_in_question_mark, has_question_mark, words
from generator.common.sentences import sentences
from generator.common.shingles import content_stems
from generator.common.support import read_terms
from generator.prompts.sections import Documents, said_in
from generator.schema import Turn
from taxonomy import QuestionType

REPEATS = "repeats an earlier question"
LEAVES = "leaves the subject of the dialog"
ASKS_TOLD = "asks for what the last answer told"
# Of people's 609 later questions in mtRAG, QuAC and Doc2Dial, after answers of so many stems, one has so large a share.
_RETOLD, _TELLING = 0.8, 5
# “Do you mean every night?” asks what was meant. Of people's 77 clarifications in mtRAG, none asks whether it is so as
# was told in as many stems or more, of 60 of Qwen 1.5B on MultiDoc2Dial's pages and technical documents 9.
_WHOLE = 3
_CUT_SHORT = 3  # words


def find_later_fault(
    question: str, documents: Documents, history: Sequence[Turn], question_type: QuestionType, focus: str
) -> str | None:
    """Return the reason why a later question doesn't go on with its dialog, or None.

    Args:
        documents: the passages retrieved so far.
        history: the turns so far, at least one.
        focus: what the question was to touch on; a question that does so stays in the dialog.
    """
    language = dialog_language()
    asked = " ".join([question, *(turn.query for turn in history)])
    if not language.listed("pointing") or not language.is_in(asked):
        return None
    if _is_remark(question):
        return "is courtesy alone"
    corrects, queries = question_type.part_taken_up == "question", [turn.query for turn in history]
    # “Tell me about the pier.” asks for more than “When did the pier open?”
    parts = not corrects and not language.matches("order", question)
    if any(_is_same(question, query, before, parts) for before, query in pairwise(["", *queries])):
        return REPEATS
    # Of several things, one may have been meant.
    if corrects and not language.matches("asks_twice", queries[-1]) and _is_same(question, queries[-1], "", True, 1):
        return REPEATS
    last = next((turn for turn in reversed(history) if turn.answerability != "conversational"), history[-1])
    content, known = content_of(question), _known_stems(documents, history, focus)
    told = content_of(last.answer)
    retold = bool(told) and len(content & told) >= _RETOLD * len(told)
    if retold and (len(told) >= _TELLING or _confirms(question, content, told | content_of(last.query))):
        return "repeats the last answer"
    points, clarifies = points_back(question), language.matches("clarifies", question)
    match question_type.part_taken_up:
        case "question" if not _takes_up_question(question, content, last, known):
            return "takes up nothing of the last question"
        # “Do you mean Monday to Friday?” takes up “on weekdays”.
        case "answer" if content and not (content & told or points or clarifies or _is_cut_short(question)):
            return "takes up nothing of the last answer"
        case "answer" if len(content) >= _WHOLE and _confirms(question, content, told):
            return ASKS_TOLD
        case "neither" if fault := _find_old_matter(question, content, last):
            return fault
    if languages().differ:  # what the documents tell has other words
        return None
    names = len(content) >= 2 and len(read_terms(question)) >= 2  # “How many of us can come at once?” doesn't
    leans_on = points or question_type.stands_alone or (clarifies and len(content) <= _WHOLE)
    return LEAVES if names and content.isdisjoint(known) and asks(question) and not leans_on else None


@cached_by_language(4096)  # all questions of a dialog are compared with the same passages
def content_of(text: str) -> frozenset[str]:
    """Return the stems of the words that carry what a text is about."""
    return frozenset(content_stems(text)) - _stop_stems()


@cached_by_language(64)
def _stop_stems() -> frozenset[str]:
    lists: tuple[WordList, ...] = ("question", "auxiliary", "pointing", "light", "function")
    common = frozenset[str]().union(*map(dialog_language().listed, lists))
    return frozenset(stem for word in common for stem in content_stems(word))


def _is_remark(message: str) -> bool:
    """Return true if a message is courtesy alone: “Thanks!”, “That's great.”"""
    language = dialog_language()
    courtesy = language.listed("courtesy")
    polite = not courtesy.isdisjoint(words(message)) and courtesy | language.idle >= {*words(message)}
    return not asks(message) and (polite or language.matches("closing", message))


def _is_same(question: str, earlier: str, before: str, parts: bool, least: int = 2) -> bool:
    """Return true if a question asks nothing that an earlier one didn't.

    Both have the same question words, unless the new one has none at all (“What about the fee?”), and refer to the same
    things; the new one's content is that of the earlier, or a part of it. Or it only names what the earlier one
    referred to: “When is it open?” – “When is the museum open?”

    Args:
        before: the question before the earlier one, which has such a name.
        parts: a part of the earlier question of `least` words is nothing new.
    """
    language = dialog_language()
    opener = language.pattern("opener")
    new, old = (opener.match(text) if opener else None for text in (question, earlier))
    question, earlier = (text[match.end() :] if match else text for text, match in ((question, new), (earlier, old)))
    mine, theirs = content_of(question), content_of(earlier)
    asking, asked = (list_question_words(text, language) for text in (question, earlier))
    refers, referred = (language.find("pointing", text) for text in (question, earlier))
    if referred and not refers and asking == asked and theirs:
        return theirs < mine <= theirs | content_of(before)
    open_ended = bool(new) and not asking and not language.begins_with("auxiliary", question)
    part = parts and len(mine) >= least and mine < theirs
    same = refers == referred or (open_ended and not refers)  # “How much does it cost to park?” – “I meant parking.”
    return (mine == theirs or part) and bool(mine) and same and (asking == asked or open_ended)


def list_question_words(text: str, language: Language) -> list[str]:
    """Return the question words of a text, in their order if spaces part words."""
    if not language.spaced:
        return sorted(language.find("question", text))
    return [word for word in words(text) if word in language.listed("question")]


def _takes_up_question(question: str, content: frozenset[str], last: Turn, known: frozenset[str]) -> bool:
    """Return true if a question corrects the last one.

    It names what was asked for, or what the answer had wrong (“children, not adults”), or only the thing that was
    meant, and has a word of the dialog (“No, I meant the ferry. When does it leave?”). “Something else” names nothing.
    """
    language = dialog_language()
    rejects, corrects = language.pattern("rejects"), language.pattern("corrects_question")
    rejected = content_of(" ".join(rejects.findall(question))) if rejects else frozenset[str]()
    if not content:  # “That's not what I asked.”, and not “I didn't know that.”
        return (
            asks(question)
            or corrects is None
            or bool(corrects.search(question) or language.matches("rejects", question))
        )
    parts = [part for start, end in sentences(question) for part in question[start:end].split(": ")]
    # “No, I meant the ferry. When does it leave?”, “No, I meant the ferry: when does it leave?”
    correction = next((part for part in parts if corrects and corrects.search(part)), question)
    named = content & content_of(last.query) or rejected & content_of(last.answer)
    meant = frozenset[str]() if asks(correction) else content_of(correction)
    return bool(named) or (bool(meant) and not content.isdisjoint(known))


def _find_old_matter(question: str, content: frozenset[str], last: Turn) -> str | None:
    """Return the reason why a question asks for nothing new."""
    language = dialog_language()
    if language.matches("corrects_question", question):
        return "corrects the last question in place of asking for something new"
    told = content_of(last.answer)
    # “What does E4 mean?” asks for something new where the answer was not about it.
    elsewhere = bool(content) and content.isdisjoint(told) and not points_back(question)
    if language.matches("clarifies", question) and not (elsewhere and list_question_words(question, language)):
        return "asks what the last answer means in place of something new"
    again = _confirms(question, content, told) or _counts_again(question, content, last.answer)
    return ASKS_TOLD if again else None


def _counts_again(question: str, content: frozenset[str], answer: str) -> bool:
    """Return true if a question asks for a number that a sentence of the last answer gives of all that it names.

    “36 months” is none unless it asks for months.
    """
    language = dialog_language()
    if len(content) < 2 or not language.matches("asks_number", question):
        return False
    said = (answer[start:end] for start, end in sentences(answer))
    told = [read_terms(text) for text in said if content <= content_of(text)]
    units = [unit for terms in told for term, unit in zip_longest(terms, terms[1:]) if term.kind == "number"]
    return any(not unit or unit.key in content or not language.matches("duration", unit.text) for unit in units)


def _is_cut_short(question: str) -> bool:
    """Return true for “Every day?”, which leans on the last answer by its form."""
    language = dialog_language()
    begins = language.begins_with("question", question) or language.begins_with("auxiliary", question)
    return language.spaced and ends_in_question_mark(question) and not begins and len(words(question)) <= _CUT_SHORT


def _confirms(question: str, content: frozenset[str], told: frozenset[str]) -> bool:
    """Return true if a question only asks whether it is so as was told, of which its content is a part."""
    language = dialog_language()
    spoken = " ".join(word for word in words(question) if word not in language.listed("leading"))
    return (
        language.begins_with("auxiliary", spoken)
        and len(content) >= 2
        and content <= told
        # "Is there a fee?" asks to confirm what the last answer said, "Can you tell me the fee?" doesn't.
        and not language.matches("request", question)
        and not language.find("alternative", spoken)
        and not language.find("question", spoken)
    )


def asks(question: str) -> bool:
    """Return true if a message asks or orders (“Tell me about …”), and doesn't just tell."""
    language = dialog_language()
    begins = language.begins_with("question", question) or language.begins_with("auxiliary", question)
    return begins or has_question_mark(question) or language.matches("order", question)


def leans(turn: Turn) -> bool:
    """Return true if a later turn needs the dialog before it: it refers back or clarifies, or no words can tell.

    One that was planned to stand alone does if its question in full, with which was searched, has other words.
    """
    if turn.multi_turn_type == "clarification":
        return True
    alone = turn.planned is not None and bool(turn.planned.standalone)
    if alone and turn.retrieval_query in (turn.query, turn.clean_query):
        return False
    return not dialog_language().listed("pointing") or refers_back(turn.meant)


def points_back(question: str) -> bool:
    """Return true if a question may refer to what was said."""
    return bool(dialog_language().find("pointing", question))


def refers_back(question: str) -> bool:
    """Return true if a question has a pronoun for what it doesn't name; without such a pattern, if it may have one.

    “Is there a first step?” doesn't, nor “How do students get their cards?”
    """
    language = dialog_language()
    if pattern := language.pattern("refers"):
        found = (question[: match.end()] for match in pattern.finditer(question))
        return any(not language.matches("refers_within", text) for text in found)
    return points_back(question)


def _known_stems(documents: Documents, history: Sequence[Turn], focus: str) -> frozenset[str]:
    """Return the stems of the dialog, of the documents that its answers rest on, and of `focus`.

    Other documents were retrieved without being of use: a question on them changes the subject. Before any answer rests
    on one, all count.
    """
    cited = {evidence.passage_id for turn in history for evidence in turn.evidence}
    used = {p.document_id for p in documents.passages if p.id in cited}
    passages = [p for p in documents.passages if p.document_id in used or not used]
    texts = [focus, *said_in(history), *(p.titled for p in passages)]
    return frozenset[str]().union(*map(content_of, texts))
