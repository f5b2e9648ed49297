"""Hold what all programs share, a plan in and a draft out, and the loop of Algorithms 1 and 2 of Lee et al. 2024.

`single` and `multi` hold what differs between these two, the turn; `whole` and `progressive` are programs of their own.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import dspy

from generator.dialogs.candidates import Unused, collect_unused
from generator.dialogs.dedup import Repetition
from generator.dialogs.focus import find_next_sentence
from generator.dialogs.language_checks import SLIP
from generator.dialogs.live import tell_turn
from generator.dialogs.plan import Plan
from generator.dialogs.referring import Leaning
from generator.dialogs.rewording import Reword
from generator.dialogs.steps import Ask, Chat
from generator.dialogs.unanswered import Unanswered
from generator.dialogs.users import Asker
from generator.errors import Rejected
from generator.prompts.adapter import PREAMBLE
from generator.prompts.calls import Others
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import FirstQuestion, NewQuestion, NextQuestion, NextStatement
from generator.schema import Algorithm, Judge, Passage, Split, Turn
from taxonomy import UNDERSPECIFIED, QuestionType

UNRESOLVED = "is not resolved: the turn after it was skipped"


@dataclass(frozen=True)
class Draft:
    """A dialog as an algorithm generated it, not judged yet.

    Attributes:
        turns: the turns worth keeping.
        passages: what they are grounded on.
        skipped: why other turns were skipped, each with the number that it would have had.
        end: what ended the dialog early, if anything did.
        unused: the candidates that were not kept.
    """

    turns: tuple[Turn, ...] = ()
    passages: tuple[Passage, ...] = ()
    skipped: tuple[tuple[int, Rejected], ...] = ()
    end: Rejected | None = None
    unused: tuple[Unused, ...] = ()


@dataclass(frozen=True)
class TurnTask:
    """Hold what the next turn of a dialog is written from.

    Attributes:
        plan: the dialog's.
        asker: who asks.
        history: the turns before it.
        passages: what the dialog has so far.
        question_type: the type of its question, as this user asks it.
        focus: what its question is to touch on; empty leaves that to the model.
        refers: its question may say “it” for what the last turn named.
    """

    plan: Plan
    asker: Asker
    history: tuple[Turn, ...]
    passages: tuple[Passage, ...]
    question_type: QuestionType
    focus: str
    refers: bool = False

    @property
    def number(self) -> int:
        return len(self.history) + 1

    @property
    def documents(self) -> Documents:
        return Documents(passages=self.passages)

    @property
    def dialog(self) -> Conversation:
        return Conversation(turns=self.history)


class Program(dspy.Module):
    """A way to write a dialog.

    Attributes:
        preamble: what the prompts of a run begin with.
        shares_prompts: its calls and those of the judges begin with the same rules, for the server's prefix cache.
    """

    algorithm: ClassVar[Algorithm]
    preamble: str = PREAMBLE
    shares_prompts: ClassVar[bool] = True

    @abstractmethod
    async def write(self, plan: Plan, others: Others) -> Draft:
        """Return the dialog of a plan, without the turns that weren't worth keeping.

        Args:
            others: models beside the one of the current context, by the names of their settings.
        """


@dataclass(frozen=True)
class Options:
    """The parts of Algorithms 1 and 2 that are used.

    Attributes:
        planned: turns are planned in all of mtRAG's dimensions (`taxonomy.Target`), not by their types alone.
        candidates, judges, reasoning: as in `generator.dialogs.steps`.
        replies: some questions can't be answered, and have a reply of their own.
        switching: some users leave the topic of their dialog.
        rewording: questions are said again in other words, as in `user.rewording`.
        moving: Algorithm 2 starts later questions from passages that no answer rests on yet, and tries once more where
            an answer rests on old ones alone, as in `taxonomy.focus=passages`.
        underspecified: Algorithm 2 has some turns that are planned to be underspecified.
    """

    planned: bool = False
    candidates: int = 1
    judges: Sequence[Judge] = ()
    reasoning: bool = True
    replies: bool = False
    switching: bool = False
    rewording: bool = False
    moving: bool = False
    underspecified: bool = False


USUAL = Options()


class DialogProgram(Program):
    """The loop that Algorithms 1 and 2 share; they differ in `turn`."""

    def __init__(self, repetition: Repetition, options: Options) -> None:
        super().__init__()
        ask = partial(Ask, repetition=repetition, candidates=options.candidates, reasoning=options.reasoning)
        self.reasoning = options.reasoning
        self.reword = Reword(repetition) if options.rewording else None
        if options.replies:
            self.unanswered = Unanswered()
        self.ask_first, self.ask_next, self.tell_next = map(ask, (FirstQuestion, NextQuestion, NextStatement))
        if options.planned or options.switching:
            self.ask_new = ask(NewQuestion)
        if options.planned:
            self.chat = Chat()

    async def write(self, plan: Plan, others: Others) -> Draft:
        with collect_unused() as unused:
            draft = await self._write_turns(plan, Asker(plan.user, plan.seed, others.get("user.lm")))
        return replace(draft, unused=tuple(unused))

    async def _write_turns(self, plan: Plan, asker: Asker) -> Draft:
        """Return a dialog of one turn for each type of its plan, without those that weren't worth keeping."""
        focus = plan.focus
        settled = 0  # passages of a topic that was left
        leaning = Leaning(plan.question_types, ahead=not self.reasoning)
        history: tuple[Turn, ...] = ()  # line 1 of both algorithms
        passages: tuple[Passage, ...] = ()
        before = history, passages  # without the last turn
        skipped: tuple[tuple[int, Rejected], ...] = ()
        for place, each in enumerate(plan.question_types):  # line 2 of both, line 8 of Algorithm 2
            lost = plan.question_types[place - 1]
            if each.resolves and UNDERSPECIFIED not in (history[-1].answerability, lost.name):
                # Nothing is unclear: it was skipped. The question in its place leans on the dialog as planned.
                each = lost.model_copy(update={"form": None, "aim": None, "standalone": each.dimensions.standalone})
            question_type, start = asker.adapt(each, place), (history, passages)
            try:
                if history and question_type.is_conversational:
                    turn = await self.chat.acall(history, question_type, asker)
                else:
                    if history and place == plan.switch:
                        focus = plan.new_focus
                    elif history:
                        focus = await self.later_focus(passages[settled:], history, place, plan.split)
                    known = len(passages)
                    refers = leaning.is_due(question_type, place)
                    task = TurnTask(plan, asker, history, passages, question_type, focus, refers)
                    turn, passages = await self.turn(task)
                    leaning.settle(turn, place)
                    if place == plan.switch:
                        settled = known
                tell_turn(turn)
                before = start
                history = (*history, turn)  # line 5 of Algorithm 1, lines 6 and 17 of Algorithm 2
            except Rejected as rejected:
                # Without a first turn there is no dialog, a prompt that is too long only grows, and a slip is a drop.
                end = rejected if not history or rejected.stage in ("context", SLIP) else None
                if end is None:
                    skipped = (*skipped, (len(history) + 1, rejected))
                if question_type.resolves and history[-1].answerability == UNDERSPECIFIED:
                    # Nobody would reply to what the agent asked back.
                    unclear, (history, passages) = history[-1], before
                    if not history:
                        return Draft(end=rejected)
                    skipped = (*skipped, (unclear.turn, Rejected("ask", UNRESOLVED, unclear.spoken)))
                if end is not None:
                    return Draft(history, passages, skipped, end)
        return Draft(history, passages, skipped)

    @abstractmethod
    async def turn(self, task: TurnTask) -> tuple[Turn, tuple[Passage, ...]]:
        """Return the next turn, and the passages that the dialog has after it.

        Raises:
            Rejected: it isn't worth keeping.
        """

    async def later_focus(self, passages: Sequence[Passage], history: Sequence[Turn], place: int, split: Split) -> str:
        """Return what the question of a later turn is to touch on; empty leaves that to the model.

        Without `algorithm.reasoning` it is a sentence, since a small model finds nothing new by itself.
        """
        return "" if self.reasoning else find_next_sentence(passages, history, place)

    async def ask(self, task: TurnTask) -> str:
        """Return the question that a turn begins with, before it is typed."""
        question_type, user = task.question_type, task.asker.user.prompt(task.question_type)
        with task.asker.speaking():
            if not task.history:
                ask = self.ask_first
            elif "asks-nothing" in question_type.checks:
                ask = self.tell_next
            else:
                ask = self.ask_new if question_type.stands_alone else self.ask_next
            question: str = await ask.acall(task.documents, task.history, question_type, task.focus, user)
            if self.reword:
                question = await self.reword.acall(question, task.documents, task.history, question_type)
            return question
