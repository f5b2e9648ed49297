"""Hold the forms of mtRAG's files (Katsis et al. 2025): conversations, tasks, responses, queries."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, Field, StringConstraints

from generator.corpora.mtrag.names import domain_of, parse_turn_id
from generator.schema import Answerability, Passage

# As mtRAG's passages are named, and those that we write (`farrow.md:0-699`).
_OFFSETS = re.compile(r"(?P<document>.+)[-:](?P<start>\d+)-\d+")


def _check_collection(collection: object) -> str:
    domain_of(str(collection))
    return str(collection)


def _parse_answerability(value: object) -> str:
    """Return the class that a list of one label, or a text, names in any case."""
    found = value[0] if isinstance(value, list) and len(value) == 1 else value
    label = str(found).strip().lower()
    if label not in get_args(Answerability):
        raise ValueError(f"{found!r} is none of {', '.join(get_args(Answerability))}")
    return label


def _list_labels(value: object) -> object:
    """Return labels as a list; null, where it was NaN, is none."""
    return [value] if isinstance(value, str) else value or []


_Text = Annotated[str, Field(pattern=r"\S")]
_Collection = Annotated[str, BeforeValidator(_check_collection)]
_TurnId = Annotated[tuple[str, int], BeforeValidator(lambda value: parse_turn_id(str(value)))]
_Labels = Annotated[list[Annotated[str, StringConstraints(strip_whitespace=True)]], BeforeValidator(_list_labels)]


class Labels(BaseModel):
    answerability: Annotated[Answerability, BeforeValidator(_parse_answerability)] = Field(
        validation_alias=AliasChoices("Answerability", "answerability")
    )
    question_type: _Labels = Field(default=[], validation_alias="Question Type")
    multi_turn: _Labels = Field(default=[], validation_alias="Multi-Turn")


class Mark(BaseModel):
    value: str


class Context(BaseModel):
    document_id: _Text
    text: _Text
    title: str | None = None
    url: str | None = None
    score: float | None = None
    marks: dict[str, Mark] = Field(default={}, validation_alias=AliasPath("feedback", "relevant"))

    @property
    def relevant(self) -> bool:
        """Return the last mark: an editor's comes after an annotator's."""
        return bool(self.marks) and list(self.marks.values())[-1].value == "yes"

    def passage(self) -> Passage:
        """Return the passage; offsets at the end of its id, `b45…-2983-5131`, are those in its document."""
        found = _OFFSETS.fullmatch(self.document_id)
        start = int(found["start"]) if found else 0
        return Passage(
            id=self.document_id,
            document_id=found["document"] if found else self.document_id,
            title=self.title or "",
            text=self.text,
            # Some files have a regular expression in place of the address.
            url=self.url if self.url and self.url.startswith(("http://", "https://")) else None,
            start=start,
            end=start + len(self.text),
        )


class UserMessage(BaseModel):
    speaker: Literal["user"]
    text: _Text
    enrichments: Labels


class AgentMessage(BaseModel):
    speaker: Literal["agent"]
    text: _Text
    contexts: list[Context]
    original_text: str = ""


class Conversation(BaseModel):
    collection: _Collection = Field(
        validation_alias=AliasChoices(AliasPath("retriever", "collection", "name"), "domain")
    )
    messages: list[Annotated[UserMessage | AgentMessage, Field(discriminator="speaker")]]


class Message(BaseModel):
    text: _Text


class Utterance(Message):
    speaker: Literal["user", "agent"]


class _TaskLabels(Labels):
    task_id: _TurnId
    collection: _Collection = Field(validation_alias=AliasChoices("Collection", "collection"))
    contexts: Annotated[list[Context], BeforeValidator(lambda value: [] if value is None else value)]
    input: list[Utterance] = Field(min_length=1)


class Task(_TaskLabels):
    targets: list[Message] = Field(min_length=1)
    marked: list[int] | None = Field(
        default=None, validation_alias=AliasPath("annotations", "context_relevance", "system")
    )

    @property
    def relevant(self) -> set[int]:
        """Return the places of the relevant contexts: those marked, or where none can be, those that people gave.

        A context of MTRAG-UN has no mark, and no score, since no search returned it.
        """
        places = {place for place, context in enumerate(self.contexts) if context.relevant}
        if self.marked is None and not any(context.marks for context in self.contexts):
            return {place for place, context in enumerate(self.contexts) if context.score is None}
        return places.union(self.marked or ())


class Prediction(BaseModel):
    text: str  # a model may say nothing
    model_id: str | None = None


class AnsweredTask(_TaskLabels):
    targets: list[Message] = []
    predictions: list[Prediction] = []


class Evaluation(BaseModel):
    task_id: _TurnId
    model: _Text = Field(validation_alias="model_id")
    response: str = Field(validation_alias="model_response")


class Query(BaseModel):
    id: _TurnId = Field(validation_alias="_id")
    text: _Text
