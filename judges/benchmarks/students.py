"""Train and evaluate students on several sets, each step by its own command, and put their scores into one table."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from hydra import compose
from omegaconf import DictConfig

from generator.command import normalise, with_settings
from generator.common.atomic_files import make_folder, write_text
from generator.common.console import note
from generator.config.choices import COMPOSE_ERRORS, open_conf
from generator.config.job import RunFailed
from generator.config.messages import describe_hydra_error
from generator.errors import ConfigError, CorpusError
from generator.output.markdown import table
from generator.output.tables import ABSENT
from generator.sets import dialog_set
from generator.training.data import Finetuning, load_finetuning, read_pairs
from generator.training.draw import share
from judges.benchmarks.config import Evaluation, load_evaluation
from judges.benchmarks.human_dialogs import HumanDialogs, mean_of_questions, rated_by_metric
from judges.benchmarks.items import read_items
from judges.benchmarks.scores import Rated
from judges.benchmarks.settings import StudentsSettings

ZERO_SHOT = "zero_shot"
_LOAD: dict[str, Callable[[DictConfig], object]] = {
    "generator.finetune": load_finetuning,
    "judges.evaluate": load_evaluation,
}
INTERRUPTED = 130  # the exit code of a command that was interrupted, and has said so


class Step(NamedTuple):
    """A command of the experiment: its module, what it is always given, its settings, and the file it ends with."""

    module: str
    given: tuple[str, ...]
    settings: Mapping[str, Any]
    result: Path

    @property
    def arguments(self) -> list[str]:
        # Hydra reads JSON: strings, numbers, null and lists.
        settings = {name: json.dumps(value, default=str, ensure_ascii=False) for name, value in self.settings.items()}
        return [*self.given, *(f"{name}={value}" for name, value in settings.items())]


def plan_steps(settings: StudentsSettings) -> Iterator[tuple[str, list[Step]]]:
    """Yield each set with its steps, one student after the other; the last one of a student answers.

    Raises:
        ConfigError: there is no such set, or nothing that it learns from.
    """
    human, synthetic = list(settings.human), list(settings.synthetic)
    sets: dict[str, dict[str, Any]] = {
        ZERO_SHOT: {},
        "human": {"data": human},
        "synthetic": {"data": synthetic, "keep": None},
        "synthetic_filtered": {"data": synthetic},
        "human+synthetic": {"data": human + synthetic},
    }
    for name in settings.sets:
        if name not in sets:
            raise ConfigError(f"sets={name}: unknown set; choose from: {', '.join(sets)}")
        for source in ("human", "synthetic"):
            if source in name and not getattr(settings, source):
                raise ConfigError(
                    f"{source}: has no value, and the set {name} learns from it; give {source}=…, or leave {name} out "
                    "of sets"
                )
        steps = []
        for seed in settings.seeds if name != ZERO_SHOT else settings.seeds[:1]:
            folder = settings.run_dir / f"{name}-{seed}"
            model: dict[str, Any] = {}
            if name != ZERO_SHOT:
                trained = {"pairs": settings.pairs, "seed": seed, "merged": True, "run_dir": folder / "student"}
                result = folder / "student/result.json"
                steps.append(Step("generator.finetune", settings.finetune, sets[name] | trained, result))
                model = {"lm.model": folder / "student/model"}
            asked = {"input": settings.input, "run_dir": folder / "answers"}
            steps.append(Step("judges.evaluate", settings.evaluate, asked | model, folder / "answers/scores.json"))
        yield name, steps


def run_students(settings: StudentsSettings) -> None:
    """Take the steps that are left, and write and print the table after each set.

    Raises:
        ConfigError: a setting is wrong, also one of a step.
        CorpusError: dialogs to learn from, or to answer, can't be read, or a set has too few pairs.
        RunError: the folder can't be made.
        RunFailed: a step ended with an error.
    """
    rows: dict[str, dict[str, list[Rated]]] = {}
    plan = list(plan_steps(settings))
    data = dict.fromkeys(str(path) for _, steps in plan for step in steps for path in step.settings.get("data", ()))
    for path in data:
        next(dialog_set(path).dialogs(1))  # before hours of training for other sets
    check_questions(plan[-1][1][-1])
    for name, (first, *_) in plan:
        if name != ZERO_SHOT:
            check_training(name, first)
    make_folder(settings.run_dir)
    for name, steps in plan:
        trained = None
        for step in steps:
            if step.module == "judges.evaluate" and _is_older(step.result.parent / "config.yaml", trained):
                step = step._replace(settings={**step.settings, "fresh": True})
            take(step)
            trained = step.result
        if not rows:
            note_shared(step.result.parent, data)
        rows[name] = read_scores(step.result.parent for step in steps if step.module == "judges.evaluate")
        metrics = list(dict.fromkeys(metric for found in rows.values() for metric in found))
        header = ["training set", *metrics]
        cells = [[name, *(_cell(found.get(metric, [])) for metric in metrics)] for name, found in rows.items()]
        counts = {name: _count(found) for name, found in rows.items()}
        if any(scored < of for scored, of in counts.values()):
            header.append("answers with all scores")
            cells = [[*row, "{} of {}".format(*counts[row[0]])] for row in cells]
        text = table(header, cells)
        write_text(settings.run_dir / "table.md", text + "\n")
    print(text)
    print(f"folder: {settings.run_dir}", flush=True)


compare = with_settings(StudentsSettings)(run_students)


def load_step(step: Step) -> object:
    """Return the settings of a step as its command loads them.

    Raises:
        ConfigError: one of them is wrong.
    """
    name = step.module.rpartition(".")[2]
    command = import_module(step.module).COMMAND
    try:
        with open_conf():
            return _LOAD[step.module](compose(name, normalise(step.arguments, command)))
    except COMPOSE_ERRORS as error:
        raise ConfigError(f"{name}: {describe_hydra_error(error, name)}") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def check_training(name: str, step: Step) -> None:
    """Load the settings of a set's first student, and read the pairs that it can learn from.

    Pairs too long for the student aren't known here; `generator.finetune` counts them.

    Raises:
        ConfigError: a setting is wrong.
        CorpusError: the pairs can't be read, or are fewer than `pairs`.
    """
    settings = load_step(step)
    assert isinstance(settings, Finetuning)
    for number, (path, pairs) in enumerate(zip(settings.data, read_pairs(settings), strict=True)):
        wanted = share(settings.pairs or 0, number, len(settings.data))
        if len(pairs) < wanted:
            raise CorpusError(
                f"pairs={settings.pairs}: {path} has {len(pairs)} pairs for the set {name}, {wanted} are needed; lower "
                "pairs, or leave the set out of sets"
            )


def check_questions(step: Step) -> None:
    """Load the settings of an evaluation, and read its questions.

    Raises:
        ConfigError: one of them is wrong, or the scores of such an evaluation aren't those of a set.
        CorpusError: the questions can't be read.
    """
    settings = load_step(step)
    assert isinstance(settings, Evaluation) and settings.input
    if not isinstance(settings.benchmark, HumanDialogs):
        raise ConfigError(
            f"evaluate: benchmark={settings.benchmark.name}: a model rates its answers; choose human dialogs, such as "
            "benchmark=quac"
        )
    if len(settings.contexts) > 1:
        raise ConfigError("evaluate: context=both: a row has one score; set context=golden or context=own")
    read_items(settings.benchmark, settings.input)


def take(step: Step) -> None:
    """Run a step to its end; a finished one says so itself, and is not run again.

    Raises:
        RunFailed: it ended with an error, which it has printed.
        KeyboardInterrupt: it was interrupted, and has ended.
    """
    note(f"{step.result.parent}: python -m {step.module}")
    process = subprocess.Popen([sys.executable, "-m", step.module, *step.arguments], stdout=subprocess.DEVNULL)

    def end(*_: object) -> None:  # SIGTERM comes to this process alone, Ctrl-C to both
        process.terminate()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        said = process.wait() == INTERRUPTED  # it writes what is finished, and says so, unless it was at its end
        raise KeyboardInterrupt(*["reported"] * said) from None
    finally:
        process.kill()  # at a second Ctrl-C
        signal.signal(signal.SIGTERM, before)
    if code:
        fix = "fix what is wrong, or set another run_dir" if code == 2 else "the same command continues"
        note(f"{step.result.parent}: ended with exit code {code}; {fix}")
        raise RunFailed(code)


def note_shared(answers: Path, data: Iterable[str]) -> None:
    """Report how many documents of the test set, which was answered, are among those that students learn from."""
    tested = _list_documents(str(answers))
    for path in data:
        if shared := len(tested & _list_documents(path)):
            note(f"warning: {path} has {shared} of the {len(tested)} documents of input, so its students know them")


def _list_documents(path: str) -> set[tuple[str, str]]:
    return {(dialog.corpus, name) for dialog in dialog_set(path).dialogs() for name in dialog.document_ids}


def _is_older(answers: Path, student: Path | None) -> bool:
    """Return True if answers were begun before their student was trained: they are another one's."""
    return student is not None and answers.exists() and answers.stat().st_mtime < student.stat().st_mtime


def read_scores(folders: Iterable[Path]) -> dict[str, list[Rated]]:
    """Return the scores of all students of a set by metric; `item` is the dialog, whoever answered it."""
    found: dict[str, list[Rated]] = {}
    for folder in folders:
        for dialog in dialog_set(str(folder)).dialogs():
            for rated in rated_by_metric(dialog):
                found.setdefault(rated.task, []).append(rated)
    return found


def _count(found: Mapping[str, list[Rated]]) -> tuple[int, int]:
    """Return how many answers have a score by each metric, and of how many: some may not have come."""
    answers = list(zip(*found.values(), strict=True))
    return sum(all(one.score is not None for one in by_metric) for by_metric in answers), len(answers)


def _cell(rated: list[Rated]) -> str:
    score = mean_of_questions(rated, seed=0)
    if score.score is None:
        return ABSENT
    return f"{score.score:.3f}" + ("" if score.low is None else f" ({score.low:.3f} to {score.high:.3f})")
