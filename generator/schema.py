"""The records that every room exchanges, and the protocols of the parts that can be replaced.

Records are frozen, and no dict crosses a module boundary. A line of `dialogs.jsonl` is a `Dialog` as JSON, a line of
`drops.jsonl` a `Drop`.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

Algorithm = Literal["single", "multi", "whole", "progressive"]
# `underspecified`: has several readings, and doesn't say which is meant (Rosenthal et al. 2026, section 2.1).
# `conversational`: thanks, greetings and the like, which ask for nothing (Katsis et al. 2025, section 3.1).
Answerability = Literal["answerable", "partial", "unanswerable", "underspecified", "conversational"]
Label = Literal["correct", "incorrect", "unjudged"]
_LABELS = get_args(Label)
Scope = Literal["dialog", "turn", "pair", "candidate"]
Split = Literal["train", "validation"]
# The earlier answers that a model under test was shown: the golden ones, or its own.
Context = Literal["golden", "own"]
QueryForm = Literal["last_turn", "rewrite", "user_turns", "full"]
# `Dialog.ended` of a benchmark task with its answer, a person's or a model's: the turns before the last are its input.
TASK = "task"
# The question type of a human question that nobody labelled.
UNLABELLED = "unlabelled"


def _check_text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("surrogates", "not valid Unicode (surrogates not allowed)") from None
    return value


def _check_id(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("empty_id", "its id is empty")
    if re.search(r"[\x00-\x1f\x7f-\x9f]", value):
        raise PydanticCustomError("control_character", "its id holds a control character, such as a line break")
    return value


# Text that a file can hold: JSON's `\ud800` and some PDFs give lone surrogates, which UTF-8 can't encode.
Text = Annotated[str, AfterValidator(_check_text)]
# The name of a document, passage or dialog: text with neither line breaks nor other control characters, since it is a
# cell of tables and a part of lines that other programs read.
Id = Annotated[Text, AfterValidator(_check_id)]
# Text whose lone surrogates are written as escapes, for messages about what can't be read.
EscapedText = Annotated[
    str, BeforeValidator(lambda v: v.encode(errors="backslashreplace").decode() if isinstance(v, str) else v)
]
# A list in settings and published files, where a single text stands for a list of one.
OneOrMore = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)


def _check_variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("must be the name of an environment variable that holds the key; a key would be stored here")
    return value


def _check_address(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must be an address that begins with http:// or https://")
    if set("@?#") & set(value):
        why = "it would be stored here, and keys come from the environment"
        raise ValueError(f"must hold no password or key, nor anything else behind ? or #: {why}")
    return value


def _read_path(value: object) -> object:
    if value == "":
        raise ValueError("is empty; give a path, or leave the setting out")
    if isinstance(value, str) and "://" in value:  # it would be a folder `s3:`, made where there is none
        raise ValueError("must be a path on this machine, not an address")
    try:
        return Path(value).expanduser() if isinstance(value, str) else value
    except RuntimeError as error:  # a `~name` without a home directory
        raise ValueError(str(error)) from error


# The name of an environment variable that holds a key. The key itself is no setting, so it is never stored.
VariableName = Annotated[str, AfterValidator(_check_variable)]
# The address of a server, such as `http://127.0.0.1:8000/v1`.
Address = Annotated[str, AfterValidator(_check_address)]
# A path on this machine; a leading `~` is the home directory.
LocalPath = Annotated[Path, BeforeValidator(_read_path)]


class Operational:
    """Marks a setting, as in `Annotated[int, Operational]`, that a continued run may change: not what its data is."""


class Record(BaseModel):
    """A frozen record that refuses unknown fields."""

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
    """One document of a corpus.

    Attributes:
        id: unique in the corpus.
        text: the whole text; more than white space.
        title: empty if it has none.
        url: where it was published, if the corpus says.
        collection: the part of the corpus that it belongs to, where the publisher has several that are searched apart.
    """

    id: Id
    text: Text
    title: Text = ""
    url: Text | None = None
    collection: Text = ""


class SkippedRecord(Record):
    """A record of a corpus that can't be read.

    Attributes:
        where: the file, and the line or record in it.
        reason: what is wrong, in the file's own words.
    """

    where: EscapedText
    reason: EscapedText


class Passage(Record):
    """A piece of a document: `text == document.text[start:end]`.

    Attributes:
        id: unique in the corpus.
        document_id, title, url: the document's.
        start, end: offsets in the document's text, in characters.
    """

    id: str
    document_id: str
    title: str = ""
    text: str
    url: str | None = None
    start: int
    end: int

    @property
    def titled(self) -> str:
        """The text below its title; the text alone if it has none, or begins with it as mtRAG's passages do."""
        return self.text if self.title in ("", self.text.partition("\n")[0]) else f"{self.title}\n{self.text}"

    @property
    def text_key(self) -> str:
        """The text as far as copies share it, which may differ in white space."""
        return " ".join(self.text.casefold().split())


class Hit(Record):
    """A passage that a search returned.

    Attributes:
        score: the retriever's; higher is better.
        rank: its place in the results, from 1.
        new: true if no earlier search of the dialog returned it.
    """

    passage_id: str
    score: float
    rank: int
    new: bool


class Evidence(Record):
    """A sentence, verbatim: `text == passage.text[start:end]`, with offsets in characters of the passage."""

    passage_id: str
    start: int
    end: int
    text: str


class Verdict(Record):
    """A judge's verdict on one context-response pair.

    Attributes:
        judge: the judge's name.
        label: a `Label` if the verdict decides, else one of the judge's own (`yes`, `partial`, `scored`, …);
            `unjudged` if the judge failed.
        explanation: the judge's reasons, or why it failed.
        model: the model that the judge asked; empty if it asks none.
        score: for judges that give one; higher is better, and the range is the judge's.
        decides: true if the label says whether the pair is kept.
    """

    judge: str
    label: str
    explanation: str
    model: str
    score: float | None = None
    decides: bool = True

    @model_validator(mode="after")
    def _can_decide(self) -> "Verdict":
        if self.decides and self.label not in _LABELS:
            raise ValueError(f"a verdict that decides is one of {', '.join(_LABELS)}, not {self.label!r}")
        return self


class Cost(Record):
    """Model calls, and tokens of prompts and completions: the same whatever else the server had to do."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields})


class Usage(Cost):
    """A cost, and of its prompt tokens those that the server had in its prefix cache.

    `cached` depends on timing, so it is not part of a dialog.
    """

    cached: int = 0

    @property
    def cost(self) -> Cost:
        """Return it without what depends on timing."""
        return Cost(calls=self.calls, prompt=self.prompt, completion=self.completion)


def add_up(parts: Iterable[tuple[str, Usage]]) -> dict[str, Usage]:
    """Return the sums of usages by stage, in the order of the stages' names."""
    total: dict[str, Usage] = {}
    for stage, usage in parts:
        total[stage] = total.get(stage, Usage()) + usage
    return dict(sorted(total.items()))


class Planned(Record):
    """The labels that a turn was planned with; None where the plan leaves a label open.

    Attributes:
        standalone: true if the question has to make sense without the dialog before it.
        new_topic: true if the question has to leave the topic of the dialog for good.
    """

    question_type: str
    multi_turn_type: str | None = None
    answerability: Answerability | None = None
    standalone: bool | None = None
    new_topic: bool = False


class Turn(Record):
    """A user question and the agent's answer.

    Attributes:
        turn: its number in the dialog, from 1.
        query: the user's question, as it was typed.
        clean_query: the question before it was typed with slips or in small letters; empty if it is `query`.
        question_type: the type that the question was asked as; where types are measured, those that it turned out to
            be, joined by `+`.
        multi_turn_type: the multi-turn type, or where a taxonomy has none the question type; None in first turns.
        answerability: how much of the question the passages answer.
        planned: the planned labels, where the final ones are measured (Katsis et al. 2025, section 3.1).
        retrieval_query: the query sent to the retriever at this turn, or of human dialogs people's standalone question;
            empty if there is none.
        hits: what the search returned, best first; empty in the single-document algorithm.
        rank_last_turn, rank_query: the place of the passage with the evidence in a BM25 search, from 1, by the question
            as asked and by `retrieval_query`; the first of several. None without evidence or such a search.
        reasoning: what the model noted before it answered: of an answer from documents the facts, one a line; in a chat
            the sentences of its evidence, or that none tells it. Empty in people's turns.
        answer: the agent's answer.
        other_answers: further reference answers, where several people answered.
        original_answer: a model's answer before a person corrected it.
        truncated: the answer was cut off at the model's longest reply.
        consistent: true if the model's own check found the answer consistent.
        evidence: the sentences that the answer rests on.
        verdicts: the judges', in the order in which judges are configured.
        usage: the cost of the turn, with repeated attempts and repairs.
    """

    turn: int = Field(ge=1)
    query: str
    clean_query: str = ""
    question_type: str
    multi_turn_type: str | None = None
    answerability: Answerability
    planned: Planned | None = None
    retrieval_query: str = ""
    hits: tuple[Hit, ...] = ()
    rank_last_turn: int | None = None
    rank_query: int | None = None
    reasoning: str
    answer: str
    other_answers: tuple[str, ...] = ()
    original_answer: str = ""
    truncated: bool = False
    consistent: bool
    evidence: tuple[Evidence, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    usage: Cost = Cost()

    @property
    def meant(self) -> str:
        """The question without the slips of whoever typed it."""
        return self.clean_query or self.query

    @property
    def spoken(self) -> str:
        """The messages of both, as the text of a drop."""
        return f"User: {self.query}\nAgent: {self.answer}"


class Dialog(Record):
    """A finished dialog.

    Attributes:
        collection: that of its documents, for human dialogs whose publisher names one.
        document_ids: first the document that the first question came from.
        passages: what the answers are grounded on, in order of first retrieval.
        ended: `complete` if it went through its plan, with or without turns that were refused; the stage and reason
            that ended it early; or `task` if only the last turn is `lm`'s and those before it are a task's input,
            without labels.
        task: the benchmark's task that it belongs to; empty if to none.
        user: the type of the user who asks; empty for the plain one.
        context: in a dialog that a model under test answered, the earlier answers that the model was shown; the
            answers with verdicts are then `lm`'s, and the golden ones stand in their `other_answers`.
        lm: the model that wrote it.
        prompt_version: a hash of the prompts.
        seed: the decoding seed of its first turn.
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
    task: str = ""
    user: str = ""
    context: Context | None = None
    lm: str
    prompt_version: str
    seed: int

    @property
    def own_turns(self) -> tuple[Turn, ...]:
        """Return the turns to judge, count and train on: all, of a task the last, of a model under test its own."""
        answered = tuple(turn for turn in self.turns if turn.verdicts) if self.context else ()
        return answered or (self.turns[-1:] if self.ended == TASK else self.turns)

    def grounding(self, turn: int) -> tuple[Passage, ...]:
        """Return the passages that the answer of turn number `turn` is grounded on.

        They are those retrieved up to it; all passages if the dialog has no hits.
        """
        if not any(t.hits for t in self.turns):
            return self.passages
        retrieved = {hit.passage_id for t in self.turns[:turn] for hit in t.hits}
        return tuple(p for p in self.passages if p.id in retrieved)

    def retrieved(self, turn: int) -> tuple[Passage, ...]:
        """Return the passages that the search of turn number `turn` itself returned, best first."""
        passages = {p.id: p for p in self.passages}
        return tuple(passages[hit.passage_id] for hit in self.turns[turn - 1].hits)


class Drop(Record):
    """A dialog, turn or pair that was generated and not kept, or a candidate: one of several, and not the chosen one.

    Attributes:
        scope: what is dropped.
        turn: its number; None for whole dialogs, and for candidates that are sets of questions.
        stage: the step that dropped it.
        reason: a short phrase that groups like cases in the summary.
        text: the offending text.
        cost: of a candidate, what it took; None for the rest.
    """

    dialog_id: str
    scope: Scope
    turn: int | None = None
    stage: str
    reason: str
    text: str = ""
    cost: Cost | None = None


class Message(Record):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Scored(Record):
    """A passage with the retriever's score; higher is better."""

    passage: Passage
    score: float


class Retriever(Protocol):
    """A search index over passages. The dialog loop asks it after every user turn (Lee et al. 2024, section 2.4.2)."""

    async def search(self, query: str, k: int, split: Split, document: str | None = None) -> list[Scored]:
        """Return the best `k` passages of the documents of `split`, best first.

        Args:
            document: the id of the only document that is searched; None: all are.

        Raises:
            RetrieverError: the index can't be searched.
            Rejected: it can, but this search always fails.
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
