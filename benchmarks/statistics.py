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

from benchmarks.made_up import Words
from tests.support.records import make_dialog, make_passage, make_turn

TURNS, QUESTION, ANSWER, DOCUMENT = 6, 13, 50, 300


def generate(path: Path, count: int) -> None:
    """Write `count` dialogs of made-up words."""
    chance = random.Random(0)
    words = Words(chance)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            passage = make_passage(f"{number}:0", words.text(chance, DOCUMENT), document_id=f"{number}")
            turns = [
                make_turn(turn, query=words.text(chance, QUESTION), answer=words.text(chance, ANSWER))
                for turn in range(1, TURNS + 1)
            ]
            dialog = make_dialog(*turns, passages=[passage], id=f"{number}", algorithm="single")
            file.write(json.dumps(dialog.model_dump()) + "\n")


def main() -> None:
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
