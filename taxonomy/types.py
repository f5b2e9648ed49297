"""The records of a question type and of the other dimensions of a question. A YAML file holds one.

After Lee et al. 2024, section 2.1 and figures 3 to 9, and Katsis et al. 2025, appendix A, in our words.
"""

from typing import Annotated, Any, Literal, cast

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from generator.common.language import dialog_language
from generator.common.scripts import count_words
from generator.schema import Answerability, Planned, Record

Stage = Literal["first", "later", "any"]
Part = Literal["question", "answer", "neither"]
# How many letters count as a word, as in `generator.common.scripts.count_words`.
_LETTERS = {"Kana": 2.5, "Han": 2, "Thai": 4}
# The multi-turn type of a turn that answers what the agent asked back.
RESOLUTION = "clarification-of-reading"
# What a question is checked for by its type, and the reply to one that can't be answered
# (`generator.dialogs.checks.requests`), and the answer to an underspecified question
# (`generator.dialogs.underspecified`).
QuestionCheck = Literal[
    "on-topic",
    "uncovered",
    "scattered",
    "presupposes",
    "asks-modality",
    "asks-harm",
    "asks-nothing",
    "asks-twice",
    "asks-how",
    "asks-view",
    "bare-words",
]
ReplyCheck = Literal["says-unknown", "declines", "doubts-sense", "corrects"]
FormCheck = Literal["asks-back", "names-readings", "tells-readings", "tells-nothing", "names-no-reading"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _count_letters() -> float | None:
    """Return how many letters make a word in the dialog's language; None where spaces part words."""
    return next((_LETTERS[script] for script in dialog_language().scripts if script in _LETTERS), None)


class Exchange(Record):
    """A user turn and the agent's answer."""

    user: Text = Field(description="what the user says")
    agent: Text = Field(description="what the agent answers")


class Example(Record):
    """A short dialog on an everyday topic, and a question of the type that follows it."""

    dialog: tuple[Exchange, ...] = Field(min_length=1, max_length=2, description="1 or 2 pairs of user and agent")
    question: Text = Field(description="what the user says next")


class Reply(Record):
    """The agent's manner of replying to a question that can't be answered as it stands."""

    steps: tuple[Text, ...] = Field(min_length=1, max_length=3, description="1 to 3 short commands to the agent")
    checks: tuple[ReplyCheck, ...] = Field(default=(), description="what the reply is checked for")


class Form(Record):
    """A form of the answer to an underspecified question (Rosenthal et al. 2026, appendix B).

    Attributes:
        readings: the most that the answer takes up.
    """

    name: str
    definition: Text
    steps: tuple[Text, ...] = Field(min_length=1, max_length=4)
    readings: int = Field(ge=2)
    checks: tuple[FormCheck, ...]

    def prompt(self) -> str:
        """Return the form as text for a prompt."""
        return "\n".join([f"{self.name}: {self.definition}", *(f"- {step}" for step in self.steps)])


class Facet(Record):
    """A value of another dimension than the question type: a multi-turn type or an answerability (Katsis et al. 2025,
    tables 10 and 11).

    Attributes:
        forms, resolution: of `underspecified`: the forms of its answer, and the multi-turn type of the turn after it.
    """

    name: str = Field(pattern=r"^[a-z][a-z-]*$")
    definition: Text
    steps: tuple[Text, ...] = Field(max_length=3)
    may_repeat: bool = True
    takes_up: Part | None = None
    forms: tuple[Form, ...] = ()
    resolution: "Facet | None" = None

    @property
    def kind(self) -> str:
        """The label in mtRAG, which has one for both clarifications."""
        return self.name.partition("-of-")[0]

    def prompt(self) -> str:
        """Return the facet as text for a prompt; empty if it has no steps."""
        lines = [f"It is also this: {self.definition}", *(f"- {step}" for step in self.steps)]
        return "\n".join(lines) if self.steps else ""


class Dimensions(Record):
    """Hold what can be planned of a question beside its type.

    Attributes:
        multi_turn: how a later turn goes on from the one before.
        aim: how much of it the documents should answer.
        standalone: of later turns, True if it should be understood without the dialog so far.
        new_topic: of later turns, True if it should leave the topic for good.
        form: that of the answer, if it is underspecified.
    """

    multi_turn: Facet | None = None
    aim: Facet | None = None
    standalone: bool | None = None
    new_topic: bool = False
    form: Form | None = None


_NOTHING_PLANNED = Dimensions()


class QuestionType(Record):
    """A question type, and the instructions that lead a model to it. Error messages show a field's description.

    First-turn types have no examples: zero-shot, steps like these gave the intended type in more than 90% of cases,
    three examples without steps in 5% (Lee et al. 2024, section 2.2). Later-turn types are few-shot there.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$", description="small letters, digits and hyphens, such as how-to")
    stage: Stage = Field(description="first (it opens a dialog), later or any")
    definition: Text = Field(description="one sentence: A question that …")
    steps: tuple[Text, ...] = Field(
        min_length=2, max_length=4, description="2 to 4 short commands that lead to such a question"
    )
    phrasings: tuple[Text, ...] = Field(description="3 to 6 ways in which users phrase it, or []")
    examples: tuple[Example, ...] = Field(
        default=(), validate_default=True, description="2 or 3 of a dialog and a question; only for later types"
    )
    may_decline: bool = Field(
        default=False, description="true if documents may offer nothing to ask so; not for later types"
    )
    may_repeat: bool = Field(default=True, description="false if it must not come twice in a row; only for later types")
    turns: int | None = Field(
        default=None, ge=1, description="the number of turns of a dialog that opens with it; not for later types"
    )
    answerability: Literal["answerable", "unanswerable", "underspecified"] = Field(
        default="answerable",
        description="answerable, unanswerable or underspecified: whether the documents should hold the answer, or one "
        "for each of several readings",
    )
    words: int = Field(default=12, ge=1, description="the number of words that a question of the type has at most")
    checks: tuple[QuestionCheck, ...] = Field(
        default=(), description="what the question is checked for, beside what every question is"
    )
    reply: Reply | None = Field(default=None, description="how the agent replies, if not with an answer")
    takes_up: Part | None = Field(
        default=None,
        description="question, answer or neither: what of the last turn it goes back to, which is checked; not for "
        "first types",
    )

    @field_validator("phrasings")
    @classmethod
    def _check_count(cls, value: tuple[Text, ...]) -> tuple[Text, ...]:
        if value and not 3 <= len(value) <= 6:
            raise ValueError(f"there are {len(value)}")
        return value

    @field_validator("examples", "may_decline", "may_repeat", "turns", "takes_up")
    @classmethod
    def _check_stage(cls, value: Any, info: ValidationInfo) -> Any:
        match info.field_name, info.data.get("stage"):
            case "examples", "first" | "any" if value:
                raise ValueError("only a later type has examples")
            case "examples", "later" if not 2 <= len(value) <= 3:
                raise ValueError(f"a later type has 2 or 3, not {len(value)}")
            case "may_repeat", "first" | "any" if not value:
                raise ValueError("only a later type can be kept from coming twice in a row")
            case "may_decline", "later" if value:
                raise ValueError("a later type can't decline")
            case "takes_up", "first" if value is not None:
                raise ValueError("a first type has no turn before it")
            case "turns", "later" if value is not None:
                raise ValueError("a later type opens no dialog")
        return value

    def prompt(self) -> str:
        """Return the type as text for a prompt; its beginnings come last, where small models follow them best."""
        told = self._told
        lines = [f"{told.name}: {told.definition}"]
        for example in self.examples:
            dialog = "".join(f"User: {pair.user} Agent: {pair.agent} " for pair in example.dialog)
            lines.append(f"In another dialog, on another topic: {dialog}→ {example.question}")
        lines += [f"{number}. {step}" for number, step in enumerate(told.steps, 1)]
        facets = [facet.prompt() for facet in self._facets()]
        link = self.dimensions.multi_turn
        # “I meant …” begins as no question of the type does, and what takes up nothing as it likes.
        free = link.takes_up in ("question", "answer") if link else self.takes_up == "neither"
        phrasings = [] if free else self._list_phrasings()
        return "\n".join([*lines, f"It has at most {self.tell_length()}.", *phrasings, *facets])

    def brief(self) -> str:
        """Return the type without examples, and with steps only where no beginnings show it.

        What takes up nothing, or asks nothing, begins as it likes.
        """
        free = self.takes_up == "neither" or "asks-nothing" in self.checks or self._told is not self
        shown = () if free else self._list_phrasings() or self.steps
        facets = [f"It is also this: {facet.definition}" for facet in self._facets()]
        return "\n".join([self._told.definition, f"It has at most {self.tell_length()}.", *shown, *facets])

    @property
    def _told(self) -> "QuestionType | Facet":
        """Return what the prompt tells: the type, or of a clarification that alone, unless the type has checks."""
        link = self.dimensions.multi_turn
        return link if link and link.takes_up == "answer" and not self.checks else self

    def _facets(self) -> list[Facet]:
        """Return what is planned in other dimensions and leads the model somewhere.

        A statement asks for nothing, so that only “I meant …” leads it; what asks for what the answer means asks for
        nothing else, and what leaves the topic takes up nothing.
        """
        aim, link = self.dimensions.aim, self.dimensions.multi_turn
        if "asks-nothing" in self.checks:
            link = link if self.part_taken_up == "question" else None
            aim = None
        elif link and link.takes_up == "answer":
            aim = None
        if self.dimensions.new_topic:
            link = None
        return [facet for facet in (aim, link) if facet and facet.steps and facet is not self._told]

    def tell_length(self, times: int = 1) -> str:
        """Return how long a question may be, so many times: “12 words”, and “24 letters” where no spaces part words."""
        letters, most = _count_letters(), times * self.words
        return f"{int(letters * most)} letters" if letters else f"{most} words"

    def is_exceeded(self, question: str, times: int = 1) -> bool:
        """Return True if a question is longer than that, so many times."""
        return count_words(question, _count_letters()) > times * self.words

    def _list_phrasings(self) -> list[str]:
        """Return how questions begin, or, where one begins with its gap (“…はいくらですか？”), the whole phrasings."""
        shown = self.beginnings()
        # Of “Wann”, “Wie viel”, “Wer” and “Wo”, one of two words would be left, and every question begin with it.
        if 2 * len(shown) < len(self.phrasings):
            shown = [phrasing.partition("…")[0].strip() for phrasing in self.phrasings]
        how = "begins like one of these" if all(shown) else "is put like one of these, with words in place of “…”"
        listed = ", ".join(f"“{words}”" for words in (shown if all(shown) else self.phrasings))
        return [f"It {how}: {listed}"] if listed else []

    def beginnings(self) -> list[str]:
        """Return the phrasings up to their first gap, which small models copy, without those cut to one word."""
        cut = [(phrasing.partition("…")[0].strip(), "…" in phrasing) for phrasing in self.phrasings]
        return [words for words, gap in cut if " " in words or not gap]

    @property
    def dimensions(self) -> Dimensions:
        """What is planned beside the type; of a type by itself nothing."""
        return _NOTHING_PLANNED

    @property
    def multi_turn_type(self) -> str:
        """The multi-turn type of a later turn: where none is planned, its name, since in Lee et al. 2024 it is one."""
        link = self.dimensions.multi_turn
        return link.kind if link else self.name

    @property
    def part_taken_up(self) -> Part | None:
        """The part of the last turn that it goes back to."""
        link = self.dimensions.multi_turn
        return link.takes_up if link else self.takes_up

    @property
    def expected(self) -> str:
        """The answerability that is wanted: how much of it the documents should answer."""
        aim = self.dimensions.aim
        return aim.name if aim else self.answerability

    @property
    def goes_back(self) -> bool:
        """True for a clarification, what resolves a question, and what the User tells in place of one."""
        return self.part_taken_up in ("question", "answer") or self.resolves or "asks-nothing" in self.checks

    @property
    def stands_alone(self) -> bool:
        """True if, as a later turn, it is planned to be understood without the dialog so far, and can be."""
        return bool(self.dimensions.standalone) and not self.goes_back

    @property
    def is_conversational(self) -> bool:
        """True if it asks for nothing."""
        return self.expected == "conversational"

    @property
    def may_leave_topic(self) -> bool:
        """True if it can be on another topic than the turn before."""
        link = self.dimensions.multi_turn
        goes_on = link is None or link.name == "follow-up"
        return goes_on and not self.is_conversational and self.dimensions.form is None

    @property
    def resolves(self) -> bool:
        """True if it answers what the agent asked back."""
        link = self.dimensions.multi_turn
        return link is not None and link.name == RESOLUTION

    def planned(self) -> Planned | None:
        """Return the names of everything planned, for a turn's record; None where types alone are planned."""
        return None


class Target(QuestionType, Dimensions):
    """A planned question: its type, and its value in every other dimension."""

    @property
    def dimensions(self) -> Dimensions:
        return self

    def planned(self) -> Planned:
        return Planned(
            question_type=self.name,
            multi_turn_type=self.multi_turn.name if self.multi_turn else None,
            answerability=cast(Answerability, self.expected),
            standalone=self.standalone,
            new_topic=self.new_topic,
        )
