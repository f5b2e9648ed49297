"""The forms of what Elasticsearch answers, as pydantic reads them: what stands in front of a server may answer too."""

from collections.abc import Iterator
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, Field, RootModel, ValidationError, model_validator

A = TypeVar("A", bound=BaseModel)

_Row = Annotated[int, Field(validation_alias="_id", ge=0)]


class Unreadable(Exception):
    """What came as a result has not the form of one; the message says where, on one line."""


class Refusal(Exception):
    """What Elasticsearch answered in place of a result, to a whole request or to one of many in it.

    Attributes:
        status: of HTTP, or of the one answer in a 200.
        kind: Elasticsearch's name for it, such as `index_not_found_exception`.
        reason: in words, on one line.
    """

    def __init__(self, status: int, error: object) -> None:
        self.status, self.kind = status, str(error.get("type", "")) if isinstance(error, dict) else ""
        # What caused an error often repeats its words.
        told: list[str] = []
        for reason in _reasons(error):
            if reason and not any(reason in other for other in told):
                told.append(reason)
        self.reason = " ".join(": ".join(told).split())
        super().__init__(f"{status} {self.kind}: {self.reason}")


class Hit(BaseModel):
    """A passage that a search found."""

    row: _Row
    score: float = Field(validation_alias="_score", allow_inf_nan=False)


class Hits(BaseModel):
    """What a search found, best first."""

    hits: list[Hit]


class Shards(BaseModel):
    """How many shards of an index did not answer."""

    failed: int = 0


class Answer(BaseModel):
    """What one of several searches came to: hits, or an error."""

    error: Any = None
    status: int = 500
    timed_out: bool = False
    shards: Shards = Field(default=Shards(), validation_alias="_shards")
    hits: Hits | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if not (self.error or self.hits):
            raise ValueError("neither hits nor an error")
        return self

    @property
    def ranking(self) -> list[tuple[int, float]] | Refusal:
        """Rows with their scores, best first, each once."""
        if self.error or self.hits is None:
            return Refusal(self.status, self.error)
        if self.timed_out or self.shards.failed:
            return Refusal(503, {"type": "partial_result", "reason": "not every shard of the index answered"})
        ranking: dict[int, float] = {}
        for hit in self.hits.hits:
            ranking.setdefault(hit.row, hit.score)  # copies in an index would count twice
        return [*ranking.items()]


class Searches(BaseModel):
    """To `_msearch`: an answer to each search, in their order."""

    responses: list[Answer]


class Mapping(BaseModel):
    """What an index says of itself, where it says anything."""

    meta: dict[str, Any] = Field(default={}, validation_alias="_meta")


class Described(BaseModel):
    """One index."""

    mappings: Mapping


class Indexes(RootModel[Annotated[dict[str, Described], Field(min_length=1)]]):
    """To `_mapping`: the indexes that a name stands for."""


class Held(BaseModel):
    """Whether an index has a passage."""

    row: _Row
    found: bool = False


class Lookup(BaseModel):
    """To `_mget`: an entry for each passage."""

    docs: list[Held]


class Item(BaseModel):
    """What became of one passage that was sent."""

    name: str = Field(validation_alias="_id")
    status: int
    error: Any = None


class Load(BaseModel):
    """To `_bulk`: an item for each passage, under what was done with it."""

    items: list[Annotated[dict[str, Item], Field(min_length=1)]]


class Count(BaseModel):
    """To `_count`."""

    count: int


def read(form: type[A], response: Any) -> A:
    """What the client got, as `form`.

    Raises:
        Unreadable: it has another form.
    """
    try:
        return form.model_validate(response.body)
    except ValidationError as error:
        mistake = error.errors(include_url=False)[0]
        place = ".".join(map(str, mistake["loc"]))
        said = mistake["msg"].removeprefix("Value error, ")
        raise Unreadable(f"{place}: {said}" if place else said) from error


def _reasons(error: object) -> Iterator[str]:
    """What an error says, and then what lies behind it."""
    if isinstance(error, str):
        yield error
    while isinstance(error, dict):
        yield str(error.get("reason") or "")
        # Of a search, only what is behind it says more than that the shards failed.
        roots = error.get("root_cause")
        for root in roots if isinstance(roots, list) else []:
            if isinstance(root, dict) and root.get("type") != error.get("type"):
                yield f"{root.get('type')}: {root.get('reason')}"
        error = error.get("caused_by")
