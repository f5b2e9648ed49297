"""The records that everything else speaks in, and the protocols of the parts that can be exchanged.

Records are frozen; no dict crosses a module boundary. What `dialogs.jsonl` and `drops.jsonl` hold is exactly
`Dialog` and `Drop`, one JSON object a line.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Algorithm = Literal["single", "multi"]
# `conversational`: thanks, greetings and the like, which ask for nothing (Katsis et al. 2025, section 3.1).
Answerability = Literal["answerable", "partial", "unanswerable", "conversational"]
Label = Literal["correct", "incorrect", "unjudged"]
Scope = Literal["dialog", "turn", "pair"]
Split = Literal["train", "validation"]
# Of dialogs that respond to a task: the turns before the last were given with it (`Dialog.ended`).
TASK = "task"
# The question type of a person's question whose kind nobody said.
UNLABELLED = "unlabelled"
QueryForm = Literal["last_turn", "rewrite", "user_turns", "full"]


# Of settings: one text stands for a list of one.
OneOrMore = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("must be the name of an environment variable that holds the key; a key would be stored here")
    return value


# The name of an environment variable with a key, which itself is no setting and so never stored.
VariableName = Annotated[str, AfterValidator(_variable)]


def _address(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must be an address that begins with http:// or https://")
    if set("@?#") & set(value):
        raise ValueError("must hold no password or key: it would be stored here, and keys come from the environment")
    return value


# The address of a server, as `http://127.0.0.1:8000/v1`.
Address = Annotated[str, AfterValidator(_address)]


def _path(value: object) -> object:
    if value == "":
        raise ValueError("is empty; give a path, or leave the setting out")
    try:
        return Path(value).expanduser() if isinstance(value, str) else value
    except RuntimeError as error:  # the home directory of nobody
        raise ValueError(str(error)) from error


# A path as a person writes it.
LocalPath = Annotated[Path, BeforeValidator(_path)]


class _Operational:
    """The type of `Operational`."""


# Marks a setting that changes how a run is made and not what it holds, as in `Annotated[int, Operational]`: a stored
# run may be continued with another value.
Operational = _Operational()


class Record(BaseModel):
    """A frozen record that knows all of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Turns(Record):
    """The setting `turns`: a number of turns, or a range such as `3-6`, both ends included."""

    least: int
    most: int

    @classmethod
    def parse(cls, value: object) -> object:
        """Return the range that a number or text gives.

        Raises:
            ValueError: it gives none; a range has whole numbers of at least 1, the smaller one first.
        """
        if isinstance(value, Turns):
            return value
        if not (found := re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", str(value))):
            raise ValueError("must be a number such as 4, or a range such as 3-6")
        turns = cls(least=int(found[1]), most=int(found[2] or found[1]))
        if not 1 <= turns.least <= turns.most:
            raise ValueError("must be at least 1, and a range goes from the smaller to the larger number")
        return turns


class Document(Record):
    """One document of a corpus. `id` is unique in its corpus; `text` holds more than white space.

    `collection` is the part of the corpus that it belongs to, where the publisher has several that are searched apart.
    """

    id: str = Field(min_length=1)
    text: str
    title: str = ""
    url: str | None = None
    collection: str = ""


def _writable(value: object) -> object:
    """Text without the halves of characters that JSON's escapes can smuggle in."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


class SkippedRecord(Record):
    """A record of a corpus that can't be read: `where` (file, and line or record) and why, in the file's own words."""

    where: Annotated[str, BeforeValidator(_writable)]
    reason: Annotated[str, BeforeValidator(_writable)]


class Passage(Record):
    """A piece of a document: `text == document.text[start:end]` (offsets in characters)."""

    id: str
    document_id: str
    title: str = ""
    text: str
    url: str | None = None
    start: int
    end: int


class Hit(Record):
    """A passage that the retriever returned. `rank` counts from 1; `new`: the dialog did not have it yet."""

    passage_id: str
    score: float
    rank: int
    new: bool


class Evidence(Record):
    """A verbatim sentence: `text == passage.text[start:end]`, offsets in characters of the passage."""

    passage_id: str
    start: int
    end: int
    text: str


class Verdict(Record):
    """What a judge said of one context-response pair; `unjudged` when the judge itself failed.

    Attributes:
        label: the judge's word: a `Label` if it decides, else one of its own (`yes`, `partial`, `scored`, …).
        model: behind the judge; empty if it asks none.
        score: of judges that give one, higher is better; its range is the judge's.
        decides: whether the label says if a pair is fit to be kept.
    """

    judge: str
    label: str
    explanation: str
    model: str
    score: float | None = None
    decides: bool = True

    @model_validator(mode="after")
    def _can_decide(self) -> "Verdict":
        if self.decides and self.label not in get_args(Label):
            raise ValueError(f"a verdict that decides is one of {', '.join(get_args(Label))}, not {self.label!r}")
        return self


class Cost(Record):
    """Model calls and tokens: what any server would count, whatever else it had to do at the time."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0


class Usage(Cost):
    """A cost as it came about. `prompt` includes `cached`, the part that the server had in its prefix cache: that
    depends on timing, and so is no part of a dialog.
    """

    cached: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            completion=self.completion + other.completion,
        )


class Planned(Record):
    """What a turn was meant to be. None: that was left open.

    `standalone`: whether the question is to be understood with nothing before it.
    """

    question_type: str
    multi_turn_type: str | None = None
    answerability: Answerability | None = None
    standalone: bool | None = None


class Turn(Record):
    """A user question and the agent's answer. `turn` counts from 1.

    `question_type` names the type file that asked for the question, or, where that is measured, what was asked (several
    types joined by `+`); `multi_turn_type` is the same for later turns, or the multi-turn type; of first turns None.
    `planned` is what was meant, where the outcome is measured (Katsis et al. 2025, section 3.1).
    `retrieval_query` and `hits` are empty in the single-document algorithm. `other_answers` are further reference
    answers, where several people answered. `original_answer` is what a model had said where a person mended it.
    """

    turn: int = Field(ge=1, lt=1 << 63)  # what SQLite holds
    query: str
    question_type: str
    multi_turn_type: str | None = None
    answerability: Answerability
    planned: Planned | None = None
    retrieval_query: str = ""
    hits: tuple[Hit, ...] = ()
    reasoning: str
    answer: str
    other_answers: tuple[str, ...] = ()
    original_answer: str = ""
    consistent: bool
    evidence: tuple[Evidence, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    usage: Cost = Cost()


class Dialog(Record):
    """A finished dialog. `passages` are what its answers were grounded on, in order of first retrieval.

    `document_ids` starts with the document that the first question came from. `ended` says why the dialog has
    the number of turns it has: `complete`, or the stage and reason that ended it early; `task` if all but the last
    turn were given, and only that one is `lm`'s. `collection` is that of its documents, of human dialogs whose
    publisher says so.
    """

    id: str
    corpus: str
    collection: str = ""
    algorithm: Algorithm
    split: Split
    document_ids: tuple[str, ...]
    turns: tuple[Turn, ...]
    passages: tuple[Passage, ...]
    ended: str
    lm: str
    prompt_version: str
    seed: int

    @property
    def own_turns(self) -> tuple[Turn, ...]:
        """The turns that were not given with a task: those to judge."""
        return self.turns[-1:] if self.ended == TASK else self.turns

    def grounding(self, turn: int) -> tuple[Passage, ...]:
        """The passages that the answer of `turn` was grounded on: those retrieved up to it (all, if none were)."""
        if not any(t.hits for t in self.turns):
            return self.passages
        seen = {hit.passage_id for t in self.turns[:turn] for hit in t.hits}
        return tuple(p for p in self.passages if p.id in seen)


class Drop(Record):
    """Something that was made and not kept, and why. `turn` is None for whole dialogs."""

    dialog_id: str
    scope: Scope
    turn: int | None = None
    stage: str
    reason: str
    text: str = ""


class Scored(Record):
    """A passage with the retriever's score, higher is better."""

    passage: Passage
    score: float


class Corpus(Protocol):
    """A source of documents that is read as a stream."""

    @property
    def name(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def language(self) -> str | None: ...

    def fingerprint(self) -> str:
        """A hash of everything that `read` depends on; equal hashes mean equal documents."""
        ...

    def read(self) -> Iterator[Document | SkippedRecord]:
        """All documents in a stable order; a record that can't be read comes as `SkippedRecord`.

        Raises:
            CorpusError: the source as a whole can't be read.
        """
        ...


class Retriever(Protocol):
    """Finds passages. Called by the dialog loop after every user turn (Lee et al. 2024, section 2.4.2)."""

    async def search(self, query: str, k: int, split: Split) -> list[Scored]:
        """The best `k` passages of the documents of `split`, best first.

        Raises:
            RetrieverError: the index can't be asked.
        """
        ...


class Judge(Protocol):
    """Gives a verdict on one context-response pair; a judge that fails returns the label `unjudged`.

    Attributes:
        name: of the judge, in its verdicts.
        decides: whether its label, a `Label`, decides if a pair is kept.
        asks_model: whether it sends prompts to a model.
        best: its highest score, by which scores of different judges compare; None if it gives labels alone.
        signatures: of the prompts that it sends (DSPy signatures); none if it asks no model.
    """

    @property
    def name(self) -> str: ...
    @property
    def decides(self) -> bool: ...
    @property
    def asks_model(self) -> bool: ...
    @property
    def best(self) -> float | None: ...
    @property
    def signatures(self) -> Sequence[Any]: ...

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Judge `turn`, given the passages its answer was grounded on and the turns before it."""
        ...
