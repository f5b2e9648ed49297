"""Agreement of companion sets with people's conversations about which retriever is the better one: Kendall's tau.

    uv run --extra dense --group benchmark python -m benchmarks.rank_agreement DATA/mtrag outputs/RUN ...

HUMAN is mtRAG's folder (Katsis et al. 2025: `conversations.json`, `retrieval_tasks/` with the passages of each domain),
each COMPANION a run on these passages with `retriever.query=rewrite`. A system is a retriever with a form of query.
Each searches the same passages, those of the question's domain, for people's questions and for those of the runs. The
means of nDCG@5 and Recall@5 over people's questions rank the systems, and so do those over the runs' questions; tau
compares both rankings. The domain "all" is the mean of the domains.

Intervals hold 95% of the bootstrap draws of both sets' conversations, each domain by itself. Beside them stands what
people's questions reach among themselves: conversations with as many questions as the runs have (half of people's at
most), drawn at random, against all other conversations of people.

Writes `rank_agreement.md` and `.json`. Rankings and vectors are kept in `--cache`: the same command continues.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.command_line import errors_on_one_line
from benchmarks.rank_statistics import OVERALL, Matrix, Sample, Samples, compare, compare_people, set_means
from benchmarks.rank_systems import CUT, VARIANTS, Variant, rank_texts
from generator.common.atomic_files import digest, write_text
from generator.common.console import note
from generator.corpora.mtrag.names import domain_of
from generator.dialogs.filter import check_columns, filter_pairs, list_judges, parse_filter
from generator.dialogs.query import form_query
from generator.errors import CorpusError
from generator.output.markdown import table
from generator.output.tables import ABSENT
from generator.schema import Dialog, Passage, QueryForm
from generator.sets import dialog_set
from judges.benchmarks.mtrag.retrieval_tasks import read_collections, read_documents
from judges.metrics.ranking import CUTS, measure, to_scores

FORMS: tuple[QueryForm, ...] = get_args(QueryForm)
RETRIEVERS = ("bm25", "dense", "hybrid")
# Numbers of people's questions that are compared with the others of people's; at most half of them are.
SIZES = (15, 30, 60, 120, 240)
METRICS = (f"nDCG@{CUT}", f"R@{CUT}")
NEW = "kept, new passages"


class Question(NamedTuple):
    """A question of a conversation with the passages that its answer rests on, by their ids in the pool.

    `new` if none of these is relevant to an earlier question of the conversation.
    """

    conversation: str
    texts: Mapping[QueryForm, str]
    relevant: frozenset[str]
    kept: bool
    new: bool = True


Pools = Mapping[str, Path]


def read_pools(human: Path) -> tuple[Pools, dict[str, str]]:
    """Return the file of the passages of each domain, and the domain of each passage.

    Raises:
        CorpusError: a file is missing or can't be read, or a passage is in two domains.
    """
    pools = {of.name: of.corpus for of in read_collections(human / "retrieval_tasks") if of.corpus}
    domains: dict[str, str] = {}
    for domain, file in pools.items():
        for document in read_documents(file):
            if domains.setdefault(document.id, domain) != domain:
                raise CorpusError(f"{file}: passage {document.id} is also one of {domains[document.id]}")
    return pools, domains


def read_people(human: Path, domains: Mapping[str, str]) -> dict[str, list[Question]]:
    """Return people's questions by domain; conversations about a domain without passages are left out."""
    found = list(dialog_set(str(human), "mtrag").dialogs())
    known = [dialog for dialog in found if domain_of(dialog.collection) in domains.values()]
    if others := len(found) - len(known):
        note(f"{human}: {others} conversations are about domains whose passages aren't there, and are left out")
    return read_questions(known, domains, "pairs")


def read_run(run: Path, domains: Mapping[str, str], keep: str | None = None) -> dict[str, list[Question]]:
    """Return the questions of a run by domain; `kept` is what `keep` keeps, or the run's own `judge.filter`.

    Raises:
        CorpusError: it has no rewritten questions, or rests on other passages; a filter can't be read.
        ConfigError: `keep` has a column that the run doesn't have.
    """
    try:
        config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
        form, own = config["retriever"]["query"], (config.get("judge") or {}).get("filter", "pairs")
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise CorpusError(f"{run}: not the folder of a run with retrieval: {error}") from error
    if form != "rewrite":
        raise CorpusError(
            f"{run}: retriever.query={form}: no rewritten questions; make it with retriever.query=rewrite"
        )
    dialogs = list(dialog_set(str(run)).dialogs())
    if any(dialog.algorithm not in ("multi", "progressive") for dialog in dialogs):
        raise CorpusError(f"{run}: no rewritten questions; make it with algorithm=multi retriever.query=rewrite")
    try:
        parse_filter(keep or own)
    except ValueError as error:
        where = "--filter" if keep else f"{run}/config.yaml: judge.filter"
        raise CorpusError(f"{where}={keep or own}: {error}") from error
    if keep:
        check_columns(keep, list_judges(turn for dialog in dialogs for turn in dialog.turns), setting="--filter")
    return read_questions(dialogs, domains, keep or own, f"{run}: ")


def read_questions(
    dialogs: Iterable[Dialog], domains: Mapping[str, str], keep: str, run: str = ""
) -> dict[str, list[Question]]:
    """Return the questions that rest on passages, by the domain of these; those that shouldn't, as unanswerable ones,
    are left out.

    Args:
        run: what tells its dialogs from those of other runs with the same plans.
    """
    found: dict[str, list[Question]] = {}
    for dialog in dialogs:
        passages = {passage.id: passage for passage in dialog.passages}
        kept = {turn.turn for turn in filter_pairs(dialog, keep)[0]}
        earlier = set[str]()
        for number, turn in enumerate(dialog.turns):
            relevant = {_name(passages[evidence.passage_id], domains) for evidence in turn.evidence}
            if not relevant or turn.answerability not in ("answerable", "partial"):
                continue
            where = {domains.get(name) for name in relevant}
            if len(where) > 1 or (domain := where.pop()) is None:
                raise CorpusError(
                    f"dialog {dialog.id}: {', '.join(sorted(relevant))}: not all passages of one domain of the human "
                    "set; make the companion set from its passages (corpus=mtrag corpus.path=… corpus.domain=…)"
                )
            texts = {f: form_query(f, dialog.turns[:number], turn.query, turn.retrieval_query) for f in FORMS}
            new, name = relevant.isdisjoint(earlier), f"{run}{dialog.id}"
            question = Question(name, texts, frozenset(relevant), turn.turn in kept, new)
            earlier |= relevant
            found.setdefault(domain, []).append(question)
    return found


def _name(passage: Passage, domains: Mapping[str, str]) -> str:
    """Return the id that a passage, or what it was cut from, has in the pool."""
    return passage.id if passage.id in domains else passage.document_id


def measure_systems(
    domain: str, pool: Path, questions: Sequence[Question], variants: Mapping[str, Variant], cache: Path
) -> Matrix:
    """Return the figures of each question, shape (questions, systems, metrics); systems are variants by forms."""
    relevant = {str(place): dict.fromkeys(question.relevant, 1) for place, question in enumerate(questions)}
    texts = {text for question in questions for text in question.texts.values()}
    place = CUTS.index(CUT)
    columns = []
    for name, variant in variants.items():
        note(f"{domain}: {name}")
        rankings = rank_texts(domain, pool, variant, texts, cache)
        for form in FORMS:
            found = {str(number): to_scores(rankings[q.texts[form]]) for number, q in enumerate(questions)}
            figures = measure(relevant, found)
            columns.append([(figures[name].ndcg[place], figures[name].recall[place]) for name in relevant])
    return np.array(columns).swapaxes(0, 1)


def sample(questions: Sequence[Question], figures: Matrix, chosen: NDArray[np.bool_]) -> Sample | None:
    """Return the sums of the chosen questions by conversation; None if there are none."""
    if not chosen.any():
        return None
    names = np.array([question.conversation for question in questions])[chosen]
    _, places, counts = np.unique(names, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), *figures.shape[1:]))
    np.add.at(sums, places, figures[chosen])
    return Sample(sums, counts)


def list_systems(variants: Iterable[str], sets: Mapping[str, Samples]) -> list[dict[str, Any]]:
    """Return the figures of each system over all domains, and its rank by the first metric, in each set."""
    systems: list[dict[str, Any]] = [{"retriever": name, "form": form} for name in variants for form in FORMS]
    for name, samples in sets.items():
        means = set_means(samples)[OVERALL][0]
        ranks = rankdata(-means[:, 0], method="min")
        for system, figures, rank in zip(systems, means.tolist(), ranks.tolist(), strict=True):
            system[name] = {**dict(zip(METRICS, figures, strict=True)), "rank": int(rank)}
    return sorted(systems, key=lambda system: system["people"]["rank"])


def to_markdown(result: Mapping[str, Any]) -> str:
    """Return the tables: agreement, that of people's questions among themselves, figures of the systems."""
    rows = [
        [
            *(pairs, row["domain"], row["form"], *(str(row[key]) for key in ("systems", "conversations", "questions"))),
            *(_interval(of) for of in row["agreement"].values()),
            *(_interval(of["people"]) for of in row["agreement"].values()),
        ]
        for pairs, found in result["agreement"].items()
        for row in found
    ]
    alone = [
        [str(row["questions"]), *(_interval(of) for of in row["agreement"].values())] for row in result["people_alone"]
    ]
    head = ["pairs", "domain", "query form", "systems", "conversations", "questions"]
    head += [f"tau by {metric} (95%)" for metric in METRICS] + [f"people alone, {metric} (95%)" for metric in METRICS]
    sets = [name for name in ("people", *result["agreement"]) if name in result["systems"][0]]
    systems = [
        [
            *(system["retriever"], f"`{system['form']}`"),
            *(
                cell
                for name in sets
                for cell in (str(system[name]["rank"]), *(f"{system[name][m]:.3f}" for m in METRICS))
            ),
        ]
        for system in result["systems"]
    ]
    of_sets = [f"{name}, {column}" for name in sets for column in ("rank", *METRICS)]
    return "\n\n".join(
        [
            table(head, rows),
            table(["people's questions", *(f"tau by {metric} (95%)" for metric in METRICS)], alone),
            table(["retriever", "query form", *of_sets], systems) + "\n",
        ]
    )


def _interval(of: Mapping[str, Any]) -> str:
    return ABSENT if of["tau"] is None else "{:.2f} ({:.2f} to {:.2f})".format(of["tau"], *of["interval"])


def measure_agreement(
    human: Path,
    runs: Sequence[Path],
    variants: Mapping[str, Variant],
    cache: Path,
    draws: int,
    seed: int,
    keep: str | None = None,
) -> dict[str, Any]:
    """Return the agreement for all pairs of the runs and for those that are kept, and the systems' figures.

    Args:
        keep: a filter in place of the runs' own.

    Raises:
        GroundedDialogsError: a set can't be read, has no question, or rests on other passages; a package is missing.
    """
    pools, domains = read_pools(human)
    asked = read_people(human, domains)
    made: dict[str, list[Question]] = {}
    for run in runs:
        for domain, questions in read_run(run, domains, keep).items():
            made.setdefault(domain, []).extend(questions)
    people: dict[str, Sample] = {}
    companion: dict[str, dict[str, Sample]] = {"all": {}, "kept": {}, NEW: {}}
    if lacking := sorted(made.keys() - asked.keys()):
        raise CorpusError(f"{human}: has no questions of people about {lacking[0]}, as the companion set has")
    for domain, generated in sorted(made.items()):
        questions = [*asked[domain], *generated]
        figures = measure_systems(domain, pools[domain], questions, variants, cache)
        of_people = np.arange(len(questions)) < len(asked[domain])
        kept, new = np.array([(question.kept, question.new) for question in questions]).T
        for samples, chosen in (
            (people, of_people),
            (companion["all"], ~of_people),
            (companion["kept"], ~of_people & kept),
            (companion[NEW], ~of_people & kept & new),
        ):
            if found := sample(questions, figures, chosen):
                samples[domain] = found
    for name in (name for name, samples in companion.items() if companion["all"] and not samples):
        note(f"COMPANION: no question is left of those {name}")
    companion = {name: samples for name, samples in companion.items() if samples}
    if not companion:
        raise CorpusError("COMPANION: no run has a question that rests on a passage")
    every = np.arange(len(variants) * len(FORMS))
    forms: dict[str, NDArray[Any]] = {form: every[place :: len(FORMS)] for place, form in enumerate(FORMS)}
    return {
        "draws": draws,
        "seed": seed,
        "people": {d: {"conversations": len(of.counts), "questions": int(of.counts.sum())} for d, of in people.items()},
        "agreement": {
            name: compare(people, samples, forms, METRICS, draws, seed) for name, samples in companion.items()
        },
        "people_alone": compare_people(people, SIZES, METRICS, draws, seed),
        "systems": list_systems(variants, {"people": people, **companion}),
    }


def _identify(run: Path) -> str:
    """Return what is equal for a run and a copy of it."""
    file = run / "dialogs.jsonl"
    return digest(file) if file.is_file() else str(run.resolve())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("human", type=Path, metavar="HUMAN", help="mtRAG's folder")
    parser.add_argument("companion", type=Path, nargs="+", metavar="COMPANION", help="run folders")
    parser.add_argument(
        "--model", help="the encoder of dense and hybrid, a folder (default: all-MiniLM-L6-v2 of the hub)"
    )
    parser.add_argument("--retrievers", nargs="+", choices=RETRIEVERS, default=RETRIEVERS)
    parser.add_argument("--cache", type=Path, default=Path("outputs/.cache/rank_agreement"))
    parser.add_argument("--output", type=Path, default=Path("outputs"), help="folder for both files")
    parser.add_argument("--filter", help="as judge.filter, in place of the runs' own")
    parser.add_argument("--draws", type=int, default=1000, help="of the bootstrap, 2 at least")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    given = parser.parse_args()
    if given.draws < 2 or given.seed < 0:
        parser.error("--draws must be 2 or more, and --seed 0 or more")
    if len({_identify(run) for run in given.companion}) < len(given.companion):
        parser.error("COMPANION: a run is given twice; give it once")
    variants = {
        name: variant._replace(changes=(*variant.changes, *([f"model={given.model}"] if given.model else [])))
        if variant.retriever != "bm25"
        else variant
        for name, variant in VARIANTS.items()
        if variant.retriever in given.retrievers
    }
    with errors_on_one_line():
        given.output.mkdir(parents=True, exist_ok=True)
        result = measure_agreement(
            given.human, given.companion, variants, given.cache, given.draws, given.seed, given.filter
        )
        text = to_markdown(result)
        for name, content in (("md", text), ("json", json.dumps(result, indent=1) + "\n")):
            write_text(given.output / f"rank_agreement.{name}", content)
    print(text)


if __name__ == "__main__":
    main()
