"""Memory and time to read a large collection: a generated one in OR-QuAC's layout, through `corpus=orquac`.

    python -m benchmarks.reading                      # reads 2,000,000 passages, and a tenth of them
    python -m benchmarks.reading 200000 --library     # also builds documents and passages on disk

Each figure is measured in a new process.
"""

import argparse
import gzip
import json
import random
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import in_new_process, peak_memory
from generator.corpora.library import Library
from generator.corpora.orquac import OrquacCorpus

WORDS = 100  # in a passage


def generate(path: Path, count: int) -> None:
    """Write `count` passages of made-up words, gzipped."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=chance.randint(2, 9))) for _ in range(20_000)]
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        for number in range(count):
            article, block = divmod(number, 6)
            text = " ".join(chance.choices(words, k=WORDS))
            record = {"text": text, "title": words[article % 20_000], "aid": str(article), "bid": block}
            file.write(json.dumps({**record, "id": f"{article}@{block}"}) + "\n")


def measure_reading(path: Path, library: bool) -> tuple[float, float]:
    """Read the collection as a run does; return seconds and the highest resident memory in MiB."""
    corpus = OrquacCorpus(
        name="orquac",
        licence="",
        source="",
        strict=True,
        max_broken=0,
        path=str(path),
        split="train",
        cache_dir=str(path.parent),
        base_url="http://127.0.0.1",
        no_answer="-",
    )
    start = time.perf_counter()
    read = corpus.readable(corpus.read(), on_broken=lambda broken: None)
    if library:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            Library.open("orquac", "f" * 64, lambda: read, Path(folder), 512, 100).close()
    else:
        sum(1 for _ in read)
    return time.perf_counter() - start, peak_memory()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("count", nargs="?", type=int, default=2_000_000)
    arguments.add_argument("--library", action="store_true")
    given = arguments.parse_args()
    print("| lines | file | seconds | lines a second | peak memory |\n| --- | --- | --- | --- | --- |")
    for count in (given.count // 10, given.count):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "all_blocks.txt.gz")
            generate(path, count)
            seconds, peak = in_new_process(measure_reading, path, given.library)
            size = path.stat().st_size / 1e6
        print(f"| {count:,} | {size:,.0f} MB | {seconds:.0f} | {count / seconds:,.0f} | {peak:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
