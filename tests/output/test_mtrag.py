"""`export=mtrag`: the files of some dialogs, the publisher's files read and written again, and whole runs."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.common.atomic_files import atomic_replace
from generator.dialogs.filter import Filter
from generator.errors import CorpusError
from generator.human import COMMAND as write_human
from generator.output.base import ExportSource
from generator.output.chat import rows
from generator.output.mtrag import Contexts, MtragExport, Tasks
from generator.schema import Dialog, Document, Hit, Passage, Planned, Turn, Verdict
from judges.benchmarks.mtrag.retrieval_tasks import read_collections
from tests.support import records
from tests.support.corpora import dialogs, read_dialogs
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_evidence, make_evidence_of, make_passage
from tests.support.runs import Ended, Site, command, replying, some

CLAPNQ, FIQA = "mt-rag-clapnq-elser-512-100-20240503", "mt-rag-fiqa-beir-elser-512-100-20240501"


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tsv(path: Path) -> list[list[str]]:
    """Read qrels as the publisher's script does."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))


# The files of some dialogs


def piece(name: str, document: str = "d", **fields: Any) -> Passage:
    """Return a passage of a document, at a place of its own."""
    text, start = f"Of {name}.", 100 * ord(name[-1])
    return make_passage(name, text, **{"document_id": document, "start": start, "end": start + len(text)} | fields)


P1, P2, P3 = (piece(f"d:{n}") for n in (1, 2, 3))


def hit(passage: Passage, rank: int = 1, score: float = 2.5) -> Hit:
    return Hit(passage_id=passage.id, score=score, rank=rank, new=True)


def make_turn(number: int, *cited: Passage, **fields: Any) -> Turn:
    usual = {"question_type": "factoid", "multi_turn_type": "follow-up" if number > 1 else None}
    return records.make_turn(number, **usual | {"evidence": make_evidence(*(p.id for p in cited))} | fields)


def make_dialog(*turns: Turn, name: str = "a", passages: Sequence[Passage] = (P1, P2, P3), **fields: Any) -> Dialog:
    return records.make_dialog(*turns, passages=passages, **{"id": name, "lm": "org/model"} | fields)


def exported(
    folder: Path,
    *dialogs: Dialog,
    documents: Iterable[tuple[Document, Sequence[Passage]]] = (),
    rewritten: bool = True,
    keep: Filter = "pairs",
    corpus: str = "c",
    contexts: Contexts = "relevant",
    pick: Tasks = "all",
) -> Path:
    source = ExportSource(corpus, lambda: iter(dialogs), lambda: iter(documents), keep, rewritten)
    with atomic_replace(folder / "mtrag", "the export") as new:
        MtragExport(contexts=contexts, tasks=pick).write(source, new)
    return folder / "mtrag"


def messages(folder: Path) -> list[dict[str, Any]]:
    (conversation,) = json.loads((folder / "conversations.json").read_text(encoding="utf-8"))
    return list(conversation["messages"])


def tasks(folder: Path) -> list[dict[str, Any]]:
    return jsonl(folder / "generation_tasks" / "reference.jsonl")


def queries(folder: Path, kind: str, name: str = "c") -> dict[str, str]:
    lines = jsonl(folder / "retrieval_tasks" / name / f"{name}_{kind}.jsonl")
    return {line["_id"]: line["text"] for line in lines}


def collection(folder: Path, name: str = "c") -> list[str]:
    return [line["_id"] for line in jsonl(folder / "retrieval_tasks" / name / "corpus.jsonl")]


@pytest.mark.parametrize(
    ("kind", "later", "labels"),
    [
        ("how-to+non-question", "clarification", (["How-To", "Non-Question"], ["Clarification"])),
        ("unlabelled", None, ([], [])),
        # A correction is mtRAG's clarification, and no question type.
        ("correction", "correction", ([], ["Clarification"])),
    ],
)
def test_labels_are_the_publishers(
    tmp_path: Path, kind: str, later: str | None, labels: tuple[list[str], list[str]]
) -> None:
    second = make_turn(2, question_type=kind, multi_turn_type=later, answerability="partial")
    folder = exported(tmp_path, make_dialog(make_turn(1, question_type="direct"), second))
    first, _, enriched, _ = messages(folder)
    assert first["enrichments"] == {"Question Type": ["Direct"], "Multi-Turn": ["N/A"], "Answerability": ["ANSWERABLE"]}
    assert enriched["enrichments"] == dict(
        zip(("Question Type", "Multi-Turn", "Answerability"), (*labels, ["PARTIAL"]), strict=True)
    )
    of_first, of_second = tasks(folder)
    assert (of_first["Multi-Turn"], of_second["Multi-Turn"]) == ([], labels[1])
    assert (of_second["Question Type"], of_second["Answerability"]) == (labels[0], ["PARTIAL"])


def test_contexts_are_the_retrieved_passages_then_those_cited_from_earlier_turns(tmp_path: Path) -> None:
    titled = piece("d:9", title="T", url="https://example.org")
    turns = (
        make_turn(1, P2, hits=(hit(P1), hit(P2, 2, 1.5))),
        make_turn(2, titled, P1, hits=(hit(titled, score=9),), original_answer="Before.", other_answers=("Or this.",)),
    )
    folder = exported(tmp_path, make_dialog(*turns, passages=(P1, P2, titled)))
    _, first, _, second = messages(folder)
    assert [(c["document_id"], c["score"], c["feedback"]) for c in first["contexts"]] == [
        ("d:1", 2.5, {"relevant": {"org/model": {"value": "no"}}}),
        ("d:2", 1.5, {"relevant": {"org/model": {"value": "yes"}}}),
    ]
    assert "original_text" not in first
    assert second["original_text"] == "Before."
    relevant = {"relevant": {"org/model": {"value": "yes"}}}
    cited = [
        {
            "document_id": "d:9",
            "text": "Of d:9.",
            "title": "T",
            "url": "https://example.org",
            "score": 9,
            "feedback": relevant,
        },
        {"document_id": "d:1", "text": "Of d:1.", "score": 2.5, "feedback": relevant},
    ]
    assert second["contexts"] == cited
    assert [task["contexts"] for task in tasks(folder)] == [first["contexts"][1:], cited]
    assert tasks(folder)[1] == {
        "conversation_id": "a",
        "task_id": "a<::>2",
        "task_type": "rag",
        "turn": 2,
        "Collection": "c",
        "dataset": "c",
        "contexts": cited,
        "input": [
            {"speaker": "user", "text": "Q1?"},
            {"speaker": "agent", "text": "A1."},
            {"speaker": "user", "text": "Q2?"},
        ],
        "targets": [{"speaker": "agent", "text": "A2."}, {"speaker": "agent", "text": "Or this."}],
        "Question Type": ["Factoid"],
        "Multi-Turn": ["Follow-up"],
        "Answerability": ["ANSWERABLE"],
    }


def test_turns_without_relevant_passages_have_no_query(tmp_path: Path) -> None:
    turns = (
        make_turn(1, P1, P2),
        make_turn(2),
        make_turn(3, P3, answerability="unanswerable"),
        make_turn(4, answerability="conversational"),
        make_turn(5, P3, answerability="partial", query="A/B?"),
    )
    folder = exported(tmp_path, make_dialog(*turns))
    assert queries(folder, "lastturn") == {"a<::>1": "|user|: Q1?", "a<::>5": "|user|: A/B?"}
    assert queries(folder, "questions") == {
        "a<::>1": "|user|: Q1?",
        "a<::>5": "|user|: Q1?\n|user|: Q2?\n|user|: Q3?\n|user|: Q4?\n|user|: A/B?",
    }
    assert tsv(folder / "retrieval_tasks" / "c" / "qrels" / "dev.tsv") == [
        ["query-id", "corpus-id", "score"],
        ["a<::>1", "d:1", "1"],
        ["a<::>1", "d:2", "1"],
        ["a<::>5", "d:3", "1"],
    ]
    assert len(tasks(folder)) == 5
    text = (folder / "retrieval_tasks" / "c" / "c_lastturn.jsonl").read_text()
    assert text.endswith('{"_id":"a<::>5","text":"|user|: A\\/B?"}\n')


ALONE = Planned(question_type="factoid", standalone=True)
DEPENDENT = ALONE.model_copy(update={"standalone": False})


def test_rewrites_are_retrieval_queries_or_standalone_questions(tmp_path: Path) -> None:
    turns = (
        make_turn(1, P1),
        make_turn(2, P1, retrieval_query="Q1? Q2?", planned=DEPENDENT),
        make_turn(3, P1, planned=ALONE),
    )
    assert queries(exported(tmp_path, make_dialog(*turns)), "rewrite") == {
        "a<::>1": "|user|: Q1?",
        "a<::>2": "|user|: Q1? Q2?",
        "a<::>3": "|user|: Q3?",
    }


@pytest.mark.parametrize("planned", [None, DEPENDENT])
def test_without_a_standalone_form_there_are_no_rewrites(
    tmp_path: Path, planned: Planned | None, capsys: pytest.CaptureFixture[str]
) -> None:
    # The query of all user turns is no rewrite.
    turns = (make_turn(1, P1, retrieval_query="Q1?"), make_turn(2, P1, retrieval_query="Q1?\nQ2?", planned=planned))
    folder = exported(tmp_path, make_dialog(*turns), rewritten=False)
    assert not (folder / "retrieval_tasks" / "c" / "c_rewrite.jsonl").exists()
    assert len(queries(folder, "lastturn")) == 2
    assert "c_rewrite.jsonl is not written, because 1 of 2" in capsys.readouterr().err


@pytest.mark.parametrize(("keep", "kept"), [("pairs", [1, 3]), ("prefix", [1])])
def test_a_pair_judged_incorrect_is_no_task_but_stays_in_its_conversation(
    tmp_path: Path, keep: Filter, kept: list[int]
) -> None:
    wrong = Verdict(judge="j", label="incorrect", explanation="", model="m")
    folder = exported(
        tmp_path, make_dialog(make_turn(1, P1), make_turn(2, P1, verdicts=(wrong,)), make_turn(3, P1)), keep=keep
    )
    assert len(messages(folder)) == 6
    assert [task["turn"] for task in tasks(folder)] == kept
    assert list(queries(folder, "lastturn")) == [f"a<::>{turn}" for turn in kept]
    if keep == "pairs":
        assert [message["text"] for message in tasks(folder)[1]["input"]] == ["Q1?", "A1.", "Q2?", "A2.", "Q3?"]


def test_there_are_as_many_tasks_as_rows_where_a_turn_has_no_reference(tmp_path: Path) -> None:
    dialog = make_dialog(make_turn(1, P1), make_turn(2, P1, answer=""), make_turn(3, P1))
    assert [task["turn"] for task in tasks(exported(tmp_path, dialog))] == [row.turn for row in rows(dialog, "pairs")]


def measured(label: str) -> Verdict:
    return Verdict(judge="answerability", label=label, explanation="", model="m", decides=False)


def shown(folder: Path) -> list[str]:
    """Return the last parts of the ids of each task's passages, those that aren't relevant in brackets."""
    found = []
    for each in tasks(folder):
        marks = [(c["document_id"][2:], c["feedback"]["relevant"]["org/model"]["value"]) for c in each["contexts"]]
        found.append(" ".join(name if mark == "yes" else f"({name})" for name, mark in marks))
    return found


def test_contexts_can_hold_as_many_passages_for_every_task_in_the_order_of_retrieval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    p4 = piece("d:4")
    turns = (
        make_turn(1, P2, hits=(hit(P1), hit(P2, 2))),
        make_turn(2, hits=(hit(P3), hit(P1, 2)), answerability="unanswerable", verdicts=(measured("unanswerable"),)),
        make_turn(3, answerability="conversational"),
        make_turn(4, P2, hits=(hit(p4), hit(P3, 2)), answerability="underspecified"),
        make_turn(5, P1, P2, P3, hits=(hit(P3),)),
        make_turn(6, hits=(hit(P1),), answerability="unanswerable"),
    )
    dialog = make_dialog(*turns, passages=(P1, P2, P3, p4))
    assert shown(exported(tmp_path / "1", dialog)) == ["2", "", "", "2", "3 1 2", ""]
    told = capsys.readouterr().err
    assert "2 unanswerable tasks" in told and "export.contexts=retrieved" in told
    retrieved = exported(tmp_path / "2", dialog, contexts="retrieved")
    assert shown(retrieved) == ["(1) 2", "(3) (1)", "(3) (1)", "(4) 2", "3 1 2", "(1) (3)"]
    assert "unanswerable" not in capsys.readouterr().err
    assert queries(retrieved, "lastturn") == {"a<::>1": "|user|: Q1?", "a<::>5": "|user|: Q5?"}


def test_the_classes_that_the_number_of_passages_tells_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = (hit(P1), hit(P2, 2), hit(P3, 3))
    turns = (
        make_turn(1, P1, hits=found),
        make_turn(2, hits=found, answerability="unanswerable"),
        make_turn(3, P1, P2, hits=found, answerability="underspecified"),
        make_turn(4, P1, P2, P3, hits=found, answerability="underspecified"),
        make_turn(5, P1, P2, P3, hits=found, answerability="partial"),
        make_turn(6, hits=found, answerability="conversational"),
    )
    exported(tmp_path / "1", make_dialog(*turns))
    assert "1 unanswerable and 1 underspecified tasks" in capsys.readouterr().err
    exported(tmp_path / "2", make_dialog(*turns), contexts="retrieved")
    exported(tmp_path / "3", make_dialog(turns[1]))
    assert "tells" not in capsys.readouterr().err


def test_every_passage_that_holds_the_evidence_is_relevant(tmp_path: Path) -> None:
    """Passages of a document overlap, documents have copies, and the same words elsewhere are other evidence."""
    text = "The lift is shut. Dogs must stay outside. Ask the warden."
    one, two = (make_passage(name, text[a:b], start=a, end=b) for name, a, b in (("one", 0, 41), ("two", 18, 57)))
    copy = make_passage("copy", text[:41].replace(" is ", "  is "), document_id="e")
    other = make_passage("other", "Dogs must stay outside. A hut.", document_id="f")
    edited = make_passage("edited", "Dogs are welcome, it says here, outside.")  # at the evidence's place in "one"
    cited = make_evidence_of(one, "Dogs must stay outside.")
    turn = make_turn(1, evidence=(cited,), hits=(hit(one), hit(two, 2), hit(other, 3), hit(edited, 4)))
    found = [(document(name), [each]) for name, each in (("d", one), ("d2", two), ("e", copy), ("f", other))]
    folder = exported(tmp_path, make_dialog(turn, passages=(one, two, other, edited)), documents=found)
    assert [row[1] for row in tsv(folder / "retrieval_tasks" / "c" / "qrels" / "dev.tsv")[1:]] == ["one", "two", "copy"]
    assert [each["document_id"] for each in tasks(folder)[0]["contexts"]] == ["one", "two"]
    marks = [each["feedback"]["relevant"]["org/model"]["value"] for each in messages(folder)[1]["contexts"]]
    assert marks == ["yes", "yes", "no", "no"]


def test_one_task_a_conversation_is_of_a_later_turn_where_there_is_one(tmp_path: Path) -> None:
    long = [make_dialog(*(make_turn(n, P1) for n in range(1, 5)), name=f"long{n}") for n in range(20)]
    short = make_dialog(make_turn(1, P1), name="short")
    found = [(task["conversation_id"], task["turn"]) for task in tasks(exported(tmp_path, *long, short, pick="one"))]
    assert [name for name, _ in found] == [dialog.id for dialog in (*long, short)]
    assert {turn for name, turn in found if name != "short"} == {2, 3, 4} and found[-1] == ("short", 1)


@pytest.mark.parametrize("pick", ["all", "one"])
def test_a_conversation_without_a_kept_pair_has_no_task(tmp_path: Path, pick: Tasks) -> None:
    asked = make_dialog(make_turn(1, P1), make_turn(2, answerability="unanswerable"), name="b")
    folder = exported(
        tmp_path, make_dialog(make_turn(1, P1)), asked, keep="pairs and answerability=unanswerable", pick=pick
    )
    assert [task["task_id"] for task in tasks(folder)] == ["b<::>2"]


def test_the_tasks_that_are_left_are_read_back_if_pairs_are_not_kept(tmp_path: Path) -> None:
    wrong = Verdict(judge="j", label="incorrect", explanation="", model="m")
    second, first = ([make_turn(n, P1, verdicts=(wrong,) * (n == lost)) for n in range(1, 5)] for lost in (2, 1))
    folder = exported(tmp_path, make_dialog(*second), make_dialog(*first[:3], name="b"))
    found = dialogs("mtrag", folder / "generation_tasks" / "reference.jsonl")
    assert [(d.id, [t.query for t in d.own_turns]) for d in found] == [
        ("a", ["Q1?"]),
        ("a<::>3", ["Q3?"]),
        ("a<::>4", ["Q4?"]),
        ("b<::>2", ["Q2?"]),
        ("b<::>3", ["Q3?"]),
    ]


def test_passages_that_answer_a_question_are_no_distractors_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = (
        make_turn(1, P1, hits=(hit(P1), hit(P2, 2))),
        make_turn(2, hits=(hit(P2),), answerability="unanswerable", verdicts=(measured("partial"),)),
    )
    assert shown(exported(tmp_path, make_dialog(*turns), contexts="retrieved")) == ["1 (2)"]
    assert "left out 1 unanswerable task " in capsys.readouterr().err


@pytest.mark.parametrize("contexts", ["relevant", "retrieved"])
def test_a_task_is_written_as_mtrag_un_writes_it(tmp_path: Path, contexts: Contexts) -> None:
    given = make_turn(1, question_type="unlabelled")
    asked = make_turn(2, P1, hits=(hit(P1, score=0),), multi_turn_type=None, answerability="underspecified")
    bare = make_turn(1, answerability="unanswerable")
    whole = {"collection": "telco", "ended": "task"}
    folder = exported(
        tmp_path,
        make_dialog(given, asked, **whole),
        make_dialog(bare, name="b", passages=(), document_ids=(), **whole | {"collection": "bank"}),
        contexts=contexts,
    )
    assert not (folder / "conversations.json").exists()
    first, second = tasks(folder)
    assert [message["text"] for message in first["input"]] == ["Q1?", "A1.", "Q2?"]
    assert first["contexts"] == [{"document_id": "d:1", "text": "Of d:1."}]
    labels = {"turn": "2", "Multi-Turn": ["N/A"], "answerability": ["UNDERSPECIFIED"], "Collection": "telco"}
    assert labels.items() <= first.items() and "Answerability" not in first
    assert (second["task_id"], second["contexts"], second["Collection"]) == ("b<::>1", [], "bank")
    assert collection(folder, "bank") == []
    read = read_dialogs("mtrag", folder)[0]
    assert [(d.id, d.turns[-1].answerability, d.ended) for d in read] == [
        ("a", "underspecified", "task"),
        ("b", "unanswerable", "task"),
    ]


def document(name: str, text: str = "Text.", collection: str = "") -> Document:
    return Document(id=name, text=text, title=f"T{name}", url="https://example.org", collection=collection)


def test_the_collection_has_all_passages_that_were_searched(tmp_path: Path) -> None:
    found = [(document("d"), [P1, P2]), (document("e"), [piece("e:1", "e")])]
    folder = exported(tmp_path, make_dialog(make_turn(1, P1)), documents=found)
    # d:3 is from another version of the corpus.
    assert collection(folder) == ["d:1", "d:2", "e:1", "d:3"]
    (conversation,) = json.loads((folder / "conversations.json").read_text())
    assert conversation["retriever"] == {"collection": {"name": "c", "size": "4"}}


def test_of_uncut_documents_the_collection_has_the_grounding_passages_or_the_whole(tmp_path: Path) -> None:
    window = Passage(id="long:5-9", document_id="long", text="text", start=5, end=9)
    own = Passage(id="p-0-5", document_id="p", text="Whole", start=0, end=5)
    dialog = make_dialog(make_turn(1, window), passages=(window, own))
    found = [(document(name, "Long text."), ()) for name in ("other", "long", "p-0-5")]
    folder = exported(tmp_path, dialog, documents=found)
    assert jsonl(folder / "retrieval_tasks" / "c" / "corpus.jsonl") == [
        {"_id": "other", "title": "Tother", "text": "Long text.", "url": "https://example.org"},
        {"_id": "long:5-9", "title": "Tlong", "text": "text", "url": "https://example.org"},
        {"_id": "p-0-5", "title": "Tp-0-5", "text": "Long text.", "url": "https://example.org"},
    ]


def test_without_documents_the_collection_has_the_passages_of_the_dialogs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreadable() -> Iterator[tuple[Document, Sequence[Passage]]]:
        yield document("d"), [P1]
        raise CorpusError("corpus c holds no documents")

    folder = exported(tmp_path, make_dialog(make_turn(1, P2), passages=(P2,)), documents=unreadable())
    assert collection(folder) == ["d:2"]
    assert "corpus c holds no documents" in capsys.readouterr().err


def test_each_collection_has_its_dialogs_and_the_passages_they_use_from_others(tmp_path: Path) -> None:
    far = piece("e:1", "e")
    found = [
        (document("d", collection=CLAPNQ), [P1, P2, P3]),
        (document("e", collection=FIQA), [far]),
        (document("f", collection="mt-rag-govt-x"), [piece("f:1", "f")]),
    ]
    older = "mt-rag-fiqa-elser-20230101"  # its folder would be `fiqa` too
    dialogs = (
        make_dialog(make_turn(1, far), passages=(P1, far)),
        make_dialog(make_turn(1, far), name="b", passages=(far,)),
        make_dialog(make_turn(1, P1), name="z", collection=older),
    )
    folder = exported(tmp_path, *dialogs, documents=found)
    clapnq, fiqa, other = sorted(path.name for path in (folder / "retrieval_tasks").iterdir())
    assert (clapnq, fiqa) == ("clapnq", "fiqa") and other.startswith("fiqa-")
    assert list(queries(folder, "lastturn", other)) == ["z<::>1"]
    assert collection(folder, "clapnq") == ["d:1", "d:2", "d:3", "e:1"]
    assert collection(folder, "fiqa") == ["e:1"]
    assert [task["Collection"] for task in tasks(folder)] == [CLAPNQ, FIQA, older]
    assert (queries(folder, "lastturn", "clapnq"), queries(folder, "lastturn", "fiqa")) == (
        {"a<::>1": "|user|: Q1?"},
        {"b<::>1": "|user|: Q1?"},
    )


@pytest.mark.parametrize("name", ["../../etc", "Straße 5/6", "x" * 300])
def test_a_collection_of_any_name_has_a_portable_folder_name(tmp_path: Path, name: str) -> None:
    folder = exported(tmp_path, make_dialog(make_turn(1, P1)), corpus=name)
    (made,) = (folder / "retrieval_tasks").iterdir()
    assert re.fullmatch(r"[\w-][\w.-]{0,99}", made.name, re.ASCII)
    assert tasks(folder)[0]["Collection"] == name
    assert {path.name for path in tmp_path.iterdir()} == {"mtrag"}


def test_odd_ids_come_back_out_of_the_qrels(tmp_path: Path) -> None:
    names = ['a "c"', '"a"', '"a', "a b", "a\u2028b", "'a'", "ü,;"]
    passages = [piece(name) for name in names]
    folder = exported(tmp_path, make_dialog(make_turn(1, *passages), name='"x"\u2028', passages=passages))
    rows = tsv(folder / "retrieval_tasks" / "c" / "qrels" / "dev.tsv")[1:]
    assert rows == [['"x"\u2028<::>1', name, "1"] for name in names]
    (read,) = read_collections(folder / "retrieval_tasks")
    assert read.relevant == {'"x"\u2028<::>1': dict.fromkeys(names, 1)}
    assert read.query_ids == read.relevant.keys()


# The publisher's files, read and written again


def human(folder: Path, path: Path, *more: str) -> Ended:
    arguments = ("export=mtrag", "corpus=mtrag", f"corpus.path={path}", f"run_dir={folder}", *more)
    done = command(*arguments, program=write_human)
    assert done.code == 0, done.err
    return done


def meaning(conversation: dict[str, Any]) -> tuple[str, list[object]]:
    """Return the collection, and what was asked, answered, labelled, retrieved and marked relevant."""
    kept: list[object] = []
    for message in conversation["messages"]:
        labels = message.get("enrichments", {})
        contexts = []
        for context in message.get("contexts", []):
            words = [mark["value"] for mark in context.get("feedback", {}).get("relevant", {}).values()]
            named = [context.get(name) for name in ("document_id", "text", "title", "url", "score")]
            contexts.append((named, words[-1:] == ["yes"]))  # one passage of the 2,460 has no word on it
        said = [message.get(name) for name in ("speaker", "text", "original_text")]
        kept.append((said, [labels.get(name) for name in ("Question Type", "Multi-Turn", "Answerability")], contexts))
    return conversation["retriever"]["collection"]["name"], kept


@pytest.mark.slow
def test_the_real_files_come_back_in_all_that_carries_meaning_the_retrieval_tasks_to_the_byte(
    data: Path, tmp_path: Path
) -> None:
    human(tmp_path / "there", data / "mtrag")
    published, written = data / "mtrag", tmp_path / "there" / "mtrag"
    theirs, ours = (json.loads((folder / "conversations.json").read_text("utf-8")) for folder in (published, written))
    assert len(ours) == 84
    assert list(map(meaning, ours)) == list(map(meaning, theirs))
    for domain in ("clapnq", "fiqa", "govt"):
        folder, original = (where / "retrieval_tasks" / domain for where in (written, published))
        for name in (*(f"{domain}_{kind}.jsonl" for kind in ("lastturn", "questions", "rewrite")), "qrels/dev.tsv"):
            assert (folder / name).read_bytes() == (original / name).read_bytes(), name
        assert (folder / "corpus.jsonl").read_bytes() == (original / "corpus_pooled.jsonl").read_bytes()


def test_the_real_tasks_of_mtrag_un_come_back_as_equal_json(data: Path, tmp_path: Path) -> None:
    published, folder = data / "mtrag_un" / "reference_sample.jsonl", tmp_path / "there" / "mtrag"
    done = human(tmp_path / "there", published)
    assert "31 unanswerable and 10 underspecified tasks" in done.err
    assert "export.contexts=retrieved" not in done.err, "no others were retrieved"

    def told(task: dict[str, Any]) -> dict[str, Any]:
        """Without the name of the data set, and who wrote a message when."""
        messages = {
            key: [{name: m[name] for name in ("speaker", "text")} for m in task[key]] for key in ("input", "targets")
        }
        return {key: value for key, value in task.items() if key != "dataset"} | messages

    assert list(map(told, tasks(folder))) == list(map(told, jsonl(published)))
    assert dialogs("mtrag", folder) == dialogs("mtrag", published)


# Whole runs


def test_a_finished_run_is_exported_without_a_call_and_the_export_goes_when_the_dialogs_change(site: Site) -> None:
    folder = site.run_dir / "mtrag"
    wrong = replying(judge=lambda b: {"label": "incorrect" if some(b, 0.3) else "correct"})
    with OpenAIServer(wrong) as server:
        arguments = ("corpus.name=odd/name", "turns=2-3", "dedup=none")
        assert site.run(server, *arguments, "dialogs=3").code == 0
        assert not folder.exists()
        calls = len(server.bodies)
        assert command(str(site.run_dir / "config.yaml"), "export=mtrag").code == 0
        assert len(server.bodies) == calls
        texts = [[text for t in d["turns"] for text in (t["query"], t["answer"])] for d in site.dialogs()]
        conversations = json.loads((folder / "conversations.json").read_text(encoding="utf-8"))
        assert [[message["text"] for message in c["messages"]] for c in conversations] == texts
        pairs = [f"{row['dialog_id']}<::>{row['turn']}" for row in site.rows()]  # its splits are apart
        assert sorted(task["task_id"] for task in tasks(folder)) == sorted(pairs)
        (retrieval,) = (folder / "retrieval_tasks").iterdir()
        name = retrieval.name
        assert re.fullmatch(r"odd_name-[0-9a-f]{8}", name)
        ids, qrels = collection(folder, name), tsv(retrieval / "qrels" / "dev.tsv")[1:]
        assert len(ids) == len(set(ids)) == int(conversations[0]["retriever"]["collection"]["size"])
        assert qrels and {passage_id for _, passage_id, _ in qrels} <= set(ids)
        for kind in ("lastturn", "questions", "rewrite"):
            assert list(queries(folder, kind, name)) == list(dict.fromkeys(row[0] for row in qrels))
        before = {path: path.read_bytes() for path in folder.rglob("*.*")}
        assert site.run(server, *arguments, "dialogs=3").code == 0
        assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
        assert site.run(server, *arguments, "dialogs=5").code == 0
    assert not folder.exists()


def test_documents_of_several_domains_are_collections_of_their_own(tmp_path: Path, site: Site) -> None:
    for domain in ("clapnq", "fiqa"):
        (tmp_path / "corpora").mkdir(exist_ok=True)
        (tmp_path / "corpora" / f"{domain}.jsonl").write_text(
            "".join(
                json.dumps({"_id": f"{domain}-{n}", "text": f"The {domain} office number {n} opens on Sundays."}) + "\n"
                for n in range(12)
            )
            + "broken\n"
        )
    with OpenAIServer(replying(ask=lambda b: {"question": f"When does the office number {b['seed'] % 12} open?"})) as s:
        arguments = [a for a in site.arguments(s, "dialogs=6", "export=mtrag", "dedup=none") if "corpus" not in a]
        done = command("corpus=mtrag", f"corpus.path={tmp_path / 'corpora'}", *arguments)
    assert done.code == 0, done.err
    folder = site.run_dir / "mtrag"
    assert {path.name for path in (folder / "retrieval_tasks").iterdir()} == {"clapnq", "fiqa"}
    first = {dialog["id"]: dialog["document_ids"][0].partition("-")[0] for dialog in site.dialogs()}
    assert {t["conversation_id"]: {CLAPNQ: "clapnq", FIQA: "fiqa"}[t["Collection"]] for t in tasks(folder)} == first
