"""Agreement of `judge=asks_back` with people's labels of clarification responses, as a Markdown table.

    uv run --group benchmark python -m benchmarks.asks_back --data DATA

Responses that ask back: targets of underspecified questions (MTRAG-UN), responses that their writer labelled as a
clarification (INSCIT), first answers of the task that asks for one (IC of MT-Bench-101; the other tasks whose first
answer need not ask, SI and PI aside, are its negatives). Every other response of the set is a negative.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from benchmarks.command_line import add_data
from generator.dialogs.checks.asks_back import find_request
from generator.output.markdown import table
from generator.sets import dialog_set

# A response, and whether people say that it asks back.
Labelled = tuple[str, bool]


def mtrag_un(data: Path) -> Iterator[Labelled]:
    """Yield the targets of MTRAG-UN's sample."""
    for dialog in dialog_set(f"mtrag:{data / 'mtrag_un/reference_sample.jsonl'}").dialogs():
        turn = dialog.turns[-1]
        yield from ((text, turn.answerability == "underspecified") for text in (turn.answer, *turn.other_answers))


def inscit(data: Path) -> Iterator[Labelled]:
    """Yield all people's responses of INSCIT."""
    for dialog in json.loads((data / "inscit" / "dev_half.json").read_text(encoding="utf-8")).values():
        labels = (label for turn in dialog["turns"] for label in turn["labels"])
        yield from ((label["response"], label["responseType"] == "clarification") for label in labels)


def mt_bench_101(data: Path) -> Iterator[Labelled]:
    """Yield the first answers of MT-Bench-101, but for the two tasks that may or may not ask."""
    for dialog in dialog_set(f"mt_bench_101:{data / 'mtbench101/mtbench101.jsonl'}").dialogs():
        if dialog.task not in ("SI", "PI"):
            yield dialog.turns[0].answer, dialog.task == "IC"


SETS: tuple[Callable[[Path], Iterator[Labelled]], ...] = (mtrag_un, inscit, mt_bench_101)


def measure(pairs: list[Labelled]) -> list[str]:
    """Return the cells of a row: responses, those that ask, precision, recall, F1, kappa."""
    human = [asks for _, asks in pairs]
    found = [bool(find_request(response)) for response, _ in pairs]
    precision, recall, f1, _ = precision_recall_fscore_support(human, found, average="binary", zero_division=0)
    scores = (precision, recall, f1, cohen_kappa_score(human, found))
    return [str(len(pairs)), str(sum(human)), *(f"{score:.3f}" for score in scores)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "mtrag_un", "inscit", "mtbench101")
    data = parser.parse_args().data
    header = ["set", "responses", "ask back", "precision", "recall", "F1", "kappa"]
    print(table(header, [[read.__name__, *measure(list(read(data)))] for read in SETS]))


if __name__ == "__main__":
    main()
