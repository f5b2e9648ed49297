"""What a type of question is. One YAML file holds one; `taxonomy.files` reads them.

After Lee et al. 2024, section 2.1 and figures 3 to 9; the words are ours.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from generator.schema import Record

Stage = Literal["first", "later"]
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
    stage: Stage = Field(description="first (it opens a dialog) or later")
    definition: Text = Field(description="one sentence: A question that …")
    steps: tuple[Text, ...] = Field(
        min_length=2, max_length=4, description="2 to 4 short commands that lead to such a question"
    )
    phrasings: tuple[Text, ...] = Field(min_length=3, max_length=6, description="3 to 6 ways in which users put it")
    examples: tuple[Example, ...] = Field(
        default=(), validate_default=True, description="2 or 3 of a dialog and a question; for later types only"
    )
    may_decline: bool = Field(
        default=False, description="true if documents may offer nothing of this kind; for first types only"
    )
    may_repeat: bool = Field(default=True, description="false if it never stands twice in a row; for later types only")
    turns: int | None = Field(
        default=None, ge=1, description="how many turns a dialog that starts so has; for first types only"
    )
    answerability: Literal["answerable", "unanswerable"] = Field(
        default="answerable", description="answerable or unanswerable: whether the documents are to hold the answer"
    )

    @field_validator("examples", "may_decline", "may_repeat", "turns")
    @classmethod
    def _fits_stage(cls, value: Any, info: ValidationInfo) -> Any:
        match info.field_name, info.data.get("stage"):
            case "examples", "first" if value:
                raise PydanticCustomError("stage", "a first type has none (its steps lead better without)")
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
        lines.append("It begins like one of these: " + ", ".join(f"“{words}”" for words in self.beginnings()))
        return "\n".join(lines)

    def beginnings(self) -> list[str]:
        """The phrasings up to their first gap, which small models would copy; not those of which one word is left."""
        cut = [(phrasing.partition("…")[0].strip(), "…" in phrasing) for phrasing in self.phrasings]
        return [words for words, gap in cut if " " in words or not gap] or list(self.phrasings)
