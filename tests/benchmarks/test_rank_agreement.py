"""Agreement of companion sets with people's questions: which texts are searched where, and what is resampled."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.rank_agreement import VARIANTS, Question, main, measure_agreement, read_people, read_pools, sample
from benchmarks.rank_statistics import Sample, compare, compare_people, resample, split_people
from benchmarks.rank_systems import Variant, rank_texts
from generator.corpora.mtrag.names import COLLECTIONS
from generator.errors import ConfigError
from generator.schema import Dialog, Verdict
from judges.benchmarks.mtrag.retrieval_tasks import read_collections
from tests.judges.sheets import run_of
from tests.support.encoders import WordModel, word_model
from tests.support.records import make_dialog, make_evidence, make_passage, make_turn, write_json_lines

__all__ = ["word_model"]

pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier isn't installed (extra metrics)")
# The second cuts passages.
BM25 = {name: VARIANTS[name] for name in ("bm25", "bm25, passages of 100")}
ANIMALS = ("fox", "owl", "bat", "elk", "hen", "cow", "ant", "bee")


def conversation(domain: str, *exchanges: tuple[str, str]) -> dict[str, Any]:
    """Return a conversation of mtRAG: questions, each with the animal whose passage is marked as relevant."""
    messages: list[dict[str, Any]] = []
    for question, animal in exchanges:
        marked = {"relevant": {"editor": {"value": "yes"}}}
        context = {"document_id": f"{domain}-{animal}", "text": f"Any {animal} hides.", "feedback": marked}
        messages.append({"speaker": "user", "text": question, "enrichments": {"Answerability": ["ANSWERABLE"]}})
        messages.append({"speaker": "agent", "text": "It does.", "contexts": [context]})
    return {"retriever": {"collection": {"name": COLLECTIONS[domain]}}, "messages": messages}


@pytest.fixture
def human(tmp_path: Path) -> Path:
    """Write mtRAG's files: two domains whose passages say the same and have other ids, two conversations of each."""
    folder = tmp_path / "mtrag"
    conversations = []
    for domain in ("clapnq", "govt"):
        tasks = folder / "retrieval_tasks" / domain
        passages = [{"_id": f"{domain}-{name}", "title": "", "text": f"Any {name} hides."} for name in ANIMALS]
        (tasks / "qrels").mkdir(parents=True)
        write_json_lines(tasks / "corpus_pooled.jsonl", *passages)
        asked = [("Which fox?", "And that?"), ("Which elk?", "And those?")]
        sought = [("fox", "owl"), ("elk", "hen")]
        for place, (questions, animals) in enumerate(zip(asked, sought, strict=True)):
            conversations.append(conversation(domain, *zip(questions, animals, strict=True)))
            ids = [f"{domain}{place}<::>{turn}" for turn in (1, 2)]
            texts = {
                "lastturn": [f"|user|: {question}" for question in questions],
                "questions": [f"|user|: {questions[0]}", f"|user|: {questions[0]}\n|user|: {questions[1]}"],
                "rewrite": [f"|user|: Which {animal}?" for animal in animals],
            }
            for form, lines in texts.items():
                with (tasks / f"{domain}_{form}.jsonl").open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps({"_id": i, "text": t}) + "\n" for i, t in zip(ids, lines, strict=True))
            with (tasks / "qrels" / "dev.tsv").open("a", encoding="utf-8") as file:
                file.writelines(f"{i}\t{domain}-{animal}\t1\n" for i, animal in zip(ids, animals, strict=True))
    (folder / "conversations.json").write_text(json.dumps(conversations), encoding="utf-8")
    return folder


def run(folder: Path, *dialogs: Dialog, query: str = "rewrite") -> Path:
    """Write a run folder."""
    run_of(folder, *dialogs)
    config = f"retriever: {{query: {query}}}\njudge: {{filter: pairs}}\ndialogs: 1\n"
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    return folder


def dialog(domain: str, verdict: str = "correct") -> Dialog:
    """Return a dialog about parts of a domain's passages; the second answer is judged, the second question leans."""
    passages = [make_passage(f"{domain}-{name}#1", "hides.", document_id=f"{domain}-{name}") for name in ("bat", "cow")]
    judged = Verdict(judge="j", label=verdict, explanation="", model="", decides=True)
    return make_dialog(
        make_turn(
            1,
            query="Which bat?",
            answer="The ant.",
            retrieval_query="Which bee?",
            evidence=make_evidence(passages[0].id),
        ),
        make_turn(
            2,
            query="And it?",
            answer="",
            retrieval_query="Which cow?",
            evidence=make_evidence(passages[1].id),
            verdicts=(judged,),
        ),
        make_turn(3, query="Which elk?", answerability="unanswerable", evidence=make_evidence(passages[1].id)),
        passages=passages,
        id=f"of {domain}",
    )


def measured(human: Path, *runs: Path, keep: str | None = None) -> dict[str, Any]:
    return measure_agreement(human, runs, BM25, human.parent / "cache", 3, 0, keep)


def recalls(result: dict[str, Any], name: str) -> dict[str, float]:
    found = {(system["form"], system[name]["R@5"]) for system in result["systems"]}
    assert len(found) == 4, "retrievers differ"
    return dict(found)


def test_each_form_is_searched_in_the_passages_of_its_domain(human: Path, tmp_path: Path) -> None:
    """Worked out by hand: only a rewrite names the second animal, and only the other domain has others of that name."""
    result = measured(human, run(tmp_path / "run", dialog("clapnq"), dialog("govt")))
    expected = {"last_turn": 0.5, "rewrite": 1.0, "user_turns": 0.5, "full": 0.5}
    assert recalls(result, "people") == expected
    assert recalls(result, "all") == expected
    over_all = result["agreement"]["all"][0]
    assert (over_all["conversations"], over_all["questions"], over_all["systems"]) == (2, 4, 8)
    assert over_all["agreement"]["R@5"]["tau"] == pytest.approx(1)
    assert result["agreement"]["all"][-1]["agreement"]["R@5"]["tau"] is None, "two retrievers with equal figures"
    assert [row["domain"] for row in result["agreement"]["all"]][:3] == ["all", "clapnq", "govt"]


def test_what_the_filter_removes_counts_only_before_it(human: Path, tmp_path: Path) -> None:
    result = measured(human, run(tmp_path / "run", dialog("govt", "incorrect")))
    assert recalls(result, "all")["last_turn"] == 0.5
    assert recalls(result, "kept")["last_turn"] == 1.0
    assert [result["agreement"][name][0]["questions"] for name in ("all", "kept")] == [2, 1]


def test_another_filter_than_the_run_s_own(human: Path, tmp_path: Path) -> None:
    made = run(tmp_path / "run", dialog("govt"))
    result = measured(human, made, keep="pairs and turn>1")
    assert [result["agreement"][name][0]["questions"] for name in ("all", "kept")] == [2, 1]
    with pytest.raises(ConfigError, match="--filter: lenght>1"):
        measured(human, made, keep="pairs and lenght>1")


def test_a_run_without_rewritten_questions_or_a_copy_of_a_run_is_refused(
    human: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_dialog(make_turn(1, query="Which fox?"), algorithm="single")
    for runs, reason in (([run(tmp_path / "a", made)], "no rewritten questions"), (["a", "b"], "given twice")):
        given = [str(run(tmp_path / str(name), made)) if isinstance(name, str) else str(name) for name in runs]
        monkeypatch.setattr(sys, "argv", ["rank_agreement", str(human), *given, "--retrievers", "bm25"])
        with pytest.raises(SystemExit, match="2"):
            main()
        assert reason in capsys.readouterr().err


def test_texts_that_were_ranked_are_not_ranked_again(human: Path, tmp_path: Path) -> None:
    first = measured(human, run(tmp_path / "one", dialog("govt")))
    kept = sorted((tmp_path / "cache").glob("rankings-*.json"))
    stamps = [path.stat().st_mtime_ns for path in kept]
    assert measured(human, tmp_path / "one") == first
    assert [path.stat().st_mtime_ns for path in kept] == stamps
    assert measured(human, tmp_path / "one", run(tmp_path / "two", dialog("clapnq"))) != first


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda folder: run(folder, dialog("govt"), query="last_turn"), "retriever.query=last_turn"),
        (lambda folder: run(folder, dialog("elsewhere")), "elsewhere-bat"),
        (lambda folder: folder, "config.yaml"),
    ],
)
def test_a_run_that_cannot_be_compared_is_one_line(
    human: Path,
    tmp_path: Path,
    made: Any,
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [str(human), str(made(tmp_path / "run")), "--cache", str(tmp_path / "cache")]
    monkeypatch.setattr(sys, "argv", ["rank_agreement", *arguments, "--output", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as caught:
        main()
    printed = capsys.readouterr().err.splitlines()
    assert caught.value.code == 2 and printed[-1].startswith("error: ") and named in printed[-1]


def test_the_command_writes_both_files(human: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [str(human), str(run(tmp_path / "run", dialog("govt"))), "--retrievers", "bm25", "--draws", "3"]
    arguments += ["--cache", str(tmp_path / "cache"), "--output", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["rank_agreement", *arguments])
    main()
    result = json.loads((tmp_path / "out" / "rank_agreement.json").read_text(encoding="utf-8"))
    assert len(result["systems"]) == 24
    lines = (tmp_path / "out" / "rank_agreement.md").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.startswith("| bm25")]) == 24


def of(*conversations: Sequence[Sequence[float]]) -> Sample:
    """Return a sample of conversations, each with its questions, each with the figures of the systems."""
    sums = np.array([np.sum(questions, axis=0) for questions in conversations])[:, :, None]
    return Sample(sums, np.array([len(questions) for questions in conversations]))


def test_conversations_are_drawn_whole() -> None:
    """Of two conversations, whose questions alternate, one has three and finds nothing; a fourth one isn't chosen."""
    questions = [Question(name, {}, frozenset(), True) for name in ("a", "b", "a", "a", "a")]
    figures = np.array([0.0, 1.0, 0.0, 0.0, 1.0])[:, None, None]
    found = sample(questions, figures, np.array([True, True, True, True, False]))
    assert found is not None
    drawn = resample({"x": found}, 200, np.random.default_rng(0))
    assert set(np.round(drawn["x"][:, 0, 0], 3)) == {0.0, 0.25, 1.0}


def test_people_are_split_by_conversations_into_as_many_questions_as_the_other_set_has() -> None:
    people = {"x": of(*([[float(number)]] * 2 for number in range(10)))}
    one, other = split_people(people, {"x": 5}, 50, np.random.default_rng(0))
    # Three conversations of two questions: together with the seven others all of them, none twice.
    assert 3 * one["x"] + 7 * other["x"] == pytest.approx(np.full((50, 1, 1), 45.0))
    assert len(set(one["x"][:, 0, 0])) > 5


def test_tau_of_equal_and_reversed_orders_is_one_and_minus_one() -> None:
    forms = {"a": np.array([0, 2]), "b": np.array([1, 3])}
    people = {"x": of(*[[[0.1, 0.2, 0.3, 0.4]]] * 4)}
    for figures, expected in (([0.0, 0.5, 0.6, 0.9], 1), ([4.0, 3.0, 2.0, 1.0], -1)):
        rows = compare(people, {"x": of(*[[figures]] * 3)}, forms, ["m"], 10, 0)
        assert [row["form"] for row in rows] == ["all", "all", "a", "b"]
        for row in rows:
            assert row["agreement"]["m"]["tau"] == pytest.approx(expected)
            assert row["agreement"]["m"]["interval"] == pytest.approx([expected, expected])
            assert row["agreement"]["m"]["people"]["tau"] == pytest.approx(1)


def test_more_questions_of_people_agree_better_with_the_others() -> None:
    """Ten systems, each a little better than the last, with chance figures of each conversation."""
    chance = np.random.default_rng(0)
    people = {"x": of(*([chance.normal(np.arange(10) / 4)] for _ in range(200)))}
    few, many = (row["agreement"]["m"] for row in compare_people(people, [4, 100], ["m"], 50, 0))
    assert few["tau"] + 0.2 < many["tau"] <= 1
    assert few["interval"][0] < few["tau"] < few["interval"][1]


def test_over_all_is_the_mean_of_the_domains() -> None:
    """In the large domain the second system leads, in the small one the first by far."""
    people = {"large": of(*[[[0.4, 0.5]] * 50] * 2), "small": of(*[[[0.9, 0.1]]] * 2)}
    rows = compare(people, people, {"a": np.array([0, 1])}, ["m"], 5, 0)
    assert [row["agreement"]["m"]["tau"] for row in rows] == pytest.approx([1, 1, 1, 1])
    swapped = {"large": people["small"], "small": people["large"]}
    rows = compare(people, swapped, {"a": np.array([0, 1])}, ["m"], 5, 0)
    assert [row["agreement"]["m"]["tau"] for row in rows] == pytest.approx([1, -1, -1, 1])


def test_people_s_questions_are_those_of_the_published_tasks(data: Path) -> None:
    domains = read_pools(data / "mtrag")[1]
    people = read_people(data / "mtrag", domains)
    for tasks in read_collections(data / "mtrag" / "retrieval_tasks"):
        ours = [[*sorted(q.relevant), q.texts["last_turn"].strip()] for q in people[tasks.name]]
        published = [[*sorted(graded), tasks.queries["lastturn"][query]] for query, graded in tasks.relevant.items()]
        assert sorted(ours) == sorted(published)
    assert sum(map(len, people.values())) == 589


def test_the_rankings_of_another_encoder_in_the_same_folder_are_not_used_again(
    tmp_path: Path, word_model: WordModel
) -> None:
    pool, encoder = tmp_path / "pool.jsonl", tmp_path / "encoder"
    write_json_lines(pool, *({"_id": name, "title": "", "text": f"Any {name} hides."} for name in ANIMALS))
    encoder.mkdir()
    for weights, searched in (("a", 1), ("a", 1), ("b", 2)):
        (encoder / "weights").write_text(weights)
        ranked = rank_texts("pool", pool, Variant("dense", (f"model={encoder}",)), ["Which owl?"], tmp_path)
        assert ranked["Which owl?"][0] == "owl"
        assert len(list(tmp_path.glob("rankings-*"))) == searched
