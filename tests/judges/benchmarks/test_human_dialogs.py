"""`python -m judges.evaluate` on human dialogs: what a model is shown, and how its answers are scored."""

import json
import re
from pathlib import Path

import pytest

from generator.config.parts import build_choice
from generator.errors import ConfigError, CorpusError, Rejected
from generator.schema import Dialog, Verdict
from judges.__main__ import COMMAND as JUDGE
from judges.benchmarks.human_dialogs import mean_of_questions
from judges.benchmarks.scores import Rated
from judges.evaluate import COMMAND as EVALUATE
from judges.metrics import words
from tests.corpora.test_orquac import BIRTH, question
from tests.judges.benchmarks.evaluating import PAIRS, PASSAGE, Answering
from tests.support import openai_server as fake
from tests.support.openai_server import Body, OpenAIServer
from tests.support.records import load_dialogs, make_dialog, make_turn, write_dialogs
from tests.support.runs import command


@pytest.fixture
def site(tmp_path: Path) -> Answering:
    return Answering(tmp_path)


def chat(body: Body) -> list[str]:
    return [message["content"] for message in body["messages"]]


def test_a_model_answers_after_peoples_answers_and_is_compared_with_them(
    site: Answering, openai_server: OpenAIServer
) -> None:
    answers = {1: PAIRS[0][1], 3: "Nine.", 5: "No idea."}
    openai_server.responder = lambda body: answers[len(chat(body))]
    assert site.run(openai_server).code == 0
    shown = sorted(map(chat, openai_server.bodies), key=len)
    assert shown[2][1:] == [PAIRS[0][1], PAIRS[1][0], PAIRS[1][1], PAIRS[2][0]]
    assert PASSAGE.text in shown[0][0]
    scores = site.scores()["models"][openai_server.model]["golden"]
    assert scores["token_f1"]["score"] == pytest.approx(1 / 3, abs=0.05)
    assert set(scores) == {"token_f1", "rouge_l", "token_recall"}
    assert site.run(openai_server).code == 0 and len(openai_server.bodies) == 3


def test_a_metric_that_cannot_be_loaded_can_be_left_out(site: Answering, openai_server: OpenAIServer) -> None:
    asked = [each for each in site.arguments(openai_server) if "bert_recall" not in each]
    done = command(*asked, "benchmark.metrics.bert_recall.encoder=some/encoder", program=EVALUATE)
    assert done.code == 2 and not openai_server.bodies
    assert done.error.endswith("benchmark.metrics.bert_recall=null")


def test_a_refusal_is_right_or_wrong_in_whatever_words(site: Answering, openai_server: OpenAIServer) -> None:
    dialog = Dialog.model_validate_json(site.input.read_text(encoding="utf-8"))
    references = [("I don't know.", ()), ("I don't know.", ("Nine.",)), ("It was long unknown.", ())]
    turns = [
        turn.model_copy(update={"answer": answer, "other_answers": others})
        for turn, (answer, others) in zip(dialog.turns, references, strict=True)
    ]
    write_dialogs(site.input, dialog.model_copy(update={"turns": tuple(turns)}))
    for number, (said, scored) in enumerate(
        [
            ("unknown", [1, 1, 0]),
            ("The passages don't hold the answer.", [1, 1, 0]),  # as they are told to say
            ("I don't know when. Nine.", [1, 1, 0]),  # with the nearest that is known
            ("Nine, I don't.", [0, 1 / 2, 0]),
            ("Nine. I don't know when. Nine more.", [0, 1 / 4, 0]),
            ("It was long unknown.", [1, 1, 1]),  # as a person says it
        ]
    ):
        openai_server.responder = lambda body, said=said: said
        assert site.run(openai_server, f"run_dir={site.run_dir}{number}").code == 0
        file = site.run_dir.with_name(f"{site.run_dir.name}{number}") / "dialogs.jsonl"
        written = Dialog.model_validate_json(file.read_text(encoding="utf-8"))
        assert [turn.answer for turn in written.turns] == [said] * 3
        assert [turn.verdicts[0].score for turn in written.turns] == pytest.approx(scored, abs=0.01)


def test_a_refusal_is_known_in_the_language_of_the_dialogs(site: Answering, openai_server: OpenAIServer) -> None:
    dialog = Dialog.model_validate_json(site.input.read_text(encoding="utf-8"))
    german = [
        ("Wie hoch ist der Turm in unserem Park?", "Der Turm ist mit der Spitze vierzig Meter hoch."),
        ("Und wer hat ihn damals gebaut?", "I don't know."),  # the publisher's mark, as the corpus reads it
        ("Seit wann steht das Tor daneben?", "I don't know."),
    ]
    turns = [
        turn.model_copy(update={"query": query, "answer": answer, "evidence": ()})
        for turn, (query, answer) in zip(dialog.turns, german, strict=True)
    ]
    write_dialogs(site.input, dialog.model_copy(update={"turns": tuple(turns), "passages": ()}))
    said = {1: "Das weiß ich leider nicht.", 3: "Das weiß ich leider nicht.", 5: "I don't know."}
    openai_server.responder = lambda body: said[len(chat(body))]
    assert site.run(openai_server).code == 0
    written = Dialog.model_validate_json((site.run_dir / "dialogs.jsonl").read_text(encoding="utf-8"))
    assert [turn.verdicts[0].score for turn in written.turns] == [0, 1, 1]


def test_with_its_own_history_a_model_answers_what_comes_before_a_drawn_question(
    site: Answering, openai_server: OpenAIServer
) -> None:
    def read(folder: Path) -> list[Dialog]:
        return load_dialogs(folder / "dialogs.jsonl")

    openai_server.responder = lambda body: f"Answer {len(chat(body)) // 2 + 1}."
    dialog = Dialog.model_validate_json(site.input.read_text(encoding="utf-8"))
    write_dialogs(site.input, *(dialog.model_copy(update={"id": name}) for name in "abcdefgh"))
    assert site.run(openai_server, "benchmark.questions=1", "context=own").code == 0
    shown = {text for body in openai_server.bodies for text in chat(body)[1::2]}
    assert shown == {"Answer 1.", "Answer 2."}
    drawn = [max(turn.turn for turn in dialog.turns if turn.verdicts) for dialog in read(site.run_dir)]
    assert len(openai_server.bodies) == sum(drawn) and len(set(drawn)) > 1
    again = site.run_dir.with_name("again")
    assert site.run(openai_server, f"input={site.run_dir}", f"run_dir={again}").code == 0
    first, second = (json.loads((f / "scores.json").read_text(encoding="utf-8")) for f in (site.run_dir, again))
    assert first["answers"] == second["answers"] == 8 and first["models"] == second["models"]
    one, two = ([[turn.answer for turn in d.turns] for d in read(folder)] for folder in (site.run_dir, again))
    assert one == two


def test_a_remark_is_answered_in_a_history_of_its_own_and_not_scored(
    site: Answering, openai_server: OpenAIServer
) -> None:
    first, remark, last = Dialog.model_validate_json(site.input.read_text(encoding="utf-8")).turns
    thanks = remark.model_copy(update={"query": "Thanks!", "answerability": "conversational"})
    write_dialogs(site.input, make_dialog(first, thanks, last, passages=[PASSAGE]))
    assert site.run(openai_server, "context=own").code == 0
    assert (len(openai_server.bodies), site.scores()["answers"]) == (3, 2)


def test_a_benchmark_without_splits_takes_none(site: Answering, openai_server: OpenAIServer) -> None:
    assert "benchmark.split=train: " in site.run(openai_server, "benchmark.split=train").refused


def test_students_in_folders_of_their_own_have_run_folders_of_their_own(
    site: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.folder)
    for student in ("human-0", "synthetic-0"):
        with OpenAIServer(model=f"outputs/students/{student}/model") as server:
            assert site.run(server, "run_dir=null").code == 0
        assert (site.folder / f"outputs/quac-items-{student}/scores.json").exists()


def test_an_empty_answer_is_wrong_and_a_missing_one_has_no_score(site: Answering, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: "" if len(chat(body)) == 3 else PAIRS[len(chat(body)) // 2][1]
    done = site.run(openai_server, "context=own")
    assert done.code == 0 and "1 of 3 answers are empty, and count as 0" in done.err
    file = json.loads((site.run_dir / "scores.json").read_text(encoding="utf-8"))
    assert (file["answers"], file["empty"], file["without_answer"]) == (3, 1, 0)
    assert file["models"][openai_server.model]["own"]["token_f1"]["score"] == pytest.approx(2 / 3)


def test_why_an_answer_is_missing_is_kept_and_said(site: Answering, openai_server: OpenAIServer) -> None:
    why = "This model's maximum context length is 700 tokens."
    openai_server.faults = lambda number, body: fake.status(400, why) if len(chat(body)) == 3 else None
    done = site.run(openai_server, "context=own")
    assert done.code == 0, done.err
    told = re.findall("1 of 3 answers lack a score: (no answer: .+)", done.err)
    assert len(told) == 2 and "700" not in told[0]
    written = Dialog.model_validate_json((site.run_dir / "dialogs.jsonl").read_text(encoding="utf-8"))
    kept = [turn.verdicts[0].explanation for turn in written.turns]
    assert not any(verdict.decides for turn in written.turns for verdict in turn.verdicts)
    assert why in kept[1] and [text.partition("\n")[0] for text in kept[1:]] == told
    again = site.run_dir.with_name("again")
    assert site.run(openai_server, f"input={site.run_dir}", f"run_dir={again}").code == 0
    for folder in (site.run_dir, again):
        file = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        assert (file["answers"], file["empty"], file["without_answer"]) == (3, 0, 2)
    judged = Dialog.model_validate_json((again / "dialogs.jsonl").read_text(encoding="utf-8"))
    assert [turn.verdicts for turn in judged.turns] == [turn.verdicts for turn in written.turns]


def test_a_metric_that_fails_beside_others_is_said(
    site: Answering, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(response: str, reference: str) -> float:
        raise Rejected("judge", "too long")

    monkeypatch.setitem(words._AGAINST_REFERENCES, "token_f1", fail)
    done = site.run(openai_server)
    assert done.code == 0 and "3 of 3 answers lack a score: too long\n" in done.err
    monkeypatch.setitem(words._AGAINST_REFERENCES, "token_f1", words.rouge_l)
    monkeypatch.setitem(words._AGAINST_REFERENCES, "token_recall", fail)
    assert site.run(openai_server, "fresh=true").code == 0, "the last metric alone says not whether any has scores"


def test_answers_that_are_judged_again_have_the_same_scores(site: Answering, openai_server: OpenAIServer) -> None:
    answers = {1: "", 3: "Wrong stuff."}
    openai_server.responder = lambda body: answers.get(len(chat(body)), "Both")
    assert site.run(openai_server).code == 0
    again = site.run_dir.with_name("again")
    assert site.run(openai_server, f"input={site.run_dir}", f"run_dir={again}").code == 0
    assert len(openai_server.bodies) == 3
    first, second = (json.loads((f / "scores.json").read_text(encoding="utf-8")) for f in (site.run_dir, again))
    assert (first["models"], first["empty"]) == (second["models"], second["empty"])


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("<think>Nine?</think> Both", "Both"), ("So, nine.\n</think>\n\nBoth", "Both"), ("<think>Both is probably", "")],
)
def test_thoughts_are_no_answer(site: Answering, openai_server: OpenAIServer, reply: str, answer: str) -> None:
    openai_server.responder = lambda body: reply
    assert site.run(openai_server).code == 0
    written = Dialog.model_validate_json((site.run_dir / "dialogs.jsonl").read_text(encoding="utf-8"))
    assert [turn.answer for turn in written.turns] == [answer] * 3


def test_the_benchmarks_own_prefix_reads_the_split_that_is_asked_for(tmp_path: Path) -> None:
    benchmark = build_choice("benchmark", "orquac")
    for name in ("train", "test"):
        line = question(0, "Where was he born?", "Mell", 17, BIRTH, f"C_{name}_0")
        (tmp_path / f"{name}.txt").write_text(json.dumps(line) + "\n", encoding="utf-8")
    for path in (tmp_path, Path(f"orquac:{tmp_path}")):
        assert [item.id for item in benchmark.items(path)] == ["C_test_0"]
    with pytest.raises(ConfigError, match="benchmark=orquac has no dialogs of quac"):
        benchmark.items(Path(f"quac:{tmp_path}"))
    (tmp_path / "test.txt").rename(tmp_path / "other.txt")
    (tmp_path / "train.txt").unlink()
    with pytest.raises(CorpusError, match=f"^{tmp_path}: has no file of the split test or validation or train"):
        benchmark.items(tmp_path)


def test_dialogs_of_another_published_corpus_have_a_benchmark_of_their_own(
    site: Answering, openai_server: OpenAIServer
) -> None:
    write_dialogs(site.input, make_dialog(make_turn(1), id="d", corpus="coqa"))
    assert "dialog d: is of coqa" in site.run(openai_server).refused
    assert not openai_server.bodies


def test_a_small_model_is_shown_what_is_around_the_evidence(site: Answering, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "benchmark.passage_tokens=8", "benchmark.questions=1").code == 0
    (body,) = openai_server.bodies
    first = chat(body)[0]
    assert PASSAGE.text not in first and any(found in first for found in ("40 m tall", "The gate is 9 m", "Both"))


@pytest.mark.parametrize("setting", ["judge.lm=openai", "answers=a.jsonl"])
def test_what_only_rated_benchmarks_have_is_refused(site: Answering, openai_server: OpenAIServer, setting: str) -> None:
    ended = site.run(openai_server, setting)
    assert ended.code == 2 and setting.partition("=")[0] in ended.error


def test_an_answer_program_is_refused_with_the_command_that_tries_one(
    site: Answering, openai_server: OpenAIServer
) -> None:
    assert "generator.optimize target=answer" in site.run(openai_server, "dspy_program=program.json").refused


def test_the_mean_is_over_questions_and_its_interval_over_dialogs() -> None:
    rated = [Rated(task="m", item=d, turn=n, score=s) for d, n, s in (("a", 1, 1.0), ("a", 2, 1.0), ("b", 1, 0.0))]
    score = mean_of_questions([*rated, Rated(task="m", item="b", turn=2, score=None, reason="no answer")], 0)
    assert score.score == pytest.approx(2 / 3, abs=1e-5) and (score.low, score.high) == (0.0, 1.0)
    assert json.loads(mean_of_questions([], 0).model_dump_json()) == {"score": None, "low": None, "high": None}


def test_verdicts_that_the_input_has_are_no_scores(site: Answering, openai_server: OpenAIServer) -> None:
    dialog = Dialog.model_validate_json(site.input.read_text(encoding="utf-8"))
    given = (Verdict(judge="token_f1", label="scored", explanation="", model="", score=1.0, decides=False),)
    turns = tuple(turn.model_copy(update={"verdicts": given}) for turn in dialog.turns)
    write_dialogs(site.input, dialog.model_copy(update={"turns": turns}))
    assert site.run(openai_server, "benchmark.questions=1").code == 0
    written = Dialog.model_validate_json((site.run_dir / "dialogs.jsonl").read_text(encoding="utf-8"))
    assert sum(bool(turn.verdicts) for turn in written.turns) == 1


def test_turns_that_the_model_did_not_answer_stay_peoples(site: Answering, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: "Wrong stuff."
    assert site.run(openai_server, "benchmark.questions=1").code == 0
    judged, again = site.run_dir.with_name("judged"), site.run_dir.with_name("again")
    assert command("judge=k_precision", f"input={site.run_dir}", f"run_dir={judged}", program=JUDGE).code == 0
    figures = json.loads((judged / "summary.json").read_text(encoding="utf-8"))["judges"][0]["all"]
    assert (figures["turns"], figures["mean"]) == (1, 0)
    written = Dialog.model_validate_json((judged / "dialogs.jsonl").read_text(encoding="utf-8"))
    assert [turn.turn for turn in written.turns] == [1, 2, 3]
    assert [turn.answer for turn in written.turns if turn.verdicts] == ["Wrong stuff."]
    assert site.run(openai_server, f"input={judged}", f"run_dir={again}").code == 0
    first, second = (json.loads((f / "scores.json").read_text(encoding="utf-8")) for f in (site.run_dir, again))
    assert (second["answers"], second["models"]) == (1, first["models"])
