"""QuAC (Choi et al. 2018): sections of Wikipedia articles, as its authors publish them in v0.2."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from generator.corpora.base import CorpusSettings, located
from generator.corpora.files import READ_ERRORS, File, files, opened, reason
from generator.errors import CorpusError
from generator.schema import Broken, Document

# The published files and their SHA-256, as in ParlAI (parlai/tasks/quac/build.py) and in Hugging Face's former
# datasets/quac/dataset_infos.json.
PUBLISHED = MappingProxyType(
    {
        "train": ("train_v0.2.json", "ff5cca5a2e4b4d1cb5b5ced68b9fce88394ef6d93117426d6d4baafbcc05c56a"),
        "validation": ("val_v0.2.json", "09e622916280ba04c9352acb1bc5bbe80f11a2598f6f34e934c51d9e6570f378"),
    }
)
# Ends every paragraph, so that "no answer" can be a span of the text like any other answer.
_NO_ANSWER = "CANNOTANSWER"


class _Article(BaseModel):
    title: str
    section_title: str = ""
    paragraphs: list[Any]


class _Paragraph(BaseModel):
    id: str
    context: str


class QuacCorpus(CorpusSettings):
    """The sections that QuAC's dialogs are about, not its dialogs.

    QuAC repeats a section for each dialog about it. Here it is one document, with the id of the first of them: as
    several, its text would be retrieved as often, and could lie in `train` and in `validation`.

    Attributes:
        path: a file in QuAC's own format, plain or gzipped, or a folder of them; None: `split` is fetched.
        split: what is fetched. `validation` is what systems are tested on: training on it spoils that test.
        cache_dir: keeps what was fetched.
        base_url: where the files are published.
    """

    path: str | None
    split: Literal["train", "validation"]
    cache_dir: str = Field(min_length=1)
    base_url: str = Field(min_length=1)

    def files(self) -> list[File]:
        return [self._fetched()] if self.path is None else files(self.path, (".json", ".json.gz"))

    def read(self) -> Iterator[Document | Broken]:
        sections: set[int] = set()
        for found in super().read():
            if isinstance(found, Document):
                section = hash((found.title, found.text))
                if section in sections:
                    continue
                sections.add(section)
            yield found

    def records(self, file: File) -> Iterator[Document | Broken]:
        import ijson

        number = -1
        try:
            with opened(file.path) as stream:
                for number, article in enumerate(ijson.items(stream, "data.item")):
                    yield from _sections(f"{file.where}: data[{number}]", article)
        except ijson.JSONError as error:
            raise CorpusError(f"{file.where}: not JSON: {_mistake(file.path) or reason(error)}") from error
        except READ_ERRORS as error:
            raise CorpusError(f"{file.where}: can't be read after data[{number}]: {reason(error)}") from error
        if number < 0:
            raise CorpusError(f"{file.where}: it has no records in a list `data`, so it isn't QuAC's own format")

    def _fetched(self) -> File:
        import pooch

        name, checksum = PUBLISHED[self.split]
        url = f"{self.base_url.rstrip('/')}/{name}"
        pooch.get_logger().setLevel("WARNING")
        try:
            folder = Path(self.cache_dir).expanduser()
            pooch.retrieve(url, known_hash=f"sha256:{checksum}", fname=name, path=folder, progressbar=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise CorpusError(
                f"can't fetch {url} into {self.cache_dir}: {reason(error)}; "
                f"get {name} another way and set corpus.path to it"
            ) from error
        return File(name, folder / name)


def _sections(where: str, article: object) -> Iterator[Document | Broken]:
    try:
        parsed = _Article.model_validate(article)
    except ValidationError as error:
        yield Broken(where=where, reason=_first(error))
        return
    title = ": ".join(filter(None, (parsed.title, parsed.section_title)))
    for number, item in enumerate(parsed.paragraphs):
        place = f"{where}.paragraphs[{number}]"
        try:
            paragraph = _Paragraph.model_validate(item)
        except ValidationError as error:
            yield Broken(where=place, reason=_first(error))
        else:
            yield located(place, paragraph.id, paragraph.context.removesuffix(_NO_ANSWER).rstrip(), title)


def _first(error: ValidationError) -> str:
    mistake = error.errors()[0]
    return ": ".join([*map(str, mistake["loc"]), mistake["msg"]])


def _mistake(path: Path) -> str | None:
    """Where the JSON goes wrong, which the incremental parser can't say; None if this parser takes it (NaN)."""
    try:
        with opened(path) as file:
            json.loads(file.read().decode())
    except json.JSONDecodeError as error:
        return f"{error.msg} (line {error.lineno}, column {error.colno})"
    except UnicodeDecodeError as error:
        return f"byte {error.start} isn't UTF-8"
    return None
