"""The record of a task of MT-Bench-101: what a dialog of it is like, and how an answer in it is rated.

A YAML file in `tasks/` holds one; generation and judge read the same file. After Bai et al. 2024, table 1 and figures 8
to 34, in our words.
"""

import json
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from generator.schema import Record, Turns
from taxonomy.item_kind import ItemKind
from taxonomy.types import Exchange, Text

# What a generated dialog is checked for beside its form; `generator.dialogs.checks.tasks` has them.
Check = Literal["answers-ask", "first-answer-asks", "refers-back", "returns", "look-alike", "disputes", "rewrites"]


class TaskExample(Record):
    """A dialog of a task."""

    result: str = Field(default="", description="the result that the last answer must hold, where the task has one")
    mistake: str = Field(default="", description="the wrong words of the first answer, where the task has a mistake")
    dialog: tuple[Exchange, ...] = Field(min_length=2, description="2 or more pairs of user and agent")


class Task(ItemKind):
    """A task: what User and Agent do in its dialogs, and how the Agent's answers are rated from 1 to 10.

    Error messages show a field's description.
    """

    tier: Text = Field(description="the tier of its ability, such as perceptivity")
    steps: tuple[Text, ...] = Field(min_length=1, max_length=6, description="what User and Agent do, turn by turn")
    open_ended: bool = Field(
        default=False,
        description="true if each turn is a question and its answer, checked as in other dialogs: it ends before one "
        "that fails",
    )
    turns: Turns | None = Field(
        default=None,
        validate_default=True,
        description="the number of turns, or a range such as 3-5; if it is open-ended, it may be left to the run",
    )
    judged_from: int = Field(default=1, ge=1, description="the first turn whose answer is rated")
    reference: bool = Field(
        default=False, description="true if the judge compares an answer with the golden answer of its turn"
    )
    result: str = Field(
        default="",
        description="what the writer fixes before the dialog and the last answer must hold, such as a number; or empty",
    )
    mistake: str = Field(
        default="", description="what the first answer gets wrong on purpose, as the words to look for; or empty"
    )
    checks: tuple[Check, ...] = Field(default=(), description="what a generated dialog is checked for")
    examples: tuple[TaskExample, ...] = Field(
        min_length=1, max_length=3, description="1 to 3 dialogs of the task, of as many turns as `turns` allows"
    )

    @field_validator("turns", mode="before")
    @classmethod
    def _parse(cls, value: Any, info: ValidationInfo) -> Any:
        return None if value is None and info.data.get("open_ended") else Turns.parse(value)

    @field_validator("judged_from", "examples")
    @classmethod
    def _fits_in(cls, value: Any, info: ValidationInfo) -> Any:
        turns = info.data.get("turns")
        if turns and info.field_name == "judged_from" and value > turns.least:
            raise ValueError(f"is beyond the shortest dialog, of {turns.least}")
        for n, example in enumerate(value if info.field_name == "examples" else (), 1):
            if turns and not turns.least <= (length := len(example.dialog)) <= turns.most:
                raise ValueError(f"number {n} has {length} turns")
            for key in ("result", "mistake"):
                if bool(getattr(example, key)) != bool(info.data.get(key)):
                    raise ValueError(f"each has a {key} if the task has, else none")
        return value

    def prompt(self, turns: int) -> str:
        """Return the task as text for the prompt of its writer, for a dialog of so many turns.

        Its examples look as the reply should, which small models follow best.
        """
        lines = [f"{self.title}: {self.definition}", *(f"{n}. {step}" for n, step in enumerate(self.steps, 1))]
        for example in self.examples:
            fixed = {"result": example.result, "mistake": example.mistake}
            shown: dict[str, object] = {name: text for name, text in fixed.items() if text}
            shown["turns"] = [{"user": pair.user, "agent": pair.agent} for pair in example.dialog]
            lines.append(f"An example on another topic, without its plan: {json.dumps(shown, ensure_ascii=False)}")
        return "\n".join([*lines, f"The dialog has exactly {turns} turns."])
