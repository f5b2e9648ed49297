"""Compare runs on the same plans with more or fewer candidates, or the score of candidates with people's ratings.

    for n in 1 2 4; do python -m generator algorithm.candidates=$n run_dir=outputs/candidates-$n \\
        dialogs=8 max_attempts=8 turns=3 lm=…; done
    python -m benchmarks.candidates outputs/candidates-*
    python -m benchmarks.candidates --people DATA/mtrag/evaluations/reference_subset_with_human_evaluations.json

With run folders it prints the share of planned turns that became kept pairs, by `summary.json`, and what such a pair
cost. Give all runs the same `max_attempts` as `dialogs`: otherwise a run that loses more dialogs has more plans. With
`--people` it prints how often `rate_answer`, with `judge=grounding`, prefers the answer that people rate higher, of two
to one mtRAG task.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from benchmarks.command_line import errors_on_one_line
from generator.common.sentences import sentences
from generator.dialogs.candidates import rate_answer
from generator.dialogs.checks.evidence import rank_sentences
from generator.output.markdown import table
from generator.output.summary import Summary
from generator.schema import Evidence, Passage, Turn, Turns
from generator.sets import dialog_set
from judges.metrics.grounding import GroundingJudge

# Least differences of mean ratings that count: half a point of four, and 20 of 100.
RATINGS = {"faithfulness": 0.5, "appropriateness": 0.5, "completeness": 0.5, "win-rate": 20.0}
CITED = 3


def read_run(folder: Path) -> list[str]:
    """Return the cells of a run's row."""
    settings = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    summary = Summary.model_validate_json((folder / "summary.json").read_text(encoding="utf-8"))
    turns = Turns.model_validate(Turns.parse(settings["turns"]))
    planned = round(summary.attempted * (turns.least + turns.most) / 2)
    removed, lost = (
        sum(count for by in stages for count in by.values())
        for stages in (summary.dropped_pairs.values(), summary.dropped_turns.values())
    )
    cost = summary.pair_cost.get("all")
    unused = summary.candidates_cost.calls / max(1, summary.lm_calls)
    share = f"{summary.pairs / max(1, planned):.0%}"
    cells = [settings["algorithm"]["candidates"], summary.attempted, summary.accepted, planned, lost, removed]
    costs = [f"{cost.calls:.1f}", f"{cost.computed:.0f}", f"{cost.completion:.0f}"] if cost else ["", "", ""]
    return [*map(str, cells), str(summary.pairs), share, *costs, f"{unused:.0%}"]


def read_people(file: Path) -> list[list[str]]:
    """Return a row for each rating of people: the pairs of answers that differ in it, and the share preferred alike."""
    evaluations = json.loads(file.read_text(encoding="utf-8"))["evaluations"]
    ratings = {f"{each['task_id']}/{each['model_id']}": each["annotations"] for each in evaluations}
    answers: dict[str, list[Any]] = {}
    for dialog in dialog_set(str(file)).dialogs():
        turn = dialog.turns[-1]
        if passages := dialog.grounding(turn.turn):
            answers.setdefault(dialog.id.rpartition("/")[0], []).append((_score(turn, passages), ratings[dialog.id]))
    rows = []
    for rating, least in RATINGS.items():
        alike: list[float] = []
        for one, other in (pair for rated in answers.values() for pair in combinations(rated, 2)):
            better = _mean(one[1][rating]) - _mean(other[1][rating])
            if abs(better) >= least:
                alike.append(0.5 if one[0] == other[0] else float((one[0] > other[0]) == (better > 0)))
        rows.append([rating, str(len(alike)), f"{fmean(alike):.2f}"])
    return rows


def _score(turn: Turn, passages: Sequence[Passage]) -> float:
    """Return the score of an answer, with the sentences nearest to it as evidence: these answers cite none."""
    spans = [(passage, start, end) for passage in passages for start, end in sentences(passage.text)]
    texts = [passage.text[start:end] for passage, start, end in spans]
    cited = [spans[place] for place in rank_sentences(texts, turn.answer, turn.query)[:CITED]]
    evidence = tuple(Evidence(passage_id=p.id, start=s, end=e, text=p.text[s:e]) for p, s, e in cited)
    return asyncio.run(rate_answer(turn.model_copy(update={"evidence": evidence}), passages, (), (GroundingJudge(),)))


def _mean(ratings: Any) -> float:
    return fmean(float(each["value"]) for each in ratings.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", help="run folders")
    parser.add_argument("--people", type=Path, help="mtRAG's answers with people's ratings")
    arguments = parser.parse_args()
    with errors_on_one_line():
        if arguments.people:
            print(table(["people's rating", "pairs of answers", "preferred alike"], read_people(arguments.people)))
        if arguments.runs:
            header = ["candidates", "plans", "accepted dialogs", "planned turns", "lost turns", "removed pairs"]
            header += ["kept pairs", "share", "calls a pair", "prompt tokens computed", "completion tokens"]
            header += ["calls for unused candidates"]
            print(table(header, [read_run(folder) for folder in arguments.runs]))


if __name__ == "__main__":
    main()
