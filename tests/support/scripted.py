"""A model in the process: a `Client` and `Journal` that replies by a script and remembers what it was asked.

    model = Scripted(ask=[{"question": "When does it open?"}], answer=[{"consistent": False}])
    draft = model.run(lambda: program.acall(...))
    model.prompts("answer")

The nth call of a stage gets the nth entry of that stage's script, and a default reply once the script is over. An entry
is a text (the reply as it is), an exception (raised), or fields that replace those of the default reply, which fills
the schema that the request carries.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import dspy

from generator.dialogs.adapter import SharedPrefixAdapter
from generator.dialogs.steps import Draft
from generator.models.lm import ChatReply, ChatRequest, LanguageModel, Profile, Sampling
from generator.schema import Document, Passage, Scored, Split, Turn, Usage
from taxonomy import QuestionType, read_types
from tests.support.openai_server import fill

T = TypeVar("T")
Entry = str | Exception | Mapping[str, object]
PROFILES: dict[Profile, Sampling] = {"greedy": Sampling(temperature=0), "sampled": Sampling(temperature=1, top_k=50)}
KINDS = read_types()


@dataclass(frozen=True)
class Call:
    """One request, and what it was for."""

    stage: str
    turn: int
    profile: Profile
    request: ChatRequest

    @property
    def prompt(self) -> str:
        return self.request.prompt

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema that the reply is held to."""
        assert self.request.response_format is not None
        schema: dict[str, Any] = self.request.response_format["json_schema"]["schema"]
        return schema


class Scripted:
    """Args: what the calls of each stage (`ask`, `rewrite`, `answer`, `judge`) are replied, in their order."""

    model = "scripted"
    max_tokens = 256
    context = 1_000_000

    def __init__(self, **script: Sequence[Entry]) -> None:
        self.script = script
        self.tasks: dict[str, Any] = {}  # whose formats stand in front, as in a run
        self.calls: list[Call] = []
        self._purposes: dict[str, tuple[str, int]] = {}

    def run(self, task: Callable[[], Coroutine[Any, Any, T]], structured_outputs: bool = True) -> T:
        """What `task` returns, with this as its model."""

        async def running() -> T:
            with self.current(structured_outputs):
                return await task()

        return asyncio.run(running())

    def current(self, structured_outputs: bool = True) -> AbstractContextManager[None]:
        """As in `generator.dialogs.generate.DialogGenerator.made`."""
        context: AbstractContextManager[None] = dspy.context(
            lm=LanguageModel(self, self, seed=7), adapter=SharedPrefixAdapter(structured_outputs, self.tasks)
        )
        return context

    def of(self, stage: str) -> list[Call]:
        """The calls of one stage."""
        return [call for call in self.calls if call.stage == stage]

    def prompts(self, stage: str) -> list[str]:
        """Their prompts."""
        return [call.prompt for call in self.of(stage)]

    @property
    def stages(self) -> list[str]:
        """The stage of every call, in order."""
        return [call.stage for call in self.calls]

    def sampling(self, profile: Profile) -> Sampling:
        return PROFILES[profile]

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        self._purposes[key] = stage, turn
        return None

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        assert self._purposes[key] == (stage, turn)

    async def chat(self, request: ChatRequest) -> ChatReply:
        stage, turn = self._purposes[request.key]
        profile = next(name for name, sampling in PROFILES.items() if sampling == request.sampling)
        number = len(self.of(stage))
        self.calls.append(Call(stage, turn, profile, request))
        script = self.script.get(stage, ())
        entry = script[number] if number < len(script) else {}
        if isinstance(entry, Exception):
            raise entry
        text = entry if isinstance(entry, str) else json.dumps(self._usual(request) | dict(entry))
        usage = Usage(calls=1, prompt=len(request.prompt) // 4, completion=len(text) // 4)
        return ChatReply(text=text, finish_reason="stop", model=self.model, usage=usage)

    def _usual(self, request: ChatRequest) -> dict[str, object]:
        usual: dict[str, object] = json.loads(fill(request.body())) if request.response_format else {}
        return usual


@dataclass
class Shelf:
    """A retriever that finds, search by search, what it is told to; and remembers what it was asked."""

    found: Sequence[Sequence[Passage]]

    def __post_init__(self) -> None:
        self.asked: list[tuple[str, int, Split]] = []

    async def search(self, query: str, k: int, split: Split) -> list[Scored]:
        self.asked.append((query, k, split))
        passages = self.found[len(self.asked) - 1] if len(self.asked) <= len(self.found) else []
        return [Scored(passage=p, score=10.0 - rank) for rank, p in enumerate(passages)]


def piece(name: str, text: str = "") -> Passage:
    """A whole document, as a passage; by default of two sentences."""
    text = text or f"The {name} opened in May. It has a blue door."
    return Passage(id=f"{name}:0-{len(text)}", document_id=name, title=name.title(), text=text, start=0, end=len(text))


def whole(document: Document) -> Passage:
    """A document as one passage."""
    return Passage(
        id=f"{document.id}:0-{len(document.text)}",
        document_id=document.id,
        title=document.title,
        text=document.text,
        start=0,
        end=len(document.text),
    )


def said(*pairs: tuple[str, str]) -> tuple[Turn, ...]:
    """The turns of a dialog, from what the user and the agent said."""
    return tuple(
        Turn(
            turn=number,
            query=query,
            question_type="direct",
            answerability="answerable",
            reasoning="SECRET REASONING",
            answer=answer,
            consistent=True,
        )
        for number, (query, answer) in enumerate(pairs, start=1)
    )


def kinds(*names: str) -> tuple[QuestionType, ...]:
    """Question types of ours, by name."""
    return tuple(KINDS[name] for name in names)


def spoken(draft: Draft) -> list[tuple[str, str]]:
    """What was said in a draft."""
    return [(turn.query, turn.answer) for turn in draft.turns]
