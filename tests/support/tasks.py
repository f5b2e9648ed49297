"""Replies of a model server that writes dialogs of tasks: each passes the checks of every task, and the judge."""

import json
import random
import re
from typing import Any

from tests.support.openai_server import Body, fill, prompt, words
from tests.support.runs import stage

RESULT, MISTAKE = "42", "17"


def write_dialog(body: Body) -> dict[str, Any]:
    """Return the reply to a call that asks for a whole dialog, the same for the same prompt and seed.

    Questions and answers of the first and the last turn are on one topic, those between on others, with a word of the
    first; each answer asks something, and each later question points back.
    """
    chance = random.Random(f"{prompt(body)}\n{body['seed']}")
    fields = body["response_format"]["json_schema"]["schema"]["properties"]
    count = fields["turns"]["minItems"]
    (record,) = body["response_format"]["json_schema"]["schema"]["$defs"].values()
    grounded = "evidence" in record["properties"]

    def made(number: int) -> list[str]:
        return [words(chance, 30, "").lower().replace(" ", "") for _ in range(number)]

    told = re.search(r"In turns? ([\d and]+) alone", prompt(body))
    unknown = told[1].split(" and ") if told else []
    topic, turns = made(6), []
    for place in range(count):
        ends = place in (0, count - 1)
        asked = [*topic, *made(1)] if ends else [topic[0], *made(6)]
        said = " ".join([topic[0], *made(4)])
        if "mistake" in fields:
            said += f" {RESULT}" if place else f" {MISTAKE}"
        elif "result" in fields:
            said += f" {RESULT}"
        turn: dict[str, Any] = {"user": f"Is that {' '.join(asked)}?", "agent": f"It is {said}, is it not?"}
        if str(place + 1) in unknown:
            turn = {**turn, "agent": f"I don't have information on {said}."}
        turns.append({**turn, "evidence": [1]} if grounded else turn)
    reply: dict[str, Any] = {"plan": "One asks.", "result": RESULT, "mistake": MISTAKE, "turns": turns}
    return {name: value for name, value in reply.items() if name in fields}


def reply(body: Body) -> str:
    """Return a dialog where one is asked for, and 8 points where a rating is."""
    if stage(body) == "write":
        return json.dumps(write_dialog(body))
    return json.dumps(json.loads(fill(body)) | ({"score": 8} if stage(body) == "judge" else {}))
