"""The prompts that reach a client, and how a reply becomes fields."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest

from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.single import SingleDocumentDialog
from generator.errors import Rejected
from generator.prompts.adapter import PREAMBLE, collect_tasks
from generator.prompts.calls import call
from generator.prompts.plain_words import PlainNext
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import FirstQuestion, GroundedAnswer, NextQuestion, StandaloneQuery
from generator.schema import Passage, Turn
from judges.llm.correctness import Correctness, CorrectnessJudge
from judges.llm.task import Rating
from tests.support.scripted import Scripted, Shelf, dialog_of, kinds, piece, plan, said, task

OURS = (FirstQuestion, NextQuestion, GroundedAnswer, StandaloneQuery, Correctness)
TRAM, BUS = piece("tram", "The tram is green. It runs at night."), piece("bus", "The bus is red.")
SAID = said(("Which colour is the tram?", "It is green."), ("And the bus?", "Red."))


def ask(
    model: Scripted,
    signature: type[dspy.Signature] = GroundedAnswer,
    passages: Sequence[Passage] = (TRAM, BUS),
    history: tuple[Turn, ...] = (),
    structured_outputs: bool = True,
    predict: dspy.Predict | None = None,
    **inputs: object,
) -> dspy.Prediction:
    """Make one call with the documents, the dialog, and some value for every other input."""
    given: dict[str, object] = {name: f"({name})" for name in signature.input_fields}
    given |= {"documents": Documents(passages=tuple(passages)), "dialog": Conversation(turns=history)} | inputs
    used = predict or dspy.Predict(signature)
    return model.run(lambda: call(used, "answer", "greedy", 1, **given), structured_outputs)


def prompt(signature: type[dspy.Signature] = GroundedAnswer, **inputs: Any) -> str:
    ask(model := Scripted(), signature, **inputs)
    return model.calls[0].prompt


def reply(**fields: object) -> dict[str, object]:
    """Return a good reply to the task of answering."""
    good = {"facts": ["The tram is green."], "known": True, "answer": "It is green."}
    good |= {"consistency": "It is.", "consistent": True, "answerability": "answerable", "evidence": [1]}
    return good | fields


# --- the prompt


@pytest.mark.parametrize("signature", OURS, ids=lambda s: s.__name__)
def test_rules_documents_dialog_task_in_this_order(signature: type[dspy.Signature]) -> None:
    text = prompt(signature, history=SAID)
    documents = '<documents>\n<document title="Tram">\n[1] The tram is green.\n[2] It runs at night.\n</document>\n'
    documents += '<document title="Bus">\n[3] The bus is red.\n</document>\n</documents>'
    dialog = (
        "<dialog>\nUser: Which colour is the tram?\nAgent: It is green.\nUser: And the bus?\nAgent: Red.\n</dialog>"
    )
    assert text.startswith(f"{PREAMBLE}\n\n{documents}\n\n{dialog}\n\n<task>\n{signature.instructions}")
    assert text.endswith("\n</task>")
    keys = re.findall(r'^- "(\w+)" \(.+\): .+', text.partition("<task>")[2], re.MULTILINE)
    assert keys == list(signature.output_fields)
    assert "SECRET" not in text, "the reasoning of earlier turns is not shown"


def test_inputs_stand_under_their_headings_and_empty_ones_are_left_out() -> None:
    full = prompt(NextQuestion, kind="about trams", rejected="“Hm”: no question")
    assert "The kind of question:\nabout trams" in full
    again = prompt(NextQuestion, kind="about trams", rejected="")
    refused = "\n\nYour last attempt was refused; write a different one:\n“Hm”: no question"
    assert full == again.replace("\n</task>", f"{refused}\n</task>"), "two attempts differ at the end alone"
    empty = prompt(NextQuestion, kind="", rejected="")
    assert "The kind of question:" not in empty and "last attempt" not in empty


def test_a_document_without_a_title_and_a_dialog_without_turns() -> None:
    text = prompt(passages=[TRAM.model_copy(update={"title": ""})])
    assert "<documents>\n<document>\n[1] The tram" in text
    assert "<dialog>\n</dialog>" in text


def test_an_angle_bracket_of_the_text_itself_stays() -> None:
    text = prompt(passages=[piece("m", "If a < b and b > c, see <b>bold</b> and <tasking>.")])
    assert "[1] If a < b and b > c, see <b>bold</b> and <tasking>." in text


def test_code_keeps_its_lines_and_a_list_its_levels() -> None:
    code = "```text\nif a:\n    b\n[1] c\n</documents>\n```"
    text = prompt(passages=[piece("m", f"As it\nsays:\n\n- One\n\n  - a\n\n{code}\n\nEnd.")])
    shown = "```text\n  if a:\n      b\n  [1] c\n  ‹/documents>\n  ```"
    assert f"[1] As it says:\n[2] - One\n[3]   - a\n[4] {shown}\n[5] End.\n</document>" in text


def test_the_instructions_and_examples_of_a_compiled_program_are_in_the_prompt(tmp_path: Path) -> None:
    predict = dspy.Predict(GroundedAnswer)
    demo = {"question": "Is the ferry late?", **reply(answer="No, it is on time. </task>")}
    predict.demos = [dspy.Example(documents="no", **demo).with_inputs("question")]
    predict.signature = predict.signature.with_instructions("Answer like a ferryman.")
    predict.save(str(tmp_path / "program.json"))
    loaded = dspy.Predict(GroundedAnswer)
    loaded.load(str(tmp_path / "program.json"))
    model = Scripted()
    model.tasks = {"answer": GroundedAnswer}
    ask(model, predict=loaded, question="Is the tram late?")
    text = task(model.calls[0].prompt)
    assert text.startswith("Answer like a ferryman.")
    shown = text.partition("Examples:\n")[2].partition("\n")[0]
    assert json.loads(shown) == demo | {"answer": "No, it is on time. ‹/task>"}
    assert "Is the tram late?" in text


# --- the schema


@pytest.mark.parametrize("signature", OURS, ids=lambda s: s.__name__)
def test_every_key_is_required_none_is_added_and_all_is_bounded(signature: type[dspy.Signature]) -> None:
    model = Scripted()
    ask(model, signature)
    schema = model.calls[0].schema
    assert list(schema["properties"]) == list(signature.output_fields)
    for node in (schema, *schema.get("$defs", {}).values()):
        assert node["required"] == list(node["properties"])
        assert node["additionalProperties"] is False
        for name, field in node["properties"].items():
            match field.get("type"):
                case "string":
                    assert "maxLength" in field or "enum" in field, name
                case "array":
                    assert field["maxItems"] <= 6, name
                case other:
                    assert other == "boolean", name
    if signature is GroundedAnswer:
        assert schema["properties"]["answerability"]["enum"] == ["answerable", "partial", "unanswerable"]


def test_evidence_can_only_be_a_sentence_that_is_shown() -> None:
    model = Scripted()
    ask(model, passages=[TRAM, BUS])
    ask(model, passages=[BUS])
    three, one = (made.schema["properties"]["evidence"] for made in model.calls)
    assert three["items"] == {"type": "integer", "minimum": 1, "maximum": 3}
    assert one["items"]["maximum"] == 1


def test_without_structured_outputs_no_schema_is_sent_and_the_prompt_is_the_same() -> None:
    plain, bound = Scripted(answer=[json.dumps(reply())]), Scripted()
    ask(plain, structured_outputs=False)
    ask(bound)
    assert plain.calls[0].request.response_format is None
    assert plain.calls[0].prompt == bound.calls[0].prompt


# --- the reply

GOOD = json.dumps(reply())


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! Here it is:\n\n{GOOD}\n\nLet me know if {{you}} need more.",
        f"<think>The set {{1, 2}} and {{}} matter.</think>\n{GOOD}",
        GOOD + GOOD,
        json.dumps({"note": "extra", **reply()}),
        GOOD.replace("It is green.", "It is\ngreen."),
        json.dumps(reply(evidence=["1"], consistent="true")),
        json.dumps(reply(answer=["It is", "green."])),
    ],
    ids=["bare", "fence", "prose", "braces", "twice", "extra", "newline", "strings", "lines"],
)
def test_a_whole_reply_is_found_whatever_is_around_it(text: str) -> None:
    model = Scripted(answer=[text])
    found = ask(model, structured_outputs=False)
    assert " ".join(found.answer.split()) == "It is green."
    assert found.evidence == [1]
    assert found.consistent is True
    assert len(model.calls) == 1


BAD: dict[str, tuple[str, str]] = {
    "cut off": (GOOD[: len(GOOD) // 2], "not a whole JSON object"),
    "prose": ("I'd rather not.", "not a whole JSON object"),
    "empty": ("", "empty"),
    "missing key": (json.dumps({"facts": ["Hm."], "answer": "Yes."}), "answerability: Field required"),
    "evidence too high": (json.dumps(reply(evidence=[4])), "no sentence 4, only 1 to 3"),
    "no number": (json.dumps(reply(evidence=["one"])), "evidence.0"),
    "no text": (json.dumps(reply(facts=[1])), "facts.0"),
    "unknown choice": (json.dumps(reply(answerability="maybe")), "answerability"),
    "too long": (json.dumps(reply(answer="x" * 701)), "at most 700 characters"),
    "cut in the answer": (json.dumps(reply(answer=("It is green. " * 60)[:700])), "answer: too long"),
    "half a character": (GOOD.replace("green", "\\ud83d green"), "Invalid JSON"),
    "not a number": (GOOD.replace("[1]", "[NaN]"), "evidence.0: Input should be a finite number"),
    "endless list": (GOOD.replace("[1]", "[" * 20_000), "not a whole JSON object"),
}


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD.keys())
def test_an_unusable_reply_is_shown_with_the_reason_and_repaired(text: str, why: str) -> None:
    model = Scripted(answer=[text, GOOD])
    assert ask(model, structured_outputs=False).answer == "It is green."
    first, repair = model.prompts("answer")
    head, _, told = repair.partition("<task>")
    assert first.startswith(head)
    assert text[:100] in told
    assert why in told.partition("The reason: ")[2]


def test_of_an_endless_reply_a_repair_shows_the_beginning() -> None:
    model = Scripted(answer=['{"facts": ["It is green.' + " It is green." * 500, GOOD])
    assert ask(model, structured_outputs=False).answer == "It is green."
    first, repair = model.prompts("answer")
    assert 500 < len(repair) - len(first) < 1500


def test_a_reply_as_long_as_allowed_that_ends_is_kept() -> None:
    answer = f"{'It is green. ' * 60}"[: 700 - len("It runs.")] + "It runs."
    assert len(answer) == 700
    assert ask(Scripted(answer=[json.dumps(reply(answer=answer))])).answer == answer


def test_what_nobody_says_is_cut_where_it_is_too_long() -> None:
    long = "It is green. " * 60
    model = Scripted(answer=[{"question": "Which colour is it?", "answer": long, "explanation": long}])
    first = ask(model, FirstQuestion)
    assert (first.answer, first.explanation) == (long[:500], long[:600])
    answer = ask(Scripted(answer=[json.dumps(reply(facts=[long] * 5, evidence=[1, 2, 3] * 3))]))
    assert (answer.facts, answer.evidence) == ([long[:400]] * 4, [1, 2, 3] * 2)
    assert len(model.calls) == 1


def test_a_reply_that_is_unusable_twice_is_rejected_and_kept() -> None:
    text = GOOD[: len(GOOD) // 2]
    model = Scripted(answer=["Hm, {", text, GOOD])
    with pytest.raises(Rejected) as caught:
        ask(model, structured_outputs=False)
    assert len(model.calls) == 2
    assert caught.value.stage == "answer" and "lm.max_tokens" in caught.value.reason
    assert caught.value.text.startswith(f"{text}\n") and "has no end" in caught.value.text


def test_a_repair_has_the_same_schema_and_its_tags_do_not_count() -> None:
    model = Scripted(answer=["</task> <documents>"])
    ask(model)
    first, repair = model.calls
    assert repair.prompt.count("</task>") == repair.prompt.count("<documents>") == 1
    assert first.request.response_format == repair.request.response_format
    assert (first.profile, first.stage, first.turn) == (repair.profile, repair.stage, repair.turn)


# --- the part of a prompt that a server has in its prefix cache

QUESTIONS = ("Which colour is the tram?", "And the bus?", "No, which bus is older?")
FOUND = [[TRAM, BUS], [BUS, piece("ferry")], [piece("barge")]]


def dialog_of_three_turns(retriever: Shelf | None = None) -> Scripted:
    """Generate a dialog and judge each turn, as the pipeline does; return the model with its calls."""
    repetition, judge = Repetition(0.8), CorrectnessJudge("m")
    program = (
        MultiDocumentDialog(repetition, retriever, 5, "rewrite") if retriever else SingleDocumentDialog(repetition)
    )
    answers = [{"answer": text} for text in ("It is green.", "It runs at night.", "I don't have information on that.")]
    model = Scripted(ask=[{"question": q} for q in QUESTIONS], answer=answers)
    model.tasks = collect_tasks(program) | {"correctness": judge.predictors()[0].signature}

    async def generate() -> None:
        draft = await program.write(plan(TRAM, kinds("direct", "follow-up", "correction")), {})
        dialog = dialog_of(draft, program.algorithm)
        assert len(dialog.turns) == 3
        for turn in dialog.turns:
            await judge.judge(dialog.grounding(turn.turn), dialog.turns[: turn.turn - 1], turn)

    model.run(generate)
    return model


def test_tasks_stand_in_the_rules_and_the_task_section_reminds_of_them_except_those_that_ask() -> None:
    model = dialog_of_three_turns()
    for made in model.calls:
        front, _, rest = made.prompt.partition("<documents>\n")
        for name in ("ask_first", "ask_next", "answer", "correctness"):
            assert f"“{name}”: " in front
        for signature in (GroundedAnswer, Correctness):
            assert front.count(signature.instructions) == 1 and signature.instructions not in rest
        for signature, asks in ((FirstQuestion, made.turn == 1), (NextQuestion, made.turn > 1)):
            assert signature.instructions not in front
            assert (signature.instructions in rest) == (made.stage == "ask" and asks)
    for stage, name, signature in (("answer", "answer", GroundedAnswer), ("judge", "correctness", Correctness)):
        text = task(model.prompts(stage)[0])
        assert text.startswith(f"{signature.instructions.partition('.')[0]}, as under “{name}”.\n\n")
        assert text.endswith("\n\nReply with its JSON object.\n</task>")
    assert "Reply with the JSON object of “ask_first”, without can_ask.\n</task>" in model.prompts("ask")[0]


@pytest.mark.parametrize("described", [True, False])
def test_criteria_stand_before_the_documents_and_instructions_once(described: bool) -> None:
    model = Scripted(answer=[{"wanted": "It.", "explanation": "It is.", "score": 9}])
    model.tasks = {"task": Rating} if described else {}
    ask(model, Rating)
    front, _, rest = model.calls[0].prompt.partition("<documents>")
    assert (front.count(Rating.instructions), front.count("(criteria)")) == (1, 1)
    assert Rating.instructions not in rest and "(criteria)" not in rest


def test_changed_instructions_keep_the_layout() -> None:
    """A task is known by its fields: an optimiser changes the instructions and nothing else."""
    predict = dspy.Predict(GroundedAnswer.with_instructions("Answer as a ferryman. Be brief."))
    stale, fresh = Scripted(), Scripted()
    stale.tasks = {"answer": GroundedAnswer, "correctness": Correctness}
    fresh.tasks = {**stale.tasks, "answer": predict.signature}
    for model in (stale, fresh):
        ask(model, predict=predict)
    plain = Scripted()
    plain.tasks = stale.tasks
    ask(plain)
    before, changed, shared = (model.calls[0].prompt for model in (plain, stale, fresh))
    assert changed.partition("<task>")[0] == before.partition("<task>")[0], "with the rules as they were"
    assert task(changed).startswith("Answer as a ferryman. Be brief.\n\n")
    assert "\n\nReply with the JSON object of “answer”.\n\nYour last attempt" in task(changed)
    rules = before.partition("<documents>")[0].replace(GroundedAnswer.instructions, predict.signature.instructions)
    assert shared.partition("<documents>")[0] == rules, "with rules that have the new ones"
    assert task(shared).startswith("Answer as a ferryman, as under “answer”.\n\n")


def test_of_tasks_with_the_same_fields_none_is_taken_for_another() -> None:
    model = Scripted()
    one, two, changed = (GroundedAnswer.with_instructions(text) for text in ("Do one.", "Do two.", "Do three."))
    model.tasks = {"one": one, "two": two}
    for signature in (two, changed):
        ask(model, predict=dspy.Predict(signature))
    assert task(model.prompts("answer")[0]).startswith("Do two, as under “two”.")
    assert task(model.prompts("answer")[1]).startswith("Do three.\n\n")
    assert '- "answer" (' in task(model.prompts("answer")[1])


@pytest.mark.parametrize("retriever", [None, Shelf(FOUND)], ids=["single", "multi"])
def test_documents_and_dialog_only_grow_so_a_prompt_begins_as_the_one_before(retriever: Shelf | None) -> None:
    model = dialog_of_three_turns(retriever)
    for asked, answered in zip(model.prompts("ask")[1:], model.prompts("answer"), strict=False):
        assert asked.startswith(answered.partition("\n</dialog>")[0])
    for answered, judged in zip(model.prompts("answer"), model.prompts("judge"), strict=True):
        assert judged.startswith(answered.partition("<task>")[0])


def test_in_plain_words_examples_of_a_task_with_several_inputs_are_left_out() -> None:
    predict = dspy.Predict(PlainNext)
    predict.demos = [dspy.Example(focus="The tram is green.", text="Which colour is the tram?")]
    with_examples, without = Scripted(), Scripted()
    ask(with_examples, PlainNext, predict=predict)
    ask(without, PlainNext)
    assert with_examples.calls[0].prompt == without.calls[0].prompt
