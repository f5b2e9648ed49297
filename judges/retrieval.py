"""`python -m judges.retrieval`: Recall and nDCG on retrieval tasks in mtRAG's layout; see `docs/metrics.md`."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from generator.command import Command, generator_groups, run_command
from generator.errors import ConfigError
from generator.schema import LocalPath, Record

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMMAND = Command(
    program="python -m judges.retrieval",
    primary="retrieval",
    task="judges.retrieval:evaluate",
    settings="judges.retrieval:RetrievalSettings",
    usage=(
        "python -m judges.retrieval FOLDER [retriever=NAME] [setting=value ...]",
        "python -m judges.retrieval FOLDER run=FILE    rankings in TREC's format",
        "",
        "Recall and nDCG at 1, 3, 5 and 10 on retrieval tasks in mtRAG's layout: overall, by turn, standalone or not,",
        "by collection. docs/metrics.md defines the figures. Queries without a relevant passage are counted and left",
        "out. FOLDER has <collection>/<collection>_lastturn.jsonl, _questions.jsonl, _rewrite.jsonl,",
        "<collection>/qrels/ and, to be searched, <collection>/corpus*.jsonl.",
    ),
    groups=generator_groups("retriever"),
    positional="folder",
)

_IGNORED = ("retriever.k", "retriever.query", "retriever.passage_tokens", "retriever.overlap")


class RetrievalSettings(Record):
    folder: LocalPath = Field(description="The tasks.")
    queries: Literal["lastturn", "questions", "rewrite"] | None = Field(
        description="Form of the queries: lastturn, questions or rewrite; null: all that exist."
    )
    run: LocalPath | None = Field(description="Rankings in TREC's format, evaluated in place of a retriever's.")
    split: str | None = Field(description="Of the qrels; null: dev, or the only one.")
    language: str | None = Field(
        description="ISO 639 code of the passages' language, such as `en`: it decides how they are searched "
        "(`docs/languages.md`); null: found in a sample of each collection."
    )
    cache_dir: LocalPath = Field(description="Folder for indexes.")
    format: Literal["terminal", "markdown", "csv", "json"] | None = Field(
        description="Of the table: terminal, markdown, csv or json; null: by the ending of `output`, else terminal."
    )
    output: LocalPath | None = Field(description="File for the table; null: standard output.")


def evaluate(cfg: "DictConfig", job: object) -> None:
    """Print the figures of the configured retriever or rankings."""
    from hydra.core.hydra_config import HydraConfig

    from generator.config.parts import build_choice, plain, validate
    from generator.output.tables import write_table
    from judges.benchmarks.mtrag.retrieval import WHOLE, evaluate_retriever, evaluate_run
    from judges.benchmarks.mtrag.retrieval_table import table

    data, hydra = plain(cfg), HydraConfig.get()
    given = {override.partition("=")[0].lstrip("+") for override in hydra.overrides.task}
    if ignored := [name for name in _IGNORED if name in given]:
        raise ConfigError(
            f"{', '.join(ignored)}: not used here; passages aren't split, queries=… is the form of the queries, and "
            "figures are at 1, 3, 5 and 10"
        )
    # Whole passages are searched, as people judged them.
    retriever = build_choice("retriever", data.pop("retriever") | {"passage_tokens": WHOLE, "overlap": 0})
    settings = validate(RetrievalSettings, data)
    if settings.run is not None:
        rows = evaluate_run(settings.folder, settings.split, settings.run)
    else:
        name = str(hydra.runtime.choices["retriever"])
        rows = evaluate_retriever(
            settings.folder, settings.split, name, retriever, settings.queries, settings.language, settings.cache_dir
        )
    write_table(settings.output, settings.format, partial(table, rows))


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
