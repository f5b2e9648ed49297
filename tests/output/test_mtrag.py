"""`export=mtrag`: what is written of which record, the human files there and back, and whole runs."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.common.atomic_files import atomic_replace
from generator.dialogs.filter import Filter
from generator.errors import ExportError
from generator.output.base import ExportSource
from generator.output.mtrag import MtragExport
from generator.schema import Dialog, Document, Evidence, Hit, Passage, Planned, Turn, Verdict
from judges.benchmarks.mtrag.retrieval_tasks import read_collections
from tests.support.openai_server import Body, OpenAIServer
from tests.support.runs import Ended, Site, command, replying, some

CLAPNQ, FIQA = "mt-rag-clapnq-elser-512-100-20240503", "mt-rag-fiqa-beir-elser-512-100-20240501"


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tsv(path: Path) -> list[list[str]]:
    """Of qrels, as the publisher's script reads them."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))


# What is written of which record


def piece(name: str, document: str = "d", title: str = "", url: str | None = None) -> Passage:
    return Passage(id=name, document_id=document, title=title, url=url, text=f"Of {name}.", start=0, end=4 + len(name))


P1, P2, P3 = (piece(f"d:{n}") for n in (1, 2, 3))


def hit(passage: Passage, rank: int = 1, score: float = 2.5) -> Hit:
    return Hit(passage_id=passage.id, score=score, rank=rank, new=True)


def said(number: int, *cited: Passage, hits: Sequence[Hit] = (), **more: Any) -> Turn:
    evidence = tuple(Evidence(passage_id=p.id, start=0, end=2, text="Of") for p in cited)
    usual = {"question_type": "factoid", "answerability": "answerable", "reasoning": "", "consistent": True}
    return Turn(
        **{"turn": number, "query": f"Q{number}?", "answer": f"A{number}.", "evidence": evidence, "hits": hits}
        | usual
        | {"multi_turn_type": "follow-up" if number > 1 else None}
        | more
    )


def led(*turns: Turn, name: str = "a", passages: Sequence[Passage] = (P1, P2, P3), **more: Any) -> Dialog:
    usual = {"corpus": "c", "algorithm": "multi", "split": "train", "ended": "complete", "lm": "org/model"}
    found = {"document_ids": tuple(dict.fromkeys(p.document_id for p in passages)), "passages": tuple(passages)}
    return Dialog(**{"id": name, "turns": turns, "prompt_version": "p", "seed": 1} | usual | found | more)


def exported(
    folder: Path,
    *dialogs: Dialog,
    documents: Iterable[tuple[Document, Sequence[Passage]]] = (),
    rewritten: bool = True,
    keep: Filter = "pairs",
    corpus: str = "c",
) -> Path:
    material = ExportSource(corpus, lambda: iter(dialogs), lambda: iter(documents), keep, rewritten)
    with atomic_replace(folder / "mtrag", "the export") as new:
        MtragExport(name="mtrag").write(material, new)
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
        ("factoid", "follow-up", (["Factoid"], ["Follow-up"])),
        ("aggregate", "follow-up", (["Aggregate"], ["Follow-up"])),
        ("unlabelled", None, ([], [])),
        # The later types of Lee et al. say how a dialog goes on, and nothing of what is asked.
        # What the user meant instead is mtRAG's clarification of intent.
        ("correction", "correction", ([], ["Clarification"])),
    ],
)
def test_labels_are_spelt_as_the_publisher_spells_them(
    tmp_path: Path, kind: str, later: str | None, labels: tuple[list[str], list[str]]
) -> None:
    second = said(2, question_type=kind, multi_turn_type=later, answerability="partial")
    folder = exported(tmp_path, led(said(1, question_type="direct"), second))
    first, _, enriched, _ = messages(folder)
    assert first["enrichments"] == {"Question Type": ["Direct"], "Multi-Turn": ["N/A"], "Answerability": ["ANSWERABLE"]}
    assert enriched["enrichments"] == dict(
        zip(("Question Type", "Multi-Turn", "Answerability"), (*labels, ["PARTIAL"]), strict=True)
    )
    of_first, of_second = tasks(folder)
    assert (of_first["Multi-Turn"], of_second["Multi-Turn"]) == ([], labels[1])
    assert (of_second["Question Type"], of_second["Answerability"]) == (labels[0], ["PARTIAL"])


def test_contexts_are_what_was_found_and_then_what_is_cited_of_earlier_turns(tmp_path: Path) -> None:
    titled = piece("d:9", title="T", url="https://example.org")
    turns = (
        said(1, P2, hits=(hit(P1), hit(P2, 2, 1.5))),
        said(2, titled, P1, hits=(hit(titled, score=9),), original_answer="Before.", other_answers=("Or this.",)),
    )
    folder = exported(tmp_path, led(*turns, passages=(P1, P2, titled)))
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


def test_turns_with_nothing_to_be_found_have_no_query(tmp_path: Path) -> None:
    turns = (
        said(1, P1, P2),
        said(2),
        said(3, P3, answerability="unanswerable"),
        said(4, answerability="conversational"),
        said(5, P3, answerability="partial", query="A/B?"),
    )
    folder = exported(tmp_path, led(*turns))
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
LEANING = ALONE.model_copy(update={"standalone": False})


def test_rewrites_are_what_was_written_or_questions_that_stand_alone(tmp_path: Path) -> None:
    turns = (said(1, P1), said(2, P1, retrieval_query="Q1? Q2?", planned=LEANING), said(3, P1, planned=ALONE))
    assert queries(exported(tmp_path, led(*turns)), "rewrite") == {
        "a<::>1": "|user|: Q1?",
        "a<::>2": "|user|: Q1? Q2?",
        "a<::>3": "|user|: Q3?",
    }


@pytest.mark.parametrize("planned", [None, LEANING])
def test_nobodys_rewrite_is_made_up(
    tmp_path: Path, planned: Planned | None, capsys: pytest.CaptureFixture[str]
) -> None:
    # Searched for with both questions: that is no rewrite.
    turns = (said(1, P1, retrieval_query="Q1?"), said(2, P1, retrieval_query="Q1?\nQ2?", planned=planned))
    folder = exported(tmp_path, led(*turns), rewritten=False)
    assert not (folder / "retrieval_tasks" / "c" / "c_rewrite.jsonl").exists()
    assert len(queries(folder, "lastturn")) == 2
    told = "export=mtrag: there is no c_rewrite.jsonl, since 1 of 2 questions have no form that stands alone"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("keep", "kept"), [("pairs", [1, 3]), ("prefix", [1])])
def test_a_pair_judged_incorrect_is_no_task_but_stays_in_its_conversation(
    tmp_path: Path, keep: Filter, kept: list[int]
) -> None:
    wrong = Verdict(judge="j", label="incorrect", explanation="", model="m")
    folder = exported(tmp_path, led(said(1, P1), said(2, P1, verdicts=(wrong,)), said(3, P1)), keep=keep)
    assert len(messages(folder)) == 6
    assert [task["turn"] for task in tasks(folder)] == kept
    assert list(queries(folder, "lastturn")) == [f"a<::>{turn}" for turn in kept]
    if keep == "pairs":
        assert [message["text"] for message in tasks(folder)[1]["input"]] == ["Q1?", "A1.", "Q2?", "A2.", "Q3?"]


def document(name: str, text: str = "Text.", collection: str = "") -> Document:
    return Document(id=name, text=text, title=f"T{name}", url="https://example.org", collection=collection)


def test_the_collection_has_all_passages_that_were_searched(tmp_path: Path) -> None:
    found = [(document("d"), [P1, P2]), (document("e"), [piece("e:1", "e")])]
    folder = exported(tmp_path, led(said(1, P1)), documents=found)
    # The third is of another version of the corpus, and named all the same.
    assert collection(folder) == ["d:1", "d:2", "e:1", "d:3"]
    (conversation,) = json.loads((folder / "conversations.json").read_text())
    assert conversation["retriever"] == {"collection": {"name": "c", "size": "4"}}


def test_of_documents_that_were_not_cut_it_has_what_dialogs_rest_on_or_the_whole(tmp_path: Path) -> None:
    window = Passage(id="long:5-9", document_id="long", text="text", start=5, end=9)
    own = Passage(id="p-0-5", document_id="p", text="Whole", start=0, end=5)
    dialog = led(said(1, window), passages=(window, own))
    found = [(document(name, "Long text."), ()) for name in ("other", "long", "p-0-5")]
    folder = exported(tmp_path, dialog, documents=found)
    assert jsonl(folder / "retrieval_tasks" / "c" / "corpus.jsonl") == [
        {"_id": "other", "title": "Tother", "text": "Long text.", "url": "https://example.org"},
        {"_id": "long:5-9", "title": "Tlong", "text": "text", "url": "https://example.org"},
        {"_id": "p-0-5", "title": "Tp-0-5", "text": "Long text.", "url": "https://example.org"},
    ]


def test_each_collection_has_its_own_dialogs_and_what_they_name_of_others(tmp_path: Path) -> None:
    far = piece("e:1", "e")
    found = [
        (document("d", collection=CLAPNQ), [P1, P2, P3]),
        (document("e", collection=FIQA), [far]),
        (document("f", collection="mt-rag-govt-x"), [piece("f:1", "f")]),
    ]
    here, there = led(said(1, far), passages=(P1, far)), led(said(1, far), name="b", passages=(far,))
    folder = exported(tmp_path, here, there, documents=found)
    assert {path.name for path in (folder / "retrieval_tasks").iterdir()} == {"clapnq", "fiqa"}
    assert collection(folder, "clapnq") == ["d:1", "d:2", "d:3", "e:1"]
    assert collection(folder, "fiqa") == ["e:1"]
    assert [task["Collection"] for task in tasks(folder)] == [CLAPNQ, FIQA]
    assert (queries(folder, "lastturn", "clapnq"), queries(folder, "lastturn", "fiqa")) == (
        {"a<::>1": "|user|: Q1?"},
        {"b<::>1": "|user|: Q1?"},
    )


@pytest.mark.parametrize("name", ["../../etc", "Straße 5/6", "..", "a\tb", "x" * 300, "mt-rag-other"])
def test_a_collection_of_any_name_has_a_folder_that_any_disk_takes(tmp_path: Path, name: str) -> None:
    folder = exported(tmp_path, led(said(1, P1)), corpus=name)
    (made,) = (folder / "retrieval_tasks").iterdir()
    assert re.fullmatch(r"[\w-][\w.-]{0,99}", made.name, re.ASCII)
    assert {path.name for path in made.iterdir()} == {
        "corpus.jsonl",
        "qrels",
        *(f"{made.name}_{kind}.jsonl" for kind in ("lastturn", "questions", "rewrite")),
    }
    assert tasks(folder)[0]["Collection"] == name
    assert {path.name for path in tmp_path.iterdir()} == {"mtrag"}


def test_collections_whose_folders_would_be_one_get_two(tmp_path: Path) -> None:
    older = "mt-rag-fiqa-elser-20230101"
    folder = exported(tmp_path, *(led(said(1, P1), name=n, collection=c) for n, c in (("a", FIQA), ("b", older))))
    first, second = sorted(path.name for path in (folder / "retrieval_tasks").iterdir())
    assert first == "fiqa"
    assert second.startswith("fiqa-")
    assert list(queries(folder, "lastturn", second)) == ["b<::>1"]


def test_odd_ids_come_back_out_of_the_qrels(tmp_path: Path) -> None:
    names = ['a "c"', '"a"', '"a', "a b", "a\u2028b", "'a'", "ü,;"]
    passages = [piece(name) for name in names]
    folder = exported(tmp_path, led(said(1, *passages), name='"x"\u2028', passages=passages))
    rows = tsv(folder / "retrieval_tasks" / "c" / "qrels" / "dev.tsv")[1:]
    assert rows == [['"x"\u2028<::>1', name, "1"] for name in names]
    (read,) = read_collections(folder / "retrieval_tasks")
    assert read.relevant == {'"x"\u2028<::>1': dict.fromkeys(names, 1)}
    assert read.query_ids == read.relevant.keys()


def test_a_disk_that_refuses_leaves_the_old_files(tmp_path: Path) -> None:
    folder = exported(tmp_path, led(said(1, P1)))
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}

    def full() -> Iterator[tuple[Document, Sequence[Passage]]]:
        yield document("d"), [P1]
        raise OSError(28, "No space left on device")

    with pytest.raises(ExportError, match=r"mtrag: can't write the export \(No space left on device\); free space"):
        exported(tmp_path, led(said(1, P1), name="b"), documents=full())
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["mtrag"]


# The human files, there and back


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("there")


def human(folder: Path, path: Path, *more: str) -> Ended:
    arguments = ("human=true", "export=mtrag", "corpus=mtrag", f"corpus.path={path}", f"run_dir={folder}", *more)
    done = command(*arguments)
    assert done.code == 0, done.err
    return done


@pytest.fixture
def written(data: Path, there: Path) -> Path:
    """The export of all of the human files at hand; made once."""
    if not (there / "mtrag").exists():
        assert human(there, data / "mtrag").err == ""
    return there / "mtrag"


# Of conversations.json. What isn't compared says who worked on a conversation, when and with which settings of the
# tool, and not what was said, found and judged.
COMPARED = {
    "retriever.collection.name",
    *("messages.speaker", "messages.text", "messages.original_text"),
    *(f"messages.enrichments.{name}" for name in ("Question Type", "Multi-Turn", "Answerability")),
    *(f"messages.contexts.{name}" for name in ("document_id", "text", "title", "url", "score")),
    "messages.contexts.feedback.relevant.value",  # the last one: an editor's word comes after an annotator's
}
LEFT = {
    *("author", "editor", "reviewer", "status", "status_history.author", "status_history.status"),
    *("status_history.timestamp", "messages.timestamp", "messages.contexts.feedback.relevant.timestamp"),
    "domain",  # of the fork that the file at hand is from; the collection once more
    "retriever.collection.size",  # of the whole collection, of which the pool is at hand
    *(f"retriever.parameters.{name}" for name in ("max_count", "max_utterances", "query_syntax", "project")),
    "retriever.parameters.collections.regex",
    *("generator.id", "generator.name"),  # of the model whose answers people mended
    *(f"generator.dialogs.prompt.{name}" for name in ("template", "input", "context", "system_instruction")),
    *(f"generator.parameters.{name}" for name in ("min_new_tokens", "max_new_tokens", "repetition_penalty")),
    "generator.parameters.stop_sequences",
    "messages.contexts.query",  # what a person typed to find the passage, as Elasticsearch was asked
    # Beginnings of annotations that the paper doesn't define: of 7, 1, 3 and 7 of the 637 questions.
    *("messages.enrichments.Standalone Type", "messages.enrichments.Validity", "messages.enrichments.Ambiguity Type"),
    "messages.alternatives",
}
WHOLE = ("messages.contexts.query", "messages.alternatives")


def fields(value: Any, path: str = "") -> set[str]:
    """The paths of all fields; people's ids, which are keys, are no part of them."""
    if path in WHOLE or not isinstance(value, dict | list):
        return {path}
    if isinstance(value, list):
        return {field for item in value for field in fields(item, path)}
    if path.endswith("feedback.relevant"):
        return {f"{path}.{key}" for mark in value.values() for key in mark}
    return {field for key, item in value.items() for field in fields(item, f"{path}.{key}".strip("."))}


def meaning(conversation: dict[str, Any]) -> tuple[str, list[object]]:
    """What `COMPARED` names."""
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


def test_every_field_of_the_real_conversations_is_compared_or_named_as_left(data: Path) -> None:
    published = json.loads((data / "mtrag" / "conversations.json").read_text(encoding="utf-8"))
    assert fields(published) == COMPARED | LEFT
    assert not COMPARED & LEFT


def test_the_real_conversations_come_back_in_all_that_carries_meaning(data: Path, written: Path) -> None:
    published = json.loads((data / "mtrag" / "conversations.json").read_text(encoding="utf-8"))
    ours = json.loads((written / "conversations.json").read_text(encoding="utf-8"))
    assert len(ours) == len(published) == 84
    for mine, theirs in zip(ours, published, strict=True):
        assert meaning(mine) == meaning(theirs)
    assert fields(ours) <= COMPARED | LEFT


@pytest.mark.parametrize("domain", ["clapnq", "fiqa", "govt"])
def test_the_real_retrieval_tasks_come_back_to_the_byte(data: Path, written: Path, domain: str) -> None:
    theirs, ours = data / "mtrag" / "retrieval_tasks" / domain, written / "retrieval_tasks" / domain
    for name in (*(f"{domain}_{kind}.jsonl" for kind in ("lastturn", "questions", "rewrite")), "qrels/dev.tsv"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    assert (ours / "corpus.jsonl").read_bytes() == (theirs / "corpus_pooled.jsonl").read_bytes()
    named = {passage for _, passage, _ in tsv(ours / "qrels" / "dev.tsv")[1:]}
    assert named <= {record["_id"] for record in jsonl(ours / "corpus.jsonl")}


def named(task: dict[str, Any]) -> dict[str, Any]:
    """A task of any of the publisher's files, under the names and with the values of the newest."""
    later = task["Multi-Turn"]
    return {
        "task_id": task["task_id"].replace("<::>", "::"),
        "task_type": task["task_type"],
        "turn": int(task.get("turn", task.get("Turn"))),
        "collection": task.get("Collection", task.get("collection")),
        "contexts": [context["document_id"] for context in task["contexts"]],
        "input": [(message["speaker"], message["text"].strip()) for message in task["input"]],
        "targets": [(message["speaker"], message["text"]) for message in task["targets"]],
        "question type": sorted(task["Question Type"]),
        "multi-turn": later if isinstance(later, list) else [],  # NaN
        "answerability": task.get("Answerability", task.get("answerability")),
    }


def test_the_real_tasks_at_hand_are_among_those_written(data: Path, written: Path) -> None:
    analysed = json.loads(
        (data / "mtrag" / "evaluations" / "reference_subset_with_human_evaluations.json").read_text(encoding="utf-8")
    )["tasks"]
    sample = jsonl(data / "mtrag" / "sample_data" / "responses-10.jsonl")
    ours = {task["task_id"].replace("<::>", "::"): named(task) for task in tasks(written)}
    assert (len(ours), len(analysed), len(sample)) == (637, 116, 10)
    for task in (*analysed, *sample):
        expected = named(task)
        assert ours[expected["task_id"]] == expected
    asked = jsonl(data / "mtrag" / "sample_data" / "taskb_input.jsonl")
    keys = {frozenset(task) for task in tasks(written)}
    labels = {"targets", "Question Type", "Multi-Turn", "Answerability"}
    assert keys == {frozenset(task.keys() | labels) for task in asked}


def test_what_was_written_is_read_back_and_written_again_the_same(written: Path, tmp_path: Path) -> None:
    human(tmp_path / "again", written)
    assert (tmp_path / "again" / "dialogs.jsonl").read_bytes() == (written.parent / "dialogs.jsonl").read_bytes()
    files = [path.relative_to(written) for path in written.rglob("*.*") if path.is_file()]
    assert len(files) == 17
    for name in files:
        assert (tmp_path / "again" / "mtrag" / name).read_bytes() == (written / name).read_bytes(), name


def test_the_tasks_alone_are_read_back_with_the_passages_that_matter(written: Path, tmp_path: Path) -> None:
    done = human(tmp_path / "again", written / "generation_tasks" / "reference.jsonl")
    told, *unwritten = done.err.splitlines()
    assert len(unwritten) == 3, "the tasks have no rewrites"
    assert told.startswith("export=mtrag: the collections hold the passages of the dialogs alone, since corpus mtrag")
    assert tasks(tmp_path / "again" / "mtrag") == tasks(written)
    for domain in ("clapnq", "fiqa", "govt"):
        of_tasks = set(collection(tmp_path / "again" / "mtrag", domain))
        qrels = tsv(written / "retrieval_tasks" / domain / "qrels" / "dev.tsv")
        assert of_tasks == {passage for _, passage, _ in qrels[1:]}


def test_only_the_domain_that_is_asked_for_is_written(data: Path, tmp_path: Path) -> None:
    human(tmp_path, data / "mtrag", "corpus.domain=fiqa")
    assert [path.name for path in (tmp_path / "mtrag" / "retrieval_tasks").iterdir()] == ["fiqa"]
    assert {task["Collection"] for task in tasks(tmp_path / "mtrag")} == {FIQA}


# Whole runs


def acceptable(task: dict[str, Any]) -> None:
    """What the publisher's format checker wants of a line for its tasks A, B and C, once it has predictions, and what
    its scripts for algorithmic metrics, judges and retrieval read.
    """
    assert {"task_id", "Collection", "input", "contexts", "targets", "Answerability"} <= task.keys()
    assert isinstance(task["task_id"], str)
    assert isinstance(task["Collection"], str)
    for context in task["contexts"]:
        assert isinstance(context["document_id"], str)
        assert isinstance(context["text"], str)
        assert isinstance(context["score"], int | float)
    assert [message["speaker"] for message in task["input"]] == [*["user", "agent"] * (task["turn"] - 1), "user"]
    assert all(isinstance(message["text"], str) for message in (*task["input"], *task["targets"]))
    assert task["targets"]
    assert task["Answerability"][0] in ("ANSWERABLE", "PARTIAL", "UNANSWERABLE", "CONVERSATIONAL")


def complete(site: Site, name: str) -> None:
    """An export says what the run says, and names nothing that isn't in it."""
    folder = site.run_dir / "mtrag"
    conversations = json.loads((folder / "conversations.json").read_text(encoding="utf-8"))
    assert [[m["text"] for m in c["messages"]] for c in conversations] == [
        [text for turn in dialog["turns"] for text in (turn["query"], turn["answer"])] for dialog in site.dialogs()
    ]
    made = tasks(folder)
    for task in made:
        acceptable(task)
    # By dialog and turn: the dataset has its splits apart.
    assert sorted(t["task_id"] for t in made) == sorted(f"{r['dialog_id']}<::>{r['turn']}" for r in site.rows())
    (retrieval,) = (folder / "retrieval_tasks").iterdir()
    assert retrieval.name == name
    ids = collection(folder, name)
    assert len(ids) == len(set(ids)) == int(conversations[0]["retriever"]["collection"]["size"])
    qrels = tsv(retrieval / "qrels" / "dev.tsv")[1:]
    assert qrels
    asked = queries(folder, "lastturn", name)
    assert list(asked) == list(queries(folder, "questions", name)) == list(dict.fromkeys(row[0] for row in qrels))
    assert {row[1] for row in qrels} <= set(ids)
    assert {c["document_id"] for v in conversations for m in v["messages"] for c in m.get("contexts", [])} <= set(ids)
    if (retrieval / f"{name}_rewrite.jsonl").exists():
        assert list(queries(folder, "rewrite", name)) == list(asked)


@pytest.mark.parametrize("algorithm", ["multi", "single"])
def test_a_finished_run_gets_its_export_without_a_call_and_a_longer_one_a_longer_export(
    tmp_path: Path, algorithm: str
) -> None:
    site = Site(tmp_path)
    wrong = replying(judge=lambda b: {"label": "incorrect" if some(b, 0.3) else "correct"})
    with OpenAIServer(wrong) as server:
        arguments = (f"algorithm={algorithm}", "corpus.name=odd/name", "turns=2-3", "dedup=none")
        assert site.run(server, *arguments, "dialogs=3").code == 0
        assert not (site.run_dir / "mtrag").exists()
        calls = len(server.bodies)
        assert site.run(server, *arguments, "dialogs=3", "export=mtrag").code == 0
        assert len(server.bodies) == calls
        (name,) = (path.name for path in (site.run_dir / "mtrag" / "retrieval_tasks").iterdir())
        assert re.fullmatch(r"odd_name-[0-9a-f]{8}", name)
        complete(site, name)
        before = {path: path.read_bytes() for path in (site.run_dir / "mtrag").rglob("*.*")}
        # Not asked for, and still of these dialogs.
        assert site.run(server, *arguments, "dialogs=3").code == 0
        assert {path: path.read_bytes() for path in (site.run_dir / "mtrag").rglob("*.*")} == before
        assert site.run(server, *arguments, "dialogs=5", "export=mtrag").code == 0
        complete(site, name)
        assert len(json.loads((site.run_dir / "mtrag" / "conversations.json").read_text())) == 5
        assert site.run(server, *arguments, "dialogs=6").code == 0
    assert not (site.run_dir / "mtrag").exists(), "it would be of other dialogs"
    rewritten = any(path.name.endswith("_rewrite.jsonl") for path in before)
    assert rewritten == (algorithm == "multi"), "Algorithm 1 rewrites nothing"
    if algorithm == "multi":
        assert any(len(task["contexts"]) != 1 for task in tasks_of(before))


def tasks_of(files: dict[Path, bytes]) -> list[dict[str, Any]]:
    (text,) = (content for path, content in files.items() if path.name == "reference.jsonl")
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_is_read_back_as_the_dialogs_that_it_is_of(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=3", "export=mtrag", "turns=2-3").code == 0
        passages = json.loads((site.run_dir / "mtrag/conversations.json").read_text())[0]["retriever"]["collection"]
    assert passages["name"] == "jsonl"
    back = tmp_path / "back"
    assert command("human=true", "corpus=mtrag", f"corpus.path={site.run_dir / 'mtrag'}", f"run_dir={back}").code == 0
    read = [json.loads(line) for line in (back / "dialogs.jsonl").read_text().splitlines()]
    for mine, theirs in zip(read, site.dialogs(), strict=True):
        assert mine["collection"] == "jsonl"
        for ours, turn in zip(mine["turns"], theirs["turns"], strict=True):
            for name in ("query", "answer", "answerability"):
                assert ours[name] == turn[name]
            assert ours["multi_turn_type"] == {"correction": "clarification"}.get(
                later := turn["multi_turn_type"], later
            )
            assert {e["passage_id"] for e in ours["evidence"]} == {e["passage_id"] for e in turn["evidence"]}


def test_a_stored_configuration_takes_an_export_too(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=1").code == 0
    stored = str(site.run_dir / "config.yaml")
    done = command(stored, "export=mtrag")
    assert done.code == 0, done.err
    complete(site, "jsonl")
    assert command(stored, "export=beir").error == "export=beir: no such choice; choose from: mtrag, none"


def test_documents_of_several_domains_are_collections_of_their_own(tmp_path: Path) -> None:
    for domain in ("clapnq", "fiqa"):
        (tmp_path / "corpora").mkdir(exist_ok=True)
        (tmp_path / "corpora" / f"{domain}.jsonl").write_text(
            "".join(
                json.dumps({"_id": f"{domain}-{n}", "text": f"The {domain} office number {n} opens on Sundays."}) + "\n"
                for n in range(12)
            )
            + "broken\n"
        )
    site = Site(tmp_path)
    with OpenAIServer(replying(ask=lambda b: {"question": f"When does the office number {b['seed'] % 12} open?"})) as s:
        arguments = [a for a in site.arguments(s, "dialogs=6", "export=mtrag", "dedup=none") if "corpus" not in a]
        done = command("corpus=mtrag", f"corpus.path={tmp_path / 'corpora'}", *arguments)
    assert done.code == 0, done.err
    folder = site.run_dir / "mtrag"
    names = {path.name for path in (folder / "retrieval_tasks").iterdir()}
    assert names == {"clapnq", "fiqa"}
    first = {dialog["id"]: dialog["document_ids"][0].partition("-")[0] for dialog in site.dialogs()}
    assert {t["conversation_id"]: {CLAPNQ: "clapnq", FIQA: "fiqa"}[t["Collection"]] for t in tasks(folder)} == first
    for name in names:
        ids = collection(folder, name)
        assert {f"{name}-{n}:0-{len(f'The {name} office number {n} opens on Sundays.')}" for n in range(12)} <= set(ids)
        assert {row[1] for row in tsv(folder / "retrieval_tasks" / name / "qrels" / "dev.tsv")[1:]} <= set(ids)


@pytest.mark.parametrize("then", ["", '{"_id": "other", "text": "Something else."}\n'], ids=["emptied", "replaced"])
def test_documents_that_change_in_mid_run_are_told(then: str, tmp_path: Path) -> None:
    documents = tmp_path / "corpora" / "fiqa.jsonl"
    documents.parent.mkdir()
    records = [{"_id": f"d{n}", "text": f"The office number {n} opens on Sundays at {n}."} for n in range(12)]
    documents.write_text("".join(json.dumps(record) + "\n" for record in records))

    def changing(body: Body) -> dict[str, object]:
        documents.write_text(then)
        return {"question": f"When does the office number {body['seed'] % 12} open?"}

    site = Site(tmp_path)
    with OpenAIServer(replying(ask=changing)) as server:
        arguments = [a for a in site.arguments(server, "dialogs=2", "export=mtrag", "dedup=none") if "corpus" not in a]
        done = command("corpus=mtrag", f"corpus.path={documents.parent}", *arguments)
    assert done.code == 0, done.err
    assert "of the dialogs alone, since corpus mtrag: its documents changed while the run went on" in done.err
    assert collection(site.run_dir / "mtrag", "mtrag")
