"""Write the dialogs that people judged with their verdicts, and what a filter keeps of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import ValidationError

from generator.common.atomic_files import atomic_write, make_folder
from generator.dialogs.columns import PERSON
from generator.dialogs.filter import filter_pairs, parse_filter
from generator.errors import ConfigError, RunError, describe
from generator.output.stats.comparison import distinct_names
from judges.people.annotations import ALL
from judges.people.sample import Key, Source, whole_key
from judges.people.verdicts import Judged, judge_name
from judges.work import check_apart
from taxonomy import read_criteria

REPORT = "people"


def read_key(path: Path | None, inputs: Sequence[str], annotations: Sequence[Path], criteria: str) -> Key:
    """Return the key of a sample, or one of all dialogs that annotations may be about.

    Args:
        inputs: where the sets are now; empty: as the key has it, or in the annotations' own file.

    Raises:
        ConfigError: the key can't be read, or has another number of sets.
    """
    if path is None:
        sources = [Source(path=name) for name in inputs or map(str, annotations[:1])]
        if not inputs and annotations[0].suffix.lower() != ".json":
            raise ConfigError("key: is missing; give the key of the sample (key=FILE), or input=RUN for its own marks")
        return whole_key(sources, read_criteria(criteria))
    try:
        key = Key.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"key={path}: can't be read: {describe(error)}; give the key that `draw` wrote") from error
    except ValidationError as error:
        raise ConfigError(f"key={path}: not a key of `python -m judges.human draw`: {describe(error)}") from error
    if not inputs:
        return key
    if len(inputs) != len(key.sources):
        raise ConfigError(f"input: {len(inputs)} sets, and the sample is of {len(key.sources)}; name all, in its order")
    moved = [source.model_copy(update={"path": name}) for source, name in zip(key.sources, inputs, strict=True)]
    return key.model_copy(update={"sources": tuple(moved)})


def source_names(key: Key) -> list[str]:
    """Return a short name for each set."""
    names = distinct_names([source.path.removesuffix("/") for source in key.sources])
    full = [name.replace("/", "-") for name in names]
    short = [name.split(".json")[0] for name in full]
    return short if len(set(short)) == len(set(full)) else full


def check_filter(text: str, judged: Judged) -> None:
    """Raise ConfigError if a filter has a column of people that nobody judged by, or scores that it has not."""
    annotators = {name for criterion in judged.criteria for by in judged.votes(criterion).values() for name in by}
    names = (ALL, *sorted(annotators))
    known = {judge_name(name, each): criterion for each, criterion in judged.criteria.items() for name in names}
    for condition in parse_filter(text)[1]:
        where = f"judge.filter: {condition.text}: {condition.column}"
        if condition.column.startswith(PERSON) and condition.column not in known:
            raise ConfigError(f"{where} is none of {', '.join(sorted(known))}")
        if isinstance(condition.value, float) and condition.column in known and not known[condition.column].numbers:
            raise ConfigError(f"{where} has labels and no scores; give a label, as in {condition.column}=LABEL")


def check_folder(folder: Path, key: Key) -> None:
    """Raise ConfigError or RunError if the folder holds one of the sets, or something else.

    Unfinished files alone are what an interruption left.
    """
    for source in key.sources:
        check_apart(folder, Path(source.path))
    others = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".unfinished"))
    if not (folder / f"{REPORT}.json").exists() and next(others, None):
        raise RunError(f"run_dir={folder}: holds something else; set another run_dir")


@contextmanager
def writing_judged(
    folder: Path,
    key: Key,
    names: Sequence[str],
    judged: Judged,
    published: Mapping[str, Mapping[str, float]],
    keep: str,
) -> Iterator[tuple[int, int]]:
    """Write `dialogs.jsonl` and `drops.jsonl` of each set; give how many pairs stay of how many.

    The files are in place once the block has ended, which writes the one that `check_folder` knows the folder by.

    Args:
        names: of the sets, for the folders of several.
        published: scores that came with the annotations, by dialog and judge.
        keep: the pairs to keep, as in `judge.filter`.

    Raises:
        CorpusError: a set can't be read, or an item isn't in it any more.
        RunError: the folder can't be written.
    """
    kept = total = 0
    with ExitStack() as stack:
        for place, (source, name) in enumerate(zip(key.sources, names, strict=True)):
            own = folder / name if len(names) > 1 else folder
            make_folder(own)
            dialogs, drops = (stack.enter_context(atomic_write(own / f"{of}.jsonl")) for of in ("dialogs", "drops"))
            for dialog in judged.add(place, source.open().dialogs(), published):
                dialogs.write(f"{dialog.model_dump_json()}\n")
                stay, lost = filter_pairs(dialog, keep)
                drops.writelines(f"{drop.model_dump_json()}\n" for drop in lost)
                kept, total = kept + len(stay), total + len(dialog.own_turns)
        judged.check_found()
        yield kept, total
