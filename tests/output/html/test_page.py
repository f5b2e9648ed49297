"""The report's page: hostile text, its size, and what it counts. `test_browser.py` opens it."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generator.common.language import languages
from generator.output.html import overview
from generator.output.html.charts import bars
from generator.output.html.page import write_report
from generator.output.html.sources import ReportSet, RunCounts
from generator.output.stats.comparison import count
from generator.schema import Dialog, Drop, Planned, Verdict
from taxonomy import read_criteria
from tests.support.records import make_dialog, make_evidence, make_hits, make_passage, make_turn

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def dialogs(count: int, text: str = "Of boats and harbours. " * 20) -> list[Dialog]:
    return [
        make_dialog(
            make_turn(1, query=f"Question {n} {HOSTILE}?", hits=make_hits("p"), evidence=make_evidence("p")),
            passages=[make_passage("p", f"{text} {n}", title=HOSTILE)],
            id=f"dialog{n}",
        )
        for n in range(count)
    ]


def make_set(name: str, given: list[Dialog], drops: list[Drop] | None = None, **more: Any) -> ReportSet:
    def read() -> Iterator[Dialog]:
        return iter(given)

    return ReportSet(name, read, lambda: iter(drops or []), {}, None, languages, [], **more)


def write(path: Path, *sets: ReportSet, limits: tuple[int, int] = (1 << 20, 1 << 20)) -> str:
    write_report(path, sets, read_criteria(), limits=limits)
    return path.read_text(encoding="utf-8")


def unpack(page: str) -> Any:
    (packed,) = re.findall(r'id="data">([^<]*)<', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_text_of_dialogs_is_never_markup(tmp_path: Path) -> None:
    drop = Drop(dialog_id="x", scope="dialog", stage="ask", reason=HOSTILE, text=HOSTILE)
    counts = RunCounts(attempted=2, accepted=1, dropped={"ask": {HOSTILE: 1}}, pairs=1)
    page = write(tmp_path / "r.html", make_set(HOSTILE, dialogs(1), [drop], counts=counts, configuration=HOSTILE))
    assert "alert(1)</script>" not in page
    assert "<img" not in page
    assert page.count("<script") == 3  # the list, one dialog, and the report's own
    assert unpack(page)["entries"][1]["drops"][0]["text"] == HOSTILE


def test_a_large_report_holds_a_sample_and_says_so(tmp_path: Path) -> None:
    given = dialogs(400)
    small, large = tmp_path / "small.html", tmp_path / "large.html"
    assert "A sample" not in write(large, make_set("run", given))
    page = write(small, make_set("run", given), limits=(30_000, 30_000))
    assert "A sample" in page
    assert small.stat().st_size < large.stat().st_size / 2
    entries = unpack(page)["entries"]
    assert 30 < len(entries) < 400
    assert 0 < sum(entry["full"] for entry in entries) < 400
    assert page.count('<script type="text/plain" id="d') == 1 + sum(entry["full"] for entry in entries)
    assert ">400<" in page  # what is counted is all of them


def test_turns_without_a_reference_and_those_after_them_are_no_pairs(tmp_path: Path) -> None:
    item = make_dialog(make_turn(1), make_turn(2, answer=""), make_turn(3), id="item")
    page = write(tmp_path / "r.html", make_set("run", [item], []))
    assert [turn["kept"] for turn in unpack(page)["entries"][0]["turns"]] == [True, None, None]
    assert "Words of an answer <span>mean 1.0<" in page, "as among all figures"


def test_the_same_sets_give_the_same_bytes(tmp_path: Path) -> None:
    sets = make_set("a", dialogs(3)), make_set("b", dialogs(2))
    assert write(tmp_path / "1.html", *sets) == write(tmp_path / "2.html", *sets)


def test_an_unfinished_run_shows_how_many_dialogs_it_was_to_make(tmp_path: Path) -> None:
    counts = RunCounts(attempted=2, accepted=2, dropped_turns={"ask": {"unusable reply": 1}}, pairs=2)
    run = make_set("run", dialogs(2), counts=counts)
    for wanted, shown in ((3, "2 of 3"), (2, "2")):
        page = write(tmp_path / "r.html", run._replace(dialogs_wanted=wanted))
        assert f"<dt>accepted dialogs</dt><dd>{shown}</dd>" in page
    turns = page.partition("Dropped turns")[2].partition("</figure>")[0]
    assert ">remaining<" not in turns, "a legend is of what is there"


def test_of_several_sets_charts_say_what_the_table_of_all_figures_does(tmp_path: Path) -> None:
    said = [("direct", ["novice", ""]), ("comparative", [""]), ("comparative", [""])]
    sets = [
        make_set(f"set{n}", [make_dialog(make_turn(1, question_type=kind), user=user) for user in users])
        for n, (kind, users) in enumerate(said)
    ]
    columns = [count(each.name, each.dialogs(), {}, None) for each in sets]
    figures = {figure.title: figure.rows for figure in overview.shares(sets, columns)}
    assert figures["Question types, first turns"] == [
        ("comparative", "0.0%", "100.0%", "100.0%"),
        ("direct", "100.0%", "0.0%", "0.0%"),
    ]
    assert figures["Users, all dialogs"] == [("novice", "50.0%", "–", "–"), ("plain", "50.0%", "–", "–")]
    page = write(tmp_path / "r.html", *sets)
    turns = page.partition("Turns a dialog")[2].partition("</figure>")[0]
    assert turns.count("<td>100.0%</td>") == 3
    assert 'class="value"' not in turns.partition("</svg>")[0], "three numbers have no room above columns"


def test_bins_are_named_by_lengths_that_there_can_be() -> None:
    """A dialog has a turn at least, and none here more than twelve."""
    found = overview.Distributions()
    found.lengths["Turns a dialog"].update({1: 1, 2: 5, 12: 2})
    (figure,) = overview.lengths(["run"], [found])
    assert [row[0] for row in figure.rows] == ["1", "2–3", "4–5", "6–7", "8–9", "10–11", "12"]


def test_the_same_charts_of_several_runs_follow_each_other() -> None:
    lost = {"ask": {"no question": 1}}
    counts = RunCounts(attempted=5, accepted=5, dropped_turns=lost, dropped_candidates=lost, pairs=10)
    titles = [figure.title.split(" (") for figure in overview.funnel([(" (one)", counts), (" (two)", counts)])]
    assert [run for _, run in titles] == ["one)", "two)"] * 4
    assert all(one[0] == two[0] for one, two in zip(titles[::2], titles[1::2], strict=True))


def test_the_overview_says_what_dialogs_are_made_of_and_if_they_give_themselves_away(tmp_path: Path) -> None:
    """All of mtRAG's unanswerable questions have no passage; a blind sample names neither model nor judge."""
    judged = Verdict(judge="correctness", label="correct", explanation="", model="judge-7b")
    answerable = make_turn(1, verdicts=(judged,))
    given = [
        make_dialog(answerable, passages=[make_passage("p", "Of it.")], id=f"{n}", lm="model-7b", corpus="harbour")
        if n % 2
        else make_dialog(make_turn(1, answerability="unanswerable"), id=f"{n}", lm="model-7b", corpus="harbour")
        for n in range(60)
    ]
    page = write(tmp_path / "r.html", make_set("run", given))
    assert "corpus: harbour · written by: model-7b · judged by: correctness (judge-7b)" in page
    assert "answerable by the number of passages (AUC 1.00)" in page
    fair = write(tmp_path / "r.html", make_set("run", [each.model_copy(update={"lm": ""}) for each in given[1::2]]))
    assert not any(word in fair.partition('id="dialogs"')[0] for word in ("AUC", "harbour", "model-7b", "judge-7b"))


def test_verdicts_have_charts_where_labels_tell_something_and_people_one_together() -> None:
    given = {"correctness": "correct", "rouge_l": "scored", "human:ada": "correct", "human:cy:tone": "warm"}
    people = {"human:ann:flow": "yes", "human:ben:flow": "no", "human:all:flow": "unjudged"}
    said = [
        Verdict(judge=name, label=label, explanation="", model="", decides=False, score=label == "scored" or None)
        for name, label in (given | people).items()
    ]
    columns = [count("run", [make_dialog(make_turn(1, verdicts=tuple(said)))], {}, None)]
    titles = {figure.title.removeprefix("Verdicts of ") for figure in overview.verdicts(["run"], columns)}
    assert titles == {"correctness", "human:ada", "human:cy:tone", "human:all:flow"}


def test_the_share_of_turns_that_lean_on_the_dialog_has_a_chart() -> None:
    """A quarter was to, and a fifth does."""
    planned = [Planned(question_type="direct", standalone=alone) for alone in (False, True, True, True, True)]
    later = [make_turn(2, query="And when does it leave?", planned=each) for each in planned]
    run = make_set("run", [make_dialog(make_turn(1), turn, id=f"{n}") for n, turn in enumerate(later)])
    run = run._replace(targets={("standalone", "non-standalone"): 0.25})
    columns = [count(run.name, run.dialogs(), run.targets, None)]
    figures = {figure.title: figure.rows for figure in overview.shares([run], columns)}
    assert next(iter(figures["Standalone, later turns"])) == ("non-standalone", "20.0%", "25.0%")


def test_long_names_of_runs_lie_below_each_other_in_a_legend() -> None:
    for names, lines in ((["achieved", "target"], 1), (["quac-mixed-multi-Mixtral-8x7B-Instruct-0", "quac-human"], 2)):
        legend = bars("Types", ["direct"], {name: [0.5] for name in names}, str).partition("legends")[2]
        legend = legend.partition("</svg>")[0]  # of the wide one
        assert len(set(re.findall(r'<text x="[^"]+" y="([^"]+)"', legend))) == lines


def test_charts_have_no_style_of_their_own_whichever_library_pygal_finds() -> None:
    """The page's security policy blocks styles; pygal uses lxml where that is installed, as with the extra office."""
    chart = bars("Types", ["direct", "comparative"], {"achieved": [0.4, 0.6], "target": [0.5, 0.5]}, str)
    assert chart.count('class="rect') == 2 * 4 and "style=" not in chart and 'class="tooltip' not in chart
