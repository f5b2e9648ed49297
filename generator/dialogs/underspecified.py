"""Write an underspecified turn, and the one that resolves it (Rosenthal et al. 2026, section 2.1 and appendix B).

The question is asked in the words that its readings share (`generator.dialogs.readings`), and a search for it must
find them; then the answer asks back, in one of three forms. The checks ask no model: words are compared by their stems,
and what counts as asking back is `find_request`'s to say.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence

import dspy

from generator.common.language import dialog_language
from generator.common.scripts import has_question_mark
from generator.common.support import read_terms
from generator.dialogs.candidates import Attempt, Refused, draw_best
from generator.dialogs.checks.answers import find_voice_fault
from generator.dialogs.checks.asks_back import find_request
from generator.dialogs.checks.later_turns import refers_back
from generator.dialogs.checks.questions import (
    TELLS,
    WRITE_AS_THEY_SPEAK,
    find_fault,
    speaks_like_the_prompt,
    tells_fact,
)
from generator.dialogs.checks.requests import topic_stems
from generator.dialogs.dedup import Repetition
from generator.dialogs.language_checks import check_language
from generator.dialogs.program import TurnTask
from generator.dialogs.query import search
from generator.dialogs.readings import (
    Reading,
    find_readings,
    is_told,
    list_meant,
    list_names,
    list_readings,
    names_one,
    own_stems,
    share,
    spell,
)
from generator.dialogs.steps import Asked, answering, call_until_sound
from generator.errors import Rejected
from generator.prompts.calls import call
from generator.prompts.message_text import on_one_line
from generator.prompts.sections import Documents
from generator.prompts.signatures import REJECTED, AboutQuestion, InDialog
from generator.schema import Hit, Passage, Retriever, Turn
from taxonomy import Form, FormCheck

READINGS = "The things that it could be about, and what is told of each"
# Passages that are looked through for readings, as a multiple of those of a search.
_WIDER = 4
# Choices of readings, of which each dialog has one.
_CHOICES = 3
# A question, what the search for it returned, and those of the readings that it found.
_Unclear = tuple[str, tuple[Hit, ...], tuple[Passage, ...], list[Reading]]


class UnderspecifiedQuestion(InDialog):
    """Write the User's next message: a question that fits each of the things below, because it doesn't say which one \
it is about. Write what is told of all of them alike, then ask for that as if there were only one such thing, in the \
words that they share, and with no name or word that only one of them has. At most 20 words. Never speak of \
documents, passages, texts or sentences."""

    readings: str = dspy.InputField(desc=READINGS)
    shared: str = dspy.InputField(desc="Words that they share")
    rejected: str = dspy.InputField(desc=REJECTED)
    alike: str = dspy.OutputField(desc="what is told of all of them alike", max_length=200)
    question: str = dspy.OutputField(
        desc="what the User types, which leaves open which of them is meant", max_length=200
    )


class ClarifyingAnswer(AboutQuestion):
    """Write the Agent's reply to a question that could be about any of the things below. The Agent doesn't know which \
one the User means, so it asks; the reply has the form below. Say nothing that isn't told, and speak as one who knows \
this by heart: no word about documents."""

    readings: str = dspy.InputField(desc=READINGS)
    rejected: str = dspy.InputField(desc=REJECTED)
    form: str = dspy.InputField(desc="The form of the reply")
    answer: str = dspy.OutputField(desc="what the Agent says, ending in a question to the User", max_length=700)


class Resolution(InDialog):
    """Write the User's next message: the answer to what the Agent asked. The User means the thing below, says so in a \
few words by its name, and names no other. Never speak of documents, passages, texts or sentences."""

    meant: str = dspy.InputField(desc="What the User means, and what is told of it")
    rejected: str = dspy.InputField(desc=REJECTED)
    question: str = dspy.OutputField(desc="what the User now says", max_length=160)


class Underspecified(dspy.Module):
    """Writes underspecified turns, and the questions of the turns that resolve them.

    Args:
        retriever: searches the documents of one split.
        k: passages per search.
    """

    def __init__(self, repetition: Repetition, retriever: Retriever, k: int) -> None:
        super().__init__()
        self.question = dspy.Predict(UnderspecifiedQuestion)
        self.reply = dspy.Predict(ClarifyingAnswer)
        self.resolution = dspy.Predict(Resolution)
        self.repetition, self.retriever, self.k = repetition, retriever, k

    async def aforward(self, task: TurnTask, form: Form) -> tuple[Turn, tuple[Passage, ...]]:
        """Return the finished turn, whose answer has a form, and all passages retrieved up to it.

        Raises:
            Rejected: there are no two readings, or three questions or answers in a row fail the checks.
        """
        readings, last = await self._search_readings(task)
        with task.asker.speaking():
            question, hits, new, found = await self._ask(task, readings, last)
        readings = found[: form.readings]
        typed = task.asker.type_out(question, task.number)
        passages = (*task.passages, *new)

        def find(answer: str) -> str | None:
            return find_voice_fault(answer, passages) or _find_form_fault(answer, form, readings)

        inputs = {"documents": Documents(passages=passages), "dialog": task.dialog, "question": typed}
        inputs |= {"readings": _list(readings), "form": form.prompt()}
        with answering(typed):
            answer, _ = await call_until_sound(self.reply, "answer", task.number, find, **inputs)
        turn = Asked(typed, question, question, hits).make_turn(
            task.question_type,
            task.number,
            answerability="underspecified",
            reasoning="\n".join([f"{form.name}:", *(reading.text for reading in readings)]),
            answer=answer,
            evidence=tuple(reading.evidence for reading in readings),
        )
        return turn, passages

    async def resolve(self, task: TurnTask) -> str:
        """Return the message by which the User says which reading of the last question was meant.

        Raises:
            Rejected: the last turn isn't underspecified, or three messages in a row fail the checks.
        """
        last = task.history[-1]
        if last.answerability != "underspecified":
            raise Rejected("ask", "nothing to resolve: the underspecified turn before was skipped")
        by_span = {(reading.passage.id, reading.start): reading for reading in list_readings(task.passages)}
        readings = [by_span[span.passage_id, span.start] for span in last.evidence]
        meant = len(task.history) % len(readings)
        names = list_names(readings)
        others = set().union(*(stems for place, stems in enumerate(own_stems(readings)) if place != meant))

        def find(message: str) -> str | None:
            if speaks_like_the_prompt(message, task.passages):
                return WRITE_AS_THEY_SPEAK
            stems = topic_stems(message)
            if not stems & names[meant]:
                return f"doesn't name the one that is meant: say {spell(names[meant], readings[meant].text)}"
            if tells_fact(message, [readings[meant].sentence]):
                return TELLS
            return f"names another one too: {spell(stems & others, message)}" if stems & others else None

        inputs = {"documents": task.documents, "dialog": task.dialog, "meant": readings[meant].text}
        message, _ = await call_until_sound(self.resolution, "ask", task.number, find, **inputs)
        return message

    async def _search_readings(self, task: TurnTask) -> tuple[list[Reading], list[Reading]]:
        """Return readings near what a first question is to touch on, or near the last answer; and what is told of the
        one thing, if there is one, that the dialog is about.
        """
        source, split, document, near = task.plan.source, task.plan.split, None, task.focus
        if task.history:
            before = task.history[-1]
            near = f"{before.retrieval_query or before.query} {before.answer}"
        elif isinstance(source, Passage):
            document, near = source.document_id, f"{source.title} {task.focus or source.text[:300]}"
        found = [scored.passage for scored in await self.retriever.search(near, _WIDER * self.k, split)]
        if document:
            found += [s.passage for s in await self.retriever.search(near, self.k, split, document)]
        about, last = _find_document(task), list[Reading]()
        if about:
            last = list_readings([s.passage for s in await self.retriever.search(near, _WIDER * self.k, split, about)])
        used = _list_used(task)
        candidates = {passage.id: passage for passage in (*found, *task.passages) if passage.id not in used}
        passages, spoken = list(candidates.values()), _list_spoken(task)
        # Where all dialogs are about a few documents, the most alike would be asked for in each.
        told, rank = _list_told(task), task.plan.seed % _CHOICES
        readings = await asyncio.to_thread(find_readings, passages, spoken, document, last, told, rank)
        if readings:
            return readings, last
        raise Rejected("ask", "no second reading: no other document tells the like", near)

    async def _ask(self, task: TurnTask, readings: Sequence[Reading], last: Sequence[Reading]) -> _Unclear:
        apart = set().union(*own_stems(readings))
        shared = frozenset.intersection(*(reading.plain for reading in readings))
        used, spoken, told = _list_used(task), _list_spoken(task), _list_told(task)
        language, sort = dialog_language(), dialog_language().pattern("sort")

        async def draw(attempt: Attempt) -> _Unclear:
            prediction = await call(
                self.question,
                "ask",
                attempt.profile,
                task.number,
                documents=task.documents,
                dialog=task.dialog,
                readings=_list(readings),
                shared=spell(share(readings), readings[0].text),
                rejected=attempt.rejected,
            )
            question = on_one_line(prediction.question)
            check_language(question)
            stems = topic_stems(question)
            hits, new = await search(self.retriever, question, self.k, task.plan.split, task.passages)
            by_id = {passage.id: passage for passage in (*task.passages, *new)}
            ids = {hit.passage_id: None for hit in hits if hit.passage_id not in used}
            first = [name for name in (reading.passage.id for reading in readings) if name in ids]
            found = list_meant(stems, shared, [by_id[name] for name in dict.fromkeys([*first, *ids])])
            focus = " ".join(reading.text for reading in readings)
            # Of the 24 underspecified questions of MTRAG-UN's sample, most name the sort of a thing (“this library”),
            # and one of the 18 later ones says “it” without (“How does it affect the cell?”).
            by_sort = sort.sub("", question) if sort else question
            fault = find_fault(by_sort, task.documents, task.history, task.question_type, self.repetition, focus)
            if fault is None and task.history and refers_back(by_sort) and language.matches("bare", by_sort):
                fault = "has one reading: “it” is what the User just spoke of, so name the sort of thing"
            if fault is None and stems & apart:
                fault = f"tells which one is meant: leave out {spell(stems & apart, question)}"
            if fault is None and not stems & shared:
                fault = "names nothing that the readings share"
            if fault is None and len(found) < 2:
                fault = "has one reading: a search for it finds no second thing that all of it fits"
            asked = stems & frozenset[str]().union(*(reading.stems for reading in found))
            fits = next((reading for reading in last if asked <= reading.stems), None)
            if fault is None and fits:
                apart_from_it = spell(share(readings) - fits.stems, readings[0].text)
                fault = f"has one reading: it fits what the User just spoke of, so say this, too: {apart_from_it}"
            if fault is None and (names_one(found, spoken, last) or is_told(found, told)):
                fault = "has one reading: the User just spoke of it"
            if fault is not None:
                raise Refused("ask", fault, question)
            return question, hits, new, found

        return await draw_best(1, "ask", task.number, draw)


def _list(readings: Sequence[Reading]) -> str:
    return "\n".join(f"- {reading.text}" for reading in readings)


def _list_spoken(task: TurnTask) -> frozenset[str]:
    """Return the stems of what was said last."""
    return frozenset().union(*(topic_stems(f"{turn.query} {turn.answer}") for turn in task.history[-1:]))


def _find_document(task: TurnTask) -> str | None:
    """Return the id of the one document that the last answer with evidence rests on, or whose title was said since."""
    for turn in reversed(task.history):
        cited, spoken = {span.passage_id for span in turn.evidence}, topic_stems(f"{turn.query} {turn.answer}")
        titles = {each.id: topic_stems(each.title) for each in task.passages}
        named = cited or {name for name, title in titles.items() if title and title <= spoken}
        if ids := {passage.document_id for passage in task.passages if passage.id in named}:
            return ids.pop() if len(ids) == 1 else None
    return None


def _list_told(task: TurnTask) -> set[str]:
    """Return the ids of the documents that answers of the dialog rest on."""
    cited = {span.passage_id for turn in task.history for span in turn.evidence}
    return {passage.document_id for passage in task.passages if passage.id in cited - _list_used(task)}


def _list_used(task: TurnTask) -> set[str]:
    """Return the ids of passages that are readings of an earlier question."""
    unclear = (turn for turn in task.history if turn.answerability == "underspecified")
    return {span.passage_id for turn in unclear for span in turn.evidence}


def _find_form_fault(answer: str, form: Form, readings: Sequence[Reading]) -> str | None:
    """Return the reason why an answer isn't of its form, or None."""
    # Without patterns of the dialog's language, whatever asks is taken for a question back.
    known = dialog_language().pattern("asks_back") is not None
    asks = find_request(answer) if known else has_question_mark(answer)
    stems, told = topic_stems(answer), list(_find_told(answer, readings))
    named = sum(bool(names & stems) for names in list_names(readings))
    counts = {term.key for term in read_terms(answer) if term.text.isalpha()} & {*map(str, range(2, len(readings) + 1))}
    named_by = frozenset[str]().union(counts, *(_numbers(reading.passage.title) for reading in readings))
    numbers = _numbers(answer) & frozenset().union(*(_numbers(reading.sentence) for reading in readings)) - named_by
    met: dict[FormCheck, tuple[bool, str]] = {
        "asks-back": (bool(asks), "doesn't ask which one is meant"),
        "names-readings": (named >= 2, "names fewer than two of them"),
        "names-no-reading": (not named, "names one of them"),
        "tells-readings": (sum(map(bool, told)) >= 2, "tells nothing of two of them"),
        # One or two words of a sentence may be how a thing is named where its title doesn't name it; “two” counts them.
        "tells-nothing": (not numbers and all(len(of) <= 2 for of in told), "tells what is asked for"),
    }
    fault = next((fault for is_met, fault in map(met.__getitem__, form.checks) if not is_met), None)
    swapped = None if fault else _find_swapped(answer, readings)
    return f"tells of one of them what is told of another: “{swapped}”" if swapped else fault


def _find_swapped(answer: str, readings: Sequence[Reading]) -> str | None:
    """Return a part of an answer that names one reading, with a number that the sentence of another one alone has."""
    joins = [rf"\b{re.escape(word)}\b" for word in sorted(dialog_language().listed("joining"))]
    titles = frozenset[str]().union(*(_numbers(each.passage.title) for each in readings))
    numbers, names = [_numbers(each.sentence) - titles for each in readings], list_names(readings)
    for part in re.split("|".join([r"[,;:.!?]\s", *joins]), answer):
        spelt = topic_stems(" ".join(term.text for term in read_terms(part) if term.kind == "number"))
        named = [place for place, of in enumerate(names) if of & topic_stems(part) - spelt]
        others = (of for place, of in enumerate(numbers) if place not in named)
        if len(named) == 1 and _numbers(part) & frozenset[str]().union(*others) - numbers[named[0]]:
            return part.strip()
    return None


def _numbers(text: str) -> frozenset[str]:
    return frozenset(term.key for term in read_terms(text) if term.kind == "number")


def _find_told(answer: str, readings: Sequence[Reading]) -> Iterator[frozenset[str]]:
    """Yield for each reading what an answer has that its sentence has, beside its title, and the sentence of no other.

    Other passages may well have it: the price of one ferry is the hour at which another leaves.
    """
    own = [_facts(reading.sentence) - _facts(reading.passage.title) for reading in readings]
    others = ((*own[:place], *own[place + 1 :]) for place in range(len(own)))
    return (told.difference(*rest) & _facts(answer) for told, rest in zip(own, others, strict=True))


def _facts(text: str) -> frozenset[str]:
    """Return the stems of a text, and its numbers: of “1.8” both digits are stems."""
    return frozenset(stem for stem in topic_stems(text) if not stem.isdigit()) | _numbers(text)
