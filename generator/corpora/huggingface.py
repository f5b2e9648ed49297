"""Any data set that the library `datasets` reads, from local files or from the Hugging Face hub: a row a document."""

import glob
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field

from generator.corpora.files import File, files, opened, reason
from generator.corpora.records import FieldCorpus
from generator.errors import CorpusError
from generator.schema import Document, SkippedRecord

_TIMEOUT_S = 10
# The reader for a single file. A folder's is for `datasets` to find; given a file, it would look at what is beside it.
_READERS = MappingProxyType(
    {
        ".parquet": ("parquet", {}),
        ".jsonl": ("json", {}),
        ".json": ("json", {}),
        ".csv": ("csv", {}),
        ".tsv": ("csv", {"sep": "\t"}),
        ".txt": ("text", {}),
        ".arrow": ("arrow", {}),
    }
)


class HuggingFaceCorpus(FieldCorpus):
    """The rows of one split, as a stream; without an `id_field`, a row's number, from 0, is the id.

    Attributes:
        path: a local file or folder that `datasets` reads (Parquet, JSON, CSV, text, Arrow; also what `save_to_disk`
            wrote), or the name of a data set on the hub.
        subset: of a data set that has several (`datasets` calls it the name of a configuration); None: the default.
        split: the part whose rows are read; a file has only `train`.
        revision: a commit, branch or tag of the data set on the hub; None: the newest.
    """

    path: str
    subset: str | None = Field(min_length=1)
    split: str = Field(min_length=1)
    revision: str | None = Field(min_length=1)

    def files(self) -> list[File]:
        return [] if self._on_hub else files(self.path, ("",), archives=False)

    def fingerprint(self) -> str:
        """Of the content for local files; of name, subset, split and revision for the hub, which isn't asked."""
        local = super().fingerprint()
        return hashlib.sha256(f"{local} {self.path}".encode()).hexdigest() if self._on_hub else local

    def read(self) -> Iterator[Document | SkippedRecord]:
        number = -1
        try:
            for number, row in enumerate(self._rows()):
                yield self.document(f"{self.path}: {self.split}[{number}]", row, str(number))
        except CorpusError:
            raise
        except Exception as error:  # whatever the reader behind `datasets` raises
            read = f" after {self.split}[{number}]" if number >= 0 else ""
            told = reason(error) or type(error).__name__
            raise CorpusError(f"corpus.path={self.path}: can't be read{read}: {told}") from error

    @property
    def _on_hub(self) -> bool:
        """Whether this isn't a local path and can be a name on the hub, which has one slash or none."""
        path = self.path
        return bool(path.strip()) and path[0] not in "/~." and path.count("/") <= 1 and not os.path.lexists(path)

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        rows = self._opened()
        names = rows.column_names or list(next(iter(rows), {}))
        wanted = [name for name in (self.id_field, self.text_field, self.title_field, self.url_field) if name]
        for name in wanted:
            if name not in names:
                raise CorpusError(
                    f"corpus.path={self.path}: there is no column {name}, only {', '.join(names) or 'nothing'}; "
                    "set corpus.text_field and its like to what is there"
                )
        return iter(rows.select_columns(list(dict.fromkeys(wanted))))  # spares decoding images and sound

    def _opened(self) -> Any:
        """The split, as an `IterableDataset`.

        By the end of a Parquet file it would hold all of it; resharded, it holds one group of rows. On the hub it
        would first have to ask for the groups of every file.
        """
        from datasets import load_dataset, load_from_disk
        from datasets.utils.logging import set_verbosity

        set_verbosity(logging.CRITICAL)  # it logs what it raises
        if self._on_hub:
            self._reach()
            return load_dataset(self.path, self.subset, split=self.split, revision=self.revision, streaming=True)
        self._check_files()
        path = Path(self.path).expanduser().resolve()
        if any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
            saved = load_from_disk(path)
            if isinstance(saved, dict):
                if self.split not in saved:
                    raise CorpusError(f"corpus.split={self.split}: {self.path} holds only {', '.join(saved)}")
                saved = saved[self.split]
            return saved.to_iterable_dataset()
        if path.is_dir():
            return load_dataset(str(path), self.subset, split=self.split, streaming=True).reshard()
        suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        if suffix.lower() not in _READERS:
            raise CorpusError(f"corpus.path={self.path}: give a folder, or a file that ends in {', '.join(_READERS)}")
        reader, options = _READERS[suffix.lower()]
        pattern = glob.escape(str(path))
        return load_dataset(reader, data_files=pattern, split=self.split, streaming=True, **options).reshard()

    def _check_files(self) -> None:
        """Look for what `datasets` can't bear: it waits for pipes, and a file that holds `null` ends the process."""
        for file in self.files():  # says it if there is nothing
            if file.fault:
                raise CorpusError(f"{file.where}: {file.fault}")
            if not file.name.lower().endswith((".json", ".jsonl", ".json.gz", ".jsonl.gz")):
                continue
            with opened(file) as stream:
                parts = iter(partial(stream.read, 1 << 16), b"")
                first = next(filter(None, (part.lstrip()[:1] for part in parts)), b"")
            if first not in (b"", b"{", b"[", b"\xef"):  # the last begins a byte order mark
                raise CorpusError(f"{file.where}: begins with neither {{ nor [, so it holds no records")
            if not first and Path(self.path).expanduser().is_file():
                raise CorpusError(f"{file.where}: is empty")

    def _reach(self) -> None:
        """Ask the hub once whether it has the data set: `datasets` itself tries for half a minute, and isn't quiet."""
        from huggingface_hub import HfApi

        try:
            HfApi().dataset_info(self.path, revision=self.revision, timeout=_TIMEOUT_S)
        except Exception as error:  # of the HTTP library behind it, too
            raise CorpusError(
                f"corpus.path={self.path}: there is no such file or folder, and the Hugging Face hub doesn't give it "
                f"({reason(error)}); set it to a file or folder, or to the name of a data set that can be reached there"
            ) from error
