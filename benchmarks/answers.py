"""Measure how many questions a model answers rightly as a run has it answer: 36 on six documents, as Markdown.

    python -m benchmarks.answers lm=vllm lm.model=NAME algorithm.reasoning=false

The arguments are settings of `python -m generator` (`lm`, `algorithm.reasoning`, `algorithm.candidates`). Documents,
questions and what an answer must say are in `answers.yaml`. Each question goes through the answer step of Algorithm 1,
with its checks, attempts and choice of evidence. Right is told by words: read the answers, which are printed.
"""

import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.command_line import errors_on_one_line
from generator.common.refusals import has_refusal
from generator.config.choices import COMPOSE_ERRORS
from generator.config.messages import describe_hydra_error
from generator.config.parts import build_choice, plain
from generator.dialogs.checks.evidence import support_of
from generator.dialogs.dedup import Repetition
from generator.dialogs.program import Options
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.steps import Asked
from generator.errors import ConfigError, Rejected
from generator.models.lm import ChatReply, LanguageModel
from generator.output.markdown import table
from generator.prompts.adapter import SharedPrefixAdapter, collect_tasks
from generator.prompts.calls import use_model
from generator.schema import Passage, Turn
from taxonomy import read_types
from tests.support.settings import composed

HERE = Path(__file__).parent
TELLS = ("all", "part", "nothing")


class NoJournal:
    """A journal that keeps no calls."""

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        return None

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Keep nothing."""


def is_right(answer: str, must: list[str], never: list[str]) -> bool:
    """Return whether an answer has all that it must have, and nothing that it must not."""

    def has(pattern: str) -> bool:
        return has_refusal(answer) if pattern == "unknown" else bool(re.search(pattern, answer, re.IGNORECASE))

    return all(map(has, must)) and not any(map(has, never))


async def answer_all(settings: dict[str, Any]) -> None:
    """Answer all questions and print the answers, and the table."""
    data = yaml.safe_load((HERE / "answers.yaml").read_text(encoding="utf-8"))
    algorithm, endpoint = settings["algorithm"], build_choice("lm", settings["lm"])
    program = SingleDocumentDialog(
        Repetition(0.8), Options(candidates=algorithm["candidates"] or 1, reasoning=algorithm["reasoning"] is not False)
    )
    adapter, direct = SharedPrefixAdapter(tasks=collect_tasks(program)), read_types()["direct"]

    async def answer(item: dict[str, Any], clients: Any) -> Turn | Rejected:
        name = item["document"]
        document = data["documents"][name]
        text = document["text"]
        passage = Passage(id=name, document_id=name, title=document["title"], text=text, start=0, end=len(text))
        history = [
            Turn(turn=n, query=q, answer=a, question_type="", answerability="answerable", reasoning="", consistent=True)
            for n, (q, a) in enumerate(item.get("before", ()), start=1)
        ]
        with clients.for_dialog(name) as client, use_model(LanguageModel(client, NoJournal(), 0), adapter):
            try:
                turn: Turn = await program.answer.acall((passage,), history, Asked(item["question"]), direct)
            except Rejected as rejected:
                return rejected
        counts["covered"] += support_of((passage,), history, turn).covered
        return turn

    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        async with endpoint.open(Path(folder)) as clients:
            found = await asyncio.gather(*(answer(item, clients) for item in data["questions"]))
    for item, turn in zip(data["questions"], found, strict=True):
        said = turn.answer if isinstance(turn, Turn) else f"({turn})"
        right = isinstance(turn, Turn) and is_right(said, item["must"], item.get("never", []))
        counts.update([f"of {item['tells']}", *([f"right {item['tells']}"] if right else [])])
        counts["refused"] += isinstance(turn, Rejected)
        print(f"{'right' if right else 'wrong'}  {item['question']}\n       {said}")
    rights = [f"{counts[f'right {tells}']} of {counts[f'of {tells}']}" for tells in TELLS]
    total = sum(counts[f"right {tells}"] for tells in TELLS)
    head = ["right", *(f"documents tell {tells}" for tells in TELLS), "refused by checks", "covered by evidence"]
    row = [f"{total} of {len(found)}", *rights, str(counts["refused"]), str(counts["covered"])]
    print(f"\n{table(head, [row])}")


def read_settings(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings of `python -m generator`.

    Raises:
        ConfigError: there is no such setting.
    """
    try:
        return plain(composed("algorithm=single", *overrides))
    except COMPOSE_ERRORS as error:
        raise ConfigError(describe_hydra_error(error)) from error


def main() -> None:
    with errors_on_one_line():
        asyncio.run(answer_all(read_settings(sys.argv[1:])))


if __name__ == "__main__":
    main()
