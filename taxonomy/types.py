"""What a type of question is, and what else can be asked of a question. One YAML file holds one; `taxonomy.files` reads
them.

After Lee et al. 2024, section 2.1 and figures 3 to 9, and Katsis et al. 2025, appendix A; the words are ours.
"""

from typing import Annotated, Any, Literal, cast

from pydantic import Field, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from generator.schema import Answerability, Planned, Record

Stage = Literal["first", "later", "any"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Exchange(Record):
    """What the user said, and what the agent answered."""

    user: Text = Field(description="what the user says")
    agent: Text = Field(description="what the agent answers")


class Example(Record):
    """A short dialog on an everyday topic, and a question of the type that follows it."""

    dialog: tuple[Exchange, ...] = Field(min_length=1, max_length=2, description="1 or 2 pairs of user and agent")
    question: Text = Field(description="what the user says next")


class QuestionType(Record):
    """A type of question, and how a model is led to it. A field's description is shown when a file gets it wrong.

    First-turn types have no examples: zero-shot, steps like these gave the intended type in more than 90% of cases,
    three examples without steps in 5% (Lee et al. 2024, section 2.2). Later-turn types are few-shot there.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$", description="small letters, digits and hyphens, such as how-to")
    stage: Stage = Field(description="first (it opens a dialog), later or any")
    definition: Text = Field(description="one sentence: A question that …")
    steps: tuple[Text, ...] = Field(
        min_length=2, max_length=4, description="2 to 4 short commands that lead to such a question"
    )
    phrasings: tuple[Text, ...] = Field(description="3 to 6 ways in which users put it, or [] if there are no such")
    examples: tuple[Example, ...] = Field(
        default=(), validate_default=True, description="2 or 3 of a dialog and a question; of types that are only later"
    )
    may_decline: bool = Field(
        default=False, description="true if documents may offer nothing of this kind; not for later types"
    )
    may_repeat: bool = Field(default=True, description="false if it never stands twice in a row; not for first types")
    turns: int | None = Field(
        default=None, ge=1, description="how many turns a dialog that starts so has; not for later types"
    )
    answerability: Literal["answerable", "unanswerable"] = Field(
        default="answerable", description="answerable or unanswerable: whether the documents are to hold the answer"
    )

    @field_validator("phrasings")
    @classmethod
    def _some_or_none(cls, value: tuple[Text, ...]) -> tuple[Text, ...]:
        if value and not 3 <= len(value) <= 6:
            raise PydanticCustomError("phrasings", "there are {count}", {"count": len(value)})
        return value

    @field_validator("examples", "may_decline", "may_repeat", "turns")
    @classmethod
    def _fits_stage(cls, value: Any, info: ValidationInfo) -> Any:
        match info.field_name, info.data.get("stage"):
            case "examples", "first" | "any" if value:
                raise PydanticCustomError("stage", "a type that opens dialogs has none (its steps lead better without)")
            case "examples", "later" if not 2 <= len(value) <= 3:
                raise PydanticCustomError("stage", "a later type has 2 or 3, not {count}", {"count": len(value)})
            case "may_repeat", "first" if not value:
                raise PydanticCustomError("stage", "a first type stands once in a dialog anyway")
            case "may_decline", "later" if value:
                raise PydanticCustomError("stage", "a later type always finds something to ask")
            case "turns", "later" if value is not None:
                raise PydanticCustomError("stage", "a later type starts no dialog")
        return value

    def prompt(self) -> str:
        """The type as a prompt tells it; the beginnings stand last, where small models heed them most."""
        lines = [f"{self.name}: {self.definition}"]
        for example in self.examples:
            said = "".join(f"User: {pair.user} Agent: {pair.agent} " for pair in example.dialog)
            lines.append(f"In another dialog, on another topic: {said}→ {example.question}")
        lines += [f"{number}. {step}" for number, step in enumerate(self.steps, 1)]
        if self.phrasings:
            lines.append("It begins like one of these: " + ", ".join(f"“{words}”" for words in self.beginnings()))
        return "\n".join(lines)

    def beginnings(self) -> list[str]:
        """The phrasings up to their first gap, which small models would copy; not those of which one word is left."""
        cut = [(phrasing.partition("…")[0].strip(), "…" in phrasing) for phrasing in self.phrasings]
        return [words for words, gap in cut if " " in words or not gap] or list(self.phrasings)

    @property
    def multi_turn_type(self) -> str:
        """What it is as a later turn: Lee et al. 2024 have one dimension only."""
        return self.name

    @property
    def stands_alone(self) -> bool:
        """Whether, as a later turn, it is to be understood with nothing before it."""
        return False

    @property
    def is_conversational(self) -> bool:
        """Whether it asks for nothing."""
        return False

    def planned(self) -> Planned | None:
        """What is written down of the plan, where the outcome is measured."""
        return None


class Facet(Record):
    """What a question can be besides its type: its multi-turn type or its answerability (Katsis et al. 2025, tables 10
    and 11).
    """

    name: str = Field(pattern=r"^[a-z][a-z-]*$")
    definition: Text
    steps: tuple[Text, ...] = Field(max_length=3)
    may_repeat: bool = True

    @property
    def kind(self) -> str:
        """What it is a kind of: both clarifications are one label in mtRAG."""
        return self.name.partition("-of-")[0]

    def prompt(self) -> str:
        """The facet as a prompt tells it; empty if nothing is to be heeded."""
        return (
            "\n".join(["It is also this: " + self.definition, *(f"- {step}" for step in self.steps)])
            if self.steps
            else ""
        )


class Target(QuestionType):
    """A question type in the place that a plan gives it: what the question is to be in every dimension.

    Attributes:
        multi_turn: of a later turn.
        aim: how much of it the documents are to answer.
        standalone: of a later turn, whether it is to be understood with nothing before it.
    """

    multi_turn: Facet | None = None
    aim: Facet | None = None
    standalone: bool | None = None

    def prompt(self) -> str:
        """The type, and then what else is wanted of the question."""
        facets = (self.aim, self.multi_turn)
        return "\n".join([super().prompt(), *filter(None, (facet.prompt() for facet in facets if facet))])

    @property
    def multi_turn_type(self) -> str:
        return self.multi_turn.kind if self.multi_turn else self.name

    @property
    def stands_alone(self) -> bool:
        return bool(self.standalone)

    @property
    def is_conversational(self) -> bool:
        return self.aim is not None and self.aim.name == "conversational"

    def planned(self) -> Planned:
        """The names of everything planned."""
        return Planned(
            question_type=self.name,
            multi_turn_type=self.multi_turn.name if self.multi_turn else None,
            answerability=cast(Answerability, self.aim.name) if self.aim else None,
            standalone=self.standalone,
        )
