"""The six scenarios of RAD-Bench: our files say what is published, and what is wrong in a user's file is one line."""

import json
from pathlib import Path

import pytest

from generator.config.parts import build_choice
from generator.errors import TaxonomyError
from taxonomy import load, read_scenarios
from tests.support.taxonomy_files import refuse

SCENARIOS = read_scenarios()
NEWS = (Path(__file__).parents[2] / "taxonomy/scenarios/news.yaml").read_text(encoding="utf-8")
TRAVEL = (Path(__file__).parents[2] / "taxonomy/scenarios/travel.yaml").read_text(encoding="utf-8")
# What a judge sees of each turn, by the publisher's aspect (figures 15 to 20).
SEEN = {
    "RS": [("reference",)] * 3,
    "RR": [("reference", "context")] * 3,
    "TR": [("context",), ("context",), ("reference", "context")],
}


def test_the_scenarios_are_those_of_the_paper() -> None:
    published = {
        **dict.fromkeys(("news", "education", "academic"), ("RS", "synthesis")),
        **dict.fromkeys(("customer", "finance"), ("RR", "reasoning")),
        "travel": ("TR", "reasoning"),
    }
    ours = {name: SCENARIOS[name] for name in published}
    assert {name: (each.aspect, each.ability) for name, each in ours.items()} == published
    assert all([turn.judge for turn in each.turns] == SEEN[each.aspect] for each in ours.values())
    assert all(len(each.examples) == 2 for each in ours.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEWS.replace("    search: query\n", "", 1), ":6: turns: turn 1: "),
        (NEWS.replace("search: query", "search: question", 1), ":40: examples: question 1: "),
        (TRAVEL.replace("judge: [context]", "judge: [reference]", 1), ":10: turns.0.judge: the turn has no reference"),
        (TRAVEL.replace("phrasings:\n", "phrasings:\n  - [And]\n"), ":51: phrasings: there are 4; expected 3 lists, "),
    ],
)
def test_a_bad_scenario_file_is_one_line_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    assert refuse(read_scenarios, tmp_path, text).startswith(message)


def test_the_mix_has_the_shares_of_the_published_items() -> None:
    shares = {share.type.name: share.share for share in load(build_choice("taxonomy", "rad_bench")).tasks}
    counts = {"academic": 10, "news": 19, "education": 20, "finance": 15, "customer": 10, "travel": 15}
    assert shares == {name: pytest.approx(count / 89) for name, count in counts.items()}


def test_the_prompt_of_a_scenario_has_its_rules_and_its_examples_as_a_reply_looks() -> None:
    news, travel = SCENARIOS["news"].prompt(), SCENARIOS["travel"].prompt()
    assert all(f"- {step}" in news for step in SCENARIOS["news"].steps)
    assert f"Turn 2: {SCENARIOS['news'].turns[1].progression}" in news
    shown = json.loads(news.splitlines()[-1].partition("its plan: ")[2])
    assert [each["query"] for each in shown["turns"]] == [q.query for q in SCENARIOS["news"].examples[1].questions]
    assert '"query"' not in travel


def test_a_missing_folder_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match=r"^benchmark.path=.*/none: does not exist "):
        read_scenarios(tmp_path / "none", "benchmark.path")
