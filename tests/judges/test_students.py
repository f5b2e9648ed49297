"""`python -m judges.students`: which students it trains, and what stands in its table."""

import os
import signal
from pathlib import Path
from threading import Thread
from time import sleep, time
from typing import Any

import pytest

from generator.errors import ConfigError, CorpusError, RunError
from generator.schema import Verdict
from judges.benchmarks import students
from judges.benchmarks.settings import StudentsSettings
from judges.benchmarks.students import Step, plan_steps
from judges.students import COMMAND
from tests.judges.benchmarks.evaluating import Answering
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_dialog, make_turn, write_dialogs
from tests.support.runs import command

LM = ("lm=openai", "lm.model=m")


def settings(folder: Path, *sets: str) -> StudentsSettings:
    """Return the settings of an experiment, whose questions are in `test.jsonl` of its folder."""
    questions = write_dialogs(folder / "test.jsonl", make_dialog(make_turn(1)))
    fields: dict[str, Any] = {"human": "quac:h", "synthetic": ["run"], "input": str(questions), "pairs": 10}
    steps = {"finetune": ("student=smollm2",), "evaluate": ("benchmark=quac", *LM)}
    return StudentsSettings(**fields, sets=sets, seeds=(1, 2), **steps, run_dir=folder)


def test_each_set_has_a_student_for_each_seed_at_equal_numbers_of_pairs(tmp_path: Path) -> None:
    planned = dict(plan_steps(settings(tmp_path, "zero_shot", "synthetic", "synthetic_filtered", "human+synthetic")))
    assert [len(steps) for steps in planned.values()] == [1, 4, 4, 4]
    train, answer = planned["synthetic"][2:]
    assert (train.settings["seed"], train.settings["pairs"], train.settings["keep"]) == (2, 10, None)
    assert answer.settings["lm.model"] == train.result.with_name("model")
    assert "keep" not in planned["synthetic_filtered"][0].settings
    assert planned["human+synthetic"][0].settings["data"] == ["quac:h", "run"]
    with pytest.raises(ConfigError, match="sets=more"):
        list(plan_steps(settings(tmp_path, "more")))


def test_what_no_set_learns_from_need_not_be_given(tmp_path: Path) -> None:
    of = settings(tmp_path, "zero_shot", "synthetic").model_copy(update={"human": ()})
    assert [name for name, _ in plan_steps(of)] == ["zero_shot", "synthetic"]
    with pytest.raises(ConfigError, match=r"human: has no value, and the set human\+synthetic"):
        list(plan_steps(of.model_copy(update={"sets": ("human+synthetic",)})))


def test_a_new_student_answers_again_and_the_table_has_its_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = list[tuple[str, object]]()

    def take(step: Step) -> None:
        taken.append((step.module, step.settings.get("fresh")))
        folder = step.result.parent
        if step.result.exists() and not step.settings.get("fresh"):
            return
        folder.mkdir(parents=True, exist_ok=True)
        if step.module == "judges.evaluate":
            verdict = Verdict(
                judge="token_f1", label="scored", explanation="", model="", score=len(taken) / 8, decides=False
            )
            dialog = make_dialog(make_turn(1, verdicts=(verdict,)), context="golden")
            write_dialogs(folder / "dialogs.jsonl", dialog)
            (folder / "config.yaml").touch()
        step.result.touch()

    monkeypatch.setattr(students, "take", take)
    write_dialogs(tmp_path / "people.jsonl", make_dialog(make_turn(1), make_turn(2)))
    people = {"human": (str(tmp_path / "people.jsonl"),), "pairs": 2}
    of = settings(tmp_path, "human").model_copy(update={"seeds": (1,)} | people)
    for _ in range(2):
        students.run_students(of)
        assert "| human | 0.250 |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert [fresh for _, fresh in taken] == [None] * 4
    assert f"{tmp_path / 'people.jsonl'} has 1 of the 1 documents of input" in capsys.readouterr().err
    with pytest.raises(CorpusError, match="nowhere"):
        students.run_students(of.model_copy(update={"human": ("nowhere",)}))
    with pytest.raises(CorpusError, match=r"missing\.jsonl"):
        students.run_students(of.model_copy(update={"input": "missing.jsonl"}))
    assert len(taken) == 4, "what is wrong is said before anything is trained"
    trained = tmp_path / "human-1/student/result.json"
    with pytest.raises(RunError, match="run_dir=/dev/null/x: can't be made"):
        students.run_students(of.model_copy(update={"run_dir": Path("/dev/null/x")}))
    assert len(taken) == 4
    os.utime(trained, (time() + 9, time() + 9))
    students.run_students(of)
    assert taken[-1] == ("judges.evaluate", True)
    assert "| human | 0.750 |" in (tmp_path / "table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"evaluate": ("benchmark=quac", *LM, "item=3")}, "evaluate: item: unknown setting; did you mean items"),
        ({"evaluate": ("benchmark=quac", "lm=opnai")}, "evaluate: .*openai"),
        ({"evaluate": ("benchmark=quac",)}, "evaluate: lm: model=.* choose where it runs"),
        ({"evaluate": ("benchmark=quac", *LM, "items=0")}, "evaluate: items=0: must be 1 or more"),
        ({"evaluate": LM}, "evaluate: benchmark: is missing"),
        ({"evaluate": ("benchmark=quac", *LM, "context=both")}, "evaluate: context=both: "),
        ({"evaluate": ("benchmark=mt_bench_101", *LM)}, "evaluate: benchmark=mt_bench_101: "),
        ({"finetune": ("student=smolm2",)}, "finetune: student=smolm2: unknown student"),
        ({"finetune": ("student=own",)}, r"finetune: student\.model: has no value"),
        ({"finetune": ("student=smollm2", 'keep="nothing>1"')}, "keep: nothing>1: nothing is none of"),
        ({"human": ()}, "human: has no value, and the set human"),
        ({"finetune": ("student=smollm2", "student.epochs=0")}, "finetune: student.epochs=0: must be more than 0"),
    ],
)
def test_a_setting_that_a_step_refuses_is_said_before_anything_is_trained(
    changes: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(students, "take", lambda step: pytest.fail(f"{step.module} was begun"))
    people = write_dialogs(tmp_path / "people.jsonl", *(make_dialog(make_turn(1), id=f"{n}") for n in range(10)))
    of = settings(tmp_path, "zero_shot", "human").model_copy(update={"human": (str(people),), **changes})
    with pytest.raises(ConfigError, match=said):
        students.run_students(of)


def test_too_few_pairs_are_said_before_anything_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = list[Step]()
    monkeypatch.setattr(students, "take", taken.append)
    wrong = Verdict(judge="j", label="incorrect", explanation="", model="m", decides=True)
    people = write_dialogs(tmp_path / "people.jsonl", *(make_dialog(make_turn(1), id=f"{n}") for n in range(4)))
    run = write_dialogs(
        tmp_path / "run.jsonl",
        *(make_dialog(make_turn(1, verdicts=(wrong,) * (n > 1)), id=f"{n}") for n in range(4)),
    )
    of = settings(tmp_path, "zero_shot", "human", "synthetic", "human+synthetic", "synthetic_filtered")
    of = of.model_copy(update={"human": (str(people),), "synthetic": (str(run),), "pairs": 4})
    for keep in ((), ("keep=pairs",)):
        with pytest.raises(
            CorpusError, match=r"pairs=4: .*run\.jsonl has 2 pairs .*synthetic_filtered.*, 4 are needed"
        ):
            students.run_students(of.model_copy(update={"finetune": (*of.finetune, *keep)}))
    assert not taken


@pytest.mark.parametrize("code", [130, 0], ids=["interrupted", "finished"])
def test_a_step_that_is_interrupted_ends_by_itself_and_what_it_did_not_report_is_reported(
    code: int, here: Path
) -> None:
    (here / "slow_step.py").write_text(
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(0.5)\n"
        "    pathlib.Path('written').touch()\n"
        f"    sys.exit({code})\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "pathlib.Path('started').touch()\n"
        "time.sleep(300)\n",
        encoding="utf-8",
    )

    def interrupt() -> None:
        while not Path("started").exists():
            sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt, match="reported" if code == 130 else "^$"):
        students.take(Step("slow_step", (), {}, here / "x"))
    assert Path("written").exists()


def test_an_answer_that_one_metric_did_not_score_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(step: Step) -> None:
        made = {"label": "scored", "explanation": "", "model": "", "decides": False}
        verdicts = (Verdict(judge="token_f1", score=0.5, **made), Verdict(judge="bert_recall", score=None, **made))
        write_dialogs(step.result.parent / "dialogs.jsonl", make_dialog(make_turn(1, verdicts=verdicts)))

    monkeypatch.setattr(students, "take", take)
    of = settings(tmp_path, "zero_shot").model_copy(update={"human": (), "synthetic": ()})
    (tmp_path / "zero_shot-1/answers").mkdir(parents=True)
    students.run_students(of)
    assert "| 0 of 1 |" in (tmp_path / "table.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_untrained_model_answers_and_the_table_is_written(openai_server: OpenAIServer, tmp_path: Path) -> None:
    site = Answering(tmp_path)
    asked = ["benchmark=quac", "benchmark.metrics.bert_recall=null", *openai_server.settings()]
    evaluate = ",".join(f"'{each}'" for each in asked)
    arguments = [f"input={site.input}", "sets=[zero_shot]", f"run_dir={tmp_path / 'out'}"]
    ended = command(*arguments, f"evaluate=[{evaluate}]", program=COMMAND)
    assert ended.code == 0 and "token_f1" in ended.out and (tmp_path / "out/table.md").exists()
