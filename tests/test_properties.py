"""Properties of any document, reply and stored text; `hypothesis` looks for counterexamples."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.dialogs.dedup import Repetition
from generator.dialogs.journal import Journal
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.program import Draft
from generator.dialogs.single import SingleDocumentDialog
from generator.errors import Rejected
from generator.execution.store import Outcome, Store
from generator.models.lm import ChatReply
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import FirstQuestion, GroundedAnswer, NextQuestion, StandaloneQuery
from generator.schema import Dialog, Drop, Passage, Usage
from judges.llm.correctness import Correctness, CorrectnessJudge
from tests.support.scripted import Scripted, Shelf, kinds, plan, said

# Seeded, so that every run tries the same examples.
fair = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
SIGNATURES = (FirstQuestion, NextQuestion, GroundedAnswer, StandaloneQuery, Correctness)
PROSE = ("A bus runs. ", "Mr. Li", "漢字。", "“Yes.” ", "x" * 700, "word " * 150, "👩‍👩‍👧", "e\u0301", "🏳️")
SIGNS = ("1. ", "- ", "\n", "\n\n", "\r\n", "\t", "  ", "\x00", "\u2028", "\x85", "\u202e", "\ufeff", *'{}"', "\\u0000")
MARKUP = ("<task>", "</task>", "</ documents>", "<\u200bdialog>", '<document title="x">', "[3] ", "User: ", "Agent: ")
PIECES = st.sampled_from([*PROSE, *SIGNS, *MARKUP])
# No lone surrogates: they are refused where they come in (test_untrusted.py).
ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
TEXT = st.lists(st.one_of(PIECES, ANY), max_size=30).map("".join)
WORDY = TEXT.filter(lambda text: bool(text.strip()))


def passage(text: str, title: str = "", name: str = "d") -> Passage:
    return Passage(id=f"{name}:0-{len(text)}", document_id=name, title=title, text=text, start=0, end=len(text))


# --- prompts


@settings(fair, max_examples=40)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3), st.lists(st.tuples(TEXT, TEXT), max_size=3), TEXT)
def test_a_prompt_has_our_structure_whatever_is_in_it(
    read: list[tuple[str, str]], spoken: list[tuple[str, str]], text: str
) -> None:
    documents = Documents(passages=tuple(passage(t, title, str(n)) for n, (t, title) in enumerate(read)))
    dialog = Conversation(turns=said(*spoken))
    for signature in SIGNATURES:
        inputs: dict[str, Any] = dict.fromkeys(signature.input_fields, text)
        inputs |= {"documents": documents, "dialog": dialog}
        (message,) = SharedPrefixAdapter().format(signature, [], inputs)
        shown = message["content"]
        tags = re.findall(r"<[\W_]*(documents?|dialog|task)\b", shown, re.IGNORECASE)
        assert tags == ["documents", *["document"] * 2 * len(read), "documents", "dialog", "dialog", "task", "task"]
        section, _, rest = shown.partition("\n\n<dialog>\n")
        numbers = re.findall(r"^\[(\d+)\] ", section, re.MULTILINE)
        assert numbers == [str(n + 1) for n in range(len(documents.spans))]
        lines = rest.partition("</dialog>")[0].splitlines()
        roles = [role for _, answer in spoken for role in ("User:", "Agent") if answer or role == "User:"]
        assert [line[:5] for line in lines] == roles
    for number, evidence in enumerate(documents.evidence([*range(1, len(documents.spans) + 1)])):
        p, start, end = documents.spans[number]
        assert (evidence.passage_id, evidence.text) == (p.id, p.text[start:end])


# --- replies

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=12), inner, max_size=4)),
    max_leaves=12,
)
NAMES = st.sampled_from(sorted({name for signature in SIGNATURES for name in signature.output_fields}))
OBJECT = st.dictionaries(st.one_of(NAMES, st.text(max_size=5)), JSON, max_size=10)
REPLY = st.one_of(
    TEXT,
    st.text(max_size=40),
    OBJECT.map(json.dumps),
    st.tuples(TEXT, OBJECT.map(lambda value: json.dumps(value, ensure_ascii=False)), TEXT).map("".join),
    st.tuples(OBJECT.map(json.dumps), st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]]),
    st.integers(1, 20_000).map(lambda n: '{"a":' * n),
)


@settings(fair, max_examples=50)
@given(st.sampled_from(SIGNATURES), REPLY)
def test_a_reply_is_a_value_or_unusable(signature: type[dspy.Signature], reply: str) -> None:
    try:
        found = SharedPrefixAdapter().parse(signature, reply)
    except AdapterParseError:
        return
    assert found.keys() == signature.output_fields.keys()
    for value in found.values():
        str(value).encode()


# --- whole dialogs


@settings(fair, max_examples=25)
@given(
    st.sampled_from(["single", "multi"]),
    st.lists(WORDY, min_size=1, max_size=3),
    st.fixed_dictionaries(
        {stage: st.lists(st.one_of(REPLY, OBJECT), max_size=6) for stage in ("ask", "rewrite", "answer", "judge")}
    ),
)
def test_a_dialog_comes_to_an_end_whatever_the_model_says(
    algorithm: str, texts: list[str], script: dict[str, list[Any]]
) -> None:
    passages = [passage(text, text[:20], str(n)) for n, text in enumerate(texts)]
    model = Scripted(**{stage: [_sent(entry) for entry in entries] for stage, entries in script.items()})
    types = kinds("direct", "follow-up", "clarification")
    repetition = Repetition(0.8)

    async def made() -> tuple[Draft, list[Any]]:
        if algorithm == "single":
            draft = await SingleDocumentDialog(repetition).write(plan(passages[0], types), {})
        else:
            program = MultiDocumentDialog(repetition, Shelf([passages] * 4), 3, "rewrite")
            draft = await program.write(plan(passages[0], types), {})
        judge = CorrectnessJudge("m")
        return draft, [await judge.judge(draft.passages, draft.turns[: t.turn - 1], t) for t in draft.turns]

    try:
        draft, verdicts = model.run(made)
    except Rejected as rejected:
        assert rejected.stage and rejected.reason
        return
    assert draft.end is None or isinstance(draft.end, Rejected)
    assert [turn.turn for turn in draft.turns] == list(range(1, len(draft.turns) + 1))
    assert all(verdict.label in ("correct", "incorrect", "unjudged") for verdict in verdicts)
    by_id = {p.id: p for p in draft.passages}
    for evidence in (evidence for turn in draft.turns for evidence in turn.evidence):
        assert evidence.text == by_id[evidence.passage_id].text[evidence.start : evidence.end]
    for turn in draft.turns:
        assert type(turn).model_validate_json(turn.model_dump_json()) == turn


def _sent(entry: Any) -> Any:
    return entry.encode(errors="replace").decode() if isinstance(entry, str) else entry


# --- what is kept


@settings(fair, max_examples=20)
@given(st.lists(st.tuples(ANY, TEXT), min_size=1, max_size=4, unique_by=lambda pair: pair[0]), WORDY)
def test_any_text_is_kept_as_it_is(replies: list[tuple[str, str]], text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = {key: ChatReply(text=t, finish_reason="stop", model="m", usage=Usage(calls=1)) for key, t in replies}
        names = dict.fromkeys(("id", "corpus", "ended", "lm"), text)
        parts: dict[str, Any] = {"turns": said((text, text)), "passages": (passage(text, text, text),), "seed": 1}
        kind: dict[str, Any] = {"algorithm": "single", "split": "train", "prompt_version": "p"}
        dialog = Dialog(**names, **kind, **parts, document_ids=(text,))
        drop = Drop(dialog_id=text, scope="dialog", stage=text, reason=text, text=text)
        with Store(Path(folder) / "run", {"a": text}) as store:
            journal = Journal(store, text)
            for key, reply in made.items():
                journal.add(key, text, 1, reply)
            store.add(0, "other", Outcome(dialog=dialog, drops=(), usage=((text, Usage(calls=1)),)), 0)
            store.add(1, "third", Outcome(dialog=None, drops=(drop,), usage=()), 0)
        with Store(Path(folder) / "run", {"a": text}) as store:
            assert store.calls(text) == made
            assert (list(store.dialogs()), list(store.drops())) == ([dialog], [drop])
            assert store.dropped("dialog") == {text: {text: 1}}
