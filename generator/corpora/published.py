"""What the data sets have in common whose publisher offers one JSON file a split."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from generator.corpora.fetching import fetched
from generator.corpora.files import File, files
from generator.corpora.human import DialogCorpus
from generator.schema import Address


class PublishedCorpus(DialogCorpus):
    """Documents and dialogs in one file.

    Attributes:
        published: for each split the name of its file and its checksum, as in `generator.corpora.fetching`.
        path: a file in the publisher's own format, plain, gzipped or in a zip archive, or a folder of them; None:
            `split` is fetched.
        split: what is fetched. `validation` is what systems are tested on: training on it spoils that test.
        cache_dir: keeps what was fetched.
        base_url: where the files are published.
    """

    published: ClassVar[Mapping[str, tuple[str, str]]]

    path: str | None
    split: Literal["train", "validation"]
    cache_dir: str = Field(min_length=1)
    base_url: Address

    def files(self) -> list[File]:
        path = self.path
        if path is None:
            path = fetched(self.base_url, *self.published[self.split], self.cache_dir)
        return files(path, (".json", ".json.gz"))
