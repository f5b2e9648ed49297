"""Criteria that people judge by: ours, and files of one's own."""

from pathlib import Path

import pytest

from taxonomy import Criterion, read_criteria
from tests.support.taxonomy_files import refuse


def test_the_criteria_of_the_papers() -> None:
    assert [(c.name, c.about) for c in read_criteria("lee2024").criteria] == [
        ("answerability", "query"),
        ("plausibility", "query"),
        ("correctness", "response"),
        ("diversity", "dialog"),
        ("coherency", "dialog"),
    ]
    faithful = read_criteria("mtrag").by_name()["faithfulness"]
    assert faithful.numbers == (1, 2, 3, 4)
    assert [faithful.is_good(place) for place in range(4)] == [False, False, True, True]


def test_a_scale_is_written_as_yaml_has_it(tmp_path: Path) -> None:
    text = "name: mine\ncriteria:\n- {name: a, question: q, scale: [no, 2.5, yes]}\n"
    text += "- {name: b, question: q, scale: {1: bad, 2: fine}, good: 2}\n"
    (file := tmp_path / "own.yaml").write_text(text)
    first, second = read_criteria(str(file)).criteria
    assert first.values == ("no", "2.5", "yes") and first.numbers is None
    assert second.numbers == (1, 2) and second.scale[0].meaning == "bad"


def test_values_are_read_as_people_and_spreadsheets_write_them() -> None:
    usual = Criterion(name="a", question="Q?")
    assert [usual.parse(text) for text in (" Yes", "n", "TRUE", "0")] == [1, 0, 1, 0]
    grades = read_criteria("mtrag").criteria[0]
    assert grades.parse("4.0") == 3
    halves = Criterion.model_validate({"name": "a", "question": "Q?", "scale": [1.0, 1.5, 2.0]})
    assert [halves.parse(text) for text in ("1.0", "1", "1.5", "2.0")] == [0, 0, 1, 2]
    with pytest.raises(ValueError, match="1, 2, 3, 4"):
        grades.parse("5")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\ncriteria:\n- {name: id, question: q}", ":3: criteria.0.name: must be none of id"),
        ("name: x\ncriteria:\n- {name: a, questoin: q}", "did you mean 'question'"),
        ("name: x\ncriteria:\n- {name: a, question: q, scale: [a]}", "at least 2"),
        ("name: x\ncriteria:\n- {name: a, question: q, scale: [a, A]}", "the value 'a' twice"),
        ("name: x\ncriteria:\n- {name: a, question: q, good: maybe}", "none of the scale's values: no, yes"),
        ("name: x\ncriteria: [{name: a, question: q}, {name: a, question: q}]", "the criterion 'a' twice"),
        ("name: x\ncriteria: [{name: a, question: q}]\ngiven: [a, b]", "'b' is none of the criteria"),
        ("name: x\ncriteria: [a]", "criteria.0: "),
        (
            "name: x\ncriteria: [{name: a, question: q}]\ngiven: [a]",
            ":3: missing key 'given.1'; expected two criteria",
        ),
        (
            "name: x\ncriteria:\n- {name: a, question: q, labels: {correct: maybe}}",
            ":3: criteria.0.labels.correct: Input should be a valid boolean",
        ),
        ("name: x\ncriteria:\n- {name: a, question: q, scale: ['', good]}", "expected the values"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    assert said in refuse(lambda folder: read_criteria(str(folder / "t.yaml")), tmp_path, text)
