"""Read sets of dialogs: a run folder, a file of dialogs or of answered tasks, or a published data set of dialogs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from generator.common.console import note
from generator.common.detection import SAMPLE, detect_language
from generator.common.language import Languages, load_language
from generator.config.conf_files import choices
from generator.config.run_settings import scaled
from generator.config.settings import human_corpora, human_corpus
from generator.corpora.files import File, is_url, list_files, local_file
from generator.corpora.human import DialogCorpus
from generator.corpora.json_records import read_numbered_lines, skipped
from generator.corpora.mtrag.dialogs import read_responses
from generator.errors import YAML_SLIPS, ConfigError, CorpusError, RunError
from generator.schema import Dialog, Drop, SkippedRecord

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", Dialog, Drop)
Records = Iterator[Dialog | SkippedRecord]

NO_DIALOGS = "has no dialogs"
_FIRST = 10  # records by which a file of dialogs is recognised


class _Type(BaseModel):
    type: str
    target: float
    stage: str


class _Summary(BaseModel):  # human dialogs have no targets
    human: int | None = None
    tasks: dict[str, _Type] = {}
    question_types: dict[str, _Type] = {}
    multi_turn_types: dict[str, _Type] = {}
    standalone: dict[str, _Type] = {}
    answerability: dict[str, _Type] = {}


class _Configuration(BaseModel):
    dialogs: int | None = None  # `python -m judges` has none
    scale: float = 1

    @property
    def wanted(self) -> int | None:
        return scaled(self.dialogs, self.scale) if self.dialogs else None


class DialogSet(NamedTuple):
    """Dialogs that belong together.

    Attributes:
        path: as it was given.
        records: reads them, as a stream in a stable order; every dialog has a turn. Raises CorpusError if they can't
            be read to their end.
        targets: the planned shares of a run by stage (`first`, `later`: question types, or tasks; `multi_turn`,
            `standalone`, `answerability`) and name; else empty.
        dialogs_wanted: the number of dialogs that a run was to make; else None.
    """

    path: str
    records: Callable[[], Records]
    targets: Mapping[tuple[str, str], float] = {}
    dialogs_wanted: int | None = None

    def dialogs(self, limit: int | None = None) -> Iterator[Dialog]:
        """Yield the dialogs, at most `limit`; report how many records can't be read.

        Raises:
            CorpusError: there are no dialogs.
        """
        none = f"{NO_DIALOGS}: the run has accepted none" if self.dialogs_wanted else NO_DIALOGS
        return readable(self.path, self.records(), none, limit)

    def languages(self, code: str | None = None, setting: str = "") -> Languages:
        """Return the languages of passages and dialogs, as a sample shows them; `code` names that of the dialogs.

        Report dialogs of several languages that are taken for English, since no half of them is in one.

        Args:
            setting: the one that `code` comes from, for that report; empty if there is none.
        """
        sample = list(islice((record for record in self.records() if isinstance(record, Dialog)), SAMPLE))
        told = [" ".join(text for turn in dialog.turns for text in (turn.query, turn.answer)) for dialog in sample]
        passages = ["\n".join(p.text for p in dialog.passages) for dialog in sample if dialog.passages]
        found = detect_language(passages)[0] if passages else None
        most, count = detect_language(told)
        spoken = code or most or found
        if not spoken and count:
            remedy = f"; set {setting} if not" if setting else ""
            note(f"{self.path}: no half of the dialogs is in one language, so English is assumed{remedy}")
        dialog = load_language(spoken or "en")
        return Languages(load_language(found) if found else dialog, dialog)


def dialog_set(path: str, corpus: str | Mapping[str, Any] | None = None, responses: bool | None = None) -> DialogSet:
    """Return the dialogs at `path`: a run folder, a file as `dialogs.jsonl` is, mtRAG's predictions or evaluations, or
    the files of `corpus`.

    Args:
        path: of them; after a corpus's name and a colon, as in `quac:FOLDER`, that corpus reads it.
        corpus: name in `conf/corpus/`, or the settings of one, for what is none of the others.
        responses: of tasks with predictions or evaluations read these (see `read_responses`); None: without a corpus.

    Raises:
        ConfigError: there is no such corpus or setting, or `corpus` is needed.
        CorpusError, RunError: the dialogs can't be read.
    """
    name, _, rest = path.partition(":")
    if rest and name in choices("corpus"):
        return dialog_set(rest, name)
    check_name(path, choices("corpus"))
    folder = path.endswith("/") if is_url(path) else _exists(path) and Path(path).is_dir()
    if folder and (Path(path) / "dialogs.jsonl").exists():
        return _run(path, Path(path))
    if folder and (Path(path) / "run.db").exists():
        raise RunError(f"{path}: the run has no dialogs.jsonl yet; the command that started it continues it")
    if folder and corpus is None and (Path(path).parent / "dialogs.jsonl").exists():  # RUN/dataset
        raise ConfigError(f"{path}: belongs to a run; give the run folder, {Path(path).parent}")
    published = None if corpus is None else human_corpus(corpus, path)
    fault = ""
    files = [] if folder else list_files(path, ("",), archives=False, setting="")
    if len(files) == 1:  # else a folder at an address
        (file,) = files
        is_lines = file.name.lower().endswith((".jsonl", ".jsonl.gz"))
        readers: list[Callable[[], Records]] = [partial(_lines, file)] if is_lines else []
        if responses or (responses is None and corpus is None):
            readers.append(partial(read_responses, file, "mtrag"))
        for read in readers:
            if _has_dialogs(read):
                return DialogSet(path, read)
        if is_lines and published is None:  # then it should have been one
            first = next(read_numbered_lines(file), ("", b""))[1]
            skips = readers[-1 if b'"task_id"' in first else 0]()
            fault = next((f" ({skip.where}: {skip.reason})" for skip in skips if isinstance(skip, SkippedRecord)), "")
    if published is not None:
        return DialogSet(path, partial(_published, published))
    raise ConfigError(
        f"{path}: not a run folder, dialogs as in its dialogs.jsonl, or mtRAG's predictions or evaluations{fault}; "
        f"give NAME:PATH to read it as one of {', '.join(human_corpora())}"
    )


def check_name(path: str, names: Sequence[str]) -> None:
    """Raise ConfigError if `path` is no file, and `NAME:PATH` with another name than these."""
    name, _, rest = path.partition(":")
    if rest and name.isidentifier() and name not in names and not is_url(path) and not _exists(path):
        near = get_close_matches(name, names, 1)
        advice = f"did you mean {near[0]}:{rest}?" if near else f"NAME:PATH has one of: {', '.join(names)}"
        raise ConfigError(f"{path}: doesn't exist, and {name} is the name of no set; {advice}")


def stem(path: Path) -> str:
    """Return the name of a folder or file of dialogs, for the names of run folders and models.

    `RUN/dataset` and `RUN/dialogs.jsonl` are RUN.
    """
    path = path.expanduser().absolute()
    if path.name in ("dataset", "dialogs.jsonl", "dialogs.jsonl.gz"):
        return stem(path.parent)
    return re.sub(r"(\.jsonl?)?(\.gz)?$", "", path.name)


def _published(corpus: DialogCorpus) -> Records:
    """Yield the dialogs of a corpus whose path isn't given as the setting `corpus.path`, which errors name."""
    try:
        yield from corpus.dialogs()
    except CorpusError as error:
        raise type(error)(str(error).removeprefix("corpus.path=")) from error


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # a name too long
        return False


def _run(path: str, folder: Path) -> DialogSet:
    summary = _read_yaml(folder / "summary.json", _Summary)
    configuration = _read_yaml(folder / "config.yaml", _Configuration)
    targets: dict[tuple[str, str], float] = {}
    if summary:
        first_or_later = (*summary.tasks.values(), *summary.question_types.values())
        targets = {(share.stage, share.type): share.target for share in first_or_later}
        for stage, planned in (
            ("multi_turn", summary.multi_turn_types),
            ("standalone", summary.standalone),
            ("answerability", summary.answerability),
        ):
            targets |= {(stage, share.type): share.target for share in planned.values()}
    return DialogSet(
        path,
        partial(_lines, local_file(folder / "dialogs.jsonl")),
        targets,
        configuration.wanted if configuration and not (summary and summary.human is not None) else None,
    )


def _read_yaml(file: Path, model: type[M]) -> M | None:
    try:
        return model.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError, *YAML_SLIPS) as error:
        note(f"{file}: can't be read ({type(error).__name__}); its targets are left out")
        return None


def _lines(file: File) -> Records:
    """Yield the dialogs of a file as `dialogs.jsonl` is, plain or gzipped."""
    for where, line in read_numbered_lines(file):
        try:
            dialog = Dialog.model_validate_json(line)
        except ValidationError as error:
            yield skipped(where, error)
        else:
            yield dialog if dialog.turns else SkippedRecord(where=where, reason="turns: there are none")


def _has_dialogs(records: Callable[[], Records]) -> bool:
    with suppress(CorpusError):  # if there is a dialog before it, reading the set raises it again
        return any(isinstance(record, Dialog) for record in islice(records(), _FIRST))
    return False


def readable(
    source: Path | str,
    records: Iterator[R | SkippedRecord],
    none: str = NO_DIALOGS,
    limit: int | None = None,
    tell: Callable[[str], None] = note,
) -> Iterator[R]:
    """Yield the records that can be read, at most `limit`; then report how many can't, as `note_skipped` does.

    Raises:
        CorpusError: there are none, and there should be.
    """
    skipped, count = list[SkippedRecord](), 0
    for record in records:
        if isinstance(record, SkippedRecord):
            skipped.append(record)
            continue
        count += 1
        yield record
        if count == limit:
            break
    note_skipped(source, skipped, count, none, tell)


def note_skipped(
    source: Path | str,
    skipped: Sequence[SkippedRecord],
    read: int,
    none: str = NO_DIALOGS,
    tell: Callable[[str], None] = note,
) -> None:
    """Report the records that couldn't be read, of `read` and those.

    Args:
        none: what is wrong if there are none at all; empty: nothing.
        tell: takes the report.

    Raises:
        CorpusError: none could be read, and there should be some.
    """
    message = ""
    if skipped:
        first = f"the first: {skipped[0].where}: {skipped[0].reason}"
        message = f"{source}: {len(skipped)} of {read + len(skipped)} records can't be read, {first}"
    if none and not read:
        raise CorpusError(message or f"{source}: {none}")
    if message:
        tell(message)
