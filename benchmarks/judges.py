"""Agreement of judges with human labels: accuracy, Cohen's kappa and Spearman correlation, for any model, as Markdown.

    python -m benchmarks.judges --data DATA                                  # what mtRAG's authors measured
    python -m benchmarks.judges --data DATA --items 40 lm=embedded           # ask a model
    python -m benchmarks.judges --data DATA --pairs squad2:answerability,mtrag_idk:idk lm=vllm
    python -m benchmarks.judges --data DATA --pairs mtrag_scores:token_f1    # a judge that asks no model

Settings after the options are those of `python -m judges`, which makes the calls and continues after an interruption.
`--items` responses are drawn from each data set; of one with labels, equally many for each of the judge's.
"""

import argparse
import hashlib
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy.stats import binomtest, spearmanr
from sklearn.metrics import cohen_kappa_score

from benchmarks.command_line import errors_on_one_line
from benchmarks.judgements import ASKED, STORED, draw, read_ratings
from generator.errors import ConfigError
from generator.optimization.labels import SETS
from generator.output.markdown import table
from generator.schema import Dialog, Verdict
from judges.base import UNJUDGED

# Ordered labels of judges; a judge that isn't listed gives scores.
LABELS = {
    "correctness": ("incorrect", "correct"),
    "grounding": ("incorrect", "correct"),
    "p_true": ("incorrect", "correct"),
    "answerability": ("unanswerable", "partial", "answerable"),
    "idk": ("no", "partial", "yes"),
}
# Those of them that give scores, too.
BOTH = ("grounding", "p_true")
# mtRAG's human evaluation.
SCORES, SCORING = "mtrag_scores", ("rb_llm", "rl_f", "mt_bench")
PAIRS = [f"{name}:{judge}" for name, data in SETS.items() for judge in data.judges] + [
    f"{SCORES}:{judge}" for judge in SCORING
]


def verdicts(
    pair: str, dialogs: Sequence[Dialog], folder: Path, settings: Sequence[str]
) -> tuple[dict[str, Verdict], bool]:
    """Return the judge's verdict on each dialog, by `python -m judges`, and whether it judged all of them.

    Raises:
        SystemExit: the command failed; the reason is on the terminal.
    """
    name, _, judge = pair.partition(":")
    content = "".join(f"{dialog.model_dump_json()}\n" for dialog in dialogs)
    tag = hashlib.sha256(f"{content}{sorted(settings)}".encode()).hexdigest()[:10]
    source, run = folder / f"{name}-{tag}.jsonl", folder / f"{name}-{judge}-{tag}"
    folder.mkdir(parents=True, exist_ok=True)
    source.write_text(content, encoding="utf-8")
    command = [sys.executable, "-m", "judges", f"judge={judge}", f"input={source}", f"run_dir={run}", *settings]
    with subprocess.Popen(command, stdout=sys.stderr) as process:
        while process.poll() is None:
            with suppress(KeyboardInterrupt):  # the process gets it too, and ends after writing its results
                process.wait()
    if process.returncode not in (0, 1, 130) or not (run / "dialogs.jsonl").exists():
        sys.exit(process.returncode or 2)
    judged = [Dialog.model_validate_json(line) for line in (run / "dialogs.jsonl").open(encoding="utf-8")]
    return {dialog.id: dialog.turns[-1].verdicts[-1] for dialog in judged}, process.returncode != 130


def agreement(judge: str, meaning: Mapping[str, str], pairs: Sequence[tuple[str, Verdict]]) -> list[str]:
    """Return items, unjudged, accuracy with its 95% interval (Wilson), kappa, Spearman, and counts of the verdicts.

    Of scores, those without one are unjudged.

    Args:
        meaning: as in `generator.optimization.labels.Labelled`.
        pairs: human label and verdict.
    """
    if judge not in LABELS:
        ranks = {label: rank for rank, label in enumerate(meaning)}
        scored = [(human, verdict.score) for human, verdict in pairs if verdict.score is not None]
        scores = [score for _, score in scored]
        average = f"mean {fmean(scores):.2f}" if scores else ""
        rho = spearman([ranks[human] for human, _ in scored], scores)
        return [str(len(pairs)), str(len(pairs) - len(scored)), "", "", "", rho, average]
    kept = [(human, verdict) for human, verdict in pairs if verdict.label != UNJUDGED]
    lost = str(len(pairs) - len(kept))
    words = LABELS[judge]
    wanted, given = [meaning[human] for human, _ in kept], [verdict.label for _, verdict in kept]
    # In the order of the judge's labels: not knowing is the worst label of one data set and the best of another.
    rho = spearman([words.index(word) for word in wanted], [words.index(word) for word in given])
    counts = ", ".join(f"{count} {label}" for label, count in Counter(given).most_common())
    if not kept:
        return [str(len(pairs)), lost, "", "", "", "", ""]
    right = sum(a == b for a, b in zip(wanted, given, strict=True))
    interval = binomtest(right, len(kept)).proportion_ci(method="wilson")
    kappa = cohen_kappa_score(wanted, given, labels=list(words))
    figures = [f"{right / len(kept):.2f}", f"{interval.low:.2f} to {interval.high:.2f}", f"{kappa:.2f}", rho, counts]
    return [str(len(pairs)), lost, *figures]


def spearman(one: Sequence[float], other: Sequence[float]) -> str:
    """Return the correlation; a dash if one of them has a single value, and so no order."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return "–"
    return f"{spearmanr(one, other).statistic:.2f}"


def main() -> None:
    """Print the figures of mtRAG's authors, or those of a model's judgements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder that mtrag/, q2_wow/ and the others are in"
    )
    parser.add_argument("--items", type=int, default=40, help="responses from each data set (default: 40)")
    parser.add_argument("--pairs", help=f"set:judge,…; default: all that need a model: {','.join(PAIRS)}")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("outputs/judges-benchmark"), help="folder for runs")
    arguments, settings = parser.parse_known_args()
    with errors_on_one_line():
        if settings or arguments.pairs:
            print_agreement(arguments, settings)
        else:
            print_published(arguments.data)


def print_published(data: Path) -> None:
    """Print how the values that mtRAG's authors published correlate with their human ratings."""
    found = read_ratings(data)
    print(f"{len(found)} responses\n")
    human = {short: [scored.human[short] for scored, _ in found] for short in ASKED}
    published = {name: [stored[name] for _, stored in found] for name in STORED}
    rows = [[name, *(spearman(human[short], given) for short in ASKED)] for name, given in published.items()]
    print(table(["Spearman with", *ASKED], rows))


def print_agreement(arguments: Any, settings: Sequence[str]) -> None:
    """Judge, and print a table of labels and one of scores; after an interruption, of what is judged so far."""
    labels, scores, whole = [], [], True
    pairs = (arguments.pairs or ",".join(PAIRS)).split(",")
    for pair in pairs:
        if (name := pair.partition(":")[0]) not in (*SETS, SCORES):
            raise ConfigError(f"--pairs {pair}: unknown data set {name}; choose from: {', '.join((*SETS, SCORES))}")
        judge = pair.partition(":")[2]
        given = () if name == SCORES else SETS[name].meaning.values()
        if judge in LABELS and not (set(given) <= set(LABELS[judge]) if given else judge in BOTH):
            raise ConfigError(f"--pairs {pair}: {name} has no labels for {judge}; choose from: {' '.join(PAIRS)}")
    for pair in pairs:
        name, _, judge = pair.partition(":")
        if name == SCORES:
            rated = [scored for scored, _ in read_ratings(arguments.data)]
            chosen = random.Random(f"{arguments.seed} {name}").sample(rated, min(arguments.items, len(rated)))
            found, whole = verdicts(pair, [scored.dialog for scored in chosen], arguments.out, settings)
            judgements = [(one.human, found[one.dialog.id].score) for one in chosen if one.dialog.id in found]
            kept = [(human, score) for human, score in judgements if score is not None]
            by = [spearman([human[short] for human, _ in kept], [score for _, score in kept]) for short in ASKED]
            scores.append([judge, str(len(judgements)), str(len(judgements) - len(kept)), *by])
        else:
            items = draw(name, arguments.data, arguments.items, arguments.seed)
            found, whole = verdicts(pair, [one.dialog for one in items], arguments.out, settings)
            answers = [(one.human, found[one.dialog.id]) for one in items if one.dialog.id in found]
            labels.append([name, judge, *agreement(judge, SETS[name].meaning, answers)])
        if not whole:
            break
    if labels:
        head = ["set", "judge", "items", "unjudged", "accuracy", "95%", "kappa", "Spearman", "verdicts"]
        print(table(head, labels), flush=True)
    if scores:
        print("\n" + table(["Spearman with", "items", "no score", *ASKED], scores), flush=True)
    if not whole:
        sys.exit(130)


if __name__ == "__main__":
    main()
