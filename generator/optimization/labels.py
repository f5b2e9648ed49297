"""Published human labels of responses and questions, each the last turn of a dialog."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from generator.corpora.human import HUMAN, human_turn
from generator.schema import TASK, Dialog, Passage, Turn
from generator.sets import dialog_set

# BEGIN's labels as verdicts of a judge of correctness.
FAITHFUL = {"hallucination": "incorrect", "partial hallucination": "incorrect", "entailment": "correct"}

# The systems of FaithDial's audit, and the columns of their responses and of BEGIN's labels.
AUDIT = {
    "ctrl": ("ctrl", "begin_label"),
    "doha": ("doha", "begin_label"),
    "gpt2": ("gpt2", "begin_label"),
    "gold": ("response", "BEGIN"),
}


class Item(NamedTuple):
    """A response to judge, the last turn of its dialog, and its human label."""

    dialog: Dialog
    human: str


class Labelled(NamedTuple):
    """A data set with human labels.

    Attributes:
        read: yields all items that have a label.
        meaning: the human labels, from the lowest, with the verdict of a judge that agrees.
        judges: that answer the same question; `meaning` has the labels of the first.
    """

    read: Callable[[Path], Iterator[Item]]
    meaning: Mapping[str, str]
    judges: tuple[str, ...]


def item(corpus: str, number: int, knowledge: str, query: str, answer: str, human: str, document: str = "") -> Item:
    """Return an item of one passage and one turn; `document` names what the passage is from, if that is known."""
    name = f"{corpus}-{number}"
    passage = Passage(id=name, document_id=document or name, text=knowledge, start=0, end=len(knowledge))
    return Item(task(name, corpus, [passage], (), query, answer), human)


def task(
    name: str,
    corpus: str,
    passages: Sequence[Passage],
    history: Sequence[Turn],
    query: str,
    answer: str,
    rewrite: str = "",
) -> Dialog:
    """Return a dialog whose last turn alone is the task, given all of the passages.

    Args:
        rewrite: the query in a form that stands alone, if people wrote one.
    """
    before = [human_turn(number, earlier.query, earlier.answer) for number, earlier in enumerate(history, start=1)]
    return Dialog(
        id=name,
        corpus=corpus,
        algorithm="single",
        split="train",
        document_ids=tuple(dict.fromkeys(p.document_id for p in passages)),
        turns=(*before, human_turn(len(before) + 1, query, answer, rewrite=rewrite)),
        passages=tuple(passages),
        ended=TASK,
        lm=HUMAN,
        prompt_version="",
        seed=0,
    )


def read_csv(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a file by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def q2_wow(data: Path) -> Iterator[Item]:
    """Yield responses of two systems to Wizard of Wikipedia, labelled as supported by the knowledge or not."""
    for system in ("dodeca", "memnet"):
        for label in ("consistent", "inconsistent"):
            for number, row in enumerate(read_csv(data / "q2_wow" / f"{system}_{label}.csv")):
                name = f"q2_wow-{system}-{label}"
                yield item(name, number, row["knowledge"], row["message"], row["response"], label, row["topic"])


def faithdial_audit(data: Path) -> Iterator[Item]:
    """Yield responses of three systems and of people to Wizard of Wikipedia, by BEGIN's labels.

    Left out: generic and uncooperative responses, which are neither right nor wrong, and openings.
    """
    for system, (response, labels) in AUDIT.items():
        for number, row in enumerate(read_csv(data / "faithdial_audit" / f"{system}_wow.csv")):
            given = row[labels].lower().strip()
            label = {"entailment,hallucination": "partial hallucination"}.get(given, given)
            if label in FAITHFUL and row["history"].strip() and row[response].strip():
                knowledge = row.get("knowledge") or row["evidence"]
                yield item(f"faithdial-{system}", number, knowledge, row["history"], row[response], label)


def squad2(data: Path) -> Iterator[Item]:
    """Yield questions on a paragraph, half of them written so that it seems to have the answer but doesn't."""
    file = min((data / "squad2").glob("*.json"), default=data / "squad2" / "*.json")
    number = 0
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                number += 1
                label = "unanswerable" if question["is_impossible"] else "answerable"
                yield item("squad2", number, paragraph["context"], question["question"], "", label, article["title"])


def clapnq(data: Path) -> Iterator[Item]:
    """Yield questions to a search engine, each with a passage of Wikipedia that has the answer or is only related."""
    for label in ("answerable", "unanswerable"):
        with (data / "clapnq" / f"clapnq_dev_{label}.jsonl").open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                text = "\n".join(found["text"] for found in row["passages"])
                yield item(f"clapnq-{label}", number, text, row["input"], "", label)


def mtrag(data: Path) -> Iterator[Item]:
    """Yield the turns of mtRAG's conversations with their passages, without conversational turns."""
    for dialog in dialog_set(str(data / "mtrag"), "mtrag").dialogs():
        texts = {found.id: found for found in dialog.passages}
        for now in dialog.turns:
            if now.answerability != "conversational":
                found = [texts[hit.passage_id] for hit in now.hits]
                before = dialog.turns[: now.turn - 1]
                name = f"{dialog.id}-{now.turn}"
                yield Item(task(name, "mtrag", found, before, now.query, now.answer), now.answerability)


def canard(data: Path) -> Iterator[Item]:
    """Yield the later questions of QuAC's dialogs, each with a query that stands alone, as people rewrote it.

    Its passage is what they saw: the titles of article and section.
    """
    for record in json.loads((data / "canard" / "dev.json").read_text(encoding="utf-8")):
        title, section, *texts = record["History"]
        if texts:
            name = f"canard-{record['QuAC_dialog_id']}-{record['Question_no']}"
            text = f"{title}: {section}"
            shown = Passage(id=name, document_id=title, text=text, start=0, end=len(text))
            history = [human_turn(1, *said) for said in zip(texts[::2], texts[1::2], strict=True)]
            yield Item(task(name, "canard", [shown], history, record["Question"], "", record["Rewrite"]), "")


SETS = {
    "q2_wow": Labelled(
        q2_wow, {"inconsistent": "incorrect", "consistent": "correct"}, ("correctness", "p_true", "rl_f")
    ),
    "faithdial_audit": Labelled(faithdial_audit, FAITHFUL, ("correctness", "p_true", "rl_f")),
    "squad2": Labelled(squad2, {"unanswerable": "unanswerable", "answerable": "answerable"}, ("answerability",)),
    "clapnq": Labelled(clapnq, {"unanswerable": "unanswerable", "answerable": "answerable"}, ("answerability",)),
    "mtrag": Labelled(
        mtrag, {"unanswerable": "unanswerable", "partial": "partial", "answerable": "answerable"}, ("answerability",)
    ),
    # Not labelled, but implied: whether the human answers to these questions say that they don't know.
    "mtrag_idk": Labelled(mtrag, {"answerable": "no", "partial": "partial", "unanswerable": "yes"}, ("idk",)),
    # Queries in place of labels.
    "canard": Labelled(canard, {"": ""}, ()),
}
