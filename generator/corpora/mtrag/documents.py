"""Read mtRAG (Katsis et al. 2025), as published: documents of four domains and conversations about them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, Field

from generator.corpora.base import make_document
from generator.corpora.files import File, is_url, list_files, local_file
from generator.corpora.json_records import convert_records, read_json_lines
from generator.corpora.mtrag.dialogs import Queries, read_dialogs
from generator.corpora.mtrag.names import COLLECTIONS
from generator.corpora.published import PublishedCorpus
from generator.errors import CorpusError
from generator.schema import Dialog, Document, SkippedRecord

Domain = Literal["clapnq", "cloud", "fiqa", "govt"]

# The publisher's file (fiqa.jsonl.zip, also unpacked), or a collection beside its retrieval tasks: a pool of judged
# passages, or what `export=mtrag` writes.
_CORPUS = re.compile(
    r"(?:^|/)(?P<domain>clapnq|cloud|fiqa|govt)(?:\.jsonl(?:\.gz|\.zip(?:/.*)?)?|/(?P<pool>corpus(?:_pooled)?\.jsonl))$"
)
_CONVERSATIONS = "conversations.json"
_TASKS = "reference.jsonl"
_QUERIES = ("_questions.jsonl", "_rewrite.jsonl")


class _Record(BaseModel):
    id: Annotated[str, Field(coerce_numbers_to_str=True)] = Field(
        validation_alias=AliasChoices("_id", "id", "document_id", "doc_id")
    )
    text: str
    title: str | None = None
    url: str | None = None


class MtragCorpus(PublishedCorpus):
    """The passages or documents of mtRAG's domains, and the conversations, which rest on passages.

    Downloads have no checksum: `base_url` names a commit, and zip archives have a CRC of each member, which reading
    compares.
    """

    domain: Domain | None = Field(
        description="Domain of documents and conversations: `clapnq`, `cloud`, `fiqa` or `govt`; null: all."
    )
    level: Literal["passage", "document"] = Field(
        description="Unit that makes a document: `passage` (512 tokens, what annotators judged), or `document` (what "
        "those were cut from)."
    )

    def files(self) -> list[File]:
        if self.path is None:
            names = [f"corpora/{self.level}_level/{domain}.jsonl.zip" for domain in self._domains()]
            # Both levels have files of the same names.
            fetched = [self.fetch(name, None, f"{self.level}_level") for name in names]
            return [file for path in fetched for file in list_files(path, (".jsonl",))]
        found = list_files(self.path, (".jsonl", ".jsonl.gz"))
        root = self.path if is_url(self.path) else Path(self.path).expanduser().absolute().as_posix()
        folder = root.rstrip("/").rpartition("/")[2]
        if len(found) == 1 and found[0].name.partition("/")[0] == folder:  # `path` is a file or archive
            return found
        chosen: dict[str, File] = {}
        pools: dict[str, File] = {}
        for file in found:
            name = f"{folder}/{file.name}"
            match = _CORPUS.search(name)
            if match and match["domain"] in self._domains() and self._at_level(name, bool(match["pool"])):
                (pools if match["pool"] else chosen).setdefault(match["domain"], file)
        chosen = pools | chosen
        if not chosen:
            raise CorpusError(
                f"corpus.path={self.path}: has no {self.level}-level corpus of {self.domain or 'any domain'}; "
                f"put {self._wanted()} into it"
            )
        return [chosen[domain] for domain in sorted(chosen)]

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        match = _CORPUS.search(file.where)
        domain = match["domain"] if match else self.domain
        collection = COLLECTIONS[domain] if domain else ""

        def document(where: str, record: _Record) -> Document | SkippedRecord:
            return make_document(where, record.id, record.text, record.title or "", record.url or None, collection)

        yield from convert_records(self._lines(file), _Record, document)

    def _lines(self, file: File) -> Iterator[tuple[str, dict[str, Any] | SkippedRecord]]:
        """Yield the lines of a file of documents, as `read_json_lines` does.

        Raises:
            CorpusError: it holds dialogs, or can't be read to its end.
        """
        for where, line in read_json_lines(file):
            task = isinstance(line, dict) and (line.keys() >= {"task_id", "input"} or "tasks" in line)
            if task or file.name.endswith(_CONVERSATIONS):
                raise CorpusError(
                    f"{file.where}: holds conversations or generation tasks, no documents; set corpus.path to a folder "
                    f"with {self._wanted()}"
                )
            yield where, line

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        """Yield the conversations, or those of generation tasks if `path` is a file of such or has nothing else.

        A dialog's passages have the ids of the passage level.
        """
        conversations, query_files = self._dialog_files()
        queries = Queries()
        for file in query_files:
            yield from queries.read(file)
        for file in conversations:
            yield from read_dialogs(file, self.name, self.domain, queries)

    def _dialog_files(self) -> tuple[list[File], list[File]]:
        """Return the files with conversations, and those with queries."""
        if self.path is None:
            names = [f"conversations/{_CONVERSATIONS}"]
            names += [f"retrieval_tasks/{domain}/{domain}{ending}" for domain in self._domains() for ending in _QUERIES]
            first, *rest = (local_file(Path(self.fetch(f"mtrag-human/{name}", None))) for name in names)
            return [first], rest
        found = list_files(self.path, (_CONVERSATIONS, *_QUERIES, _TASKS))
        tasks = [file for file in found if file.name.endswith(_TASKS)]
        conversations = [file for file in found if not file.name.endswith((*_QUERIES, _TASKS))] or tasks
        if not conversations:
            raise CorpusError(f"corpus.path={self.path}: has no {_CONVERSATIONS}; put that of {self.source} into it")
        return conversations, [file for file in found if file.name.endswith(_QUERIES)]

    def _domains(self) -> tuple[str, ...]:
        return get_args(Domain) if self.domain is None else (self.domain,)

    def _wanted(self) -> str:
        return f"corpora/{self.level}_level/{self.domain or '<domain>'}.jsonl.zip of {self.source}"

    def _at_level(self, name: str, pooled: bool) -> bool:
        other = {"passage": "document", "document": "passage"}[self.level]
        return f"{other}_level/" not in name and not (pooled and self.level == "document")
