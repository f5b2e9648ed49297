"""`python -m benchmarks.human --data DATA`: how often 50 marks of people tell a judge from a coin.

The marks are those of mtRAG's human evaluations on faithfulness, the judges the scores that its authors published;
`docs/human.md` has the figures.
"""

import argparse
import random

from benchmarks.command_line import add_data
from benchmarks.judgements import RATINGS
from judges.people.annotations import published_scores, read_annotations
from judges.people.measures import majority_of, measure_judge
from judges.people.verdicts import Judged
from judges.people.write import read_key

CRITERION, MARKS, SAMPLES = "faithfulness", 50, 60
JUDGES = ("rl_f", "Bert-KPrec", "RougeL", "rb_llm")
SHUFFLED = "rl_f in random order"


def main() -> None:
    """Print how many samples of the marks tell each score from a coin."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data(parser, RATINGS)
    file = parser.parse_args().data / RATINGS
    key = read_key(None, (), [file], "mtrag")
    judged = Judged(key, read_annotations([file], key, {})[0])
    criterion, dialogs = judged.criteria[CRITERION], {item.id: item.dialog for item in key.items}
    people = {
        item: good
        for item, by in judged.votes(CRITERION).items()
        if (good := majority_of([criterion.is_good(place) for place in by.values()])) is not None
    }
    scores, chance = published_scores(file), random.Random(0)
    for name in (*JUDGES, SHUFFLED):
        told = 0
        for seed in range(SAMPLES):
            marks = chance.sample(sorted(people), MARKS)
            own = [scores[dialogs[item]][f"published:{name.partition(' ')[0]}"] for item in marks]
            if name == SHUFFLED:
                chance.shuffle(own)
            told += measure_judge(name, "", CRITERION, [people[item] for item in marks], own, 0, seed).tells
        print(f"{name}: {told} of {SAMPLES} samples of {MARKS} marks tell it from a coin", flush=True)


if __name__ == "__main__":
    main()
