"""Sets of dialogs, wherever they are: a run folder, a file of dialogs, or what a data set's publisher gives out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from generator.common.console import note
from generator.common.limits import read_lines
from generator.config.settings import human_corpora, human_corpus
from generator.corpora.files import READ_ERRORS, File, opened, reason
from generator.corpora.human import DialogCorpus
from generator.corpora.mtrag.dialogs import responses
from generator.errors import YAML_SLIPS, ConfigError, CorpusError, RunError
from generator.schema import Dialog, SkippedRecord

M = TypeVar("M", bound=BaseModel)
Records = Iterator[Dialog | SkippedRecord]

_REPORTED = 10_000  # dialogs between two lines of progress
_FIRST = 10  # records that show whose a file is


class _Type(BaseModel):
    type: str
    target: float
    stage: str


class _Summary(BaseModel):  # of human dialogs nothing is planned
    human: int | None = None
    question_types: dict[str, _Type] = {}
    multi_turn_types: dict[str, _Type] = {}
    answerability: dict[str, _Type] = {}


class _Configuration(BaseModel):
    dialogs: int | None = None  # of `python -m judges` there is none


class DialogSet(NamedTuple):
    """Dialogs that belong together.

    Attributes:
        path: as it was given.
        records: reads them, as a stream in a stable order; every dialog has a turn. Raises CorpusError where they can't
            be read to their end.
        targets: of a run, by what is planned (`first`, `later`: question types; `multi_turn`, `answerability`) and
            name, the shares that were asked for; else empty.
        dialogs_wanted: likewise, how many dialogs; else None.
    """

    path: str
    records: Callable[[], Records]
    targets: dict[tuple[str, str], float]
    dialogs_wanted: int | None

    def dialogs(self, limit: int | None = None) -> Iterator[Dialog]:
        """Yield the dialogs, at most `limit`; report how many records can't be read.

        Raises:
            CorpusError: there are no dialogs.
        """
        count = skipped = 0
        first: SkippedRecord | None = None
        for record in self.records():
            if isinstance(record, SkippedRecord):
                first, skipped = first or record, skipped + 1
                continue
            yield record
            count += 1
            if count == limit:
                break
            if count % _REPORTED == 0:
                note(f"{self.path}: {count} dialogs")
        message = f"{self.path}: has no dialogs" + (": the run has accepted none" if self.dialogs_wanted else "")
        if first is not None:
            total = f"{skipped} of {count + skipped} records can't be read"
            message = f"{self.path}: {total}, the first: {first.where}: {first.reason}"
        if not count:
            raise CorpusError(message)
        if first is not None:
            note(message)


def dialog_set(path: str, corpus: str | None, changes: Sequence[str]) -> DialogSet:
    """The dialogs at `path`.

    Args:
        corpus: reads what is no run folder, a name in `conf/corpus/`; None: a file of dialogs, or whichever corpus can.
        changes: settings of that corpus, each a `setting=value`.

    Raises:
        ConfigError: there is no such corpus or setting.
        CorpusError, RunError: there is nothing that can be read.
    """
    place = Path(path)
    try:
        if not place.exists():
            raise CorpusError(f"{path}: doesn't exist (looked in {Path.cwd()}); give a run folder or dialogs")
        if not (place.is_dir() or place.is_file()):  # a pipe would be waited for
            raise CorpusError(f"{path}: is neither a file nor a folder; give a run folder or dialogs")
        is_run = place.is_dir() and (place / "dialogs.jsonl").exists()
        if not is_run and place.is_dir() and (place / "run.db").exists():
            raise RunError(f"{path}: the run has no dialogs.jsonl yet; the command that began it continues it")
        if place.is_file():
            with place.open("rb") as file:
                if not file.read(1):
                    raise CorpusError(f"{path}: is empty")
    except OSError as error:
        raise CorpusError(f"{path}: can't be read: {reason(error)}") from error
    if is_run:
        return _run(path, place)
    if corpus is not None:
        return DialogSet(path, human_corpus(corpus, path, changes).dialogs, {}, None)
    is_lines = place.name.lower().endswith((".jsonl", ".jsonl.gz"))
    if is_lines and _fit(lambda: _lines(place)):
        return DialogSet(path, lambda: _lines(place), {}, None)
    return DialogSet(path, _found(path).dialogs, {}, None)


def response_set(path: str) -> DialogSet | None:
    """What models answered to mtRAG's tasks, as a dialog each, if the file `path` holds such; see `responses`.

    Raises:
        CorpusError: there can be no such file.
    """
    place = Path(path)
    try:
        if not place.is_file():
            return None
    except OSError as error:  # a name too long
        raise CorpusError(f"{path}: can't be read: {reason(error)}") from error
    read = partial(responses, File(place.name, place), "mtrag")
    return DialogSet(path, read, {}, None) if _fit(read) else None


def _run(path: str, folder: Path) -> DialogSet:
    summary = _kept(folder / "summary.json", _Summary)
    configuration = _kept(folder / "config.yaml", _Configuration)
    targets: dict[tuple[str, str], float] = {}
    if summary:
        targets = {(share.stage, share.type): share.target for share in summary.question_types.values()}
        targets |= {("multi_turn", share.type): share.target for share in summary.multi_turn_types.values()}
        targets |= {("answerability", share.type): share.target for share in summary.answerability.values()}
    return DialogSet(
        path,
        lambda: _lines(folder / "dialogs.jsonl"),
        targets,
        configuration.dialogs if configuration and not (summary and summary.human is not None) else None,
    )


def _kept(file: Path, model: type[M]) -> M | None:
    try:
        return model.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError, *YAML_SLIPS) as error:
        note(f"{file}: can't be read ({type(error).__name__}), so its targets are left out")
        return None


def _lines(path: Path) -> Records:
    """The dialogs of a file as `dialogs.jsonl` is, plain or gzipped."""
    file, number = File(path.name, path), 0
    try:
        with opened(file) as stream:
            for number, line in enumerate(read_lines(stream), start=1):
                if line.strip():
                    yield _dialog(f"{file.where}:{number}", line)
    except READ_ERRORS as error:
        raise CorpusError(f"{file.where}: can't be read after line {number}: {reason(error)}") from error


def _dialog(where: str, line: bytes) -> Dialog | SkippedRecord:
    try:
        dialog = Dialog.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, problem["loc"]))
        return SkippedRecord(where=where, reason=f"{field}: {problem['msg']}" if field else problem["msg"])
    return dialog if dialog.turns else SkippedRecord(where=where, reason="turns: there are none")


def _found(path: str) -> DialogCorpus:
    """The corpus that can read the most of the first records at `path`."""
    fits: dict[str, float] = {}
    known = human_corpora()
    for name in known:
        try:
            fits[name] = _fit(human_corpus(name, path).dialogs)
        except ConfigError:  # one that can't be pointed at a path
            continue
    best = max(fits.values(), default=0.0)
    able = [name for name, fit in fits.items() if fit == best > 0]
    if not able:
        raise CorpusError(
            f"{path}: neither a run folder nor dialogs that can be read (as dialogs.jsonl, {', '.join(known)}); "
            "what one of these can't read in it, --corpus NAME tells"
        )
    if len(able) > 1:
        raise CorpusError(f"{path}: can be read as {' and as '.join(able)}; say which by --corpus NAME")
    return human_corpus(able[0], path)


def _fit(records: Callable[[], Records]) -> float:
    """The share of dialogs among the first records; what comes after is not looked at."""
    readable: list[bool] = []
    with suppress(CorpusError):  # it is raised again where the records are counted, if any of the first was a dialog
        readable.extend(isinstance(record, Dialog) for record in islice(records(), _FIRST))
    return sum(readable) / max(1, len(readable))
