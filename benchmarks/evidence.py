"""Check people's answers and their evidence by `generator.dialogs.checks`, as Markdown.

    uv run python -m benchmarks.evidence --data DATA

Evidence: how often the sentence that holds the answer is ranked first, and how often evidence, as many other sentences
of the same documents, and the title alone don't cover the answer. Checks: how often people's answers fail one.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from generator.common.refusals import drop_refusals
from generator.common.sentences import sentences
from generator.dialogs.checks.answers import find_answer_fault
from generator.dialogs.checks.evidence import (
    SHOWN,
    Support,
    drop_needless,
    find_telling,
    list_said,
    measure_support,
    rank_sentences,
)
from generator.output.markdown import table
from generator.schema import Dialog, Evidence
from generator.sets import dialog_set

# Folders of human dialogs, with the corpora that read them; only where evidence is sentences is it measured.
DIALOGS = {
    "squad2": ("squad", True),
    "quac": ("quac", True),
    "coqa/coqa-dev-v1.0.sample.json": ("coqa", True),
    "doc2dial/v0.9": ("multidoc2dial", True),
    "mtrag": ("mtrag", False),
}


class Cited(NamedTuple):
    """An answer with the sentences that people cited for it, and all others of its documents."""

    said: list[str]
    answer: str
    evidence: list[str]
    others: list[str]


def read_clapnq(file: Path) -> Iterator[Cited]:
    """Yield the first answer to each question of ClapNQ, with the sentences that were selected for it."""
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        passage, answer = record["passages"][0], record["output"][0]
        chosen = [text for text in passage["sentences"] if text in answer["selected_sentences"]]
        others = [text for text in passage["sentences"] if text not in chosen]
        yield Cited([record["input"], passage["title"]], answer["answer"], chosen, others)


def read_cited(dialogs: Iterable[Dialog]) -> Iterator[Cited]:
    """Yield the answers of dialogs, each with the sentences that its evidence is in."""
    for dialog in dialogs:
        every = [(p.id, start, end, p.text[start:end]) for p in dialog.passages for start, end in sentences(p.text)]
        for turn in dialog.turns:
            chosen, others = list[str](), list[str]()
            for name, start, end, text in every:
                cited = any(e.passage_id == name and e.start < end and start < e.end for e in turn.evidence)
                (chosen if cited else others).append(text)
            said = list_said(turn.query, dialog.turns[: turn.turn - 1], dialog.passages)
            yield Cited(said, turn.answer, chosen, others)


def measure_evidence(cited: Iterable[Cited]) -> list[str]:
    """Return a row of figures over the answers whose documents have other sentences beside the evidence."""
    chance, counts = random.Random(0), Counter[str]()
    for item in cited:
        if not item.evidence or not item.others:
            continue
        every = [*item.evidence, *item.others]
        chance.shuffle(every)
        counts["answers"] += 1
        counts["sentences"] += len(every)
        for name, answer in (("question", ""), ("both", item.answer)):
            ranked = [every[place] in item.evidence for place in rank_sentences(every, answer, item.said[0])]
            counts[name] += ranked[:1] == [True]
            counts[f"{name} shown"] += any(ranked[:SHOWN])
        places = rank_sentences(every, item.answer, item.said[0])[:SHOWN]
        if (telling := find_telling(every, places, item.answer, item.said)) is not None:
            counts["alone"] += 1
            counts["alone right"] += every[telling] in item.evidence
        counts["cited"] += len(item.evidence)
        kept = spare_two_others(item, chance)
        counts["kept"] += sum(text in item.evidence for text in kept)
        counts["only cited"] += all(text in item.evidence for text in kept)
        other = chance.sample(item.others, min(len(item.evidence), len(item.others)))
        for name, texts in (("evidence", item.evidence), ("other", other), ("title", item.said[-1:])):
            counts[name] += not measure_support(item.answer, item.said, texts).covered
    answers = counts["answers"]
    names = ("question", "both", "both shown", "evidence", "other", "title")
    return [
        f"{answers:,}",
        f"{counts['sentences'] / max(1, answers):.1f}",
        *(_share(counts[n], answers) for n in names),
        f"{counts['alone right']:,} of {counts['alone']:,}",
        _share(counts["only cited"], answers),
        _share(counts["kept"], counts["cited"]),
    ]


def spare_two_others(item: Cited, chance: random.Random) -> list[str]:
    """Return what is left of an answer's evidence and the two other sentences that share most with the answer."""
    likely = rank_sentences(item.others, item.answer, item.said[0])[:2]
    texts = [*item.evidence, *(item.others[place] for place in likely)]
    chance.shuffle(texts)
    cited = [Evidence(passage_id="", start=0, end=len(text), text=text) for text in dict.fromkeys(texts)]

    def measure(evidence: Sequence[Evidence]) -> Support:
        return measure_support(item.answer, item.said, [each.text for each in evidence])

    return [each.text for each in drop_needless(cited, item.answer, item.said[0], (), measure)]


def measure_checks(dialogs: Iterable[Dialog]) -> list[str]:
    """Return a row of how often answers fail a check, by its reason, and of how often one claims nothing."""
    counts, claimless = Counter[str](), Counter[tuple[bool, bool]]()
    for dialog in dialogs:
        for turn in dialog.turns:
            passages = dialog.grounding(turn.turn)
            fault = find_answer_fault(turn.answer, turn.query, dialog.turns[: turn.turn - 1], passages)
            counts[(fault or "").partition(":")[0]] += 1
            claimless[turn.answerability == "unanswerable", not drop_refusals(turn.answer).strip()] += 1
    reasons = (
        "speaks of the documents",
        "answers nothing",
        "repeats an earlier answer",
        "says the contrary of what is told",
        "has the number of something else",
    )
    refusing = [_share(claimless[un, True], claimless[un, True] + claimless[un, False]) for un in (True, False)]
    return [f"{counts.total():,}", *(_share(counts[reason], counts.total()) for reason in reasons), *refusing]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of data sets")
    data = parser.parse_args().data
    evidence, checks = [], []
    if (file := data / "clapnq" / "clapnq_dev_answerable.jsonl").exists():
        evidence.append(["clapnq", *measure_evidence(read_clapnq(file))])
    for folder, (corpus, cites_sentences) in DIALOGS.items():
        if (path := data / folder).exists():
            found = list(dialog_set(f"{corpus}:{path}").dialogs())
            name = folder.partition("/")[0]
            checks.append([name, *measure_checks(found)])
            if cites_sentences:
                evidence.append([name, *measure_evidence(read_cited(found))])
    shares = (
        "first by question",
        "first by both",
        f"in {SHOWN} by both",
        "evidence",
        "others",
        "title",
        "one tells it all",
        "only cited left",
        "of cited left",
    )
    print(table(["set", "answers", "sentences", *shares], evidence))
    reasons = ("documents", "nothing", "repeats", "contrary", "number")
    print("\n" + table(["set", "answers", *reasons, "no claim: unanswerable", "no claim: others"], checks))


if __name__ == "__main__":
    main()
