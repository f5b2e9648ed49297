"""What a student learns from: drawn pairs, their passages, and the documents that are held out."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.errors import ConfigError, CorpusError
from generator.finetune import COMMAND
from generator.schema import Dialog, Evidence, Verdict
from generator.training.data import Finetuning, Pair, has_training, identify_training, read_pairs
from generator.training.draw import draw_pairs
from generator.training.settings import Student
from tests.support.records import make_dialog, make_passage, make_turn, write_dialogs
from tests.support.runs import command

STUDENT = Student(
    name="s", model="m", rank=8, alpha=32, quantised=False, learning_rate=1e-4, epochs=1, batch=16, at_once=1,
    max_tokens=512,
)  # fmt: skip
TEXT = "The tower is 40 m tall. It stands in a park near the river. The gate is made of iron."


def dialog(number: int, *labels: str, **fields: Any) -> Dialog:
    """Return a dialog about a document of its own, with a turn for each label of a judge."""
    passage = make_passage(f"p{number}", f"{TEXT} Its number is {number}.", document_id=f"d{number}")
    start = TEXT.index("iron")
    evidence = (Evidence(passage_id=passage.id, start=start, end=start + 4, text="iron"),)
    turns = [
        make_turn(
            turn,
            evidence=evidence,
            verdicts=(Verdict(judge="j", label=label, explanation="", model="m", decides=True),),
        )
        for turn, label in enumerate(labels, start=1)
    ]
    fields = {"id": f"dialog{number}", "passages": (passage,), "algorithm": "single"} | fields
    return make_dialog(*turns, **fields)


def settings(folder: Path, *sets: list[Dialog], **fields: Any) -> Finetuning:
    """Return the settings of a training on files with these dialogs."""
    files = []
    for number, dialogs in enumerate(sets):
        files.append(write_dialogs(folder / f"{number}.jsonl", *dialogs))
    usual = {"pairs": None, "keep": "pairs", "passage_tokens": None, "held_out": 0.25, "seed": 0, "merged": False}
    data = tuple(map(str, files))
    return Finetuning(**{"student": STUDENT, "data": data, "run_dir": None, "fresh": False} | usual | fields)


def drawn(of: Finetuning) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs to learn from and to validate with; a message counts as 100 tokens."""
    return draw_pairs(of, read_pairs(of), lambda pair: 100 * len(pair.messages))


def responses(pairs: list[Pair]) -> list[str]:
    return [pair.messages[-1]["content"] for pair in pairs]


def test_documents_are_held_out_and_incorrect_pairs_left_out(tmp_path: Path) -> None:
    training, validation = drawn(settings(tmp_path, [dialog(n, "correct", "incorrect") for n in range(8)]))
    assert len(training) == 6 and len(validation) == 2 and set(responses(training)) == {"A1."}
    assert not {pair.documents for pair in training} & {pair.documents for pair in validation}
    assert TEXT in training[0].messages[0]["content"]


def test_all_pairs_are_learned_from_without_a_filter(tmp_path: Path) -> None:
    dialogs = [dialog(n, "correct", "incorrect", split="validation" if n == 3 else "train") for n in range(4)]
    training, validation = drawn(settings(tmp_path, dialogs, keep=None))
    assert len(training) == 6 and {pair.documents for pair in validation} == {("d3",)}


def test_sets_give_the_same_number_of_pairs(tmp_path: Path) -> None:
    one, other = [dialog(n, "correct") for n in range(30)], [dialog(n, "correct") for n in range(40, 45)]
    wanted = settings(tmp_path, one, other, pairs=8, seed=3)
    training, validation = drawn(wanted)
    numbers = [int(pair.documents[0][1:]) for pair in (*training, *validation)]
    assert len(numbers) == 8 and sum(number >= 40 for number in numbers) == 4
    assert drawn(wanted) == (training, validation)
    with pytest.raises(CorpusError, match=r"pairs=20: .* has 5 pairs, 10 are needed"):
        drawn(settings(tmp_path, one, other, pairs=20))


@pytest.mark.parametrize("pairs", [4, 10, 20, 30])
def test_two_sets_give_as_many_to_learn_from_as_one(tmp_path: Path, pairs: int) -> None:
    one, other = ([dialog(n, "correct") for n in range(first, first + 40)] for first in (0, 40))
    sizes = [
        tuple(map(len, drawn(settings(tmp_path, *sets, pairs=pairs, held_out=0.1)))) for sets in ([one], [one, other])
    ]
    assert sizes[0] == sizes[1] and sum(sizes[0]) == pairs
    with pytest.raises(ConfigError, match=r"pairs=3: .*4 or more"):
        drawn(settings(tmp_path, one, other, pairs=3))


@pytest.mark.parametrize("keep", ["pairs and overlp<0.1", "pairs and grounding>0.9", "pairs and verdict=corect"])
def test_a_filter_by_what_no_data_has_is_refused(tmp_path: Path, keep: str) -> None:
    with pytest.raises(ConfigError, match=r"^keep: .* is no"):
        drawn(settings(tmp_path, [dialog(n, "correct") for n in range(8)], keep=keep))


def test_no_document_of_a_dialog_is_learned_from_and_validated_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chained = [dialog(n, "correct", document_ids=(f"d{n}", f"d{n // 3}0")) for n in range(30)]
    for seed in range(5):
        training, validation = drawn(settings(tmp_path, chained, pairs=20, seed=seed))
        sides = [{document for pair in side for document in pair.documents} for side in (training, validation)]
        assert (len(training), len(validation)) == (15, 5) and not sides[0] & sides[1]
    assert capsys.readouterr().err == ""
    split = [dialog(0, "correct", id=f"s{n}", split="validation" if n < 2 else "train") for n in range(6)]
    assert [len(side) for side in drawn(settings(tmp_path, split))] == [4, 2]
    assert "1 documents and 1 passages" in capsys.readouterr().err
    star = [dialog(n, "correct", document_ids=(f"d{n}", "hub")) for n in range(8)]
    training, validation = drawn(settings(tmp_path, star))
    assert (len(training), len(validation)) == (6, 2)
    assert "1 documents and 0 passages" in capsys.readouterr().err


def test_a_passage_that_all_dialogs_have_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notice = make_passage("p", "Ask at the desk.")
    dialogs = [dialog(n, "correct", document_ids=(f"d{n}",), passages=(notice,)) for n in range(8)]
    training, validation = drawn(settings(tmp_path, dialogs))
    assert (len(training), len(validation)) == (6, 2)
    assert "0 documents and 1 passages" in capsys.readouterr().err


def test_rows_of_two_datasets_without_documents_are_apart(tmp_path: Path) -> None:
    sizes = [{"train": 40}, {"train": 40, "validation": 5}]
    of = settings(tmp_path, data=tuple(make_dataset(tmp_path / f"set{n}", size) for n, size in enumerate(sizes)))
    training, validation = draw_pairs(of, read_pairs(of), len)
    assert (len(training), len(validation)) == (30 + 40, 10 + 5)


def test_dialogs_without_documents_are_apart(tmp_path: Path) -> None:
    training, validation = drawn(
        settings(tmp_path, [dialog(n, "correct", passages=(), document_ids=()) for n in range(8)])
    )
    assert (len(training), len(validation)) == (6, 2)


def test_a_passage_of_two_ids_is_on_one_side(tmp_path: Path) -> None:
    texts = [f"Passage {n // 2} says this." for n in range(16)]
    dialogs = [
        make_dialog(make_turn(1), passages=[make_passage(f"p{n}", text, document_id=f"d{n}")], document_ids=(f"d{n}",))
        for n, text in enumerate(texts)
    ]
    dialogs = [one.model_copy(update={"id": f"dialog{n}"}) for n, one in enumerate(dialogs)]
    training, validation = drawn(settings(tmp_path, dialogs))
    assert validation and not {pair.texts for pair in training} & {pair.texts for pair in validation}


@pytest.mark.parametrize("share", [1, 3, 5])
def test_a_validation_split_of_any_size_is_taken_as_it_is(share: int, tmp_path: Path) -> None:
    dialogs = [dialog(n, "correct", split="validation" if n < share else "train") for n in range(10)]
    training, validation = drawn(settings(tmp_path, dialogs))
    assert (len(training), len(validation)) == (10 - share, share)


def make_dataset(folder: Path, splits: dict[str, int]) -> str:
    """Write a dataset whose README names its splits, with so many rows each, and return its path."""
    folder.mkdir()
    files = [{"split": split, "path": f"{split}.jsonl"} for split in splits]
    card = f"---\nconfigs: {json.dumps([{'config_name': 'default', 'data_files': files}])}\n---\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    row = {"messages": [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": "Yes."}]}
    for split, count in splits.items():
        (folder / f"{split}.jsonl").write_text("\n".join([json.dumps(row)] * count), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("split", [False, True])
def test_what_save_to_disk_wrote_is_a_dataset(split: bool, tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    chats = [[{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": f"{n}."}] for n in range(4)]
    rows = Dataset.from_list([{"messages": chat} for chat in chats])
    (DatasetDict(train=rows, validation=rows.select([0])) if split else rows).save_to_disk(tmp_path / "saved")
    (read,) = read_pairs(settings(tmp_path, data=(str(tmp_path / "saved"),)))
    assert responses(read) == ["0.", "1.", "2.", "3."] + ["0."] * split
    assert [pair.validation for pair in read] == [False] * 4 + [True] * split


def test_what_lacks_is_named_with_the_set(tmp_path: Path) -> None:
    rich = [dialog(n, "correct") for n in range(200, 330)]
    of_split = [dialog(n, "correct", split="validation" if n < 20 else "train") for n in range(120)]
    of_one = [dialog(0, "correct", id=f"one{n}") for n in range(40)]
    for dialogs, pairs, numbers in (
        (rich[:20], 80, "20.* 40"),
        (of_split, 230, "100.* 20.* 104.* 1"),
        (of_one, 60, "40.* 0.* 27.* 1"),
        (of_one, None, "40.* 0.* 32.* 1"),
    ):
        with pytest.raises(CorpusError, match=rf"/1\.jsonl\D* {numbers} ") as raised:
            drawn(settings(tmp_path, rich, dialogs, pairs=pairs, held_out=0.1))
        assert "max_tokens" not in str(raised.value)


def test_fewer_pairs_to_validate_with_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dialogs = [dialog(n, "correct", split="validation" if n < 3 else "train") for n in range(120)]
    assert [len(side) for side in drawn(settings(tmp_path, dialogs, pairs=100, held_out=0.1))] == [90, 3]
    assert "0.jsonl gives 3 pairs to validate with, not 10" in capsys.readouterr().err


@pytest.mark.parametrize("of", ["", "_sft"])
def test_the_test_splits_of_a_dataset_are_left_out(of: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {f"train{of}": 4, f"validation{of}": 2, f"test{of}": 3}
    (read,) = read_pairs(settings(tmp_path, data=(make_dataset(tmp_path / "set", sizes),)))
    assert [pair.validation for pair in read] == [False] * 4 + [True] * 2
    said = capsys.readouterr().err
    assert all(f"{split} ({size} pairs)" in said for split, size in sizes.items())


@pytest.mark.parametrize(
    "wanted", [{"keep": "pairs and difficulty=hard"}, {"keep": "dialog"}, {"passage_tokens": 9}], ids=str
)
def test_what_only_runs_can_be_filtered_by_is_refused_for_a_dataset(wanted: dict[str, Any], tmp_path: Path) -> None:
    data = (
        str(write_dialogs(tmp_path / "run.jsonl", dialog(0, "correct"))),
        make_dataset(tmp_path / "set", {"train": 4}),
    )
    assert all(map(len, read_pairs(settings(tmp_path, data=data))))
    with pytest.raises(ConfigError, match=rf"^{next(iter(wanted))}.*: {data[1]} is a dataset.*; give the run folder"):
        read_pairs(settings(tmp_path, data=data, **wanted))


def test_a_set_of_long_pairs_gives_as_many_as_one_of_short_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dialogs = [dialog(n, "correct", "correct") for n in range(20)]  # pairs of two messages and of four
    short = STUDENT.model_copy(update={"max_tokens": 300})
    training, validation = drawn(settings(tmp_path, dialogs, pairs=20, student=short))
    assert len(training) + len(validation) == 20 and {len(pair.messages) for pair in training} == {2}
    assert "20 of 40 pairs" in capsys.readouterr().err
    for pairs in (21, None):
        few = STUDENT.model_copy(update={"max_tokens": 300 if pairs else 100})
        with pytest.raises(CorpusError, match=r"student\.max_tokens="):
            drawn(settings(tmp_path, dialogs, pairs=pairs, student=few))


def test_passages_are_cut_around_the_evidence(tmp_path: Path) -> None:
    training, _ = drawn(settings(tmp_path, [dialog(n, "correct") for n in range(4)], passage_tokens=5))
    shown = training[0].messages[0]["content"]
    assert "made of iron" in shown and "40 m" not in shown


def test_the_default_folder_tells_data_apart(tmp_path: Path) -> None:
    runs = [f"outputs/quac-direct-multi-Mixtral-8x7B-Instruct-v0.1-{seed}" for seed in (0, 1)]
    data = [*runs, "A/dataset", "B/dialogs.jsonl", "quac:FOLDER/val_v0.2.json", "a/people.jsonl.gz"]
    names = [settings(tmp_path, data=(path,)).folder.name for path in data]
    assert len(set(names)) == len(data)
    assert names[-4:] == ["s-A-0", "s-B-0", "s-val_v0_2-0", "s-people-0"]


def test_a_folder_of_another_training_is_not_continued(tmp_path: Path) -> None:
    assert not has_training(tmp_path, {"seed": 1})
    (tmp_path / "student.json").write_text('{"settings": {"seed": 1}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="another seed"):
        has_training(tmp_path, {"seed": 2})
    assert has_training(tmp_path, {"seed": 1})


def test_a_finished_training_is_known_without_the_imports_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def train(of: Finetuning, read: Sequence[Sequence[Pair]]) -> None:
        begun.append(of.merged)
        of.folder.mkdir(exist_ok=True)
        identity = json.dumps({"settings": identify_training(of, read)})
        (of.folder / "student.json").write_text(identity, encoding="utf-8")
        (of.folder / "result.json").touch()

    monkeypatch.setitem(sys.modules, "generator.training.sft", SimpleNamespace(train=train))
    data = write_dialogs(tmp_path / "people.jsonl", dialog(0, "correct"))
    usual = ("student=smollm2", f"data={data}", f"run_dir={tmp_path / 'student'}")
    assert command(*usual, program=COMMAND).code == 0
    assert "is trained" in command(*usual, program=COMMAND).err
    assert command(*usual, "merged=true", program=COMMAND).code == 0
    assert begun == [False, True], "the whole model was missing"


def test_a_folder_with_other_files_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ConfigError, match=r"^run_dir=.*; set another run_dir$"):
            has_training(place, {}, fresh=True)


def test_what_a_model_answered_to_a_benchmark_is_no_training_data(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"0\.jsonl: a model's answers to a benchmark"):
        read_pairs(settings(tmp_path, [dialog(0, "correct", context="golden")]))


@pytest.mark.parametrize("path", ["outputs/my-rn", "./my-rn", "../my-rn"])
def test_a_run_folder_that_is_not_there_is_not_looked_for_on_the_hub(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("datasets.load_dataset", asked.append)
    with pytest.raises(CorpusError, match="doesn't exist"):
        read_pairs(settings(tmp_path, data=(path,)))
    assert not asked


def test_a_dataset_needs_chats_that_the_assistant_ends(tmp_path: Path) -> None:
    user, agent = ({"role": role, "content": "Hm."} for role in ("user", "assistant"))
    for name, messages, fault in (("a", [user, {"from": "gpt"}], "role"), ("b", [user, agent, user], "assistant's")):
        (tmp_path / name).mkdir()
        rows = [{"messages": [user, agent]}, {"messages": messages}]
        (tmp_path / name / "train.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        with pytest.raises(CorpusError, match=rf"row 2 of train: messages.*{fault}"):
            read_pairs(settings(tmp_path, []).model_copy(update={"data": (str(tmp_path / name),)}))


def test_an_empty_file_of_a_dataset_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/train.jsonl").touch()
    with pytest.raises(CorpusError, match="can't be read as a dataset: it has no rows"):
        read_pairs(settings(tmp_path, []).model_copy(update={"data": (str(tmp_path / "a"),)}))
