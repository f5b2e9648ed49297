"""Weights of question types on the command line, as Hydra composes them."""

from pathlib import Path

import pytest

from taxonomy import Taxonomy, load
from tests.support.runs import command
from tests.support.settings import settings

FK = {"factoid": 0.25, "keyword": 0.75}


def taxonomy(*arguments: str) -> Taxonomy:
    return load(settings(*arguments).taxonomy)


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["taxonomy.first.comparative=0"], {"direct": 0.4286, "aggregate": 0.4286, "unanswerable": 0.1429}),
        (["taxonomy.first={direct: 1, factoid: 3}"], {"direct": 0.25, "factoid": 0.75}),
        (["taxonomy.first={direct: 1}", "taxonomy.first.factoid=1"], {"direct": 0.5, "factoid": 0.5}),
        (["taxonomy.first={direct: 2, factoid: 1, keyword: 3}", "taxonomy.first.direct=0"], FK),
        (["+taxonomy=mtrag", "taxonomy.first={direct: 1}"], {"direct": 1}),
    ],
)
def test_weights_are_changed_added_and_replaced(arguments: list[str], first: dict[str, float]) -> None:
    assert {share.type.name: round(share.share, 4) for share in taxonomy(*arguments).first} == first


def test_each_run_of_a_sweep_replaces_the_mix(here: Path) -> None:
    done = command("-m", "taxonomy.first={direct: 0},{comparative: 0}")
    assert done.code == 2
    assert done.err.count("taxonomy.first: no type has a weight above 0") == 2, "a merged mix would have other types"


def test_weights_of_users_are_changed_and_replaced() -> None:
    def users(*arguments: str) -> dict[str, float]:
        return settings(*arguments).user.types

    assert users() == {"plain": 1}
    assert users("user.types.novice=2") == {"plain": 1, "novice": 2}
    assert users("user=mixed", "user.types={expert: 1}") == {"expert": 1}
