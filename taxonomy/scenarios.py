"""The record of a scenario of RAD-Bench: three questions that build on each other, each with a context of its own.

A YAML file in `scenarios/` holds one; generation and judge read the same file. After Kuo et al. 2025, section 3.1,
appendix A and figures 8 to 20, in our words.
"""

import json
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from generator.schema import Record
from taxonomy.item_kind import ItemKind
from taxonomy.types import Text

# What a generated set of questions is checked for beside its form; `generator.dialogs.checks.scenarios` has them.
SetCheck = Literal["form-first", "adds-conditions"]
# Each item has so many questions.
QUESTIONS = 3


class ScenarioTurn(Record):
    """A turn of a scenario's items."""

    progression: Text = Field(description="what the User asks for in this turn")
    context: Literal["corpus", "source", "given"] = Field(
        description="where the context comes from: corpus (a search in all documents), source (a search in the item's "
        "own document) or given (reference information that comes with the item and is not searched)"
    )
    search: Literal["query", "question"] | None = Field(
        default=None,
        description="what the context is searched with: query (a search query of its own) or question; only for a "
        "context that is searched",
    )
    reference: Literal["points", "target", "evidence", "plan", "none"] = Field(
        description="points (knowledge points from the context), target (the paragraph of the item's own document "
        "that the User is after), evidence (verbatim spans of the context), plan (the expert's) or none"
    )
    judge: tuple[Literal["reference", "context"], ...] = Field(
        description="what the judge sees of this turn beside question and answer: reference, context, both or []; "
        "later turns show it the reference as the answer to this one"
    )

    @field_validator("judge")
    @classmethod
    def _check_judge(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "reference" in value and info.data.get("reference") == "none":
            raise ValueError("the turn has no reference")
        return value


class ScenarioQuestion(Record):
    """A question of an example."""

    question: Text = Field(description="what the User says")
    query: str = Field(default="", description="the search query, where the turn has one")


class ScenarioExample(Record):
    """The questions of an item."""

    source: Text = Field(description="a few words: what document the questions were made from")
    questions: tuple[ScenarioQuestion, ...] = Field(
        min_length=QUESTIONS, max_length=QUESTIONS, description=f"{QUESTIONS} pairs of question and query"
    )


class Scenario(ItemKind):
    """A scenario: how the questions of its items progress, what answers rest on, and how they are rated.

    Error messages show a field's description.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")] = Field(
        description="small letters, digits and hyphens, such as news"
    )
    aspect: Literal["RS", "RR", "TR"] = Field(
        description="the publisher's: RS (synthesis), RR (reasoning) or TR (reasoning towards a plan)"
    )
    ability: Literal["synthesis", "reasoning"] = Field(description="synthesis or reasoning")
    turns: tuple[ScenarioTurn, ...] = Field(
        min_length=QUESTIONS, max_length=QUESTIONS, description=f"{QUESTIONS} turns, one after the other"
    )
    steps: tuple[Text, ...] = Field(min_length=1, max_length=8, description="how the questions are written, in order")
    phrasings: tuple[tuple[Text, ...], ...] = Field(
        default=(), description=f"{QUESTIONS} lists, one for each turn, of ways in which the User begins; or []"
    )
    checks: tuple[SetCheck, ...] = Field(
        default=(),
        description="what a generated set is checked for: form-first (the first question fixes the form of a text, and "
        "no later one names a form) and adds-conditions (each later question adds conditions and repeats none)",
    )
    examples: tuple[ScenarioExample, ...] = Field(
        min_length=1, max_length=3, description="1 to 3 sets of questions, each with a query where its turn has one"
    )

    @field_validator("turns")
    @classmethod
    def _check_search(cls, value: tuple[ScenarioTurn, ...]) -> tuple[ScenarioTurn, ...]:
        for n, turn in enumerate(value, 1):
            if (turn.context == "given") != (turn.search is None):
                raise ValueError(f"turn {n}: search is given if the context is searched")
        return value

    @field_validator("phrasings")
    @classmethod
    def _check_phrasings(cls, value: tuple[tuple[Text, ...], ...]) -> tuple[tuple[Text, ...], ...]:
        if len(value) not in (0, QUESTIONS):
            raise ValueError(f"there are {len(value)}")
        return value

    @field_validator("examples")
    @classmethod
    def _check_queries(cls, value: tuple[ScenarioExample, ...], info: ValidationInfo) -> tuple[ScenarioExample, ...]:
        for n, turn in enumerate(info.data.get("turns", ())):
            if any(bool(example.questions[n].query) != (turn.search == "query") for example in value):
                raise ValueError(f"question {n + 1}: a query if the turn has one")
        return value

    def outline(self) -> str:
        """Return what its three turns are, as text for a prompt."""
        turns = (f"Turn {n}: {turn.progression}" for n, turn in enumerate(self.turns, 1))
        return "\n".join([f"{self.title}: {self.definition}", *turns])

    def prompt(self) -> str:
        """Return the scenario as text for the prompt of the writer of question sets.

        Its examples look as the reply should, which small models follow best.
        """
        lines = [self.outline(), "The rules:", *(f"- {step}" for step in self.steps)]
        for example in self.examples:
            turns = [
                {"request": each.question} | ({"query": each.query} if each.query else {}) for each in example.questions
            ]
            shown = json.dumps({"turns": turns}, ensure_ascii=False)
            lines.append(f"An example on another subject, from {example.source}, without its plan: {shown}")
        return "\n".join(lines)
