"""`python -m judges.agreement`: sheets written and read back, and agreement by hand."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from generator.schema import Context, Dialog, Verdict
from judges.agreement import COMMAND, draw_dialogs, sheet_row
from judges.benchmarks.mt_bench_101.scores import DialogScore
from judges.people.ratings import Agreement, AgreementReport, measure_ratings, to_category
from judges.sheets import read_sheet, write_sheet
from taxonomy import read_tasks
from tests.judges.benchmarks.evaluating import Evaluating, reply
from tests.judges.sheets import rows_of, run_of
from tests.support import runs
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_dialog, make_passage, make_turn, write_json_lines

command = partial(runs.command, program=COMMAND)

TASKS = read_tasks()


def evaluated(name: str, task: str, *scores: float | None, context: Context = "golden") -> Dialog:
    turns = [
        make_turn(
            number,
            answer=f"response {number}",
            other_answers=(f"golden {number}",),
            verdicts=(Verdict(judge="task", label="scored", explanation="", model="m", score=score, decides=False),),
        )
        for number, score in enumerate(scores, start=1)
    ]
    return make_dialog(*turns, id=name, task=task, context=context, algorithm="whole")


def filled(path: Path, ratings: dict[str, object]) -> Path:
    return write_json_lines(path, "id,rating", *(f"{name},{rating}" for name, rating in ratings.items()))


def by_raters(report: AgreementReport) -> list[Agreement]:
    """Return the rows: people; of the minimum, and of the mean, the judge with people, the majority, and together."""
    assert [row.raters.rpartition(", ")[2] for row in report.rows] == [
        "people among themselves",
        *("with people", "with the majority", "and people together") * 2,
    ]
    return list(report.rows)


def read_report(path: Path) -> AgreementReport:
    return AgreementReport.model_validate_json(path.read_bytes())


@pytest.mark.parametrize("scenario", ["", "news"])
def test_a_run_of_another_benchmark_is_named(scenario: str, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", evaluated("d", scenario, 5, 9))
    refused = command(run, f"sheet={tmp_path / 'sheet.csv'}").refused
    assert refused.startswith(f"run={run}: ") and "on mt_bench_101" in refused


def test_a_sheet_is_drawn_evenly_from_the_tasks_and_read_back(tmp_path: Path) -> None:
    many = [evaluated(f"{task}-{n}", task, 5, 9) for task in ("SI", "TS", "PI") for n in range(20)]
    few = [evaluated("MR-0", "MR", 5, 9), evaluated("MR-1", "MR", 5, None)]
    run, sheet = run_of(tmp_path / "run", *many, *few), tmp_path / "sheet.csv"
    assert command(run, f"sheet={sheet}", "items=10").code == 0
    rows = rows_of(sheet)
    # The task with one dialog that is fully judged gives it, the others three each.
    assert Counter(row["task"] for row in rows) == {"SI": 3, "TS": 3, "PI": 3, "MR": 1}
    assert all(row["rating"] == "" for row in rows)
    assert TASKS["SI"].criteria[0] in rows[0]["criteria"]
    assert draw_dialogs(many, 10, 0) == draw_dialogs(many, 10, 0) != draw_dialogs(many, 10, 1)
    assert "exists" in command(run, f"sheet={sheet}").refused
    assert "has no rating" in command(run, f"sheets={sheet}").refused
    sheet.write_text(sheet.read_text(encoding="utf-8").replace('",\n', '",7\n'), encoding="utf-8")
    ended = command(run, f"sheets=[{sheet},{sheet}]", "seed=3", f"output={tmp_path / 'agreement.json'}")
    assert (ended.code, ended.err) == (0, "")
    report = read_report(tmp_path / "agreement.json")
    assert (report.people, report.dialogs, report.complete) == (2, 10, 10)
    # The minimum 5 is in another band than 7, the mean 7 in the same.
    assert [row.agreement for row in by_raters(report)] == [1, 0, 0, None, 1, 1, None]
    assert by_raters(report)[0].kappa is None


def test_the_answers_to_rate_are_marked() -> None:
    dialog = evaluated("1", "CM", 1, 5, 5).model_copy(update={"passages": (make_passage("p", "Facts."),)})
    text = sheet_row(dialog, TASKS["CM"])["dialog"]
    assert text.split("\n\n") == [
        "DOCUMENT: \nFacts.",
        "USER: Q1?",
        "AGENT: response 1",
        "USER: Q2?",
        ">>> TO RATE: response 2",
        "(THE DIALOG GOES ON WITH THIS ANSWER: golden 2)",
        "USER: Q3?",
        ">>> TO RATE: response 3",
    ]
    assert "golden" not in sheet_row(evaluated("1", "CM", 1, 5, 5, context="own"), TASKS["CM"])["dialog"]
    assert sheet_row(evaluated("1", "MR", 5, 5), TASKS["MR"])["dialog"].endswith("(REFERENCE: golden 2)")


def test_of_two_contexts_the_golden_one_is_rated(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", evaluated("1", "SI", 9, 9), evaluated("1", "SI", 1, 1, context="own"))
    assert command(run, f"sheet={tmp_path / 'sheet.csv'}").code == 0
    assert len(rows_of(tmp_path / "sheet.csv")) == 1
    ended = command(run, f"sheets={filled(tmp_path / 'a.csv', {'1': 10})}", f"output={tmp_path / 'a.json'}")
    assert ended.code == 0
    assert by_raters(read_report(tmp_path / "a.json"))[1].agreement == 0
    ended = command(run, f"sheets={filled(tmp_path / 'b.csv', {'1': 8})}", f"output={tmp_path / 'b.json'}")
    assert by_raters(read_report(tmp_path / "b.json"))[1].agreement == 1


def test_a_run_of_judges_evaluate_is_rated(here: Path, openai_server: OpenAIServer) -> None:
    openai_server.responder = reply
    site = Evaluating(here)
    assert site.run(openai_server, "context=both").code == 0
    assert command(site.run_dir, "sheet=sheet.csv").code == 0
    rows = {row["task"]: row["dialog"] for row in rows_of(here / "sheet.csv")}
    assert sorted(rows) == ["AR", "GR", "SC"]
    assert ">>> TO RATE: Own answer 2.\n\n(THE DIALOG GOES ON WITH THIS ANSWER: It is 9 m.)" in rows["AR"]
    assert rows["GR"].endswith("(REFERENCE: 49 m together.)")
    filled(here / "ann.csv", {"a": 3, "g": 8})
    assert command(site.run_dir, "sheets=ann.csv", "output=found.json").code == 0
    assert read_report(here / "found.json").dialogs == 2


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "a\r\nb;c", 'x "y", \u2028 z'])
def test_a_cell_is_no_formula_and_its_row_comes_back(tmp_path: Path, text: str) -> None:
    name = text.strip().replace("\r\n", " ")  # no id holds a line break
    write_sheet(tmp_path / "sheet.csv", [{"id": name, "dialog": text}, {"id": "2", "dialog": text}], ["rating"])
    ((_, first), (_, second)) = ((row["id"], row["dialog"]) for row in rows_of(tmp_path / "sheet.csv"))
    assert first == second and not first.startswith(("=", "+", "-", "@", "\t"))
    text = (tmp_path / "sheet.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.reader(io.StringIO(text)))
    with (tmp_path / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([rows[0], *([*row[:-1], " 8 "] for row in rows[1:])])
    assert read_sheet(tmp_path / "filled.csv", "rating", int, {name, "2"}) == {name: 8, "2": 8}


@pytest.mark.parametrize("text", ["sep=;\r\nid;rating\r\n1;7\r\n", "sep=,\nid,rating\n1,7", "Id\tRating \n1\t7"])
def test_a_sheet_may_name_its_separator_for_excel_and_have_columns_in_capitals(tmp_path: Path, text: str) -> None:
    (tmp_path / "filled.csv").write_text(f"\ufeff{text}", encoding="utf-8", newline="")
    assert read_sheet(tmp_path / "filled.csv", "rating", int, {"1"}) == {"1": 7}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sep=;\nid;rating\n1;11\n", "row 3: rating '11' must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        ("id,rating\n1,11\n", "row 2: rating '11' must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        ("id,rating\n1,7\n2,good\n", "row 3: rating 'good' must be"),
        ("id;rating\n1;7,5\n", "row 2: rating '7,5' must be"),
        ("id,rating\n9,7\n", "row 2: the id '9' is not in the run"),
        ("id,rating\n1,7\n\n1,9\n", "row 4: the id '1' is there twice"),
        ("id,rating\n1,7\n,\n1,7\n", "row 4: the id '1' is there twice"),
        ("id,rating\n1,\n2,\n", "has no ratings"),
        ("id,points\n1,7\n", "has no column 'rating'"),
        ("", "has no column 'id'"),
        (b"id,rating\n1,\xe4\n", "UTF-8"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_one_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    run = run_of(tmp_path / "run", evaluated("1", "SI", 9, 9), evaluated("2", "SI", 9, 9))
    sheet = tmp_path / "a.csv"
    sheet.write_bytes(text if isinstance(text, bytes) else text.encode())
    error = command(run, f"sheets={sheet}").refused
    assert error.startswith(f"{sheet}: ") and message in error


def test_what_the_command_lacks_is_one_line(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", evaluated("1", "SI", None, 9))
    assert "sheet=" in command(run).refused
    assert "no dialog with a score" in command(run, f"sheet={tmp_path / 'a.csv'}").refused
    assert "doesn't exist" in command(tmp_path / "none", f"sheet={tmp_path / 'a.csv'}").refused
    run_of(run, evaluated("1", "XY", 1, 9))
    assert "'XY'" in command(run, f"sheet={tmp_path / 'a.csv'}").refused
    run_of(run, evaluated("1", "SI", 1, 9))
    assert "none.csv: can't be read" in command(run, f"sheets={tmp_path / 'none.csv'}").refused


def people(*ratings: Sequence[int | None]) -> list[dict[str, int]]:
    """Return each person's ratings of dialogs 0, 1, …"""
    return [{str(n): points for n, points in enumerate(each) if points is not None} for each in ratings]


def scores(*minima: float) -> dict[str, DialogScore]:
    return {str(n): DialogScore(minimum, 10) for n, minimum in enumerate(minima)}


def test_agreement_is_the_chance_that_two_raters_agree() -> None:
    # Dialog 0: all agree. 1: two of three, and the judge with these. 2: nobody agrees. 3: rated by one alone.
    rated = people([8, 1, 1, 9], [9, 2, 4, None], [7, 8, 8, None])
    report = measure_ratings(rated, scores(9, 3, 10, 7), "bands")
    assert (report.people, report.dialogs, report.complete, report.ties) == (3, 4, 3, 1)
    among_people, people_, majority, _, _, of_mean, _ = by_raters(report)
    assert among_people.agreement == round((1 + 1 / 3 + 0) / 3, 4)
    assert people_.agreement == round((1 + 2 / 3 + 0 + 1) / 4, 4)
    assert (majority.agreement, of_mean.agreement) == (1, 0)
    assert by_raters(measure_ratings(rated, scores(9, 3, 10, 7), "points"))[0].agreement == 0


def test_kappas_are_those_of_table_9() -> None:
    # Two raters on four dialogs, three agreements: observed 3/4, expected (5/8)² + (3/8)² = 17/32.
    kappa = (3 / 4 - 17 / 32) / (1 - 17 / 32)
    report = measure_ratings(people([1, 1, 8, 8]), scores(1, 1, 8, 1), "bands")
    assert [row.kappa for row in by_raters(report)[:4]] == [None, *[round(kappa, 4)] * 3]
    assert by_raters(report)[0].agreement is None
    # With a second person, the mean of each one's; together three raters.
    both = measure_ratings(people([1, 1, 8, 8], [1, 1, 8, 1]), scores(1, 1, 8, 1), "bands")
    kappas = [row.kappa for row in by_raters(both)[:4]]
    assert kappas[:3] == [round(kappa, 4), round((kappa + 1) / 2, 4), 1] and both.ties == 1
    # Observed (1 + 1 + 1 + 1/3) / 4, expected (8/12)² + (4/12)².
    assert kappas[3] == pytest.approx((5 / 6 - 5 / 9) / (4 / 9), abs=1e-4)


def test_a_score_between_two_bands_is_in_that_of_the_nearest_points() -> None:
    assert [to_category(points, "bands") for points in (1, 3, 3.4, 3.5, 6.4, 7, 9.4, 9.5, 10)] == [
        *(0, 0, 0, 1, 1, 2, 2, 3, 3)
    ]
    assert [to_category(points, "points") for points in (1, 7.5, 9.4)] == [1, 8, 9]
