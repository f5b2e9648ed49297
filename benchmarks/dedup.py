"""Near-duplicates among dialogs, ours beside rensa and datatrove: processor time, memory, recall and false alarms.

    uv venv .venv-peers && uv pip install --python .venv-peers rensa datatrove spacy tokenizers regex "xxhash<4"
    python -m benchmarks.dedup 20000
    python -m benchmarks.dedup 200000 --only ours rensa
    python -m benchmarks.dedup --bands      # share of pairs of a given similarity that become candidates

The peers are not dependencies: they are installed in another environment, and skipped without it.

Dialogs of 300 words in six turns, from a vocabulary of 30,000 with frequencies as 1/rank. A tenth are copies of an
earlier one, half of these with 1% of the words changed and half with 3%. Two dialogs are duplicates if the Jaccard
similarity of their five-word shingles is at least 0.8. Recall is the share of those copies that is found; anything else
that is found is a false alarm. Ours is `Deduplicator` as a run uses it, with its comparison of first questions, whose
finds aren't counted; the peers get a dialog as one text. All have 128 permutations, and a process each.
"""

import argparse
import json
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.made_up import Words

TURNS, QUESTION, WORDS = 6, 12, 300
THRESHOLD, PERMUTATIONS = 0.8, 128
CHANGED = (3, 9)
ORIGINALS = 10_000  # that are copied
PAIRS = 5_000

# Processor seconds for signatures and for the rest, and the numbers of the dialogs that were found as duplicates.
Found = tuple[float, float, list[int]]


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


def lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def ours(path: Path) -> Found:
    from generator.config.settings import near_duplicates
    from generator.dialogs.dedup import Deduplicator
    from generator.schema import Dialog
    from tests.support.records import make_dialog, make_turn

    def dialog(number: int, words: list[str]) -> Dialog:
        each = len(words) // TURNS
        said = (words[first : first + each] for first in range(0, len(words), each))
        turns = (
            make_turn(turn, query=" ".join(of_turn[:QUESTION]), answer=" ".join(of_turn[QUESTION:]))
            for turn, of_turn in enumerate(said, start=1)
        )
        return make_dialog(*turns, id=f"{number:016}", algorithm="single")

    deduplicator = Deduplicator(near_duplicates())
    signing = total = 0.0
    for index in (deduplicator._dialogs, deduplicator._first_questions):
        looked = index._features

        def timed(text: str, looked: Callable[[str], Any] = looked) -> Any:
            nonlocal signing
            start = time.process_time()
            found = looked(text)
            signing += time.process_time() - start
            return found

        index._features = timed  # type: ignore[method-assign]
    found = []
    for number, text in enumerate(lines(path)):
        made = dialog(number, text.split())
        start = time.process_time()
        duplicate = deduplicator.check(made)
        if duplicate is None:
            deduplicator.add(made)
        elif duplicate.part == "dialog":
            found.append(number)
        total += time.process_time() - start
    return signing, total - signing, found


def rensa(path: Path, bands: int) -> Found:
    from rensa import RMinHash, RMinHashDeduplicator

    deduplicator = RMinHashDeduplicator(THRESHOLD, PERMUTATIONS, use_lsh=True, num_bands=bands)
    signing = finding = 0.0
    found = []
    texts = enumerate(lines(path))
    while batch := list(islice(texts, 1000)):
        start = time.process_time()
        signatures = RMinHash.from_token_sets([list(shingles(text.split())) for _, text in batch], PERMUTATIONS, 42)
        signed = time.process_time()
        added = [deduplicator.add(str(n), signature) for (n, _), signature in zip(batch, signatures, strict=True)]
        found += [number for (number, _), new in zip(batch, added, strict=True) if not new]
        signing, finding = signing + signed - start, finding + time.process_time() - signed
    return signing, finding, found


def datatrove(path: Path) -> Found:
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupSignature,
    )
    from loguru import logger

    logger.remove()
    config = MinhashConfig(n_grams=5, num_buckets=16, hashes_per_bucket=8)
    signatures, buckets, clusters = (str(path.parent / name) for name in ("signatures", "buckets", "clusters"))
    start = time.process_time()
    documents = (Document(text=text, id=str(number)) for number, text in enumerate(lines(path)))
    MinhashDedupSignature(signatures, config).run(documents)
    signed = time.process_time()
    finding = MinhashDedupBuckets(signatures, buckets, config=config)
    for bucket in range(config.num_buckets):
        finding.run(None, bucket, config.num_buckets)
    MinhashDedupCluster(buckets, clusters, config).run(None, 0, 1)
    removed = Path(clusters, "000000.remove").read_bytes()
    return signed - start, time.process_time() - signed, [number for (number,) in struct.iter_unpack("<I", removed)]


CONTENDERS: dict[str, Callable[[Path], Found]] = {
    "ours": ours,
    "rensa, 16 bands": lambda path: rensa(path, 16),
    "rensa, 32 bands": lambda path: rensa(path, 32),
    "datatrove, 16 bands": datatrove,
}


def bands() -> None:
    """Print the share of pairs of texts of a given similarity that become candidates."""
    import numpy as np

    from generator.common.minhash import Banding
    from generator.config.settings import near_duplicates

    settings = near_duplicates()
    banding = Banding(settings.threshold, settings.num_perm)
    rows, chance = banding._factors.shape[1], np.random.default_rng(0)
    print(f"{banding.bands} bands of {rows} rows\n")
    print("| Jaccard similarity | candidates, computed | candidates, found |\n| --- | --- | --- |")
    for own in (100, 74, 50, 37, 26, 14):  # of each of the two; 296 are shared
        alike = 296 / (296 + 2 * own)
        found = 0
        for _ in range(PAIRS):
            values = chance.integers(1 << 32, size=296 + 2 * own, dtype=np.uint32)
            one, other = np.unique(values[own:]), np.unique(values[: len(values) - own])
            found += bool((banding.hashes(one) == banding.hashes(other)).any())
        computed = 1 - (1 - alike**rows) ** banding.bands
        print(f"| {alike:.3f} | {computed:.2%} | {found / PAIRS:.2%} |", flush=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dialogs", nargs="?", type=int, default=20_000)
    parser.add_argument("--only", nargs="+", default=[""], help="contenders whose names begin with one of these")
    parser.add_argument(
        "--peers", default=".venv-peers/bin/python", help="the interpreter that has rensa and datatrove"
    )
    parser.add_argument("--bands", action="store_true", help="print the share of candidates instead")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bands:
        bands()
        return
    if given.measure:
        signing, finding, found = CONTENDERS[given.measure[0]](Path(given.measure[1]))
        print(json.dumps([signing, finding, found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dialogs.txt")
        planted = generate(path, given.dialogs)
        for changed in CHANGED:
            alike = [similarity for words, similarity in planted if words == changed]
            duplicates = sum(similarity >= THRESHOLD for similarity in alike)
            print(
                f"{len(alike):,} copies with {changed} of {WORDS} words changed: {sum(alike) / len(alike):.3f} alike, ",
                end="",
            )
            print(f"{duplicates:,} of them duplicates")
        print("\n| | signatures | the rest | peak memory | 1% changed | 3% changed | recall | false alarms |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for name in CONTENDERS:
            if name.startswith(tuple(given.only)):
                interpreter = sys.executable if name == "ours" else given.peers
                print(row(name, interpreter, path, planted), flush=True)


def row(name: str, interpreter: str, path: Path, planted: list[tuple[int, float]]) -> str:
    """Return a contender's line of the table."""
    command = [interpreter, "-m", "benchmarks.dedup", "--measure", name, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    except FileNotFoundError:
        return f"| {name} | skipped: no {interpreter} |"
    except subprocess.CalledProcessError as error:
        return f"| {name} | skipped: {error.stderr.strip().rpartition(chr(10))[2]} |"
    signing, finding, found, peak = json.loads(done.stdout.splitlines()[-1])
    duplicates = set(found)

    def share(those: list[int]) -> str:
        return f"{sum(number in duplicates for number in those) / max(1, len(those)):.1%}"

    few, many = (share([n for n, (changed, _) in enumerate(planted) if changed == words]) for words in CHANGED)
    recall = share([n for n, (_, alike) in enumerate(planted) if alike >= THRESHOLD])
    alarms = sum(planted[number][1] < THRESHOLD for number in duplicates)
    return f"| {name} | {signing:.1f} s | {finding:.1f} s | {peak:.0f} MiB | {few} | {many} | {recall} | {alarms} |"


if __name__ == "__main__":
    main()
