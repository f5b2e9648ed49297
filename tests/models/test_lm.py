"""A language model over a client and a journal: what it asks, and that no finished call is repeated."""

import pytest
from dspy.utils import exceptions as lm_errors

from generator.models.client import HttpClient
from generator.models.lm import ChatReply, LanguageModel
from tests.support import openai_server as fake
from tests.support.clients import asked
from tests.support.openai_server import OpenAIServer

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 40}},
    "required": ["answer"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA}}


class Memory:
    """A journal in memory."""

    def __init__(self) -> None:
        self.replies: dict[str, ChatReply] = {}

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        return self.replies.get(key)

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        assert key not in self.replies
        self.replies[key] = reply


async def replies(lm: LanguageModel, *prompts: str, profile: str = "greedy", turn: int = 1) -> list[str]:
    """Return the replies to calls of one turn of a dialog, in this order."""
    metadata = {"profile": profile, "stage": "ask", "turn": str(turn)}
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    return [(await lm.acall(messages=c, metadata=metadata, response_format=FORMAT))[0]["text"] for c in chats]


@pytest.mark.parametrize(
    ("profile", "sampling"), [("greedy", {"temperature": 0.0}), ("sampled", {"temperature": 1.0, "top_k": 50})]
)
def test_the_request_carries_profile_seed_and_schema(profile: str, sampling: dict[str, float]) -> None:
    with OpenAIServer() as server:
        endpoint = server.endpoint(max_tokens=99)
        (reply,) = asked(
            endpoint, lambda client: replies(LanguageModel(client, Memory(), 2**40 + 5), "Why?", profile=profile)
        )
        (body,) = server.bodies
    assert body == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Why?"}],
        "seed": 5,
        "max_tokens": 99,
        "response_format": FORMAT,
        **sampling,
    }
    assert reply == fake.fill(body)


def test_a_replay_repeats_no_finished_call() -> None:
    """The dialog is cut off at its third call; repeated, it makes only the calls that are missing."""
    memory = Memory()

    async def dialog(client: HttpClient, memory: Memory) -> list[str]:
        return await replies(LanguageModel(client, memory, 2**31 - 1), "one", "one", "two")

    with OpenAIServer(faults=[None, None, fake.overflow]) as server:
        with pytest.raises(lm_errors.ContextWindowExceededError):
            asked(server.endpoint(), lambda client: dialog(client, memory))
        assert [body["seed"] for body in server.bodies[:2]] == [2**31 - 1, 0], "an equal request gets the next seed"
        again = asked(server.endpoint(), lambda client: dialog(client, memory))
        assert len(server.bodies) == 4
        assert set(server.finished.values()) == {1}
        assert asked(server.endpoint(), lambda client: dialog(client, Memory())) == again
        assert len(set(again)) == 3


def test_equal_requests_of_two_turns_differ_whichever_comes_first() -> None:
    async def work(client: HttpClient) -> list[dict[int, list[str]]]:
        found = []
        for turns in ((1, 2), (2, 1)):
            lm = LanguageModel(client, Memory(), 7)
            found.append({turn: await replies(lm, "one", turn=turn) for turn in turns})
        return found

    with OpenAIServer() as server:
        first, second = asked(server.endpoint(), work)
    assert first == second
    assert first[1] != first[2]
