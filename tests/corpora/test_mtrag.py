"""mtRAG: its corpora in the publisher's layout, its conversations and its generation tasks as dialogs."""

import json
import statistics
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from generator.corpora.base import CorpusSettings
from generator.schema import Dialog
from tests.support.corpora import corpus, dialogs, good, message, read, read_dialogs, served, write_lines

CLAPNQ, CLOUD = "mt-rag-clapnq-elser-512-100-20240503", "mt-rag-ibmcloud-elser-512-100-20240502"


# Documents


def zipped(path: Path, *records: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(path.name.removesuffix(".zip"), "".join(json.dumps(record) + "\n" for record in records))


def record(name: str) -> dict[str, Any]:
    return {"_id": name, "title": f"Of {name}", "text": f"Text of {name}.", "url": f"https://example.org/{name}"}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The publisher's repository, with two domains."""
    root = tmp_path / "mt-rag-benchmark"
    for level in ("passage", "document"):
        for domain in ("fiqa", "clapnq"):
            zipped(root / "corpora" / f"{level}_level" / f"{domain}.jsonl.zip", record(f"{domain}-{level}"))
    (root / "corpora" / "README.md").write_text("About.")
    tasks = root / "mtrag-human" / "retrieval_tasks" / "clapnq"
    tasks.mkdir(parents=True)
    write_lines(tasks / "clapnq_questions.jsonl", {"_id": "a<::>1", "text": "|user|: Who?"})
    return root


def ids(where: CorpusSettings) -> list[str]:
    return [document.id for document in good(list(where.read()))]


def test_the_publishers_files_are_found_at_any_depth_by_level_and_domain(published: Path) -> None:
    both = ["clapnq-passage", "fiqa-passage"]
    assert ids(corpus("mtrag", path=str(published))) == both
    assert ids(corpus("mtrag", path=str(published / "corpora" / "passage_level"))) == both
    assert ids(corpus("mtrag", path=str(published), level="document", domain="fiqa")) == ["fiqa-document"]
    alone = published / "corpora" / "document_level" / "fiqa.jsonl.zip"
    assert ids(corpus("mtrag", path=str(alone))) == ["fiqa-document"]
    (document,) = good(read("mtrag", path=str(published), domain="clapnq"))
    assert (document.title, document.text) == ("Of clapnq-passage", "Text of clapnq-passage.")
    assert document.url == "https://example.org/clapnq-passage"


def test_a_file_that_is_unpacked_too_or_pooled_is_not_read_twice(published: Path) -> None:
    folder = published / "corpora" / "passage_level"
    write_lines(folder / "fiqa.jsonl", record("fiqa-passage"))
    for domain in ("clapnq", "govt"):
        (published / "pool" / domain).mkdir(parents=True)
        write_lines(published / "pool" / domain / "corpus_pooled.jsonl", record(f"{domain}-pool"))
    assert ids(corpus("mtrag", path=str(published))) == ["clapnq-passage", "fiqa-passage", "govt-pool"]
    assert ids(corpus("mtrag", path=str(published), level="document")) == ["clapnq-document", "fiqa-document"]


def test_a_domain_that_is_not_there_is_an_error_that_says_what_to_put_where(published: Path) -> None:
    told = message(lambda: read("mtrag", path=str(published), domain="cloud", level="document"))
    assert "no document-level corpus of cloud" in told and "corpora/document_level/cloud.jsonl.zip" in told
    folder = str(published / "corpora" / "document_level")
    assert "no passage-level corpus of any domain" in message(lambda: read("mtrag", path=folder))
    assert "no file ends in conversations.json, " in message(lambda: dialogs("mtrag", folder))
    assert "no conversations.json" in message(lambda: dialogs("mtrag", published))


@pytest.mark.parametrize("name", ["reference.jsonl", "responses.jsonl", "analytics.json", "conversations.json"])
def test_a_file_of_dialogs_is_no_corpus_and_says_where_the_documents_are(tmp_path: Path, name: str) -> None:
    held = {"analytics.json": {"tasks": [task(1)], "documents": []}, "conversations.json": [conversation()]}
    path = write_lines(tmp_path / name, held.get(name, task(1)))
    for settings, level, domain in (
        ({}, "passage", "<domain>"),
        ({"level": "document", "domain": "fiqa"}, "document", "fiqa"),
    ):
        told = message(lambda settings=settings: read("mtrag", path=path, **settings))
        assert str(path) in told and f"corpora/{level}_level/{domain}.jsonl.zip" in told


def test_a_record_has_its_id_under_any_of_four_names_and_may_lack_title_and_address(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "any.jsonl",
        {"_id": "822086267_6698-7277-0-579", "text": "A.", "title": None, "url": None},
        {"id": 7, "text": "B.", "url": ""},
        {"document_id": "c", "text": "C.", "extra": 1},
        {"doc_id": "d", "text": "D."},
    )
    found = good(read("mtrag", path=path))
    assert [document.id for document in found] == ["822086267_6698-7277-0-579", "7", "c", "d"]
    assert {(document.title, document.url) for document in found} == {("", None)}


def test_all_is_fetched_once_and_the_levels_are_kept_apart(published: Path, tmp_path: Path) -> None:
    human = published / "mtrag-human"
    (human / "conversations").mkdir()
    (human / "conversations" / "conversations.json").write_text(json.dumps([conversation(exchange("Who?", "He."))]))
    write_lines(
        human / "retrieval_tasks" / "clapnq" / "clapnq_rewrite.jsonl", {"_id": "a<::>1", "text": "|user|: Who is he?"}
    )
    settings = {"domain": "clapnq", "cache_dir": str(tmp_path / "cache")}
    with served(published) as address:
        for level in ("passage", "document"):
            assert ids(corpus("mtrag", base_url=address, level=level, **settings)) == [f"clapnq-{level}"]
        (dialog,) = dialogs("mtrag", base_url=address, **settings)
        assert (dialog.id, dialog.turns[0].retrieval_query) == ("a", "Who is he?")
        told = message(lambda: read("mtrag", base_url=address, domain="govt", cache_dir=settings["cache_dir"]))
    assert f"can't download {address}/corpora/passage_level/govt.jsonl.zip: 404" in told
    assert f"put it into {tmp_path}/cache/passage_level, or set corpus.path to it" in told
    # Nobody listens there any more.
    assert ids(corpus("mtrag", base_url=address, **settings)) == ["clapnq-passage"]


# Conversations


def context(name: str, *marks: str, **more: Any) -> dict[str, Any]:
    relevant = {f"person{number}": {"value": mark, "timestamp": number} for number, mark in enumerate(marks)}
    return {"document_id": name, "text": f"Text of {name}.", "score": 1.5, "feedback": {"relevant": relevant}} | more


def exchange(query: str, answer: str, *contexts: dict[str, Any], **labels: list[str]) -> list[dict[str, Any]]:
    names = {"kind": "Question Type", "later": "Multi-Turn", "can": "Answerability"}
    enrichments = {"Answerability": ["ANSWERABLE"]} | {names[label]: value for label, value in labels.items()}
    return [
        {"speaker": "user", "text": query, "enrichments": enrichments},
        {"speaker": "agent", "text": answer, "contexts": list(contexts or [context("p-0-9", "yes")])},
    ]


def conversation(*exchanges: list[dict[str, Any]], collection: str = CLAPNQ) -> dict[str, Any]:
    return {"retriever": {"collection": {"name": collection}}, "messages": [m for pair in exchanges for m in pair]}


def of(path: Path, *conversations: object, **settings: Any) -> tuple[list[Dialog], list[tuple[str, str]]]:
    path.write_text(json.dumps(conversations))
    return read_dialogs("mtrag", path, **settings)


def test_a_conversation_is_a_dialog_with_what_was_retrieved_and_what_people_found_relevant(tmp_path: Path) -> None:
    (dialog,), _ = of(
        tmp_path / "conversations.json",
        conversation(
            exchange(
                "Who?",
                "He.",
                context("12_3-4-0-99", "yes", "no", title="T", url="https://example.org"),
                context("5-0-9", "no", "yes", score=9, url=r"https?://(?:www\.)?x"),
                kind=["How-To", "Non-Question"],
                later=["N/A"],
            ),
            exchange("And?", "No.", context("5-0-9"), context("6-7-8"), can=["UNANSWERABLE"], later=["Follow-up"]),
        ),
    )
    assert isinstance(dialog, Dialog)
    assert (dialog.corpus, dialog.algorithm, dialog.split, dialog.ended) == ("mtrag", "multi", "train", "complete")
    assert [(p.id, p.document_id, p.title, p.url) for p in dialog.passages] == [
        ("12_3-4-0-99", "12_3-4", "T", "https://example.org"),
        ("5-0-9", "5", "", None),
        ("6-7-8", "6", "", None),
    ]
    assert [p.start for p in dialog.passages] == [0, 0, 7]
    assert {(p.end - p.start == len(p.text), p.text == f"Text of {p.id}.") for p in dialog.passages} == {(True, True)}
    first, second = dialog.turns
    assert (first.query, first.answer, first.answerability) == ("Who?", "He.", "answerable")
    assert (first.question_type, first.multi_turn_type) == ("how-to+non-question", None)
    assert (second.question_type, second.multi_turn_type) == ("unlabelled", "follow-up")
    assert second.answerability == "unanswerable"
    assert [(h.passage_id, h.score, h.rank, h.new) for t in dialog.turns for h in t.hits] == [
        ("12_3-4-0-99", 1.5, 1, True),
        ("5-0-9", 9, 2, True),
        ("5-0-9", 1.5, 1, False),
        ("6-7-8", 1.5, 2, True),
    ]
    # The last word on a passage counts, and none is none.
    assert [[e.text for e in t.evidence] for t in dialog.turns] == [["Text of 5-0-9."], []]


def test_the_questions_tell_a_conversations_id_and_its_rewrites(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "cloud_questions.jsonl",
        {"_id": "a<::>1", "text": "|user|: Who?"},
        {"_id": "b<::>1", "text": "|user|: Who?"},
        {"_id": "b::2", "text": "|user|: Who?\n|user|: And she?"},
    )
    rewrites = tmp_path / "cloud_rewrite.jsonl"
    write_lines(rewrites, {"_id": "b::2", "text": "|user|: Who is she?"}, {"_id": "b", "text": "|user|: Who?"})
    talk = conversation(exchange("Who?", "He."), exchange("And she?", "She."), collection=CLOUD)
    (tmp_path / "conversations.json").write_text(json.dumps([talk]))
    (dialog,), bad = read_dialogs("mtrag", tmp_path, domain="cloud")
    reason = "_id: 'b' isn't a conversation and a turn joined by <::> or ::"
    assert bad == [("cloud_rewrite.jsonl:2", reason)]
    assert (dialog.id, [t.retrieval_query for t in dialog.turns]) == ("b", ["", "Who is she?"])


def test_only_the_conversations_of_the_domain_are_given(tmp_path: Path) -> None:
    talks = [conversation(exchange("Who?", "He."), collection=c) for c in (CLAPNQ, CLOUD, "mt-rag-other-elser")]
    found, ((_, reason),) = of(tmp_path / "c.json", *talks, domain="cloud")
    assert len(found) == 1 and reason.endswith("'mt-rag-other-elser' names no domain of mtRAG")
    assert len(of(tmp_path / "c.json", *talks)[0]) == 2


UNKNOWN = "'MAYBE' is none of answerable, partial, unanswerable, underspecified, conversational"


def test_a_conversation_that_cannot_be_read_is_told_by_place_and_field(tmp_path: Path) -> None:
    wrong: list[tuple[object, str]] = [
        (7, "Input should be a valid dictionary"),
        ({"messages": []}, "retriever.collection.name: Field required"),
        (conversation(exchange(" ", "He.")), "messages.0.user.text: String should match"),
        (conversation(exchange("Who?", "He.", can=["MAYBE"])), f"messages.0.user.enrichments.Answerability: {UNKNOWN}"),
        (conversation(exchange("Who?", "He.")[::-1]), "messages: user and agent don't take turns"),
        (conversation(), "it has no question with an answer"),
        (conversation(exchange("Who?", "He.", context("p"), context("p", text="B."))), "passage p has two texts"),
    ]
    _, bad = of(tmp_path / "conversations.json", *(record for record, _ in wrong))
    for number, ((_, expected), (place, reason)) in enumerate(zip(wrong, bad, strict=True)):
        assert place == f"[{number}]" and reason.startswith(expected)


# Generation tasks


def task(number: int, *contexts: dict[str, Any], name: str = "a<::>{}", **more: Any) -> dict[str, Any]:
    said = [{"speaker": "user", "text": f"Question {number}?"}]
    before = [{"speaker": "user", "text": "?"}, {"speaker": "agent", "text": "!"}] * (number - 1)
    return {
        "task_id": name.format(number),
        "turn": str(number),
        "collection": CLAPNQ,
        "input": before + said,
        "targets": [{"speaker": "agent", "text": f"Answer {number}."}],
        "contexts": list(contexts or [context("p-0-9", "yes")]),
        "answerability": ["PARTIAL"],
        "Multi-Turn": ["Clarification"],
    } | more


def tasks(path: Path, *records: object, **settings: Any) -> tuple[list[Dialog], list[tuple[str, str]]]:
    return read_dialogs("mtrag", write_lines(path, *records), **settings)


def test_the_tasks_of_a_conversation_are_a_dialog_however_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    second = task(2, name="a::{}", Collection=CLAPNQ, targets=[{"text": "One."}, {"text": "Two."}])
    del second["collection"]
    bare = json.dumps(task(1)).replace('["Clarification"]', "NaN").replace('"score": 1.5', '"score": NaN')
    (dialog, other), bad = tasks(path, second, task(1, collection=CLOUD, name="b<::>{}"), bare)
    assert (dialog.id, other.id, bad) == ("a", "b", [])
    assert [t.query for t in dialog.turns] == ["Question 1?", "Question 2?"]
    assert [(t.answer, t.other_answers) for t in dialog.turns] == [("Answer 1.", ()), ("One.", ("Two.",))]
    assert [t.multi_turn_type for t in dialog.turns] == [None, "clarification"]
    assert [len(t.evidence) for t in dialog.turns] == [1, 1]
    assert [hit.score for t in dialog.turns for hit in t.hits] == [0, 1.5]
    assert tasks(path, second, bare, domain="govt") == ([], [])


def test_a_task_that_cannot_be_read_is_told_and_those_after_it_are_dialogs_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    unanswered = task(2)
    del unanswered["targets"]
    later = task(3), task(3, name="b<::>{}"), task(4, context("q-0-9"))
    found, bad = tasks(path, task(1), unanswered, *later, task(1), task(1, name="a-1"), task(2, name="b<::>{}"))
    assert bad == [
        ("2", "targets: Field required"),
        ("6", f"task_id: {path}:1 is the same turn"),
        ("7", "task_id: 'a-1' isn't a conversation and a turn joined by <::> or ::"),
    ]
    assert [(d.id, d.ended, [t.answer for t in d.own_turns]) for d in found] == [
        ("a", "complete", ["Answer 1."]),
        ("a<::>3", "task", ["Answer 3."]),
        ("a<::>4", "task", ["Answer 4."]),
        ("b<::>2", "task", ["Answer 2."]),
        ("b<::>3", "task", ["Answer 3."]),
    ]
    assert [t.query for t in found[2].turns] == ["?", "?", "?", "Question 4?"]


@pytest.mark.parametrize("answerability", ["PARTIAL", "partial", [" Partial "]])
def test_labels_may_be_text_in_place_of_lists(tmp_path: Path, answerability: object) -> None:
    labels = {"answerability": answerability, "Multi-Turn": "Clarification", "Question Type": " How-To"}
    (dialog,) = dialogs("mtrag", write_lines(tmp_path / "tasks.jsonl", task(2, **labels)))
    (turn,) = dialog.own_turns
    assert (turn.answerability, turn.multi_turn_type, turn.question_type) == ("partial", "clarification", "how-to")


@pytest.mark.parametrize("answerability", ["MAYBE", ["MAYBE"]])
def test_an_unknown_answerability_is_told(tmp_path: Path, answerability: object) -> None:
    _, bad = tasks(tmp_path / "tasks.jsonl", task(1, answerability=answerability))
    assert bad == [("1", f"answerability: {UNKNOWN}")]


def only_task(number: int, *contexts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Of MTRAG-UN (Rosenthal et al. 2026), where nobody scored or marked a context."""
    bare = [{"document_id": c["document_id"], "text": c["text"]} for c in contexts]
    return task(number) | {"contexts": bare, "Collection": "telco", "answerability": ["UNDERSPECIFIED"]} | more


def test_the_only_task_of_a_conversation_is_a_dialog_with_its_input_before_it(tmp_path: Path) -> None:
    two = only_task(3, context("p-0-9"), context("q-0-9"), targets=[{"text": "Which?"}, {"text": "Of A or B?"}])
    nothing = only_task(1, task_id="b<::>1", contexts=None, answerability=["UNANSWERABLE"], **{"Multi-Turn": ["N/A"]})
    (dialog, bare), bad = tasks(tmp_path / "tasks.jsonl", two, nothing)
    assert (dialog.id, dialog.collection, dialog.ended, dialog.lm, bad) == ("a", "telco", "task", "human", [])
    assert [(t.query, t.answer) for t in dialog.turns] == [("?", "!"), ("?", "!"), ("Question 3?", "Which?")]
    assert {(t.question_type, t.multi_turn_type, t.hits) for t in dialog.turns[:2]} == {("unlabelled", None, ())}
    (last,) = dialog.own_turns
    assert (last.answerability, last.multi_turn_type) == ("underspecified", "clarification")
    assert last.other_answers == ("Of A or B?",)
    # People gave them as relevant; no search scored them.
    assert [e.passage_id for e in last.evidence] == [h.passage_id for h in last.hits] == ["p-0-9", "q-0-9"]
    assert (bare.id, bare.ended, bare.passages, bare.document_ids) == ("b", "task", (), ())
    assert (bare.turns[0].answerability, bare.turns[0].multi_turn_type) == ("unanswerable", None)
    assert len(tasks(tmp_path / "tasks.jsonl", two, only_task(2, Collection="bank", task_id="c<::>2"))[0]) == 2


def test_an_only_task_whose_input_is_no_dialog_is_told(tmp_path: Path) -> None:
    found, bad = tasks(tmp_path / "tasks.jsonl", only_task(2, input=[{"speaker": "user", "text": "?"}] * 3))
    assert (found, bad) == ([], [("1", "input: user and agent don't take turns up to a question")])


def test_a_folder_without_conversations_has_its_tasks_read(tmp_path: Path) -> None:
    (tmp_path / "generation_tasks").mkdir()
    write_lines(tmp_path / "generation_tasks" / "reference.jsonl", only_task(2, context("p-0-9")))
    write_lines(tmp_path / "telco_rewrite.jsonl", {"_id": "a<::>2", "text": "|user|: Question two?"})
    (dialog,) = dialogs("mtrag", tmp_path)
    assert [t.retrieval_query for t in dialog.turns] == ["", "Question two?"]
    (tmp_path / "conversations.json").write_text(json.dumps([conversation(exchange("Who?", "He."))]))
    assert [dialog.ended for dialog in dialogs("mtrag", tmp_path)] == ["complete"]


def test_an_analytics_file_has_the_texts_of_its_passages_apart(tmp_path: Path) -> None:
    path = tmp_path / "reference.json"
    documents = [{"document_id": "p-0-9", "text": "One.", "title": "T"}, {"document_id": "q-0-9", "text": "Two."}]
    named = [{"document_id": "p-0-9"}, {"document_id": "q-0-9"}]
    marked = {"context_relevance": {"system": [1]}}
    first, lost = task(1, *named, annotations=marked), task(2, {"document_id": "r-0-9"})
    path.write_text(json.dumps({"name": "x", "documents": documents, "tasks": [first, lost]}))
    (dialog,), bad = read_dialogs("mtrag", path)
    assert bad == [("tasks[1]", "contexts.0.text: Field required")]
    assert [(p.text, p.title) for p in dialog.passages] == [("One.", "T"), ("Two.", "")]
    assert [e.text for e in dialog.turns[0].evidence] == ["Two."]


# The real files


def rows(path: Path) -> list[list[str]]:
    """Of a TSV file, which quotes nothing."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def test_the_real_passages_are_read(data: Path) -> None:
    found = good(read("mtrag", path=str(data / "mtrag")))
    assert len(found) == len({document.id for document in found}) == 1559
    assert len(good(read("mtrag", path=str(data / "mtrag"), domain="govt"))) == 447


def test_the_real_conversations_are_read_as_the_paper_counts_them(data: Path) -> None:
    found = dialogs("mtrag", data / "mtrag")
    named = rows(data / "mtrag" / "conversation_ids.tsv")
    assert [dialog.id for dialog in found] == [name for _, name, _ in named]
    turns = [turn for dialog in found for turn in dialog.turns]
    assert (len(found), len(turns)) == (84, 637)
    relevant = [len({e.passage_id for turn in dialog.turns for e in turn.evidence}) for dialog in found]
    answered = [turn for turn in turns if turn.answerability in ("answerable", "partial")]
    assert statistics.mean(relevant) == pytest.approx(16.99, abs=0.005)
    assert statistics.mean(len(turn.query.split()) for turn in turns) == pytest.approx(8.74, abs=0.005)
    assert statistics.mean(len(turn.answer.split()) for turn in answered) == pytest.approx(97.05, abs=0.005)
    assert statistics.mean(len(turn.evidence) for turn in answered) == pytest.approx(2.77, abs=0.005)
    govt = dialogs("mtrag", data / "mtrag", domain="govt")
    assert [dialog.id for dialog in govt] == [name for _, name, domain in named if domain == "govt"]


def test_what_is_relevant_in_the_real_conversations_is_what_the_qrels_say(data: Path) -> None:
    judged: dict[str, set[str]] = {}
    for file in data.glob("mtrag/retrieval_tasks/*/qrels/dev.tsv"):
        for query, passage, score in rows(file):
            assert score == "1"
            judged.setdefault(query, set()).add(passage)
    found = {
        f"{dialog.id}<::>{turn.turn}": {e.passage_id for e in turn.evidence}
        for dialog in dialogs("mtrag", data / "mtrag")
        for turn in dialog.turns
    }
    assert {query: passages for query, passages in found.items() if passages} == judged


@pytest.mark.parametrize(
    ("file", "conversations", "turns"),
    [("evaluations/reference_subset_with_human_evaluations.json", 15, 116), ("sample_data/responses-10.jsonl", 2, 10)],
)
def test_the_real_tasks_are_the_turns_of_the_real_conversations(
    data: Path, file: str, conversations: int, turns: int
) -> None:
    whole = {dialog.id: dialog for dialog in dialogs("mtrag", data / "mtrag")}
    found = dialogs("mtrag", data / "mtrag" / file)
    assert (len(found), sum(len(dialog.turns) for dialog in found)) == (conversations, turns)
    for dialog in found:
        for turn, same in zip(dialog.turns, whole[dialog.id].turns, strict=False):
            assert (turn.turn, turn.query.strip(), turn.answer) == (same.turn, same.query.strip(), same.answer)
            assert (turn.answerability, turn.multi_turn_type) == (same.answerability, same.multi_turn_type)
            assert set(turn.question_type.split("+")) == set(same.question_type.split("+"))
            assert [e.passage_id for e in turn.evidence] == [e.passage_id for e in same.evidence]


def test_the_real_tasks_of_mtrag_un_are_read_as_its_source_counts_them(data: Path) -> None:
    found = dialogs("mtrag", data / "mtrag_un" / "reference_sample.jsonl")
    last = [turn for dialog in found for turn in dialog.own_turns]
    assert (len(found), len(last), sum(len(dialog.turns) for dialog in found)) == (162, 162, 710)
    assert Counter(turn.answerability for turn in last) == {
        "answerable": 85,
        "partial": 22,
        "unanswerable": 31,
        "underspecified": 24,
    }
    assert Counter(turn.multi_turn_type for turn in last) == {"follow-up": 111, "clarification": 19, None: 32}
    assert Counter(bool(turn.evidence) for turn in last if turn.answerability == "underspecified") == {
        True: 18,
        False: 6,
    }
    assert len(dialogs("mtrag", data / "mtrag_un" / "reference_sample.jsonl", domain="fiqa")) == 30
