"""Memory and processor time of `generator.statistics` for a set of generated dialogs.

    python -m benchmarks.statistics            # 10,000 dialogs, and fewer of them

Six turns a dialog, questions of 13 words and answers of 50, from a vocabulary of 30,000 with frequencies as 1/rank.
Each figure is measured in a new process.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from generator.schema import Dialog, Passage, Turn

TURNS, QUESTION, ANSWER, DOCUMENT, VOCABULARY = 6, 13, 50, 300, 30_000


def generate(path: Path, count: int) -> None:
    """Write `count` dialogs of made-up words."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=chance.randint(2, 9))) for _ in range(VOCABULARY)]
    total, steps = 0.0, []
    for rank in range(1, VOCABULARY + 1):
        total += 1 / rank
        steps.append(total)

    def text(length: int) -> str:
        return " ".join(chance.choices(words, cum_weights=steps, k=length))

    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            document = text(DOCUMENT)
            passage = Passage(id=f"{number}:0", document_id=f"{number}", text=document, start=0, end=len(document))
            turns = [
                Turn(
                    turn=turn,
                    query=text(QUESTION),
                    question_type="direct",
                    answerability="answerable",
                    reasoning="",
                    answer=text(ANSWER),
                    consistent=True,
                )
                for turn in range(1, TURNS + 1)
            ]
            dialog = Dialog(
                id=f"{number}",
                corpus="generated",
                algorithm="single",
                split="train",
                document_ids=(passage.document_id,),
                turns=tuple(turns),
                passages=(passage,),
                ended="complete",
                lm="none",
                prompt_version="",
                seed=0,
            )
            file.write(json.dumps(dialog.model_dump()) + "\n")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    count = parser.parse_args().count
    print("| dialogs | memory | processor time |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dialogs.jsonl")
        generate(path, count)
        for part in (1, count // 10, count // 2, count):
            command = [sys.executable, "-m", "generator.statistics", str(path), f"dialogs={part}"]
            command += [f"output={path.with_suffix('.txt')}"]
            _, status, usage = os.wait4(os.spawnv(os.P_NOWAIT, sys.executable, command), 0)
            if status:
                sys.exit(f"generator.statistics exited with {os.waitstatus_to_exitcode(status)}")
            seconds = usage.ru_utime + usage.ru_stime
            print(f"| {part:,} | {usage.ru_maxrss / 1024:.0f} MiB | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
