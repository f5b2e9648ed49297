"""Hold the criteria that people judge by: what is asked of a question, an answer or a dialog, on which scale."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from generator.schema import Record
from taxonomy.types import Text

_SPELLINGS = {"y": "yes", "true": "yes", "1": "yes", "n": "no", "false": "no", "0": "no"}
# Columns of a sheet, which no criterion may be named after.
_RESERVED = ("id", "annotator", "passages", "dialog", "question", "response", "note", "keep")


class Level(Record):
    """A value of a scale, as it is filled in, and what it means if that isn't plain."""

    value: Text
    meaning: str = ""


def _check_name(name: str) -> str:
    if name in _RESERVED:
        raise ValueError(f"must be none of {', '.join(_RESERVED)}")
    return name


def _as_text(value: object) -> object:
    """Return what YAML takes for a truth value or a number as the text that it was written as."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else value


def _read_scale(scale: object) -> object:
    if isinstance(scale, Mapping):
        return [{"value": _as_text(value), "meaning": _as_text(meaning)} for value, meaning in scale.items()]
    if isinstance(scale, list):
        return [{"value": _as_text(v)} if isinstance(v, str | int | float) else v for v in scale]
    return scale


def _check_scale(scale: tuple[Level, ...]) -> tuple[Level, ...]:
    values = [level.value.casefold() for level in scale]
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"has the value {twice[0]!r} twice")
    return scale


class Criterion(Record):
    """A question that people answer on a scale. Error messages show a field's description."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(
        pattern=r"^[a-z][a-z0-9_]*$", description="a short name, such as correctness"
    )
    about: Literal["query", "response", "dialog"] = Field(
        default="response", description="what is judged: query, response or dialog (the whole)"
    )
    adjective: str = Field(default="", description="what a good one is, such as correct")
    question: Text = Field(description="what people are asked")
    scale: Annotated[tuple[Level, ...], BeforeValidator(_read_scale), AfterValidator(_check_scale)] = Field(
        default=(Level(value="no"), Level(value="yes")),
        min_length=2,
        description="the values from worst to best, a list, or a mapping that says what each means",
    )
    good: Annotated[str, BeforeValidator(_as_text)] = Field(
        default="", description="the first value of the scale that counts as good; the best if left out"
    )
    ordered: bool = Field(default=True, description="false if the values have no order; then `good` alone is good")
    labels: Mapping[str, bool] = Field(
        default={"correct": True, "incorrect": False}, description="labels of judges that mean good (true) or not"
    )
    decides: bool = Field(default=False, description="true if pairs that most people find not good leave the dataset")

    @model_validator(mode="after")
    def _has_good(self) -> "Criterion":
        if self.good and self.good not in self.values:
            raise ValueError(f"good: {self.good!r} is none of the scale's values: {', '.join(self.values)}")
        return self

    @property
    def values(self) -> tuple[str, ...]:
        """The values from worst to best."""
        return tuple(level.value for level in self.scale)

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values as numbers; None if they are none, or have no order."""
        try:
            return tuple(map(float, self.values)) if self.ordered else None
        except ValueError:
            return None

    @property
    def title(self) -> str:
        """Return what a good one is, for a table's head."""
        return self.adjective or self.name

    def is_good(self, place: int) -> bool:
        """Return whether the value with this place on the scale counts as good."""
        first = self.values.index(self.good or self.values[-1])
        return place >= first if self.ordered else place == first

    def parse(self, text: str) -> int:
        """Return the place of a value on the scale, as people and spreadsheets write it.

        Raises:
            ValueError: it is none.
        """
        folded = text.strip().casefold().removesuffix(".0")
        places = {value.casefold().removesuffix(".0"): place for place, value in enumerate(self.values)}
        if set(places) == {"no", "yes"}:
            folded = _SPELLINGS.get(folded, folded)
        if folded not in places:
            raise ValueError(f"must be one of {', '.join(self.values)}")
        return places[folded]


class Criteria(Record):
    """A set of criteria. Error messages show a field's description."""

    name: Text = Field(description="a short name, such as lee2024")
    instructions: str = Field(default="", description="what people read before they judge")
    criteria: tuple[Criterion, ...] = Field(min_length=1, description="a list of criteria")
    given: tuple[str, str] | None = Field(
        default=None, description="two criteria, to tell how often the first is good where the second is"
    )

    @model_validator(mode="after")
    def _has_distinct_names(self) -> "Criteria":
        names = [criterion.name for criterion in self.criteria]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"has the criterion {twice[0]!r} twice")
        if missing := [name for name in self.given or () if name not in names]:
            raise ValueError(f"given: {missing[0]!r} is none of the criteria")
        return self

    def about(self, whole: bool) -> tuple[Criterion, ...]:
        """Return the criteria of a whole dialog, or those of a turn."""
        return tuple(criterion for criterion in self.criteria if (criterion.about == "dialog") == whole)

    def by_name(self) -> dict[str, Criterion]:
        return {criterion.name: criterion for criterion in self.criteria}
