"""A model server that writes items of scenarios: its sets pass the checks of every scenario, and all is judged well."""

import json
import random
import re
from typing import Any

from tests.support.openai_server import Body, OpenAIServer, fill, prompt, words
from tests.support.runs import stage

_SENTENCE = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)


def write_set(body: Body) -> dict[str, Any]:
    """Return the reply to a call that asks for a set of questions: words of three sentences of the source."""
    chance = random.Random(f"{prompt(body)}\n{body['seed']}")
    (record,) = body["response_format"]["json_schema"]["schema"]["$defs"].values()
    told = chance.sample(_SENTENCE.findall(prompt(body)), 3)
    new = [words(chance, 60, "").lower() for _ in range(3)]
    topics = [" ".join(sentence.split()[:6]).strip(".") for sentence in told]
    begin = ("Write a summary of", "Go on with", "End with")
    turns = [
        {"evidence": [1], "request": f"{how} {topic} {more}.", "query": topic}
        for how, topic, more in zip(begin, topics, new, strict=True)
    ]
    fields = record["properties"]
    return {"plan": "Three sentences.", "turns": [{key: turn[key] for key in fields} for turn in turns]}


def reply(body: Body) -> str:
    """Return a set of questions where one is asked for, and the default reply elsewhere."""
    return json.dumps(write_set(body)) if stage(body) == "candidates" else fill(body)


def scenario_server(**settings: Any) -> OpenAIServer:
    """Return a server whose replies are those of `reply`."""
    return OpenAIServer(**{"responder": reply, **settings})


def settings(*more: str) -> list[str]:
    """Return the settings of a run of the scenarios; after those of `Site.arguments`."""
    return ["+experiment=rad_bench", "lm=openai", "dialogs=6", *more]
