"""Retrieval tasks as mtRAG publishes them (Katsis et al. 2025), in BEIR's format: queries, qrels, passages.

<collection>/<collection>_lastturn.jsonl    the question as asked; _id is <conversation><::><turn>
<collection>/<collection>_questions.jsonl   all questions up to it
<collection>/<collection>_rewrite.jsonl     the question rewritten to stand alone
<collection>/qrels/dev.tsv                  the relevant passages: query-id, corpus-id, score
<collection>/corpus*.jsonl                  the passages: _id, title, text

What can't be read, or has an id twice, is a `CorpusError` with its place.
"""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, Field

from generator.corpora.base import make_document
from generator.corpora.files import local_file
from generator.corpora.json_records import read_json_lines, read_numbered_lines, require_record
from generator.corpora.mtrag.names import SEPARATOR, SPEAKER
from generator.errors import CorpusError
from generator.schema import Document, SkippedRecord

Form = Literal["lastturn", "questions", "rewrite"]
M = TypeVar("M", bound=BaseModel)
FORMS: tuple[Form, ...] = get_args(Form)
_TURN = re.compile(rf".*{SEPARATOR}(\d+)")
_WHOLE = "fix it, since every passage and query counts"
_SIGN = re.compile(r"[\W_]+")


class Collection(NamedTuple):
    """Queries on one set of passages.

    Attributes:
        queries: of each form that exists, by id.
        relevant: for each query the grades of its relevant passages, all 1 or more.
        unknown: the number of queries in the qrels that are in no query file.
        corpus: the file of the passages; None without one.
    """

    name: str
    queries: Mapping[Form, Mapping[str, str]]
    relevant: Mapping[str, Mapping[str, int]]
    unknown: int
    corpus: Path | None

    @property
    def query_ids(self) -> set[str]:
        return set().union(*self.queries.values())

    def standalone(self, query: str) -> bool | None:
        """Return True if the rewrite equals the question up to case, punctuation and white space; None without both."""
        question, rewrite = (self.queries.get(form, {}).get(query) for form in ("lastturn", "rewrite"))
        if question is None or rewrite is None:
            return None
        return _SIGN.sub("", question.casefold()) == _SIGN.sub("", rewrite.casefold())


class _Query(BaseModel):
    id: str = Field(alias="_id", min_length=1)
    text: str


class _Passage(_Query):
    title: str | None = None
    url: str | None = None


def read_collections(folder: Path, split: str | None = None) -> list[Collection]:
    """Return the collections in a folder, by name, or the folder itself as the only one.

    Args:
        split: of the qrels; None: `dev`, or the only one.
    """
    if not folder.is_dir():
        raise CorpusError(f"{folder}: is not a folder; give one with retrieval tasks in mtRAG's layout")
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    found = [path for path in (folder.absolute(), *inside) if _forms(path)]
    if not found:
        raise CorpusError(
            f"{folder}: holds no retrieval tasks; expected <collection>/<collection>_lastturn.jsonl, "
            "_questions.jsonl or _rewrite.jsonl"
        )
    read = [_collection(path, split) for path in found]
    if not any(collection.relevant for collection in read):
        raise CorpusError(f"{folder}: no query has a relevant passage")
    where: dict[str, str] = {}
    for collection in read:
        if twice := where.keys() & collection.query_ids:
            raise CorpusError(f"query {min(twice)} is in {where[min(twice)]} and in {collection.name}; ids must differ")
        where |= dict.fromkeys(collection.query_ids, collection.name)
    for query in where:
        turn_number(query)
    return read


def turn_number(query: str) -> int:
    """Return the number of a query's turn in its conversation, from 1."""
    if not (match := _TURN.fullmatch(query)):
        raise CorpusError(f"query {query!r}: its id must end in its turn, as in mtRAG's <conversation><::><turn>")
    return int(match[1])


def read_queries(path: Path) -> dict[str, str]:
    """Return the queries of a file by id, without the speaker that mtRAG writes before each line."""
    found: dict[str, str] = {}
    for where, query in _records(path, _Query):
        if query.id in found:
            raise CorpusError(f"{where}: duplicate id {query.id}")
        found[query.id] = "\n".join(line.removeprefix(SPEAKER).strip() for line in query.text.splitlines())
    return found


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the passages of a collection."""
    for where, passage in _records(path, _Passage):
        document = make_document(where, passage.id, passage.text, passage.title or "", passage.url or None)
        if isinstance(document, SkippedRecord):
            raise CorpusError(f"{document.where}: {document.reason}; {_WHOLE}")
        yield document


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of each query's relevant passages, from a file of query, passage and grade with a header."""
    found: dict[str, dict[str, int]] = {}
    for where, line in _lines(path):
        try:
            (cells,) = csv.reader([line], delimiter="\t")  # as the publisher's script and BEIR read them
            if where.endswith(":1") and cells[-1].strip() == "score":
                continue
            query, passage, grade = cells
            if int(grade) > 0:
                found.setdefault(query, {})[passage] = int(grade)
        except (ValueError, csv.Error) as error:
            raise CorpusError(
                f"{where}: expected query id, passage id and a whole number, separated by tabs, not {line[:80]!r}"
            ) from error
    return found


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """Return the rankings of a file in TREC's format: query, Q0, passage, rank, score, name of the run.

    The score counts and not the rank, as in trec_eval.
    """
    found: dict[str, dict[str, float]] = {}
    for where, line in _lines(path):
        try:
            query, _, rest = line.split(maxsplit=2)
            passage, _, score, _ = rest.rsplit(maxsplit=3)  # the names of files may have spaces
            value = float(score)
            if math.isnan(value):
                raise ValueError
        except ValueError as error:
            raise CorpusError(
                f"{where}: expected `query Q0 passage rank score run` (TREC's format), not {line[:100]!r}"
            ) from error
        if passage in found.setdefault(query, {}):
            raise CorpusError(f"{where}: duplicate passage {passage} for query {query}")
        found[query][passage] = value
    if not found:
        raise CorpusError(f"{path}: holds no rankings")
    return found


def _forms(folder: Path) -> dict[Form, Path]:
    files: dict[Form, Path] = {form: folder / f"{folder.name}_{form}.jsonl" for form in FORMS}
    return {form: path for form, path in files.items() if path.is_file()}


def _collection(folder: Path, split: str | None) -> Collection:
    corpora = sorted(path for path in folder.glob("corpus*.jsonl*") if path.is_file())
    if len(corpora) > 1:
        names = ", ".join(path.name for path in corpora)
        raise CorpusError(f"{folder}: several corpora ({names}); keep one")
    splits = sorted((folder / "qrels").glob("*.tsv"))
    chosen = [path for path in splits if path.stem == (split or "dev")] or ([] if split else splits)
    if len(chosen) != 1:
        choices = f"; choose with split=… from {', '.join(path.stem for path in splits)}" if splits else ""
        raise CorpusError(f"{folder / 'qrels'}: has no {split or 'dev'}.tsv{choices}")
    queries = {form: read_queries(path) for form, path in _forms(folder).items()}
    judged, known = read_qrels(chosen[0]), set().union(*queries.values())
    return Collection(
        name=folder.name,
        queries=queries,
        relevant={query: graded for query, graded in judged.items() if query in known},
        unknown=len(judged.keys() - known),
        corpus=corpora[0] if corpora else None,
    )


def _records(path: Path, kind: type[M]) -> Iterator[tuple[str, M]]:
    for where, line in read_json_lines(local_file(path)):
        yield where, require_record(kind, where, line, _WHOLE)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file that aren't empty, each with its place."""
    for where, line in read_numbered_lines(local_file(path)):
        try:
            yield where, line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CorpusError(f"{where}: isn't UTF-8; save the file as UTF-8") from error
