"""How far judges agree with people: accuracy, Cohen's kappa and Spearman correlation, for any model, as Markdown.

    python -m benchmarks.judges --data ../shared/data                                  # what mtRAG's authors measured
    python -m benchmarks.judges --data ../shared/data --items 40 lm=embedded           # ask a model
    python -m benchmarks.judges --data ../shared/data --pairs squad2:answerability,mtrag_idk:idk lm=vllm
    python -m benchmarks.judges --data ../shared/data --pairs mtrag_scores:token_f1    # a judge that asks no model

Settings after the options are those of `python -m judges`, which makes the calls and continues where it was broken off.
`--items` responses are drawn from each data set, as many for each of the judge's labels.
"""

import argparse
import csv
import hashlib
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from scipy.stats import binomtest, spearmanr
from sklearn.metrics import cohen_kappa_score

from generator.config import human_corpus
from generator.corpora.human import HUMAN, turn
from generator.errors import ConfigError, CorpusError, GroundedDialogsError
from generator.export.markdown import table
from generator.schema import TASK, Dialog, Passage, Turn, Verdict
from generator.sets import response_set
from judges.base import UNJUDGED

# What people were asked of a response, from 1 to 4, and how often they preferred it.
ASKED = {
    "F": "faithfulness",
    "A": "appropriateness",
    "N": "naturalness",
    "C": "completeness",
    "win rate": "win-rate",
}
STORED = ("RougeL", "Bert-Rec", "Bert-KPrec", "rb_agg", "rl_f", "rb_llm")
# Labels of judges in their order; a judge without a line here gives scores.
LABELS = {
    "correctness": ("incorrect", "correct"),
    "answerability": ("unanswerable", "partial", "answerable"),
    "idk": ("no", "partial", "yes"),
}


class Item(NamedTuple):
    """A response to judge, the last turn of its dialog, and people's word on it."""

    dialog: Dialog
    human: str


class Scored(NamedTuple):
    """A response, and the mean of what each question was answered by people, by the names in `ASKED`."""

    dialog: Dialog
    human: Mapping[str, float]


class Labelled(NamedTuple):
    """A data set whose people gave labels.

    Attributes:
        read: all items that have a label.
        meaning: people's labels, from the lowest, with the word that a judge who agrees would give.
        judges: whose question this is; the first one's words are those in `meaning`.
    """

    read: Callable[[Path], Iterator[Item]]
    meaning: Mapping[str, str]
    judges: tuple[str, ...]


def item(corpus: str, number: int, knowledge: str, query: str, answer: str, human: str) -> Item:
    """An item of one passage and one turn."""
    name = f"{corpus}-{number}"
    passage = Passage(id=name, document_id=name, text=knowledge, start=0, end=len(knowledge))
    return Item(task(name, corpus, [passage], (), query, answer), human)


def task(name: str, corpus: str, passages: Sequence[Passage], said: Sequence[Turn], query: str, answer: str) -> Dialog:
    """A dialog whose last turn alone is to be judged, by all of the passages."""
    before = [turn(number, earlier.query, earlier.answer) for number, earlier in enumerate(said, start=1)]
    return Dialog(
        id=name,
        corpus=corpus,
        algorithm="single",
        split="train",
        document_ids=tuple(dict.fromkeys(p.document_id for p in passages)),
        turns=(*before, turn(len(before) + 1, query, answer)),
        passages=tuple(passages),
        ended=TASK,
        lm=HUMAN,
        prompt_version="",
        seed=0,
    )


def q2_wow(data: Path) -> Iterator[Item]:
    """Responses of two systems to Wizard of Wikipedia: is all that they say in the knowledge?"""
    for system in ("dodeca", "memnet"):
        for label in ("consistent", "inconsistent"):
            for number, row in enumerate(_csv(data / "q2_wow" / f"{system}_{label}.csv")):
                name = f"q2_wow-{system}-{label}"
                yield item(name, number, row["knowledge"], row["message"], row["response"], label)


def faithdial_audit(data: Path) -> Iterator[Item]:
    """Responses of three systems and of people to Wizard of Wikipedia, by BEGIN's labels.

    Left out: what is generic or uncooperative, which is neither right nor wrong, and openings, which answer nobody.
    """
    for system, response, labels in (
        ("ctrl", "ctrl", "begin_label"),
        ("doha", "doha", "begin_label"),
        ("gpt2", "gpt2", "begin_label"),
        ("gold", "response", "BEGIN"),
    ):
        for number, row in enumerate(_csv(data / "faithdial_audit" / f"{system}_wow.csv")):
            given = row[labels].lower().strip()
            label = {"entailment,hallucination": "partial hallucination"}.get(given, given)
            if label in FAITHFUL and row["history"].strip() and row[response].strip():
                knowledge = row.get("knowledge") or row["evidence"]
                yield item(f"faithdial-{system}", number, knowledge, row["history"], row[response], label)


def squad2(data: Path) -> Iterator[Item]:
    """Questions on a paragraph, half of them written so that it seems to have the answer and hasn't."""
    (file,) = sorted((data / "squad2").glob("*.json"))
    number = 0
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                number += 1
                label = "unanswerable" if question["is_impossible"] else "answerable"
                yield item("squad2", number, paragraph["context"], question["question"], "", label)


def clapnq(data: Path) -> Iterator[Item]:
    """Questions to a search engine, each on a passage of Wikipedia that has the answer or is only near it."""
    for label in ("answerable", "unanswerable"):
        with (data / "clapnq" / f"clapnq_dev_{label}.jsonl").open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                text = "\n".join(found["text"] for found in row["passages"])
                yield item(f"clapnq-{label}", number, text, row["input"], "", label)


def mtrag(data: Path) -> Iterator[Item]:
    """The turns of mtRAG's conversations with the passages of their own, but for those that ask for nothing."""
    for dialog in human_corpus("mtrag", str(data / "mtrag")).dialogs():
        if not isinstance(dialog, Dialog):
            raise CorpusError(f"{dialog.where}: {dialog.reason}")
        texts = {found.id: found for found in dialog.passages}
        for now in dialog.turns:
            if now.answerability != "conversational":
                found = [texts[hit.passage_id] for hit in now.hits]
                before = dialog.turns[: now.turn - 1]
                name = f"{dialog.id}-{now.turn}"
                yield Item(task(name, "mtrag", found, before, now.query, now.answer), now.answerability)


FAITHFUL = {"hallucination": "incorrect", "partial hallucination": "incorrect", "entailment": "correct"}
SETS = {
    "q2_wow": Labelled(q2_wow, {"inconsistent": "incorrect", "consistent": "correct"}, ("correctness", "rl_f")),
    "faithdial_audit": Labelled(faithdial_audit, FAITHFUL, ("correctness", "rl_f")),
    "squad2": Labelled(squad2, {"unanswerable": "unanswerable", "answerable": "answerable"}, ("answerability",)),
    "clapnq": Labelled(clapnq, {"unanswerable": "unanswerable", "answerable": "answerable"}, ("answerability",)),
    "mtrag": Labelled(
        mtrag,
        {"unanswerable": "unanswerable", "partial": "partial", "answerable": "answerable"},
        ("answerability",),
    ),
    # What people answered to these questions: nobody labelled that, but it follows from what they had to answer.
    "mtrag_idk": Labelled(mtrag, {"answerable": "no", "partial": "partial", "unanswerable": "yes"}, ("idk",)),
}
# mtRAG's human evaluation.
SCORES, SCORING = "mtrag_scores", ("rb_llm", "rl_f", "mt_bench")
PAIRS = [f"{name}:{judge}" for name, data in SETS.items() for judge in data.judges] + [
    f"{SCORES}:{judge}" for judge in SCORING
]


def evaluated(data: Path) -> list[tuple[Scored, Mapping[str, float]]]:
    """The responses of mtRAG's human evaluation to questions with an answer, with the values that its authors measured.

    The reference's own are left out: beside itself it is perfect by any metric (Katsis et al. 2025, section 8).
    """
    (file,) = sorted((data / "mtrag" / "evaluations").glob("*.json"))
    found = response_set(str(file))
    if found is None:
        raise CorpusError(f"{file}: isn't mtRAG's human evaluation")
    content = json.loads(file.read_text(encoding="utf-8"))
    given = {f"{e['task_id']}/{e['model_id']}": e["annotations"] for e in content["evaluations"]}
    result: list[tuple[Scored, Mapping[str, float]]] = []
    for dialog in found.records():
        if not isinstance(dialog, Dialog):
            raise CorpusError(f"{dialog.where}: {dialog.reason}")
        if dialog.lm != "reference" and dialog.turns[-1].answerability in ("answerable", "partial"):
            values = {name: fmean(float(one["value"]) for one in by.values()) for name, by in given[dialog.id].items()}
            human = {short: values[name] for short, name in ASKED.items()}
            result.append((Scored(dialog, human), {name: values[name] for name in STORED}))
    return result


def drawn(name: str, data: Path, count: int, seed: int) -> list[Item]:
    """Items of a data set, as many for each word of the judge, in a random order."""
    words: dict[str, list[Item]] = {}
    for found in SETS[name].read(data):
        words.setdefault(SETS[name].meaning[found.human], []).append(found)
    chance = random.Random(f"{seed} {name}")
    shares = {word: count // len(words) + (place < count % len(words)) for place, word in enumerate(sorted(words))}
    chosen = [one for word, share in shares.items() for one in chance.sample(words[word], min(share, len(words[word])))]
    chance.shuffle(chosen)
    return chosen


def verdicts(
    pair: str, dialogs: Sequence[Dialog], folder: Path, settings: Sequence[str]
) -> tuple[dict[str, Verdict], bool]:
    """The judge's verdict on each dialog, by `python -m judges`, and whether all have one; what is done is not done
    again.

    Raises:
        SystemExit: something is to be mended first; the reason is on the terminal.
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
            with suppress(KeyboardInterrupt):  # it was interrupted too, and ends when it has written what it has
                process.wait()
    if process.returncode not in (0, 1, 130) or not (run / "dialogs.jsonl").exists():
        sys.exit(process.returncode or 2)
    judged = [Dialog.model_validate_json(line) for line in (run / "dialogs.jsonl").open(encoding="utf-8")]
    return {dialog.id: dialog.turns[-1].verdicts[-1] for dialog in judged}, process.returncode != 130


def agreement(judge: str, meaning: Mapping[str, str], pairs: Sequence[tuple[str, Verdict]]) -> list[str]:
    """Items, unjudged, accuracy with its 95% interval (Wilson), kappa, Spearman, and what the judge said how often.

    Args:
        meaning: as in `Labelled`.
        pairs: people's label and the verdict.
    """
    kept = [(human, verdict) for human, verdict in pairs if verdict.label != UNJUDGED]
    lost = str(len(pairs) - len(kept))
    ranks = {label: rank for rank, label in enumerate(meaning)}
    if judge not in LABELS:
        kept = [(human, verdict) for human, verdict in kept if verdict.score is not None]
        scores = [float(verdict.score or 0) for _, verdict in kept]
        said = f"mean {fmean(scores):.2f}" if scores else ""
        return [str(len(pairs)), lost, "", "", "", spearman([ranks[human] for human, _ in kept], scores), said]
    words = LABELS[judge]
    wanted, given = [meaning[human] for human, _ in kept], [verdict.label for _, verdict in kept]
    # Judges count up where people do, or down: not knowing is worst in one question and the honest word in another.
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
    """The correlation; a dash where one of them has a single value, and so no order."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return "–"
    return f"{spearmanr(one, other).statistic:.2f}"


def main() -> None:
    """Print the table of what was measured by mtRAG's authors, or those of a model's judgements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder that mtrag/, q2_wow/ and the others are in"
    )
    parser.add_argument("--items", type=int, default=40, help="responses of each data set (default: 40)")
    parser.add_argument("--pairs", help=f"set:judge,…; without it all that ask a model: {','.join(PAIRS)}")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("outputs/judges-benchmark"), help="where runs are kept")
    arguments, settings = parser.parse_known_args()
    try:
        if settings or arguments.pairs:
            judged(arguments, settings)
        else:
            measured(arguments.data)
    except GroundedDialogsError as error:
        sys.exit(f"error: {error}")


def measured(data: Path) -> None:
    """Print how what mtRAG's authors stored goes with what people said."""
    found = evaluated(data)
    print(f"{len(found)} responses\n")
    rows = [
        [
            name,
            *(
                spearman([scored.human[short] for scored, _ in found], [stored[name] for _, stored in found])
                for short in ASKED
            ),
        ]
        for name in STORED
    ]
    print(table(["Spearman with", *ASKED], rows))


def judged(arguments: Any, settings: Sequence[str]) -> None:
    """Ask, and print a table of labels and one of scores; of what was judged so far, if it is interrupted."""
    labels, scores, whole = [], [], True
    pairs = (arguments.pairs or ",".join(PAIRS)).split(",")
    for pair in pairs:
        if (name := pair.partition(":")[0]) not in (*SETS, SCORES):
            raise ConfigError(f"--pairs {pair}: there is no data set {name}; choose from: {', '.join((*SETS, SCORES))}")
        words = LABELS.get(judge := pair.partition(":")[2])
        if words and (name == SCORES or not set(SETS[name].meaning.values()) <= set(words)):
            raise ConfigError(f"--pairs {pair}: people were not asked there what {judge} is; see {' '.join(PAIRS)}")
    for pair in pairs:
        name, _, judge = pair.partition(":")
        if name == SCORES:
            found = [scored for scored, _ in evaluated(arguments.data)]
            chosen = random.Random(f"{arguments.seed} {name}").sample(found, min(arguments.items, len(found)))
            said, whole = verdicts(pair, [scored.dialog for scored in chosen], arguments.out, settings)
            judgements = [(one.human, said[one.dialog.id].score) for one in chosen if one.dialog.id in said]
            kept = [(human, score) for human, score in judgements if score is not None]
            by = [spearman([human[short] for human, _ in kept], [score for _, score in kept]) for short in ASKED]
            scores.append([judge, str(len(judgements)), str(len(judgements) - len(kept)), *by])
        else:
            items = drawn(name, arguments.data, arguments.items, arguments.seed)
            said, whole = verdicts(pair, [one.dialog for one in items], arguments.out, settings)
            answers = [(one.human, said[one.dialog.id]) for one in items if one.dialog.id in said]
            labels.append([name, judge, *agreement(judge, SETS[name].meaning, answers)])
        if not whole:
            break
    if labels:
        head = ["set", "judge", "items", "unjudged", "accuracy", "95%", "kappa", "Spearman", "the judge said"]
        print(table(head, labels), flush=True)
    if scores:
        print("\n" + table(["Spearman with", "items", "no score", *ASKED], scores), flush=True)
    if not whole:
        sys.exit(130)


def _csv(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


if __name__ == "__main__":
    main()
