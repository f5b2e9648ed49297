"""The record of a user type: who asks, how they type, and how often they change the subject. A YAML file holds one.

Models are alike where people differ: in mtRAG's human conversations a question is a few bare words or two sentences,
in small letters or with a slip (Katsis et al. 2025, section 3.1).
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from generator.schema import Record
from taxonomy.types import QuestionType

Typing = Literal["lower-case", "typos", "keywords", "long"]

# What a model is told of a way of typing, and the longest question so typed; code does the others
# (`generator.dialogs.users`).
_TOLD: dict[Typing, tuple[str, int]] = {
    "keywords": ("The User types two to five bare words, as into a search box, and no sentence.", 5),
    "long": ("The User tells in a sentence why they ask, and then asks in another.", 40),
}


class User(Record):
    """A user type. Error messages show a field's description."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$", description="small letters, digits and hyphens, such as in-a-hurry")
    who: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        default="", description="a sentence or two that tell the model who asks and what they are after; or empty"
    )
    typing: tuple[Typing, ...] = Field(
        default=(),
        description="how they type: lower-case (no capitals, no last mark, no “¿”), typos (a slip or two), "
        "keywords, long; several in a list, [] as the model writes",
    )
    switch: float = Field(
        default=0,
        ge=0,
        le=1,
        description="the share of the dialogs, 0 to 1, in which a later question leaves the topic for good",
    )

    def prompt(self, question_type: QuestionType | None = None) -> str:
        """Return the user as text for the prompt of a question, perhaps of a type; empty if nothing is told."""
        return " ".join(filter(None, [self.who, *(_TOLD[each][0] for each in self._list_told(question_type))]))

    def adapt(self, question_type: QuestionType) -> QuestionType:
        """Return a question type as this user asks it: who types keywords or at length begins in no set way."""
        longest = next((_TOLD[each][1] for each in self._list_told(question_type)), None)
        if longest is None:
            return question_type
        return question_type.model_copy(update={"words": longest, "phrasings": ()})

    def _list_told(self, question_type: QuestionType | None) -> list[Typing]:
        """Return the ways of typing that a model is told of.

        Bare words can't go back to the last turn, and neither they nor who asks nothing say why.
        """
        goes_back = question_type is not None and question_type.goes_back
        says_less = question_type is not None and not {"asks-nothing", "bare-words"}.isdisjoint(question_type.checks)
        left_out = {"keywords": goes_back, "long": says_less}
        return [each for each in self.typing if each in _TOLD and not left_out[each]]


# Who asks where no user type is chosen.
PLAIN = User(name="plain")
