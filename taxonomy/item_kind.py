"""Hold what tasks and scenarios share: a name, and how a judge rates an answer in them."""

from pydantic import Field

from generator.schema import Record
from taxonomy.types import Text

# The points of the four bands of a rating (Bai et al. 2024, figures 23 to 34).
POINTS = ("1 to 3", "4 to 6", "7 to 9", "10")


class ItemKind(Record):
    """A kind of benchmark item: a task or a scenario, by whose criteria answers are rated from 1 to 10.

    Error messages show a field's description.
    """

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", description="a short name, such as CM")
    title: Text = Field(description="what it is called, such as context memory")
    ability: Text = Field(description="the ability that it shows, such as memory")
    definition: Text = Field(description="one sentence: what the Agent has to be able to do")
    criteria: tuple[Text, ...] = Field(min_length=1, max_length=6, description="what a good answer does")
    bands: tuple[Text, ...] = Field(
        min_length=len(POINTS), max_length=len(POINTS), description="what 1-3, 4-6, 7-9 and 10 points mean"
    )

    def rubric(self) -> str:
        """Return the criteria and bands as text for the prompt of a judge."""
        bands = (f"{points} points: {band}" for points, band in zip(POINTS, self.bands, strict=True))
        return "\n".join([self.definition, *(f"- {criterion}" for criterion in self.criteria), *bands])
