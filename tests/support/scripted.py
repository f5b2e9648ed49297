"""A model inside the test process: a `Client` and `Journal` that replies by a script and records every request.

    model = Scripted(ask=[{"question": "When does it open?"}], answer=[{"consistent": False}])
    draft = model.run(lambda: program.write(...))
    model.prompts("answer")

The nth call of a stage gets the nth entry of that stage's script, and after the script a default reply that fills the
schema of the request. An entry is a text (the reply as it is), an exception (raised), or fields that replace those of
the default reply.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from generator.dialogs.journal import charge
from generator.dialogs.plan import Plan
from generator.dialogs.program import Draft
from generator.models.lm import ChatReply, ChatRequest, LanguageModel, Profile, Sampling
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import use_model
from generator.schema import Algorithm, Dialog, Passage, Scored, Split, Turn, Usage
from taxonomy import QuestionType, read_types
from tests.support.openai_server import fill
from tests.support.records import make_dialog, make_turn

T = TypeVar("T")
Entry = str | Exception | Mapping[str, object]
PROFILES: dict[Profile, Sampling] = {"greedy": Sampling(temperature=0), "sampled": Sampling(temperature=1, top_k=50)}
KINDS = read_types()


@dataclass(frozen=True)
class Call:
    """One request and its purpose."""

    stage: str
    turn: int
    profile: Profile
    request: ChatRequest

    @property
    def prompt(self) -> str:
        return self.request.messages[-1].content

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the reply."""
        assert self.request.response_format is not None
        schema: dict[str, Any] = self.request.response_format["json_schema"]["schema"]
        return schema


class Scripted:
    """A scripted model.

    Args:
        script: the replies of each stage (`ask`, `rewrite`, `answer`, `judge`), in order.
    """

    model = "scripted"
    max_tokens = 256
    context = 1_000_000

    def __init__(self, **script: Sequence[Entry]) -> None:
        self.script = script
        self.tasks: dict[str, Any] = {}  # described at the start of every prompt, as in a run
        self.calls: list[Call] = []
        self._purposes: dict[str, tuple[str, int]] = {}

    def run(self, task: Callable[[], Coroutine[Any, Any, T]], structured_outputs: bool = True) -> T:
        """Return the result of `task`, run with this model."""

        async def run() -> T:
            with self.current(structured_outputs):
                return await task()

        return asyncio.run(run())

    def current(self, structured_outputs: bool = True) -> AbstractContextManager[None]:
        """Return a context in which modules call this model."""
        return use_model(LanguageModel(self, self, seed=7), SharedPrefixAdapter(structured_outputs, self.tasks))

    def of(self, stage: str) -> list[Call]:
        """Return the calls of one stage."""
        return [call for call in self.calls if call.stage == stage]

    def prompts(self, stage: str) -> list[str]:
        """Return the prompts of one stage."""
        return [call.prompt for call in self.of(stage)]

    @property
    def stages(self) -> list[str]:
        """Return the stage of every call, in order."""
        return [call.stage for call in self.calls]

    def sampling(self, profile: Profile) -> Sampling:
        return PROFILES[profile]

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        self._purposes[key] = stage, turn
        return None

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        assert self._purposes[key] == (stage, turn)
        charge(reply.usage.cost)

    async def chat(self, request: ChatRequest) -> ChatReply:
        stage, turn = self._purposes[request.key]
        # A call with a temperature of its own is sampled.
        greedy = request.sampling == PROFILES["greedy"]
        profile: Profile = "greedy" if greedy else "sampled"
        number = len(self.of(stage))
        self.calls.append(Call(stage, turn, profile, request))
        script = self.script.get(stage, ())
        entry = script[number] if number < len(script) else {}
        if isinstance(entry, Exception):
            raise entry
        text = entry if isinstance(entry, str) else json.dumps(self._usual(request) | dict(entry))
        usage = Usage(calls=1, prompt=request.prompt_bytes // 4, completion=len(text) // 4)
        likely = (("Yes", -0.1), ("No", -2.4)) if request.top_logprobs else ()
        return ChatReply(text=text, finish_reason="stop", model=self.model, usage=usage, likely=likely)

    def _usual(self, request: ChatRequest) -> dict[str, object]:
        usual: dict[str, object] = json.loads(fill(request.body())) if request.response_format else {}
        return usual


@dataclass
class Shelf:
    """A retriever that returns the given passages, search by search, and records every query."""

    found: Sequence[Sequence[Passage]]

    def __post_init__(self) -> None:
        self.asked: list[tuple[str, int, Split]] = []
        self.inside: list[str | None] = []  # the only document that each search was in

    async def search(self, query: str, k: int, split: Split, document: str | None = None) -> list[Scored]:
        self.asked.append((query, k, split))
        self.inside.append(document)
        passages = self.found[len(self.asked) - 1] if len(self.asked) <= len(self.found) else []
        return [Scored(passage=p, score=10.0 - rank) for rank, p in enumerate(passages)]


def piece(name: str, text: str = "") -> Passage:
    """Return a whole document as a passage; by default it has two sentences."""
    text = text or f"The {name} opened in May. It has a blue door."
    return Passage(id=f"{name}:0-{len(text)}", document_id=name, title=name.title(), text=text, start=0, end=len(text))


def said(*pairs: tuple[str, str]) -> tuple[Turn, ...]:
    """Return the turns of a dialog, from pairs of question and answer."""
    return tuple(
        make_turn(number, query=query, answer=answer, reasoning="SECRET REASONING")
        for number, (query, answer) in enumerate(pairs, start=1)
    )


def kinds(*names: str) -> tuple[QuestionType, ...]:
    """Return built-in question types by name."""
    return tuple(KINDS[name] for name in names)


def plan(source: Passage | str, types: Sequence[QuestionType], focus: str = "", **more: Any) -> Plan:
    """Return the plan of a dialog with one turn for each type."""
    usual: dict[str, Any] = {"dialog_id": "dialog", "seed": 0, "split": "train", "turns": len(types)}
    return Plan(source=source, question_types=tuple(types), focus=focus, **(usual | more))


def spoken(draft: Draft) -> list[tuple[str, str]]:
    """Return the pairs of question and answer of a draft."""
    return [(turn.query, turn.answer) for turn in draft.turns]


def dialog_of(draft: Draft, algorithm: Algorithm = "multi") -> Dialog:
    """Return a draft as a dialog."""
    return make_dialog(*draft.turns, passages=draft.passages, algorithm=algorithm)


def context(prompt: str) -> str:
    """Return the documents and the dialog of a prompt."""
    return prompt[prompt.index("<documents>\n") : prompt.index("\n\n<task>\n")]


def task(prompt: str) -> str:
    """Return the task of a prompt."""
    return prompt.partition("\n\n<task>\n")[2]
