"""Read any data set that the library `datasets` opens, from files or from the Hugging Face hub: a row a document."""

import glob
import hashlib
import logging
import os
import re
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field

from generator.common.console import count_noun, note
from generator.corpora.files import File, count_suffixes, is_url, list_files
from generator.corpora.formats import FORMATS
from generator.corpora.jsonl import FieldCorpus
from generator.corpora.row_files import (
    CELLS_LOST,
    READERS,
    ROW_FILES,
    check_json,
    decode_rows,
    explain_failure,
    find_json_lines,
    is_json,
    read_lines,
    reading_options,
    row_suffix,
    without_linked_folders,
)
from generator.errors import CorpusError, describe
from generator.schema import Document, SkippedRecord

_TIMEOUT_S = 10
_FIRST_LINES = 1000  # which tell the columns of JSON lines


class HuggingFaceCorpus(FieldCorpus):
    """The rows of one split, as a stream; without an `id_field`, a row's number, from 0, is the id.

    `path` is a file or folder that `datasets` opens (Parquet, JSON, CSV, text, Arrow; also what `save_to_disk` wrote),
    or the name of a data set on the hub. A URL is that of one file.
    """

    subset: str | None = Field(
        min_length=1, description="Subset of a data set that has several (its configuration name); null: the default."
    )
    split: str = Field(min_length=1, description="Split whose rows are read; a single file has only `train`.")
    revision: str | None = Field(
        min_length=1,
        description="Commit, branch or tag on the hub; null: the newest. A commit keeps a run's documents the same.",
    )

    def files(self) -> list[File]:
        return [] if self._on_hub else list_files(self.path, ("",), archives=False)

    def fingerprint(self) -> str:
        """Return a hash of the files' content, or of name, subset, split and revision on the hub, without a request."""
        local = super().fingerprint()
        return hashlib.sha256(f"{local} {self.path}".encode()).hexdigest() if self._on_hub else local

    def read(self) -> Iterator[Document | SkippedRecord]:
        return self.gathered(self._records())

    def _records(self) -> Iterator[Document | SkippedRecord]:
        files = self.files()
        yield from (SkippedRecord(where=file.where, reason=file.fault) for file in files if file.fault)
        number = -1
        try:
            for file in files:
                check_json(file, alone=len(files) == 1)
            with without_linked_folders(self.path, files) as path, warnings.catch_warnings():
                warnings.filterwarnings("error", CELLS_LOST)
                for number, row in enumerate(self._rows(path)):
                    if self.id_field and all(value == "" for value in row.values()):
                        continue  # a spreadsheet writes empty rows, too
                    yield self.document(f"{self.path}: {self.split}[{number}]", row, str(number))
        except CorpusError:
            raise
        except Exception as error:  # of any reader of `datasets`
            if files and number < 0 and not any(row_suffix(file.name) in READERS for file in files):
                told = f"no file ends in {', '.join(READERS)}; found {count_suffixes(files)}"
                texts = ", ".join(sorted({file.suffix for file in files} & FORMATS.keys()))
                told += f"; corpus=folder reads {texts}" if texts else ""
                raise CorpusError(f"corpus.path={self.path}: {told}") from error
            after = f" after {self.split}[{number}]" if number >= 0 else ""
            if splits := re.search(r"^(?:Bad|Unknown) split.*(?:splits:|one of) \[(.*)\]", str(error)):
                only = splits[1].replace("'", "")
                raise CorpusError(f"corpus.split={self.split}: {self.path} has only {only}") from error
            raise CorpusError(f"corpus.path={self.path}: can't be read{after}: {explain_failure(error)}") from error

    @property
    def _on_hub(self) -> bool:
        """Return whether this isn't a local path and can be a name on the hub, which has one slash or none."""
        path = self.path
        return bool(path.strip()) and path[0] not in "/~." and path.count("/") <= 1 and not os.path.lexists(path)

    def _rows(self, path: str) -> Iterator[Mapping[str, Any]]:
        fields = (self.id_field, self.text_field, self.title_field, self.url_field)
        wanted = [name for name in (*fields, self.document_field if self._as_given else None) if name]
        rows = self._open(path, wanted)
        if isinstance(rows, list):
            lines = read_lines(rows)
            first = list(islice(lines, _FIRST_LINES))
            inside: dict[str, Any] = {}
            for line in first:
                for name, value in line.items():
                    known = inside.get(name)
                    inside[name] = {**(known or {}), **value} if isinstance(value, dict) else known
            self._check_columns(wanted, list(inside), inside)
            return chain(first, lines)
        names = rows.column_names or list(next(iter(rows), {}))
        if not names:
            return iter(())
        columns = self._check_columns(wanted, names, rows.features or {})
        rows = rows.select_columns(list(dict.fromkeys(columns)))  # images and sound aren't decoded
        is_list = rows.features is None and any(map(is_json, self.files()))
        return decode_rows(rows) if is_list else iter(rows)

    def _check_columns(self, wanted: Sequence[str], names: Sequence[str], inside: Mapping[str, Any]) -> list[str]:
        """Return the columns that hold the fields `wanted`.

        Args:
            inside: by column the fields of the objects in it, if it has objects.

        Raises:
            CorpusError: a field is in none.
        """
        columns = [name if name in names else name.partition(".")[0] for name in wanted]
        for name, column in zip(wanted, columns, strict=True):
            inner = inside.get(column)
            is_object = column != name and isinstance(inner, dict)
            known = [f"{column}.{field}" for field in inner or ()] if is_object else names
            if not any(f"{name}.".startswith(f"{field}.") for field in known):
                raise CorpusError(
                    f"corpus.path={self.path}: no column {name}, only {', '.join(known) or 'nothing'}; "
                    "set corpus.text_field, id_field, title_field, url_field and document_field to its columns"
                )
        return columns

    def _open(self, path: str, columns: Sequence[str]) -> Any:
        """Return the split of the data set at `path`, of which `columns` are wanted, as an `IterableDataset`.

        Local JSON lines are returned as a list of their files: `datasets` guesses types, so that it gives text as JSON
        where another row has a number in its place, and days and times in place of strings that look like them.
        Resharded, a Parquet file is read by row groups; else all of it would be in memory at its end. On the hub that
        would cost a request for every file first.
        """
        from datasets import load_dataset
        from datasets.utils.logging import set_verbosity

        set_verbosity(logging.CRITICAL)  # it logs what it raises
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # a README.md needn't be a card
        if self._on_hub:
            return self._open_hub()
        is_saved = any(Path(path, name).is_file() for name in ("state.json", "dataset_dict.json"))
        if self.subset is not None and (is_saved or not Path(path).is_dir()):
            raise CorpusError(f"corpus.subset={self.subset}: {self.path} has no subsets; leave corpus.subset out")
        if is_saved:
            return self._open_saved(path)
        if Path(path).is_dir():
            return self._open_folder(path, columns)
        suffix = row_suffix(path)
        if suffix not in READERS:
            endings = ", ".join(READERS)
            raise CorpusError(f"corpus.path={self.path}: give a local folder, or a file or URL that ends in {endings}")
        if lines := find_json_lines(self.files()):
            return lines
        pattern, options = path if is_url(path) else glob.escape(path), reading_options(self.files(), columns)
        return load_dataset(READERS[suffix], data_files=pattern, split=self.split, streaming=True, **options).reshard()

    def _open_hub(self) -> Any:
        from datasets import config, load_dataset

        named: dict[str, Any] = {"split": self.split, "revision": self.revision}
        if not config.HF_HUB_OFFLINE:
            self._check_hub()
            return load_dataset(self.path, self.subset, **named, streaming=True)
        try:
            return load_dataset(self.path, self.subset, **named).to_iterable_dataset()
        except OSError as error:
            raise self._not_found("with HF_HUB_OFFLINE the cache of `datasets`", error) from error

    def _open_saved(self, path: str) -> Any:
        """Return the split of what `save_to_disk` wrote."""
        from datasets import load_from_disk

        saved = load_from_disk(path)
        if isinstance(saved, dict):
            if self.split not in saved:
                raise CorpusError(f"corpus.split={self.split}: {self.path} has only {', '.join(saved)}")
            saved = saved[self.split]
        return saved.to_iterable_dataset()

    def _open_folder(self, path: str, columns: Sequence[str]) -> Any:
        """Return the split of the files that `datasets` takes for parts of a data set."""
        from datasets import load_dataset, load_dataset_builder

        builder = load_dataset_builder(path, self.subset)
        chosen = {os.path.relpath(name, path) for names in builder.config.data_files.values() for name in names}
        files = [file for file in self.files() if file.name in chosen]
        if len(builder.builder_configs) == 1:
            self._note_unread(chosen)
        parts = {os.path.relpath(name, path) for name in builder.config.data_files.get(self.split, ())}
        if lines := find_json_lines([file for file in files if file.name in parts]):
            return lines
        options = reading_options(files, columns)
        return load_dataset(path, self.subset, split=self.split, streaming=True, **options).reshard()

    def _note_unread(self, chosen: Container[str]) -> None:
        """Report files with rows that `datasets` doesn't take for parts of the data set."""
        from datasets.data_files import FILES_TO_IGNORE

        rows = [file for file in self.files() if row_suffix(file.name) in ROW_FILES and not file.fault]
        known = [file for file in rows if PurePosixPath(file.name).name not in FILES_TO_IGNORE]
        others = [file for file in known if file.name not in chosen]
        if others:
            note(
                f"corpus.path={self.path}: {len(others)} of {count_noun(len(known), 'file')} not read, such as "
                f"{others[0].name}: `datasets` reads files of one type, and where a name has a split in it, such as "
                "train, no others; put them into a folder of their own"
            )

    def _check_hub(self) -> None:
        """Ask the hub once for the data set: `datasets` would retry for half a minute, and log."""
        from huggingface_hub import HfApi

        try:
            HfApi().dataset_info(self.path, revision=self.revision, timeout=_TIMEOUT_S)
        except Exception as error:  # of the HTTP library, too
            raise self._not_found("the Hugging Face hub", error) from error

    def _not_found(self, place: str, error: Exception) -> CorpusError:
        return CorpusError(
            f"corpus.path={self.path}: no such file or folder, and {place} has no such data set "
            f"({describe(error)}); set it to a file, a folder, or a data set's name on the hub"
        )
