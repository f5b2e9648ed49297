"""Near-duplicates: repeated questions, dialogs that are alike, and overlap with test sets."""

import gzip
import json
import random
import tracemalloc
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from generator.config.choices import compose_choice
from generator.config.parts import build
from generator.dialogs.dedup import Deduplicator, DedupSettings, Repetition
from generator.dialogs.program import Draft
from generator.errors import ConfigError, RunError
from generator.schema import Dialog
from tests.support.scripted import dialog_of, said


def settings(name: str = "minhash", **changes: object) -> DedupSettings:
    made: DedupSettings = build("dedup", compose_choice("dedup", name) | changes)
    return made


def dialog(name: str, *utterances: str) -> Dialog:
    """Return a dialog of questions and answers in turn."""
    turns = said(*zip(utterances[::2], utterances[1::2], strict=True))
    return dialog_of(Draft(turns, (), (), None)).model_copy(update={"id": name})


FERRY = (
    "When does the last ferry leave the old harbour?",
    "The last ferry leaves at ten in the evening, from the pier next to the fish market.",
    "And on Sundays?",
    "On Sundays there is no evening ferry, so the last one leaves at six in the afternoon.",
)


def after(*dialogs: Dialog, name: str = "minhash", **changes: object) -> Deduplicator:
    deduplicator = Deduplicator(settings(name, **changes))
    for kept in dialogs:
        deduplicator.add(kept)
    return deduplicator


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("When was the bridge built", "When was the bridge built?"),
        ("And what is the fee for a passport?", "What are the fees for a passport?"),
        ("How can I renew my driver's license online?", "How do I renew my driver license online?"),
        ("Does it?", "does it"),
    ],
)
def test_a_question_that_is_only_reworded_is_a_repetition(question: str, earlier: str) -> None:
    assert Repetition(0.8).find(question, ["What is open?", earlier, earlier.upper()]) == earlier


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("What are the fees for a passport?", "What are the fees for a visa?"),
        ("What did she do?", "What did he do?"),
        ("How do I renew my driver license online?", "How do I renew my vehicle registration online?"),
        ("What happened in 1998?", "What happened in 1999?"),
        ("Is it free for students?", "Is it not free for students?"),
    ],
)
def test_a_question_that_asks_something_else_is_none(question: str, earlier: str) -> None:
    assert Repetition(0.8).find(question, [earlier]) is None


def test_the_same_dialog_again_is_exact_whatever_its_case_and_punctuation() -> None:
    found = after(dialog("a", *FERRY)).check(dialog("b", *(text.upper() + "!" for text in FERRY)))
    assert found is not None
    assert (found.part, found.exact, found.of) == ("dialog", True, "a")
    assert found.reason == "exact duplicate: dialog"


def test_the_same_first_question_is_a_duplicate_whatever_comes_after() -> None:
    deduplicator = after(dialog("a", *FERRY))
    exact = deduplicator.check(dialog("b", FERRY[0], "At noon."))
    near = deduplicator.check(dialog("c", "And when does the last ferry leave the old harbour, please?", "At noon."))
    assert exact is not None and near is not None
    assert (exact.part, exact.exact, exact.of) == ("first question", True, "a")
    assert (near.part, near.exact, near.of) == ("first question", False, "a")
    assert near.reason == "near duplicate: first question"
    assert near.text == "And when does the last ferry leave the old harbour, please?"
    assert deduplicator.check(dialog("d", "Who owns it?", "The city.", FERRY[0], "At noon.")) is None


def test_none_leaves_out_the_comparison_of_dialogs_only(tmp_path: Path) -> None:
    assert after(dialog("a", *FERRY), name="none").check(dialog("b", *FERRY)) is None
    test_set = tmp_path / "test.txt"
    test_set.write_text(FERRY[0])
    assert after(name="none", against=[test_set]).check(dialog("b", *FERRY)) is not None


def test_a_question_of_a_test_set_is_found_behind_slips(tmp_path: Path) -> None:
    test_set = tmp_path / "test.txt"
    test_set.write_text(FERRY[0])
    first, second = dialog("b", *FERRY).turns
    typed = first.model_copy(update={"query": "whne does teh last fery leave teh old habrour", "clean_query": FERRY[0]})
    slips = dialog("b", *FERRY).model_copy(update={"turns": (typed, second)})
    assert after(against=[test_set]).check(slips) is not None


def test_near_duplicates_among_many_are_found_and_nothing_else() -> None:
    """Pairs: a dialog of 120 words, then the same with about one word in a hundred changed."""
    rng = random.Random(5)
    deduplicator = after()
    found = {}
    for number in range(80):
        words = [f"w{rng.randint(0, 9999)}" for _ in range(120)]
        for name in ("a", "b"):
            made = dialog(f"{name}{number}", " ".join(words[:20]), " ".join(words[20:]))
            words[rng.randrange(20)] = "changed"
            if duplicate := deduplicator.check(made):
                found[made.id] = duplicate.of
            else:
                deduplicator.add(made)
    assert found == {f"b{number}": f"a{number}" for number in range(80)}


def test_memory_does_not_grow_with_what_is_kept() -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choices("abcdefghijklmnopqrst", k=100)) for _ in range(150)]
    dialogs = [dialog(str(number), f"Is it {text[:19]}?", text) for number, text in enumerate(texts)]
    deduplicator = after()
    held = []
    tracemalloc.start()
    try:
        for made in dialogs:
            deduplicator.add(made)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[-1] - held[50] < 100 * 100, "bytes"


def test_no_room_for_what_is_kept_is_one_line() -> None:
    rng = random.Random(3)
    deduplicator = after()
    limits = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (100_000, limits[1]))  # as on a disk that is full
    try:
        with pytest.raises(RunError, match=r"^dedup: .+"):
            for number in range(1000):
                answer = " ".join(rng.choices("abcdefghijklmnop", k=3000))
                deduplicator.add(dialog(str(number), f"What is {number}?", answer))
    finally:
        setrlimit(RLIMIT_FSIZE, limits)


QUESTION = "Which pier does the night ferry use?"
ANSWER = "The night ferry uses the long pier beside the lighthouse all year."


@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.txt", "t.jsonl.gz", "t.parquet"])
def test_what_a_test_file_holds_is_contamination(tmp_path: Path, name: str) -> None:
    records = [{"text": "unrelated", "turns": []}, {"turns": [{"q": QUESTION, "n": None}, {"a": ANSWER}]}]
    path = tmp_path / name
    kind = name.split(".")[1]
    text = {
        "json": json.dumps(records),
        "jsonl": "\n".join(json.dumps(record) for record in records),
        "txt": f"unrelated\n{QUESTION} {ANSWER}\n{QUESTION}\n{ANSWER}\n",
    }.get(kind)
    if text is None:
        pq.write_table(pa.Table.from_pylist(records), path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8-sig")
    deduplicator = after(against=[path])
    asked = deduplicator.check(dialog("a", "Who runs it?", "The city.", QUESTION.lower(), "It varies."))
    said = deduplicator.check(dialog("b", "Who runs it?", f"Well, {ANSWER}"))
    assert asked is not None and said is not None
    assert (asked.part, asked.exact, asked.text) == ("contamination", True, QUESTION.lower())
    assert asked.of == f"{path}:{3 if kind == 'txt' else 2}"
    assert (said.part, said.exact, said.text) == ("contamination", False, f"Well, {ANSWER}")
    assert deduplicator.check(dialog("c", *FERRY)) is None


def test_what_is_said_everywhere_is_no_contamination(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("Why is that?\nIt opens at nine in the morning.\n")
    deduplicator = after(against=[path])
    assert deduplicator.check(dialog("a", "Why is that?", "It opens at nine in the morning.")) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.jsonl", None, "No such file"),
        ("bad.jsonl", b'{"q": "x"}\n\n{"q": \n', "line 3"),
        ("bad.json", b"[1, 2", "delimiter"),
        ("bad.json.gz", b"[1, 2]", "gzip"),
        ("bad.parquet", b"PAR0", ""),
        ("table.tsv", b"a\tb", "use one of .json"),
        ("empty.jsonl", b"\n", "has no text of four words"),
    ],
)
def test_a_test_file_that_can_not_be_read_is_named_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^dedup\.against: .*{path}: .*{message}.*$"):
        after(against=[path])


@pytest.mark.parametrize("threshold", [0.3, 0.99])
def test_every_allowed_threshold_builds_an_index_that_finds_equal_texts(threshold: float) -> None:
    found = after(dialog("a", *FERRY), threshold=threshold).check(dialog("b", *FERRY))
    assert found is not None and found.exact
