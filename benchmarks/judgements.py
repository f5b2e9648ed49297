"""Human judgements of responses, to compare judges with; each response is the last turn of a dialog."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from generator.optimization.labels import SETS, Item
from generator.schema import Dialog
from generator.sets import dialog_set

# mtRAG's human evaluation, in the folder of data sets.
RATINGS = "mtrag/evaluations/reference_subset_with_human_evaluations.json"
# What people rated in a response, from 1 to 4, and how often they preferred it.
ASKED = {"F": "faithfulness", "A": "appropriateness", "N": "naturalness", "C": "completeness", "win rate": "win-rate"}
STORED = ("RougeL", "Bert-Rec", "Bert-KPrec", "rb_agg", "rl_f", "rb_llm")


class Scored(NamedTuple):
    """A response, and its mean human ratings, by the names in `ASKED`."""

    dialog: Dialog
    human: Mapping[str, float]


def read_ratings(data: Path) -> list[tuple[Scored, Mapping[str, float]]]:
    """Return the responses of mtRAG's human evaluation to answerable questions, with its authors' metric values.

    The reference answers are left out, since by any metric they equal themselves (Katsis et al. 2025, section 8).
    """
    file = data / RATINGS
    dialogs = dialog_set(str(file)).dialogs()  # an error if there is no such file
    content = json.loads(file.read_text(encoding="utf-8"))
    given = {f"{e['task_id']}/{e['model_id']}": e["annotations"] for e in content["evaluations"]}
    result: list[tuple[Scored, Mapping[str, float]]] = []
    for dialog in dialogs:
        if dialog.lm != "reference" and dialog.turns[-1].answerability in ("answerable", "partial"):
            values = {name: fmean(float(one["value"]) for one in by.values()) for name, by in given[dialog.id].items()}
            human = {short: values[name] for short, name in ASKED.items()}
            result.append((Scored(dialog, human), {name: values[name] for name in STORED}))
    return result


def draw(name: str, data: Path, count: int, seed: int) -> list[Item]:
    """Return items of a data set, equally many for each verdict, in a random order."""
    words: dict[str, list[Item]] = {}
    for found in SETS[name].read(data):
        words.setdefault(SETS[name].meaning[found.human], []).append(found)
    chance = random.Random(f"{seed} {name}")
    shares = {word: count // len(words) + (place < count % len(words)) for place, word in enumerate(sorted(words))}
    chosen = [one for word, share in shares.items() for one in chance.sample(words[word], min(share, len(words[word])))]
    chance.shuffle(chosen)
    return chosen
