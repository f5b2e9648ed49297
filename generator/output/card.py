"""The dataset's card: a README.md with metadata that the Hugging Face hub and `datasets` read.

Metadata: https://github.com/huggingface/hub-docs/blob/main/datasetcard.md. A card is made of `DatasetInfo` and
dialogs alone. Of paths and addresses it has those of the command line; a key is in none.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import yaml

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

_WARNING = """
> **Not for training.** The model behind this dataset is a tiny one that shows the machine at work; what it says is
> often wrong.
"""

_PAIRS = """to train models for
retrieval-augmented generation. A row is one context-response pair: the passages, the dialog so far, a question, and its
answer."""
_TASKS = """of the tasks of
MT-Bench-101, to test models by. A row is one context-response pair: the dialog so far, what the user says, and the
golden answer; the first answer of a dialog of self-correction (SC) is wrong on purpose."""
_ITEMS = """items of the
scenarios of RAD-Bench, to test models by. A row is one context-response pair: the passages, the dialog so far, a
question, and the reference that an answer is compared with."""
_BENCHMARKS: Mapping[str, str] = {"mt_bench_101": _TASKS, "rad_bench": _ITEMS}
_SPLIT = """
The corpus is split by document before generation{}: no document
is in both.
"""
_SPLIT_RETRIEVAL = ", and a dialog retrieves only documents of its own split"
_GUESSER = f"""
How far a guesser comes that tells a question's answerability without reading a passage, by naive Bayes in
cross-validation over the rows of this dataset (`python -m generator.statistics` counts all turns): the area under the
ROC curve, of which 0.5 is chance. A class with fewer than {LEAST} rows isn't listed.
"""
_VERBATIM = """\
- Evidence is verbatim by construction. The answers are generated: they can go beyond it, or leave something out.
"""
_LEE = r"""@misc{lee2024multidocument,
  title         = {Multi-Document Grounded Multi-Turn Synthetic Dialog Generation},
  author        = {Lee, Young-Suk and Gunasekara, Chulaka and Contractor, Danish and Fernandez Astudillo, Ram{\'o}n and
                   Florian, Radu},
  year          = {2024},
  eprint        = {2409.11500},
  archivePrefix = {arXiv},
  primaryClass  = {cs.CL}
}"""
_BAI = """@misc{bai2024mtbench101,
  title         = {{MT-Bench-101}: A Fine-Grained Benchmark for Evaluating Large Language Models in Multi-Turn
                   Dialogues},
  author        = {Bai, Ge and Liu, Jie and Bu, Xingyuan and He, Yancheng and Liu, Jiaheng and Zhou, Zhanhui and Lin,
                   Zhuoran and Su, Wenbo and Ge, Tiezheng and Zheng, Bo and Ouyang, Wanli},
  year          = {2024},
  eprint        = {2402.14762},
  archivePrefix = {arXiv},
  primaryClass  = {cs.CL}
}"""

_KUO = """@misc{kuo2025radbench,
  title         = {{RAD-Bench}: Evaluating Large Language Models' Capabilities in Retrieval Augmented Dialogues},
  author        = {Kuo, Tzu-Lin and Liao, Feng-Ting and Hsieh, Mu-Wei and Chang, Fu-Chieh and Hsu, Po-Chun and Shiu,
                   Da-Shan},
  year          = {2025},
  eprint        = {2409.12558},
  archivePrefix = {arXiv},
  primaryClass  = {cs.CL}
}"""


# A task of ours, to train models with, and none of MT-Bench-101.
_OUR_TASK = "QA"


class _Method(NamedTuple):
    """The words for an algorithm: what dialogs are grounded on and for, what first types are of, and whose it is."""

    grounding: str
    purpose: str = _PAIRS
    first: str = "first turns"
    citation: str = _LEE


_METHODS: Mapping[Algorithm, _Method] = {
    "single": _Method("one document"),
    "multi": _Method("passages retrieved after every user turn"),
    "whole": _Method("one document", _TASKS, "dialogs", _BAI),
    "progressive": _Method("passages retrieved for each user turn", _ITEMS, "dialogs", _KUO),
}


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
    texts = {
        "metadata": yaml.safe_dump(_metadata(info, splits), sort_keys=False, allow_unicode=True),
        "name": line(info.name),
        "corpus": line(info.corpus),
        "purpose": _BENCHMARKS.get(info.corpus, _PAIRS),
        "command": block(info.command),
        "statistics": _statistics(statistics),
        "guesses": _guesses(guesses),
        "splits": "\n".join(f"| {split} | {file.rows:,} |" for split, file in splits.items()),
        "columns": "\n".join(f"- `{name}`: {field.description}" for name, field in Row.model_fields.items()),
        "example": _readable_json(_shortened(example.model_dump(mode="json"))),
        "licence": line(info.licence) or "unknown",
        "source": line(info.source),
    }
    template = "human_card.md"
    if isinstance(info, DatasetInfo):
        template = "card.md"
        texts |= _generated(info, statistics, splits)
    return Template(files("generator.output").joinpath(template).read_text(encoding="utf-8")).substitute(texts)


def _generated(info: DatasetInfo, statistics: Statistics, splits: Collection[Split]) -> dict[str, str]:
    dropped = [
        [f"{scope}, {line(why)}", f"{count:,}"]
        for scope, counts in info.dropped.items()
        for why, count in by_frequency(counts)
    ]
    method = _METHODS[info.algorithm]
    if info.algorithm == "whole" and {name for name, _ in info.shares} == {_OUR_TASK}:
        method = method._replace(purpose=_PAIRS, citation=_LEE)
    people = any(judge.startswith(PERSON) for judge in statistics.judges)
    return {
        "checked": "; people judged some of the answers" if people else " or checked these answers",
        "grounding": "given only a topic" if info.topics else f"each grounded on {method.grounding}",
        "purpose": method.purpose,
        "split": ""
        if info.topics or len(splits) == 1
        else _SPLIT.format("" if info.algorithm == "whole" else _SPLIT_RETRIEVAL),
        "verbatim": "" if info.topics else _VERBATIM,
        "citation": method.citation,
        "warning": _WARNING if info.toy else "",
        "settings": "\n".join(f"- {name}: {line(value)}" for name, value in info.settings.items()),
        "models": "\n".join(_terms(did, model) for did, model in info.models),
        "shares": table(
            ("Type or label", "Of", "Target", "Achieved"),
            (
                [
                    line(share.type),
                    method.first if share.stage == "first" else f"{share.stage} turns",
                    f"{share.target:.1%}",
                    f"{share.achieved:.1%}",
                ]
                for _, share in info.shares
            ),
        ),
        "attempted": f"{info.attempted:,}",
        "accepted": f"{statistics.total.dialogs:,}",
        "dropped": table(("What, stage: reason", "Count"), dropped) if dropped else "Nothing.",
        "context": ""
        if parse_filter(info.filter)[0] != "pairs"
        else ", also one that was judged incorrect: only the last message was filtered",
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
    return f"{_GUESSER}\n{table(('Class', 'Told by the', 'Rows', 'AUC'), cells)}\n\n{verdict}\n"


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
