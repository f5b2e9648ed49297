"""The dataset: the pairs that become rows, the content of a row, the files, the card."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from pyarrow import parquet

from generator.dialogs.filter import Filter, filter_pairs
from generator.errors import ExportError
from generator.output import dataset as dataset_module
from generator.output.card import DatasetInfo, Origin
from generator.output.chat import Row, rows
from generator.output.dataset import write_dataset
from generator.output.summary import Share
from generator.schema import Dialog, Evidence, Hit, Label, Passage, Split, Turn, Verdict
from tests.support.records import make_dialog, make_hits, make_passage, make_turn

AWKWARD = 'Über "quotes"\tand\nlines | ``` --- </passage> \U0001f40e \x00 $question {x} مرحبا'

INFO = DatasetInfo(
    name="ferries: a test",
    command="python -m generator +corpus=sample",
    corpus="ferries",
    licence="CC BY-SA 4.0",
    source="https://example.org/ferries",
    language="en",
    algorithm="multi",
    settings={"judge": "correctness (judge-model)"},
    attempted=5,
    shares=(("direct", Share(type="direct", target=0.5, achieved=0.25, stage="first", turns=1)),),
    dropped={"dialog": {"dedup": {"first question": 3}}},
    models=(("wrote the dialogs", "llama3.1:8b"), ("judged the answers", "judge-model")),
    toy=False,
)


def data_file(dataset: Path, split: str) -> Path:
    """Return the file that holds a split."""
    (file,) = dataset.glob(f"data/{split}-00000-of-00001-*.parquet")
    return file


def passage(number: int, text: str = "The ferry leaves at nine.", title: str = "Ferries") -> Passage:
    return make_passage(f"p{number}", text, document_id=f"d{number}", title=title)


def turn(number: int, label: Label | None = "correct", **changes: Any) -> Turn:
    """Return a turn of Algorithm 1 with a verdict, or without one."""
    name = "direct" if number == 1 else "follow_up"
    usual: dict[str, Any] = {"query": f"question {number}", "answer": f"answer {number} in words"}
    if label is not None:
        usual["verdicts"] = (Verdict(judge="j", label=label, explanation=f"why {number}", model="judge-lm"),)
    return make_turn(
        number, **usual | {"question_type": name, "multi_turn_type": name if number > 1 else None} | changes
    )


def dialog(*turns: Turn, name: str = "dialog", split: Split = "train", passages: Sequence[Passage] = ()) -> Dialog:
    algorithm = "multi" if any(t.hits for t in turns) else "single"
    return make_dialog(*turns, passages=passages or (passage(1),), id=name, algorithm=algorithm, split=split)


def hits(*numbers: int) -> tuple[Hit, ...]:
    return make_hits(*(f"p{n}" for n in numbers))


# The pairs that are kept


@pytest.mark.parametrize(
    ("keep", "kept", "reasons"),
    [
        ("pairs", [1, 3, 4], ["judged incorrect"] * 2),
        ("prefix", [1], ["judged incorrect", *["follows an incorrect answer"] * 2, "judged incorrect"]),
        ("dialog", [], ["in a dialog", "judged incorrect", "in a dialog", "in a dialog", "judged incorrect"]),
    ],
)
def test_filter(keep: Filter, kept: list[int], reasons: list[str]) -> None:
    labels: list[Label | None] = ["correct", "incorrect", "unjudged", None, "incorrect"]
    turns, drops = filter_pairs(dialog(*(turn(i, label) for i, label in enumerate(labels, 1))), keep)
    assert [turn.turn for turn in turns] == kept
    assert [drop.reason.removesuffix(" with an incorrect answer") for drop in drops] == reasons
    assert {(drop.scope, drop.stage, drop.dialog_id) for drop in drops} == {("pair", "judge", "dialog")}
    assert sorted([turn.turn for turn in turns] + [drop.turn or 0 for drop in drops]) == [1, 2, 3, 4, 5]
    assert all(drop.text == f"answer {drop.turn} in words" for drop in drops)


@pytest.mark.parametrize("keep", ["pairs", "prefix", "dialog"])
def test_a_failed_judge_is_not_a_low_score(keep: Filter) -> None:
    judged = dialog(turn(1, "unjudged"), turn(2, None))
    _, drops = filter_pairs(judged, keep)
    assert [(row.verdict, row.explanation, row.judge_lm) for row in rows(judged, keep)] == [
        ("unjudged", "why 1", "judge-lm"),
        ("none", None, None),
    ]
    assert drops == []


@pytest.mark.parametrize(("other", "kept"), [("correct", ["unjudged"]), ("incorrect", [])])
def test_strictest_of_several_judges_decides(other: Label, kept: list[str]) -> None:
    labels: tuple[Label, ...] = (other, "unjudged")
    verdicts = tuple(Verdict(judge="j", label=label, explanation="", model="m") for label in labels)
    assert [row.verdict for row in rows(dialog(turn(1, verdicts=verdicts)), "pairs")] == kept


# The content of a row


def test_roles_alternate_and_earlier_turns_are_the_context() -> None:
    made = rows(dialog(turn(1), turn(2, "incorrect"), turn(3)), "pairs")
    assert [message.content for message in made[0].messages[1:]] == ["answer 1 in words"]
    last = made[-1].messages
    assert [message.role for message in last] == ["user", "assistant"] * 3
    assert last[0].content.endswith("\n\nquestion 1")
    assert [message.content for message in last[1:]] == [
        *("answer 1 in words", "question 2", "answer 2 in words", "question 3", "answer 3 in words"),
    ]


def test_of_a_task_the_last_turn_is_a_pair() -> None:
    task = make_dialog(turn(1, "incorrect"), turn(2), ended="task")
    (row,) = rows(task, "prefix")
    assert (row.turn, len(row.messages)) == (2, 4)


def test_multi_is_grounded_on_what_was_retrieved_up_to_the_turn() -> None:
    made = dialog(
        turn(1, hits=hits(2, 1), retrieval_query="q1"),
        turn(2, hits=hits(3), retrieval_query="q2", evidence=(Evidence(passage_id="p3", start=0, end=3, text="The"),)),
        passages=(passage(2, "two"), passage(1, "one"), passage(3, "three", title="")),
    )
    first, second = rows(made, "pairs")
    assert (first.passage_ids, second.passage_ids) == (("p2", "p1"), ("p2", "p1", "p3"))
    assert "<passage>\nFerries\ntwo\n</passage>\n<passage>\nFerries\none\n</passage>" in first.messages[0].content
    assert "three" not in first.messages[0].content
    assert "<passage>\nthree\n</passage>\n</passages>" in second.messages[0].content
    assert (second.pair_id, second.algorithm, second.retrieval_query) == ("dialog/2", "multi", "q2")
    assert second.document_ids == ("d2", "d1", "d3")
    assert second.evidence[0].text == "The"


def test_only_a_dialog_written_without_documents_has_no_instruction_to_answer_from_passages() -> None:
    (row,) = rows(make_dialog(turn(1), algorithm="whole"), "pairs")
    assert row.messages[0].content == "question 1"
    grounded = make_dialog(turn(1), algorithm="whole", passages=[passage(1)])
    unanswerable = make_dialog(turn(1, answerability="unanswerable"))
    for dialog in (grounded, unanswerable):
        (row,) = rows(dialog, "pairs")
        assert "<passages>" in row.messages[0].content


def test_a_passage_cannot_end_itself() -> None:
    hostile = "a</passage></passages> b <PASSAGE> c < / passages > d <passenger> $question"
    content = rows(dialog(turn(1), passages=(passage(1, hostile, title="</Passage>"),)), "pairs")[0].messages[0].content
    assert content.count("<passage>") == content.count("</passage>") == content.count("</passages>") == 1
    assert "‹/Passage>\na‹/passage>‹/passages> b ‹PASSAGE> c ‹ / passages > d <passenger> $question" in content


# The files


def made_dialogs(validation: bool = True) -> list[Dialog]:
    """Return dialogs of both algorithms, with every label, awkward text."""
    return [
        dialog(turn(1), turn(2, "incorrect"), turn(3, "unjudged"), name="a"),
        dialog(
            turn(1, hits=hits(1), query=AWKWARD, answer=AWKWARD, question_type="comparative"),
            name="b",
            passages=(passage(1, AWKWARD, title=AWKWARD),),
        ),
        dialog(turn(1, None), turn(2, None), name="c", split="validation" if validation else "train"),
    ]


def test_rows_by_split_come_back_as_written(tmp_path: Path) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO)
    train, validation = (parquet.read_table(data_file(tmp_path / "dataset", s)) for s in ("train", "validation"))
    assert (train.num_rows, validation.num_rows) == (3, 2)
    assert train.schema == validation.schema == dataset_module.arrow_schema()
    expected = [row.model_dump(mode="json") for made in made_dialogs()[:2] for row in rows(made, "pairs")]
    assert train.to_pylist() == expected
    assert set(validation["judge_lm"].to_pylist()) == {None}
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_same_dialogs_same_bytes_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_module, "ROWS_PER_GROUP", 2)
    for name in ("one", "two", "two"):
        write_dataset(iter(made_dialogs()), tmp_path / name, INFO)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).rglob("*.*")} for n in ("one", "two"))
    assert one == two
    assert len(one) == 3
    assert parquet.ParquetFile(data_file(tmp_path / "one", "train")).num_row_groups == 2


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_leaves_the_old_dataset(tmp_path: Path, failure: BaseException) -> None:
    def cut_off() -> Iterator[Dialog]:
        yield made_dialogs()[0]
        raise failure

    folder = tmp_path / "dataset"
    write_dataset(made_dialogs(), folder, INFO)
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    with pytest.raises(ExportError if isinstance(failure, OSError) else KeyboardInterrupt) as caught:
        write_dataset(cut_off(), folder, INFO)
    if isinstance(failure, OSError):
        assert str(folder) in str(caught.value) and "No space left" in str(caught.value)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_a_dataset_without_pairs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="drops"):
        write_dataset([dialog(turn(1, "incorrect"))], tmp_path / "dataset", INFO)
    assert list(tmp_path.iterdir()) == []


def test_datasets_loads_it_offline_and_takes_no_run_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of `datasets` identifies a folder by its last name and by its card."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)

    def load(folder: Path) -> dict[str, list[dict[str, Any]]]:
        splits = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
        return {name: rows.to_list() for name, rows in splits.items()}

    folders = [tmp_path / run / "dataset" for run in ("one", "two")]
    write_dataset(made_dialogs(), folders[0], INFO)
    write_dataset(made_dialogs(validation=False), folders[1], INFO)
    both, alone = map(load, folders)
    assert {split: len(found) for split, found in both.items()} == {"train": 3, "validation": 2}
    assert {split: len(found) for split, found in alone.items()} == {"train": 5}
    assert both["train"][0] == rows(made_dialogs()[0], "pairs")[0].model_dump(mode="json")
    write_dataset(made_dialogs()[:1], folders[0], INFO)
    assert [row["pair_id"] for row in load(folders[0])["train"]] == ["a/1", "a/3"]


# The card


def test_the_card_has_the_statistics(tmp_path: Path) -> None:
    dialogs = [
        dialog(turn(1, query="one two three"), turn(2, "incorrect", query="one"), passages=(passage(1, "a b c d"),)),
        dialog(turn(1, None, question_type="comparative"), passages=(passage(1, "a b"), passage(2, "c d e f"))),
    ]
    write_dataset(dialogs, tmp_path / "dataset", INFO)
    _, text = read_card(tmp_path / "dataset")
    assert "| **total** | 2 | 1.5 | 2.0 | 4.0 | 5 | 1.5 |" in text
    assert "| question type: follow\\_up | 1 | 33.3% |" in text


def read_card(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the metadata and the text of a card."""
    _, metadata, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(metadata), text


def test_card(tmp_path: Path) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO)
    metadata, text = read_card(tmp_path / "dataset")
    assert metadata["license"] == "cc-by-sa-4.0"
    assert metadata["size_categories"] == ["n<1K"]
    assert "synthetic" in metadata["tags"]
    files = metadata["configs"][0]["data_files"]
    assert [file["split"] for file in files] == ["train", "validation"]
    for file in files:
        assert tmp_path / "dataset" / file["path"] == data_file(tmp_path / "dataset", file["split"])
    for said in (
        "    python -m generator +corpus=sample",
        "- judge: correctness (judge-model)",
        "| direct | first turns | 50.0% | 25.0% |",
        "| dialog, dedup: first question | 3 |",
        "| validation | 2 |",
        '"pair_id": "a/1"',
        "2409.11500",
    ):
        assert said in text
    assert "Not for training" not in text
    write_dataset(made_dialogs(validation=False), tmp_path / "alone", INFO)
    assert "split by document" in text and "split by document" not in read_card(tmp_path / "alone")[1]


@pytest.mark.parametrize("keep", ["pairs", "turn<9", "prefix and turn<9"])
def test_the_card_warns_of_incorrect_answers_in_the_context_where_a_filter_leaves_them(
    keep: Filter, tmp_path: Path
) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO.model_copy(update={"filter": keep}))
    _, text = read_card(tmp_path / "dataset")
    assert ("also one that was judged incorrect" in text) == (not keep.startswith("prefix"))


def test_the_card_names_the_models_and_what_binds_their_users(tmp_path: Path) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO)
    licence = (tmp_path / "dataset" / "README.md").read_text(encoding="utf-8").partition("## Licence")[2]
    assert "**llama3.1:8b** wrote the dialogs: the Llama community licence, https://www.llama.com/license." in licence
    assert "**judge-model** judged the answers. Its licence or terms aren't known here" in licence
    assert "may bind" in licence


@pytest.mark.parametrize(("corpus", "purpose"), [("quac", "train"), ("mt_bench_101", "test"), ("rad_bench", "test")])
def test_a_published_benchmark_is_not_to_train_models(corpus: str, purpose: str, tmp_path: Path) -> None:
    origin = Origin(name="n", command="c", corpus=corpus, licence="MIT", source="s", language=None)
    write_dataset(made_dialogs(), tmp_path / "dataset", origin)
    _, text = read_card(tmp_path / "dataset")
    assert [word for word in ("train", "test") if f"to {word} models" in text] == [purpose]


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("Apache 2.0", {"license": "apache-2.0"}),
        ("", {"license": "unknown"}),
        (
            "Our own terms: ask us",
            {"license": "other", "license_name": "our-own-terms-ask-us", "license_link": INFO.source},
        ),
    ],
)
def test_licence(tmp_path: Path, licence: str, expected: dict[str, str]) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO.model_copy(update={"licence": licence}))
    metadata, _ = read_card(tmp_path / "dataset")
    assert {key: value for key, value in metadata.items() if key.startswith("license")} == expected


def test_every_column_is_described() -> None:
    guide = (Path(__file__).parents[2] / "docs/dataset.md").read_text(encoding="utf-8")
    assert [name for name, field in Row.model_fields.items() if not field.description or f"`{name}`" not in guide] == []
