"""`python -m generator.statistics`: the figures by hand, the input, errors, and the layout of the table."""

import csv
import io
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from generator.common.language import Languages, load_language, use_languages
from generator.output.stats.comparison import comparison, comparison_lines, count
from generator.output.stats.statistics import Tally
from generator.report import COMMAND as REPORT
from generator.schema import Answerability, Dialog, Evidence, Planned, Turn, Verdict
from generator.statistics import COMMAND
from tests.support import runs
from tests.support.openai_server import OpenAIServer
from tests.support.records import (
    make_dialog,
    make_evidence,
    make_hits,
    make_passage,
    make_turn,
    write_dialogs,
    write_json_lines,
)
from tests.support.runs import Site

command = partial(runs.command, program=COMMAND)


def figures(*arguments: str | Path) -> dict[str, list[str]]:
    """Return the table's values by `section: figure`, a value for each set."""
    done = command(*arguments, "format=csv")
    assert (done.code, done.err) == (0, "")
    return values(done.out)


def values(text: str) -> dict[str, list[str]]:
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(row) for row in rows} == {len(rows[0])}
    read = {f"{section}: {figure}": found for section, figure, *found in rows}
    assert len(read) == len(rows), "two rows have one name"
    return read


def turn(
    number: int,
    query: str,
    answer: str,
    kind: str,
    answerability: Answerability = "answerable",
    hits: Sequence[str] = (),
    evidence: Sequence[str] = (),
    label: str = "",
) -> Turn:
    return make_turn(
        number,
        query=query,
        question_type=kind,
        multi_turn_type=kind if number > 1 else None,
        answerability=answerability,
        hits=make_hits(*hits),
        answer=answer,
        evidence=make_evidence(*evidence),
        verdicts=(Verdict(judge="j", label=label, explanation="", model="m"),) if label else (),
    )


def dialog(name: str, turns: Sequence[Turn], **passages: str) -> Dialog:
    return make_dialog(*turns, id=name, passages=[make_passage(*named) for named in passages.items()])


HARBOUR = dialog(
    "harbour",
    [
        turn(1, "where is it", "in the old town", "direct+comparative", "answerable", ["a", "b"], "aab", "correct"),
        turn(2, "Where is it?", "In the old Town.", "follow-up", "unanswerable", ["b", "c"], "ba"),
    ],
    a="one two three four",
    b="five six",
)
FERRY = dialog(
    "ferry",
    [
        turn(1, "who runs it", "a b", "direct", "partial"),
        turn(2, "where is it", "no", "clarification", "conversational", evidence=["z"], label="incorrect"),
    ],
    z="one two",
)

QUESTION = {"input_text": "Who reads?", "turn_id": 1}
ANSWER = {"input_text": "A", "turn_id": 1, "span_start": 0, "span_end": 1, "span_text": "A"}


# The figures


def test_what_pairs_are_worth_and_how_they_give_themselves_away(tmp_path: Path) -> None:
    """Every other dialog is unanswerable, without a passage; their questions are as the others' are."""
    sets = [
        make_dialog(
            make_turn(1, query="What of it?", rank_last_turn=1 + 9 * (n % 4), rank_query=1, evidence=make_evidence("p"))
            if n % 2
            else make_turn(1, query="What of it?", answerability="unanswerable"),
            id=str(n),
            passages=[make_passage("p", "Of it.")] if n % 2 else (),
        )
        for n in range(60)
    ]
    found = figures(write_dialogs(tmp_path / "dialogs.jsonl", *sets))
    assert found["worth, of turns with evidence: evidence in the first 5 by the last turn"] == ["0.0"]
    assert found["worth, of turns with evidence: evidence in the first 5 by the retrieval query"] == ["1.0"]
    assert found["difficulty, of turns with evidence: hard"] == ["1.0"]
    section = "answerability guessed without reading, AUC: answerable, by the "
    assert found[f"{section}number of passages"] == ["1.0"]
    assert found[f"{section}question"] == found[f"{section}length of the question"] == ["0.5"]


def test_the_figures_by_hand(tmp_path: Path) -> None:
    assert figures(write_dialogs(tmp_path / "dialogs.jsonl", HARBOUR, FERRY)) == {
        "section: figure": ["dialogs.jsonl"],
        "size: dialogs": ["2"],
        "size: turns": ["4"],
        "size: turns a dialog": ["2.0"],
        "length in words: query": ["3.0"],
        "length in words: response": ["2.75"],  # 4 + 4 + 2 + 1
        "length in words: response, answerable or partial": ["3.0"],  # 4 + 2
        "length in words: document": ["4.0"],  # 6 + 2
        "passages: unique, a dialog": ["2.0"],  # a b c, z: what was retrieved counts where its text isn't kept, too
        "passages: unique relevant, a dialog": ["1.5"],  # a b, z
        "passages: relevant, a turn": ["1.25"],  # 2 + 2 + 0 + 1
        "passages: relevant, an answerable or partial turn": ["1.0"],  # 2 + 0
        "passages: answers whose evidence covers them": ["0.0"],  # of those on the harbour
        "variety: distinct-1 of queries": ["0.416667"],  # where is it who runs, of 12
        "variety: distinct-2 of queries": ["0.5"],  # 4 of 8: none from one question into the next
        "variety: distinct-3 of queries": ["0.5"],  # 2 of 4
        "variety: distinct-1 of responses": ["0.636364"],  # 7 of 11
        "variety: distinct-2 of responses": ["0.571429"],  # 4 of 7
        "variety: distinct-3 of responses": ["0.5"],  # 2 of 4
        "variety: questions that repeat one of their dialog": ["0.25"],
        "variety: questions that repeat one of the set": ["0.5"],
        "question types, of all turns: clarification": ["0.25"],
        "question types, of all turns: comparative": ["0.25"],
        "question types, of all turns: direct": ["0.5"],
        "question types, of all turns: follow-up": ["0.25"],
        "multi-turn types, of later turns: clarification": ["0.5"],
        "multi-turn types, of later turns: follow-up": ["0.5"],
        "answerability, of all turns: answerable": ["0.25"],
        "answerability, of all turns: conversational": ["0.25"],
        "answerability, of all turns: partial": ["0.25"],
        "answerability, of all turns: unanswerable": ["0.25"],
        "verdicts, of all turns: correct": ["0.25"],
        "verdicts, of all turns: incorrect": ["0.25"],
        "verdicts, of all turns: none": ["0.5"],
        "judges, of the turns that each judged: j: correct": ["0.5"],
        "judges, of the turns that each judged: j: incorrect": ["0.5"],
        "worth, of turns with evidence: overlap of question and evidence": ["0.0"],
        "worth, of turns with evidence: evidence in a new passage, of later turns": ["0.5"],
    }


def test_difficulty_is_of_ranked_evidence_and_goes_from_easy_to_hard(tmp_path: Path) -> None:
    evidence = (Evidence(passage_id="p", start=0, end=8, text="Old town"),)

    def asked(*turns: tuple[str, int | None]) -> Dialog:
        made = [
            make_turn(n, query=query, rank_last_turn=rank, evidence=evidence)
            for n, (query, rank) in enumerate(turns, 1)
        ]
        return make_dialog(*made, passages=[make_passage("p", "Old town")])

    found = figures(
        write_dialogs(tmp_path / "ranked.jsonl", asked(("Old town?", 1), ("Pets?", 6), ("Old town?", 2), ("Old?", 1))),
        write_dialogs(tmp_path / "unranked.jsonl", asked(("Old town?", None))),
    )
    levels = {name.rpartition(" ")[2]: of_sets for name, of_sets in found.items() if name.startswith("difficulty")}
    assert list(levels.items()) == [("easy", ["0.5", ""]), ("medium", ["0.25", ""]), ("hard", ["0.25", ""])]


def test_evidence_that_covers_its_answer_is_counted(tmp_path: Path) -> None:
    answers = ["It is in the old town.", "It opened in 1862.", "I don't know.", "Of course."]
    evidence = [Evidence(passage_id="a", start=0, end=8, text="Old town")]
    planned = Planned(question_type="direct")
    turns = [make_turn(n, answer=text, evidence=evidence, planned=planned) for n, text in enumerate(answers, start=1)]
    without = [make_turn(5, answer="I don't know that.", planned=planned), make_turn(6, answer="In 1862.")]
    found = figures(write_dialogs(tmp_path / "dialogs.jsonl", dialog("d", [*turns, *without], a="Old town")))
    assert found["passages: answers whose evidence covers them"] == ["0.5"], "two of four: a refusal needs none"


def test_a_turn_that_was_planned_to_needs_the_dialog_where_its_words_tell() -> None:
    leaning, alone = (Planned(question_type="direct", standalone=stands) for stands in (False, True))
    said = [("When did it open?", leaning), ("When did the pier open?", leaning), ("Is there a boat?", alone)]
    turns = [make_turn(1), *(make_turn(n, query=query, planned=plan) for n, (query, plan) in enumerate(said, start=2))]
    turns.append(make_turn(5, query="Who built it?", retrieval_query="Who built the pier?", planned=alone))
    clarified = make_turn(6, query="I mean the old harbour.", multi_turn_type="clarification", planned=leaning)
    tally = Tally()
    tally.add(dialog("d", [*turns, clarified], a="Old town"))
    counted = {portion.name: portion.count for portion in tally.statistics().standalone}
    assert counted == {"non-standalone": 3, "standalone": 2}
    unknown = load_language("xx")  # no words of it are known, so the plan stands
    with use_languages(Languages(unknown, unknown)):
        tally.add(dialog("e", [*turns, clarified], a="Old town"))
    assert {portion.name: portion.count for portion in tally.statistics().standalone} == {
        "non-standalone": 7,
        "standalone": 3,
    }


def test_of_a_task_the_last_turn_is_counted(tmp_path: Path) -> None:
    task = dialog("task", [turn(1, "where is it", "here", "direct", "answerable"), HARBOUR.turns[1]], a="", b="one")
    first = dialog("first", [turn(1, "why so late", "a b c", "direct", "answerable")], z="one")
    read = figures(
        write_dialogs(tmp_path / "tasks.jsonl", *(d.model_copy(update={"ended": "task"}) for d in (task, first)))
    )
    assert {name: read[f"size: {name}"] for name in ("dialogs", "turns", "turns a dialog")} == {
        "dialogs": ["2"],
        "turns": ["2"],
        "turns a dialog": ["1.5"],
    }
    assert read["length in words: response"] == ["3.5"]  # 4, 3
    assert read["answerability, of all turns: answerable"] == ["0.5"]
    assert read["multi-turn types, of later turns: follow-up"] == ["1.0"]


def test_slips_hide_no_repeated_question(tmp_path: Path) -> None:
    """A question is compared as it was meant, as `dedup=minhash` does."""
    slips = ("wehn does the old hsrbour open", "when dies the odl harbour opne")
    turns = [make_turn(1, query=typed, clean_query="When does the old harbour open?") for typed in slips]
    sets = [make_dialog(turn, id=turn.query[:5]) for turn in turns]
    read = figures(write_dialogs(tmp_path / "dialogs.jsonl", *sets))
    assert read["variety: questions that repeat one of the set"] == ["0.5"]


def test_sets_stand_beside_each_other_each_counted_for_itself(tmp_path: Path) -> None:
    one = write_dialogs(tmp_path / "one.jsonl", HARBOUR)
    other = write_dialogs(tmp_path / "other.jsonl", FERRY, HARBOUR)
    read = figures(one, other)
    assert read["section: figure"] == ["one.jsonl", "other.jsonl"]
    assert read["size: dialogs"] == ["1", "2"]
    assert read["question types, of all turns: clarification"] == ["0.0", "0.25"]
    assert read["variety: questions that repeat one of the set"] == ["0.5", "0.5"]
    assert [value[::-1] for value in read.values()] == list(figures(other, one).values())
    assert figures(other, "dialogs=1")["size: dialogs"] == ["1"]
    reordered = write_dialogs(tmp_path / "reordered.jsonl", HARBOUR, FERRY)
    assert list(figures(other).values())[1:] == list(figures(reordered).values())[1:]


def test_a_label_that_one_run_plans_as_question_type_and_another_as_multi_turn_type_has_a_row_for_each() -> None:
    columns = [
        count(stage, [HARBOUR], {(stage, "follow-up"): share}, None)
        for stage, share in (("later", 0.5), ("multi_turn", 0.85))
    ]
    read = values(comparison(columns, "csv", None))
    assert read["achieved and target: follow-up, later turns, target"] == ["0.5", ""]
    assert read["achieved and target: follow-up, multi-turn, later turns, target"] == ["", "0.85"]


def test_what_a_set_has_nothing_of_is_empty_and_not_zero(tmp_path: Path) -> None:
    lone = dialog("lone", [turn(1, "?", "!", "direct", "unanswerable")])
    path = write_dialogs(tmp_path / "lone.jsonl", lone)
    read = figures(path)
    assert read["length in words: response, answerable or partial"] == [""]
    assert read["variety: distinct-1 of queries"] == [""]
    assert read["length in words: response"] == ["1.0"]
    item = dialog("item", [turn(1, "Plan it.", "", "travel"), turn(2, "Final.", "Day one: fly there.", "travel")])
    assert figures(write_dialogs(tmp_path / "item.jsonl", item))["length in words: response"] == ["4.0"]
    both = figures(path, write_dialogs(tmp_path / "both.jsonl", HARBOUR))
    assert both["multi-turn types, of later turns: follow-up"] == ["", "1.0"]
    assert re.search(r"distinct-1 of queries +–$", command(path).out, re.MULTILINE)


def test_a_run_without_dialogs_has_no_means() -> None:
    lines = comparison_lines([count("a", [], {}, 1), count("b", [HARBOUR], {}, None)])
    values = {f"{line.section}: {line.label}": line.cells for line in lines}
    assert values["size: dialogs"] == ["0", "1"]
    assert values["length in words: query"] == ["–", "3.00"]
    assert values["variety: questions that repeat one of the set"] == ["–", "50.0%"]


# The input


def test_a_run_and_what_it_achieved_of_its_targets(tmp_path: Path, site: Site, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "dialogs=16", "scale=0.5", "turns=3").code == 0
    summary, read = site.summary(), figures(site.run_dir)
    assert read["section: figure"] == ["run"]
    assert read["size: dialogs"] == ["8"]
    assert (read["achieved and target: dialogs"], read["achieved and target: dialogs, target"]) == (["8"], ["8"])
    assert {share["stage"] for share in summary["question_types"].values()} == {"first", "later"}
    for name, share in summary["question_types"].items():
        row = f"achieved and target: {name}, {share['stage']} turns"
        assert float(read[f"{row}, target"][0]) == pytest.approx(share["target"], abs=1e-4)
        assert float(read[row][0]) == pytest.approx(share["achieved"], abs=1e-4)
    beside = figures(write_dialogs(tmp_path / "people.jsonl", HARBOUR), site.run_dir)
    assert beside["achieved and target: dialogs"] == ["", "8"]
    alone = figures(site.run_dir / "dialogs.jsonl")
    assert not [name for name in alone if name.startswith("achieved")]
    assert {name: read[name] for name in alone} == alone | {"section: figure": ["run"]}


def test_lines_that_are_no_dialogs_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    path = write_dialogs(tmp_path / "dialogs.jsonl", HARBOUR)
    lost = FERRY.model_dump(mode="json")
    del lost["turns"][1]["query"]
    empty = FERRY.model_copy(update={"turns": ()})
    with path.open("ab") as file:
        file.write(b"\n" + json.dumps(lost).encode() + b"\n" + empty.model_dump_json().encode() + b'\n{"id": "\xff\n')
    done = command(path, "format=csv")
    assert done.code == 0
    assert values(done.out)["size: dialogs"] == ["1"]
    assert f"3 of 4 records can't be read, the first: {path}:3: turns.1.query" in done.err
    write_dialogs(path, empty)
    assert f"{path}:1: turns" in command(tmp_path).refused


def quac(path: Path, *answers: str) -> Path:
    text = "He was born in Pell. He left Pell. CANNOTANSWER"
    asked = [
        {"question": "Where to?", "orig_answer": {"text": a, "answer_start": text.find(a)}, "answers": []}
        for a in answers
    ]
    paragraphs = [{"id": "C_1", "context": text, "qas": asked}]
    path.write_text(json.dumps({"data": [{"title": "Pell", "section_title": "", "paragraphs": paragraphs}]}))
    return path


def test_a_publishers_file_or_folder_is_read_by_its_corpus(tmp_path: Path) -> None:
    file = quac(tmp_path / "val.json", "He left Pell.", "CANNOTANSWER")
    for path in (file, tmp_path):
        read = figures(path, "corpus=quac")
        assert read["section: figure"] == [path.name]
        assert (read["size: dialogs"], read["size: turns"]) == (["1"], ["2"])
        assert read["answerability, of all turns: unanswerable"] == ["0.5"]
    other = figures(file, "corpus=quac", "corpus.no_answer=I really do not know.")
    assert (read["length in words: response"], other["length in words: response"]) == (["3.0"], ["4.0"])
    (tmp_path / "b.json").write_text('{"data": [{"title": "T", "paragraphs": [{"id": "x", "context": "y"}]}]}')
    done = command(tmp_path, "corpus=quac")
    assert done.code == 0
    assert "1 of 2 records can't be read" in done.err and f"{tmp_path}/b.json: data[0].para" in done.err


# Errors


TASK = {
    "task_id": "q<::>1",
    "Collection": "trams",
    "Answerability": "answerable",
    "contexts": [{"document_id": "d", "text": "The line opened in May."}],
    "input": [{"speaker": "user", "text": "When did it open?"}],
}


def test_answers_to_tasks_are_read_by_every_command_and_of_a_corpus_the_targets(tmp_path: Path) -> None:
    answers = [{"model_id": "a", "text": "In May."}, {"model_id": "b", "text": "In the month of May."}]
    path = write_json_lines(tmp_path / "a.jsonl", TASK | {"predictions": answers, "targets": [{"text": "In May."}]})
    found = figures(path, f"mtrag:{path}")
    assert found["size: dialogs"] == ["2", "1"]
    assert found["length in words: response"] == ["3.5", "2.0"]
    done = runs.command(str(path), f"output={tmp_path / 'report.html'}", program=REPORT)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (TASK | {"task_id": "q1", "predictions": [{"text": "In May."}]}, "task_id: 'q1'"),
        (TASK | {"targets": [{"text": "In May."}]}, "predictions: "),
        ({"question": "When did it open?"}, "id: Field required"),
    ],
)
def test_what_cannot_be_read_is_refused_for_the_reason_of_its_own_format(
    record: object, reason: str, tmp_path: Path
) -> None:
    assert f":1: {reason}" in command(write_json_lines(tmp_path / "a.jsonl", record)).refused


def test_paths_without_dialogs(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for path in (tmp_path / "empty.jsonl", tmp_path / "gone", tmp_path / ("long" * 100)):
        assert str(path) in command(path).refused
    (tmp_path / "run.db").touch()
    assert "dialogs.jsonl" in command(tmp_path).refused
    (tmp_path / "dialogs.jsonl").touch()
    (tmp_path / "config.yaml").write_text("dialogs: 3\n")
    assert "the run has accepted none" in command(tmp_path).refused
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.pdf").touch()
    for arguments in ([f"orquac:{other}"], [other, "corpus=quac"]):
        assert command(*arguments).refused.startswith(f"{other}: no file ends in")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dialogs=0"], "dialogs=0"),
        (["corpus=sample"], "corpus"),
        (["corpus=quac", "corpus.no_anwser=x"], "no_anwser"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: list[str], words: str) -> None:
    assert words in command(quac(tmp_path / "val.json", "He left Pell."), *arguments).refused


# The layout


def test_a_table_as_markdown_and_for_the_terminal(tmp_path: Path) -> None:
    path = write_dialogs(tmp_path / "dialogs.jsonl", HARBOUR, FERRY)
    lines = command(path, path, "format=markdown").out.splitlines()
    assert lines[:5] == [
        "|  | dialogs.jsonl | dialogs.jsonl |",
        "| --- | ---: | ---: |",
        "| **size** |  |  |",
        "| dialogs | 2 | 2 |",
        "| turns | 4 | 4 |",
    ]
    assert "| relevant, a turn | 1.25 | 1.25 |" in lines
    shown = command(path).out.splitlines()
    assert [line.split() for line in shown[:3]] == [["dialogs.jsonl"], ["size"], ["dialogs", "2"]]
    assert all(line == line.rstrip() and len(line) < 80 for line in shown)


def test_sets_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "run" for folder in ("one", "two")]
    for path in paths:
        path.mkdir(parents=True)
        write_dialogs(path / "dialogs.jsonl", HARBOUR)
    assert figures(*paths)["section: figure"] == ["one/run", "two/run"]
    assert figures(paths[0], paths[0])["section: figure"] == ["run", "run"]


def test_the_table_goes_into_a_file(tmp_path: Path) -> None:
    path = write_dialogs(tmp_path / "dialogs.jsonl", HARBOUR)
    for form in ("terminal", "csv", "markdown"):
        done = command(path, f"format={form}", f"output={tmp_path / 'table'}")
        assert (done.code, done.out, done.err) == (0, f"table: {tmp_path / 'table'}\n", "")
        assert (tmp_path / "table").read_text(encoding="utf-8") == command(path, f"format={form}").out
    command(path, f"output={tmp_path / 'table.csv'}")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == command(path, "format=csv").out
    command(path, f"output={tmp_path / 'table.json'}")
    read = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    found = {f"{row['section']}: {row['figure']}": [str(value) for value in row["values"]] for row in read["figures"]}
    assert {"section: figure": read["sets"], **found} == figures(path)


def test_people_of_several_corpora_stand_beside_a_run(tmp_path: Path) -> None:
    hurried = [found.model_copy(update={"user": "hurried"}) for found in (HARBOUR, FERRY)]
    run = write_dialogs(tmp_path / "run.jsonl", *hurried, HARBOUR.model_copy(update={"id": "plain"}))
    coqa = {"data": [{"id": "c", "source": "s", "story": "A b.", "questions": [QUESTION], "answers": [ANSWER]}]}
    (tmp_path / "coqa.json").write_text(json.dumps(coqa), encoding="utf-8")
    found = figures(run, f"coqa:{tmp_path / 'coqa.json'}")
    assert found["section: figure"] == ["run.jsonl", "coqa.json"]
    assert found["length in words: query"] == ["3.0", "2.0"]
    assert found["users, of all dialogs: hurried"] == ["0.666667", ""]
    assert command(f"sample:{tmp_path}").refused.startswith("corpus=sample: has no human dialogs")
    assert "cooqa is the name of no set; did you mean coqa:" in command(f"cooqa:{tmp_path / 'coqa.json'}").refused
