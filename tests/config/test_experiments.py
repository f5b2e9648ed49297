"""The experiments of Lee et al. 2024 are what their paper says, and go together as one types them."""

from pathlib import Path

import pytest

from generator.__main__ import normalised
from generator.config.compose import Configuration, composed, understood
from generator.config.messages import CONF
from generator.errors import ConfigError
from taxonomy import load
from tests.config.test_conf_files import settings

# Table 9: dialogs by the type of the first question.
TABLE_9 = {
    "coqa": {"aggregate": 9967, "comparative": 8894, "direct": 9217},
    "multidoc2dial": {"aggregate": 8572, "comparative": 8211, "direct": 9715, "unanswerable": 2500},
    "quac": {"aggregate": 9271, "comparative": 9554, "direct": 9896, "unanswerable": 3000},
    "orquac": {"aggregate": 9006, "comparative": 9993, "direct": 5000},
}
FIRST = "algorithm.first_questions=outputs/quac"


def runs(*arguments: str) -> list[Configuration]:
    return composed(CONF, "config", understood(normalised([*arguments])))


def needs(corpus: str) -> list[str]:
    return [FIRST] if corpus == "orquac" else []


@pytest.mark.parametrize("corpus", TABLE_9)
@pytest.mark.parametrize(("suffix", "part"), [("", 1), ("_1pct", 100)])
def test_an_experiment_has_the_papers_corpus_algorithm_types_and_sizes(corpus: str, suffix: str, part: int) -> None:
    made = settings(f"+experiment=lee2024_{corpus}{suffix}", *needs(corpus))
    sizes = TABLE_9[corpus]
    assert made.documents.name == corpus
    assert made.algorithm.name == ("multi" if corpus == "orquac" else "single")
    assert made.lm.model == "mistralai/Mixtral-8x7B-Instruct-v0.1"
    assert made.taxonomy.focus == "none"
    assert made.dialogs == pytest.approx(sum(sizes.values()) / part, abs=1)
    shares = {share.type.name: share.share for share in load(made.taxonomy).first}
    assert shares == pytest.approx({name: size / sum(sizes.values()) for name, size in sizes.items()}, abs=1e-5)
    if corpus == "orquac":
        assert made.algorithm.first_questions == Path("outputs/quac")


@pytest.mark.parametrize(("corpus", "row"), [(corpus, row) for corpus, rows in TABLE_9.items() for row in rows])
def test_a_taxonomy_of_one_type_makes_that_row_of_the_table(corpus: str, row: str) -> None:
    made = settings(f"experiment=lee2024_{corpus}", f"taxonomy={row}", *needs(corpus))
    assert made.dialogs == TABLE_9[corpus][row]
    assert [share.type.name for share in load(made.taxonomy).first] == [row]


@pytest.mark.parametrize("corpus", TABLE_9)
@pytest.mark.parametrize(("suffix", "part"), [("", 1), ("_1pct", 100)])
def test_the_training_sets_differ_in_judge_and_unanswerable_questions(corpus: str, suffix: str, part: int) -> None:
    sizes = TABLE_9[corpus]
    answerable = sum(size for name, size in sizes.items() if name != "unanswerable")
    plain = settings(f"+experiment=[lee2024_{corpus}{suffix},synthetic]", *needs(corpus))
    filtered = settings(f"+experiment=[lee2024_{corpus}{suffix},synthetic_filtered]", *needs(corpus))
    assert (plain.judge.name, filtered.judge.name, filtered.judge.filter) == ("none", "correctness", "pairs")
    assert {share.type.name for share in load(plain.taxonomy).first} == set(sizes)
    assert {share.type.name for share in load(filtered.taxonomy).first} == set(sizes) - {"unanswerable"}
    assert plain.dialogs == pytest.approx(sum(sizes.values()) / part, abs=1)
    assert filtered.dialogs == pytest.approx(answerable / part, abs=1)
    assert plain.folder.name == f"{corpus}-lee2024_{corpus}-{plain.algorithm.name}-synthetic-0"
    assert plain.folder != filtered.folder


def test_the_companion_set_is_two_hundred_conversations_over_four_domains() -> None:
    made = settings("+experiment=mtrag_s", "corpus.domain=fiqa")
    assert (made.documents.name, made.taxonomy.name, made.algorithm.name) == ("mtrag", "mtrag", "multi")
    assert (made.turns.least, made.turns.most, made.retriever.query) == (6, 10, "rewrite")
    assert made.folder == Path("outputs/mtrag_s-fiqa-0")
    assert made.dialogs * len(runs("+experiment=mtrag_s")) == 200


@pytest.mark.parametrize(
    ("given", "domains"),
    [
        ((), ["clapnq", "cloud", "fiqa", "govt"]),
        (("corpus.domain=clapnq,fiqa",), ["clapnq", "fiqa"]),
        (("corpus.domain=fiqa",), ["fiqa"]),
        (("seed=0,1", "corpus.domain=fiqa"), ["fiqa", "fiqa"]),
    ],
)
def test_an_experiment_may_be_a_sweep(given: tuple[str, ...], domains: list[str]) -> None:
    assert [run.settings.corpus.domain for run in runs("+experiment=mtrag_s", *given)] == domains


def test_what_an_experiment_chooses_can_be_chosen_otherwise_with_or_without_a_plus() -> None:
    for corpus, taxonomy in (("+corpus=sample", "+taxonomy=direct"), ("corpus=sample", "taxonomy=direct")):
        made = settings("+experiment=lee2024_quac_1pct", corpus, taxonomy, "lm=embedded", "dialogs=3")
        assert (made.documents.name, made.taxonomy.name, made.dialogs) == ("sample", "direct", 3)
    assert settings("experiment=synthetic", "dialogs=3").documents.name == "sample"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["+experiment=lee2024_orquac"], "algorithm.first_questions: has no value; give algorithm.first_questions=…"),
        (["+experiment=lee2024_quac", "taxonomy=mixed"], "dialogs: has no value; give dialogs=…"),
    ],
)
def test_what_an_experiment_lacks_is_said(arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings(*arguments)
    assert str(error.value).startswith(said)
