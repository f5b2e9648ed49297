"""Near-duplicates among dialogs: processor time, memory, recall and false alarms.

    python -m benchmarks.dedup 20000

Dialogs of 300 words in six turns, from a vocabulary of 30,000 with frequencies as 1/rank. A tenth are copies of an
earlier one, half of these with 1% of the words changed and half with 3%. Two dialogs are duplicates if the Jaccard
similarity of their five-word shingles is at least 0.8. Recall is the share of those copies that is found; anything else
that is found is a false alarm. They are found by `Deduplicator` as a run uses it, with its comparison of first
questions, whose finds aren't counted.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from benchmarks.made_up import Words
from benchmarks.measuring import in_new_process, peak_memory
from generator.config.settings import near_duplicates
from generator.dialogs.dedup import Deduplicator
from generator.output.markdown import table
from generator.schema import Dialog
from tests.support.records import make_dialog, make_turn

TURNS, QUESTION, WORDS = 6, 12, 300
THRESHOLD = 0.8
CHANGED = (3, 9)
ORIGINALS = 10_000  # that are copied


def generate(path: Path, count: int) -> list[tuple[int, float]]:
    """Write `count` dialogs, a line each; return the words changed in each, and its similarity to its original."""
    chance = random.Random(0)
    words = Words(chance)
    originals: list[list[str]] = []
    planted = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text, changed, alike = words.draw(chance, WORDS), 0, 0.0
            if number % 10 == 9:
                original, changed = chance.choice(originals), CHANGED[number // 10 % 2]
                kept = set(range(WORDS)).difference(chance.sample(range(WORDS), changed))
                text = [original[place] if place in kept else word for place, word in enumerate(text)]
                one, other = shingles(original), shingles(text)
                alike = len(one & other) / len(one | other)
            elif len(originals) < ORIGINALS:
                originals.append(text)
            file.write(" ".join(text) + "\n")
            planted.append((changed, alike))
    return planted


def shingles(words: list[str]) -> set[str]:
    return {" ".join(words[first : first + 5]) for first in range(len(words) - 4)}


def dialog(number: int, words: list[str]) -> Dialog:
    each = len(words) // TURNS
    said = (words[first : first + each] for first in range(0, len(words), each))
    turns = (
        make_turn(turn, query=" ".join(of_turn[:QUESTION]), answer=" ".join(of_turn[QUESTION:]))
        for turn, of_turn in enumerate(said, start=1)
    )
    return make_dialog(*turns, id=f"{number:016}", algorithm="single")


def find(path: Path) -> tuple[float, float, set[int]]:
    """Return the processor's seconds, the peak of memory in MiB, and the duplicates' numbers."""
    deduplicator = Deduplicator(near_duplicates())
    seconds, found = 0.0, set[int]()
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file):
            made = dialog(number, text.split())
            start = time.process_time()
            duplicate = deduplicator.check(made)
            if duplicate is None:
                deduplicator.add(made)
            elif duplicate.part == "dialog":
                found.add(number)
            seconds += time.process_time() - start
    return seconds, peak_memory(), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dialogs", nargs="?", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dialogs.txt")
        planted = generate(path, given.dialogs)
        seconds, peak, found = in_new_process(find, path)
    for changed in CHANGED:
        alike = [similarity for words, similarity in planted if words == changed]
        duplicates = sum(similarity >= THRESHOLD for similarity in alike)
        mean = f"{sum(alike) / len(alike):.3f} alike, {duplicates:,} of them duplicates"
        print(f"{len(alike):,} copies with {changed} of {WORDS} words changed: {mean}")

    def share(those: list[int]) -> str:
        return f"{sum(number in found for number in those) / max(1, len(those)):.1%}"

    few, many = (share([n for n, (changed, _) in enumerate(planted) if changed == words]) for words in CHANGED)
    recall = share([n for n, (_, alike) in enumerate(planted) if alike >= THRESHOLD])
    alarms = sum(planted[number][1] < THRESHOLD for number in found)
    head = ["seconds", "peak memory", "1% changed", "3% changed", "recall", "false alarms"]
    cells = [f"{seconds:.1f}", f"{peak:.0f} MiB", few, many, recall, str(alarms)]
    print(f"\n{table(head, [cells])}")


if __name__ == "__main__":
    main()
