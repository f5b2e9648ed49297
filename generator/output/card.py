"""The dataset's card: a README.md with metadata that the Hugging Face hub and `datasets` read.

Metadata: https://github.com/huggingface/hub-docs/blob/main/datasetcard.md. A card is made of `DatasetInfo` and
dialogs alone. Of paths and addresses it has those of the command line; a key is in none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml
from jinja2 import Environment

from generator.common.sanitize import printable
from generator.dialogs.columns import PERSON
from generator.dialogs.filter import Filter, parse_filter
from generator.output.chat import Row
from generator.output.markdown import block, line, table
from generator.output.stats.guesses import AWAY, LEAST, Guess
from generator.output.stats.statistics import Statistics
from generator.output.summary import Counts, Share, by_frequency
from generator.output.terms import find_terms
from generator.schema import Algorithm, Record, Scope, Split

EXAMPLE_CHARS = 300

# From https://huggingface.co/docs/hub/repositories-licenses, the licences that documents are published under.
_HUB_LICENCES = {
    *("apache-2.0", "mit", "cc", "cc0-1.0", "gfdl", "odbl", "odc-by", "pddl", "unlicense", "unknown"),
    *("cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nd-4.0"),
    *("cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0"),
    *("cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cdla-sharing-1.0", "cdla-permissive-2.0"),
}
_BOUNDS = [10**exponent for exponent in range(3, 9)]
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")

# A task of ours, to train models with, and none of MT-Bench-101.
_OUR_TASK = "QA"
# What an algorithm's dialogs are grounded on, and the paper that it is of.
_GROUNDING: Mapping[Algorithm, str] = {
    "single": "one document",
    "multi": "passages retrieved after every user turn",
    "whole": "one document",
    "progressive": "passages retrieved for each user turn",
}
_PAPERS: Mapping[Algorithm, str] = {"whole": "mt_bench_101", "progressive": "rad_bench"}


class Origin(Record):
    """The facts on the card of human dialogs: of the dataset, and of its corpus. All of them are published."""

    name: str
    command: str
    corpus: str
    licence: str
    source: str
    language: str | None
    filter: Filter = "pairs"


class DatasetInfo(Origin):
    """The further facts on the card of generated dialogs that the dialogs themselves don't hold.

    Attributes:
        settings: those that decide what the dialogs are, as text, by title.
        topics: the corpus has topics, which answers don't rest on.
        models: what each model did, and its name.
        toy: the model is too small for its dialogs to train on.
    """

    algorithm: Algorithm
    topics: bool = False
    settings: Mapping[str, str]
    attempted: int
    shares: tuple[tuple[str, Share], ...]
    dropped: Mapping[Scope, Counts]
    models: tuple[tuple[str, str], ...]
    toy: bool


class SplitFile(Record):
    """The rows of a split, 1 or more, and the file that holds them, as a path in the dataset's folder."""

    rows: int
    path: str


def render_card(
    info: Origin, statistics: Statistics, guesses: Sequence[Guess], splits: Mapping[Split, SplitFile], example: Row
) -> str:
    """Return the text of README.md.

    Args:
        guesses: at the answerability of the pairs.
        splits: the splits with rows.
        example: a row to show.
    """
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters |= {"line": line, "block": block, "count": "{:,}".format}
    template = environment.from_string(files("generator.output").joinpath("card.md").read_text(encoding="utf-8"))
    return template.render(
        info=info,
        generated=isinstance(info, DatasetInfo),
        metadata=yaml.safe_dump(_metadata(info, splits), sort_keys=False, allow_unicode=True),
        accepted=statistics.total.dialogs,
        splits=splits,
        tables=_statistics(statistics),
        guesses=_guesses(guesses),
        least=LEAST,
        columns=Row.model_fields,
        example=_readable_json(_shortened(example.model_dump(mode="json"))),
        licence=line(info.licence) or "unknown",
        **(_generated(info, statistics) if isinstance(info, DatasetInfo) else {"paper": info.corpus}),
    )


def _generated(info: DatasetInfo, statistics: Statistics) -> dict[str, Any]:
    dropped = [
        [f"{scope}, {line(why)}", f"{count:,}"]
        for scope, counts in info.dropped.items()
        for why, count in by_frequency(counts)
    ]
    first = "dialogs" if info.algorithm in _PAPERS else "first turns"
    shares = [
        [
            line(share.type),
            first if share.stage == "first" else f"{share.stage} turns",
            f"{share.target:.1%}",
            f"{share.achieved:.1%}",
        ]
        for _, share in info.shares
    ]
    our_task = {name for name, share in info.shares if share.stage == "first"} == {_OUR_TASK}
    return {
        "grounding": _GROUNDING[info.algorithm],
        "paper": "" if info.algorithm == "whole" and our_task else _PAPERS.get(info.algorithm, ""),
        "people": any(judge.startswith(PERSON) for judge in statistics.judges),
        "models": [_terms(did, model) for did, model in info.models],
        "shares": table(("Type or label", "Of", "Target", "Achieved"), shares),
        "dropped": table(("What, stage: reason", "Count"), dropped) if dropped else "Nothing.",
        "incorrect_context": parse_filter(info.filter)[0] == "pairs",
    }


def _terms(did: str, model: str) -> str:
    """Return a line about a model: what it did, and its licence or terms."""
    if (known := find_terms(model)) is None:
        return (
            f"- **{line(model)}** {did}. Its licence or terms aren't known here; its publisher or provider names them."
        )
    return f"- **{line(model)}** {did}: {known.terms}, {known.url}. {known.binds}".rstrip()


def _metadata(info: Origin, splits: Mapping[Split, SplitFile]) -> dict[str, Any]:
    rows = sum(file.rows for file in splits.values())
    slug = re.sub(r"[^a-z0-9.]+", "-", info.licence.lower()).strip("-") or "unknown"
    slug = "unknown" if slug.startswith("unknown") else slug
    licence = {"license": slug} if slug in _HUB_LICENCES else {"license": "other", "license_name": slug}
    synthetic = ["synthetic"] if isinstance(info, DatasetInfo) else []
    data_files = [{"split": split, "path": file.path} for split, file in splits.items()]
    if "license_name" in licence and info.source.startswith(("http://", "https://")):
        licence["license_link"] = info.source
    return {
        "pretty_name": printable(info.name),
        **({"language": [info.language]} if info.language else {}),
        **licence,
        "task_categories": ["question-answering", "text-generation"],
        "size_categories": [_SIZES[sum(rows >= bound for bound in _BOUNDS)]],
        "tags": [*synthetic, "grounded-dialogs", "multi-turn", "conversational", "rag"],
        "configs": [{"config_name": "default", "data_files": data_files}],
    }


def _statistics(statistics: Statistics) -> str:
    """Return two tables: table 9 of Lee et al. 2024, and the shares of the turns."""
    tasks = statistics.turns == statistics.total.dialogs and statistics.total.turns > 1  # whose last turns count
    head = (
        "Last question" if tasks else "First question",
        "Dialogs",
        "Turns/dialog",
        "Query",
        "Response",
        "Document",
        "Passages/dialog",
    )
    lines = [*((line(name), means) for name, means in statistics.by_type), ("**total**", statistics.total)]
    means = []
    for name, m in lines:
        turns, query, response, passages = (f"{mean:.1f}" for mean in (m.turns, m.query, m.response, m.passages))
        means.append((name, f"{m.dialogs:,}", turns, query, response, f"{m.document:,.0f}", passages))
    shares = [
        [f"{kind}: {line(p.name)}", f"{p.count:,}", f"{p.share:.1%}"]
        for kind, portions in (
            ("question type", statistics.question_types),
            ("answerability", statistics.answerability),
            ("verdict", () if {p.name for p in statistics.verdicts} == {"none"} else statistics.verdicts),
            ("difficulty, of those with evidence", statistics.difficulty),
            ("needs documents, of those judged so", statistics.needs_documents),
        )
        for p in portions
    ]
    return f"{table(head, means)}\n\n{table(('Turns', 'Count', 'Share'), shares)}"


def _guesses(guesses: Sequence[Guess]) -> str:
    """Return what a guesser tells of the answerability, and whether the set gives itself away; empty without."""
    if not guesses:
        return ""
    cells = ([g.answerability, g.sees, f"{g.pairs:,}", f"{g.auc:.2f}"] for g in guesses)
    away = [str(guess) for guess in guesses if guess.gives_away]
    verdict = f"**This set gives itself away**: {', '.join(away)}." if away else f"No AUC is above {AWAY}."
    return f"{table(('Class', 'Told by the', 'Rows', 'AUC'), cells)}\n\n{verdict}"


def _readable_json(value: Any) -> str:
    """Return indented JSON with control characters and bidirectional overrides escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _shortened(value: Any) -> Any:
    """Return a JSON value with its long texts cut."""
    if isinstance(value, dict):
        return {key: _shortened(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shortened(part) for part in value]
    if isinstance(value, str) and len(value) > EXAMPLE_CHARS:
        return value[:EXAMPLE_CHARS] + " […]"
    return value
