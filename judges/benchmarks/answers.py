"""Read a model's answers that exist, so that they are judged in place of asking the model."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from generator.common.console import count_noun, note
from generator.common.sanitize import drop_thoughts
from generator.corpora.files import list_files
from generator.corpora.json_records import read_json_lines, require_record
from generator.errors import CorpusError
from generator.schema import Context, Dialog
from judges.benchmarks.base import RatedBenchmark

# What RAD-Bench's publisher writes for an answer that didn't come.
ERROR = "$ERROR$"


def add_answers(
    items: Sequence[Dialog], path: Path, model: str, benchmark: RatedBenchmark, context: Context
) -> tuple[list[Dialog], dict[str, int]]:
    """Return the items with a model's answers, and how many it lacks, by what is in their place.

    An answer that it lacks is empty; it is not judged.

    Args:
        path: the file with the answers.
        context: the earlier answers that the model was shown.

    Raises:
        CorpusError: the file can't be read, or has nothing for these items.
    """
    answers = _read(path, benchmark)
    known = {item.id for item in items}
    if not answers:
        raise CorpusError(f"answers={path}: has no answers; give a file with a model's answers to input")
    if not known & answers.keys():
        first = next(iter(answers))
        raise CorpusError(
            f"answers={path}: no answer is to one of the {len(known)} dialogs of input; its first is to dialog {first}"
        )
    others = len(answers.keys() - known)
    turns_beyond = sum(len(answers.get(item.id, {}).keys() - {t.turn for t in item.turns}) for item in items)
    if left_out := [count_noun(n, noun) for n, noun in ((others, "dialog"), (turns_beyond, "turn")) if n]:
        note(f"answers={path}: left out the answers to {' and '.join(left_out)} that the input doesn't have")
    lacking = Counter[str]()
    answered = []
    for item in items:
        turns = []
        given = answers.get(item.id, {})
        judged = {turn.turn for turn in benchmark.judged(item)}
        for turn in item.turns:
            if turn.turn not in judged:
                turns.append(turn)
                continue
            text = given.get(turn.turn)
            if text is None or text.strip() in ("", ERROR):
                lacking["missing" if text is None else text.strip() or "empty"] += 1
                text = ""
            update = {"answer": text.strip(), "other_answers": (turn.answer, *turn.other_answers)}
            turns.append(turn.model_copy(update=update))
        answered.append(item.model_copy(update={"turns": tuple(turns), "context": context, "lm": model}))
    return answered, dict(lacking)


def _read(path: Path, benchmark: RatedBenchmark) -> dict[str, dict[int, str]]:
    """Return the answers of a file by item and number of the turn."""
    answers: dict[str, dict[int, str]] = {}
    files = list_files(str(path), ("",), archives=False, setting="answers")
    if len(files) > 1:
        raise CorpusError(f"answers={path}: holds {len(files)} files; give the one with the model's answers")
    for where, record in read_json_lines(files[0]):
        line = require_record(benchmark.answer_line, where, record, f"expected an answer to {benchmark.name}")
        item, given = line.answers()
        found = answers.setdefault(item, {})
        if twice := found.keys() & given:
            raise CorpusError(f"{where}: turn {min(twice)} of dialog {item} is answered twice; remove one")
        found.update((turn, drop_thoughts(text)) for turn, text in given.items())
    return answers
