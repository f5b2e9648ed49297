"""Examples on the sides of a split."""

import json
import random
from pathlib import Path

from generator.optimization.data import Example, find_groups, read_examples, split_examples
from tests.support.records import make_turn


def example(number: int, label: str, *keys: str) -> Example:
    turn = make_turn(1)
    return Example(str(number), "s", frozenset(keys or {str(number)}), (), (), turn, label)


def test_no_document_is_on_two_sides() -> None:
    chained = [example(n, "ab"[n % 2], f"d{n // 4}", f"d{n // 4 + n % 2 * 100}") for n in range(80)]
    split = split_examples(chained, {"train": 8, "validation": 8, "held_out": 16}, seed=1)
    assert [len(part) for part in split] == [8, 8, 16]
    keys = [set().union(*(each.keys for each in part)) for part in split]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])
    assert all(sum(each.label == "a" for each in part) == len(part) / 2 for part in split)
    assert split == split_examples(chained, {"train": 8, "validation": 8, "held_out": 16}, seed=1)
    joined = [example(0, "a", "x", "y"), example(1, "a", "y", "z"), example(2, "a", "z"), example(3, "a", "w")]
    assert [len(group) for group in find_groups(joined)] == [3, 1]


def test_a_split_takes_a_rare_label_from_as_many_documents_as_a_frequent_one() -> None:
    chance = random.Random(0)
    labels = ["rare" if chance.random() < 0.25 else "frequent" for _ in range(600)]
    examples = [example(number, label, str(number // 4)) for number, label in enumerate(labels)]
    split = split_examples(examples, {"train": 30, "validation": 30, "held_out": 60}, 0)
    assert [len(find_groups(part)) for part in split] == [30, 30, 60]


def test_a_split_takes_one_example_of_a_document_where_there_are_enough() -> None:
    examples = [example(number, "", str(number // 5)) for number in range(50)]
    for size, documents in ((4, 8), (16, 10)):
        parts = split_examples(examples, {"train": 2, "validation": 2, "held_out": size}, 0)
        assert [len(part) for part in parts] == [2, 2, size]
        assert sum(len(find_groups(part)) for part in parts) == documents


def test_conversations_of_mtrag_are_read_as_a_file_and_in_the_folder_of_the_published_sets(tmp_path: Path) -> None:
    (tmp_path / "mtrag").mkdir()
    file = tmp_path / "mtrag" / "conversations.json"
    said = [("user", "When does the mill open?"), ("agent", "At nine."), ("user", "And close?"), ("agent", "At six.")]
    context = {"document_id": "clapnq_1", "text": "The mill opens at nine and closes at six."}
    labels = {"Question Type": ["Factoid"], "Answerability": ["ANSWERABLE"], "Multi-Turn": ["Follow-up"]}
    messages = [
        {"speaker": "user", "text": text, "enrichments": labels}
        if who == "user"
        else {"speaker": "agent", "text": text, "contexts": [context]}
        for who, text in said
    ]
    collection = {"collection": {"name": "mt-rag-clapnq-elser-512-100-20240503"}}
    file.write_text(json.dumps([{"author": "a", "retriever": collection, "messages": messages}]), encoding="utf-8")
    for path in (file, tmp_path):
        found = read_examples([f"mtrag:{path}"], ["answerability"])
        assert [(one.turn.query, one.label) for one in found] == [
            ("When does the mill open?", "answerable"),
            ("And close?", "answerable"),
        ]
