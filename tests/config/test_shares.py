"""Weights of question types on the command line, as Hydra composes them."""

import pytest

from generator.errors import ConfigError, TaxonomyError
from taxonomy import Taxonomy, load
from tests.config.test_conf_files import settings
from tests.config.test_experiments import runs

MIXED = {"direct": 0.3, "comparative": 0.3, "aggregate": 0.3, "unanswerable": 0.1}


def first(*arguments: str) -> dict[str, float]:
    taxonomy: Taxonomy = load(settings(*arguments).taxonomy)
    return {share.type.name: round(share.share, 4) for share in taxonomy.first}


@pytest.mark.parametrize(
    ("arguments", "shares"),
    [
        (["taxonomy.first.comparative=0"], {"direct": 0.4286, "aggregate": 0.4286, "unanswerable": 0.1429}),
        (["taxonomy.first={direct: 1, factoid: 3}"], {"direct": 0.25, "factoid": 0.75}),
        (["taxonomy.first={direct: 1}", "taxonomy.first.factoid=1"], {"direct": 0.5, "factoid": 0.5}),
        (
            ["taxonomy.first.factoid=0.7", "taxonomy.without=[direct,aggregate]"],
            {"comparative": 0.2727, "unanswerable": 0.0909, "factoid": 0.6364},
        ),
        (
            ["taxonomy.first={direct: 2, factoid: 1, keyword: 3}", "taxonomy.without=direct"],
            {"factoid": 0.25, "keyword": 0.75},
        ),
        (["+taxonomy=mtrag", "taxonomy.first={direct: 1}"], {"direct": 1}),
    ],
)
def test_weights_are_changed_added_and_replaced(arguments: list[str], shares: dict[str, float]) -> None:
    assert first(*arguments) == shares


def test_every_dimension_can_be_replaced_in_any_mix() -> None:
    taxonomy = load(settings("taxonomy.multi_turn={follow-up: 2}", "taxonomy.later={factoid: 5}").taxonomy)
    assert [(share.type.name, share.share) for share in taxonomy.multi_turn] == [("follow-up", 1)]
    assert [(share.type.name, share.share) for share in taxonomy.later] == [("factoid", 1)]


def test_whole_mixes_can_be_swept() -> None:
    swept = runs("-m", "taxonomy.first={direct: 1},{comparative: 1, direct: 2}")
    assert [dict(run.settings.taxonomy.first) for run in swept] == [{"direct": 1}, {"comparative": 1, "direct": 2}]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("taxonomy.first.direct=-1", "taxonomy.first.direct=-1: must be 0 or more"),
        ("taxonomy.first={direct: 0}", "taxonomy.first: no type has a weight above 0"),
        ("taxonomy.first={}", "taxonomy.first: no type has a weight above 0"),
        ("taxonomy.first={drect: 1}", "taxonomy.first.drect: unknown question type; did you mean 'direct'?"),
    ],
)
def test_unusable_weights_are_one_line(argument: str, message: str) -> None:
    with pytest.raises((ConfigError, TaxonomyError)) as error:
        first(argument)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
