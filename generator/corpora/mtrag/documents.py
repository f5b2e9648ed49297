"""mtRAG (Katsis et al. 2025): documents of four domains and conversations about them, as its authors publish them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AliasChoices, BaseModel, Field

from generator.corpora.base import located
from generator.corpora.fetching import fetched
from generator.corpora.files import File, files
from generator.corpora.human import DialogCorpus
from generator.corpora.json_file import parsed
from generator.corpora.json_lines import lines
from generator.corpora.mtrag.dialogs import Queries, dialogs
from generator.corpora.mtrag.names import COLLECTIONS
from generator.errors import CorpusError
from generator.schema import Address, Dialog, Document, SkippedRecord

Domain = Literal["clapnq", "cloud", "fiqa", "govt"]

# The publisher's file (fiqa.jsonl.zip, also unpacked), and a collection beside its retrieval tasks: a pool of judged
# passages that others make of it, or what `export=mtrag` writes.
_CORPUS = re.compile(
    r"(?:^|/)(?P<domain>clapnq|cloud|fiqa|govt)(?:\.jsonl(?:\.gz|\.zip(?:/.*)?)?|/(?P<pool>corpus(?:_pooled)?\.jsonl))$"
)
_CONVERSATIONS = "conversations.json"
_QUERIES = ("_questions.jsonl", "_rewrite.jsonl")


class _Record(BaseModel):
    id: Annotated[str, Field(coerce_numbers_to_str=True)] = Field(
        validation_alias=AliasChoices("_id", "id", "document_id", "doc_id")
    )
    text: str
    title: str | None = None
    url: str | None = None


class MtragCorpus(DialogCorpus):
    """The passages or documents of mtRAG's domains, and the conversations, which rest on passages.

    Attributes:
        path: a folder with the publisher's files at any depth, or one of them; None: they are fetched.
        domain: of documents and conversations; None: all that are there.
        level: what a document is: one of the 512-token passages, which people judged, or what these were cut from.
        cache_dir: keeps what was fetched.
        base_url: where the files are published, at one commit. The publisher gives no checksums; git names what a
            commit holds by its hash, and archives have a checksum of each file, which reading compares.
    """

    path: str | None
    domain: Domain | None
    level: Literal["passage", "document"]
    cache_dir: str = Field(min_length=1)
    base_url: Address

    def files(self) -> list[File]:
        if self.path is None:
            names = [f"corpora/{self.level}_level/{domain}.jsonl.zip" for domain in self._domains()]
            # Both levels have files of the same names.
            folder = f"{self.cache_dir}/{self.level}_level"
            return [file for name in names for file in files(fetched(self.base_url, name, None, folder), (".jsonl",))]
        found = files(self.path, (".jsonl", ".jsonl.gz"))
        root = Path(self.path).expanduser().resolve()
        if root.is_file() and len(found) == 1:
            return found
        chosen: dict[str, File] = {}
        pools: dict[str, File] = {}
        for file in found:
            name = f"{root.name}/{file.name}"
            match = _CORPUS.search(name)
            if match and match["domain"] in self._domains() and self._at_level(name, bool(match["pool"])):
                (pools if match["pool"] else chosen).setdefault(match["domain"], file)
        chosen = pools | chosen
        if not chosen:
            what = f"{self.domain or '<domain>'}.jsonl.zip"
            raise CorpusError(
                f"corpus.path={self.path}: no {self.level}-level corpus of {self.domain or 'any domain'} is in there; "
                f"put corpora/{self.level}_level/{what} of {self.source} into it"
            )
        return [chosen[domain] for domain in sorted(chosen)]

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        match = _CORPUS.search(file.where)
        domain = match["domain"] if match else self.domain
        collection = COLLECTIONS[domain] if domain else ""
        for number, line in lines(file):
            where = f"{file.where}:{number}"
            found = parsed(_Record, where, line)
            if isinstance(found, SkippedRecord):
                yield found
            else:
                yield located(where, found.id, found.text, found.title or "", found.url or None, collection)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        """The conversations; those of generation tasks if `path` is a file of such.

        A dialog's passages have the ids of the passage level.
        """
        conversations, others = self._conversations()
        queries = Queries()
        for file in others:
            yield from queries.read(file)
        for file in conversations:
            yield from dialogs(file, self.name, self.domain, queries)

    def _conversations(self) -> tuple[list[File], list[File]]:
        """The files with conversations, and those with queries."""
        if self.path is None:
            queries = [
                f"retrieval_tasks/{domain}/{domain}{ending}" for domain in self._domains() for ending in _QUERIES
            ]
            first, *rest = (
                File(Path(name).name, Path(fetched(self.base_url, f"mtrag-human/{name}", None, self.cache_dir)))
                for name in (f"conversations/{_CONVERSATIONS}", *queries)
            )
            return [first], rest
        found = files(self.path, (_CONVERSATIONS, *_QUERIES))
        conversations = [file for file in found if not file.name.endswith(_QUERIES)]
        if not conversations:
            raise CorpusError(
                f"corpus.path={self.path}: no {_CONVERSATIONS} is in there; put that of {self.source} into it"
            )
        return conversations, [file for file in found if file.name.endswith(_QUERIES)]

    def _domains(self) -> tuple[str, ...]:
        return get_args(Domain) if self.domain is None else (self.domain,)

    def _at_level(self, name: str, pooled: bool) -> bool:
        other = {"passage": "document", "document": "passage"}[self.level]
        return f"{other}_level/" not in name and not (pooled and self.level == "document")
