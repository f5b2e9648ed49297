"""Hold what the published data sets have in common: their files are downloaded once, or lie at `corpus.path`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from generator.common.console import note
from generator.corpora.files import DataPath, File, list_files
from generator.corpora.human import DialogCorpus
from generator.errors import CorpusError, describe
from generator.schema import Address, Operational


class PublishedCorpus(DialogCorpus):
    """A published data set with documents and human dialogs."""

    path: Annotated[DataPath | None, Operational] = Field(
        description="File, folder, zip archive or URL with the publisher's files, gzipped or not; null: download them."
    )
    cache_dir: Annotated[str, Operational] = Field(min_length=1, description="Folder that keeps downloaded files.")
    base_url: Annotated[Address, Operational] = Field(description="Address below which the files are published.")

    def fetch(self, name: str, checksum: str | None, folder: str = "", size: str | None = None) -> str:
        """Return the path of a publisher's file, downloaded with progress unless it lies in `cache_dir` already.

        Args:
            name: of the file below `base_url`; it is kept under the last part.
            checksum: `sha256:…` or `md5:…`; a kept file with another one is downloaded again. None: not published.
            folder: below `cache_dir`.
            size: of a file so large that it is reported before the download.

        Raises:
            CorpusError: it can't be downloaded, or has another checksum.
        """
        import pooch

        url, file = f"{self.base_url.rstrip('/')}/{name}", name.rpartition("/")[2]
        pooch.get_logger().setLevel("WARNING")
        target = Path(self.cache_dir, folder)
        try:
            target = target.expanduser()
            if size and not (target / file).exists():
                note(f"downloading {url} ({size}) to {target}; an interrupted download starts over")
            pooch.retrieve(url, known_hash=checksum, fname=file, path=target, progressbar=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise CorpusError(
                f"can't download {url}: {_reason(error)}; get {file} another way and put it into {target}, "
                "or set corpus.path to it"
            ) from error
        return str(target / file)


class SplitCorpus(PublishedCorpus):
    """A published data set with one JSON file for each split, which holds documents and dialogs."""

    # For each split the name of its file and its checksum, as `fetch` takes them.
    published: ClassVar[Mapping[str, tuple[str, str]]]

    split: Literal["train", "validation"] = Field(
        description="Split to download: `train`, or `validation`, which systems are tested on, so don't train on it."
    )
    no_answer: Annotated[str, Operational] = Field(
        min_length=1, description="Answer in human dialogs where the data set marks a question as unanswerable."
    )

    def files(self) -> list[File]:
        path = self.fetch(*self.published[self.split]) if self.path is None else self.path
        return list_files(path, (".json", ".json.gz"))


def _reason(error: Exception) -> str:
    """Return the message of an error; for a server that can't be reached without the layers of `requests`."""
    inner = getattr(error.args[0], "reason", None) if error.args else None
    return str(inner).partition("): ")[2] or str(inner) if inner else describe(error)
