"""Count what our prompt layout saves a server with a prefix cache, against DSPy's ChatAdapter on the same calls.

    uv run --extra dense --group benchmark python -m benchmarks.prefix_cache [--algorithm single]

Twenty dialogs of five turns, made of the sentences of our sample documents, are led through the real modules and the
real judge. The calls that these make are laid out by `generator.prompts.adapter`, and by `dspy.ChatAdapter` with the
same texts as its fields. Their tokens, SmolLM2's, are counted as vLLM's cache would hold them, exactly and in a minute.
"""

import argparse
import asyncio
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from generator.common.passages import windows
from generator.common.sentences import sentences
from generator.corpora.folder import SAMPLE_DOCUMENTS
from generator.corpora.library import Library
from generator.dialogs.checks.answers import find_answer_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.plan import Plan
from generator.dialogs.single import SingleDocumentDialog
from generator.models.gguf import bundled_model
from generator.models.lm import LanguageModel
from generator.output.markdown import table
from generator.prompts.adapter import SharedPrefixAdapter, collect_tasks
from generator.prompts.sections import Conversation, Documents
from generator.retrievers.bm25 import Bm25
from generator.schema import Document, Usage
from judges.llm.correctness import CorrectnessJudge
from taxonomy import read_types
from tests.support import scripted

DIALOGS, TURNS = 20, 5
BLOCK = 32  # tokens of the server's cache
# For each user turn.
PASSAGES = 2


@dataclass(frozen=True)
class Call:
    """One call as a module makes it, before any layout."""

    signature: Any
    inputs: dict[str, Any]


Layout = Callable[[Call], list[dict[str, Any]]]


@dataclass
class Scripted(dspy.Adapter):
    """A model that replies by a script and records the calls."""

    questions: Sequence[str]
    answers: Sequence[str]
    calls: list[Call] = field(default_factory=list)

    async def acall(
        self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        self.calls.append(Call(signature, inputs))
        turn = len(inputs["dialog"].turns)
        question, answer = self.questions[turn], self.answers[turn]
        usual: dict[str, Any] = {"question": question, "query": question, "answer": answer, "can_ask": True}
        said = [
            re.search(rf"\[(\d+)\] {re.escape(answer)}", shown.render())
            for shown in inputs.values()
            if isinstance(shown, Documents)
        ]
        usual |= {
            "consistent": True,
            "evidence": [int(place[1]) for place in said if place],
            "answerability": "answerable",
            "label": "correct",
        }
        return [{name: usual.get(name, [] if name == "statements" else "Yes.") for name in signature.output_fields}]


def material() -> list[Document]:
    """Return the first 20 passages of our sample documents, each as a document: no two dialogs share text."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(SAMPLE_DOCUMENTS.glob("*.md"))]
    pieces = [text[start:end] for text in texts for start, end in windows(text, 512, 0)]
    long = [piece for piece in pieces if len(sentences(piece)) >= 2 * TURNS]
    return [Document(id=f"{number}", text=piece) for number, piece in enumerate(long[:DIALOGS])]


def script(document: Document) -> tuple[list[str], list[str]]:
    """Return questions and answers: sentences of the document that pass for answers, and their longest words."""
    said = [document.text[start:end] for start, end in sentences(document.text)]
    answers = [text for text in sorted(said, key=len) if find_answer_fault(text, "Is it so?", ()) is None][-TURNS:]
    return [f"Is it so: {' '.join(sorted(answer.split(), key=len)[-7:])}?" for answer in answers], answers


async def record(algorithm: str, cache: Path) -> tuple[list[list[Call]], dict[str, Any]]:
    """Return the calls of each dialog in order, and the signatures of the run."""
    library = Library.open("sample", "benchmark", material, cache, 512, 100)
    program: Any = SingleDocumentDialog(Repetition(0.99))
    if algorithm == "multi":
        retriever = Bm25(library, np.zeros(len(library), dtype=np.bool_), k1=1.5, b=0.75)
        program = MultiDocumentDialog(Repetition(0.99), retriever, PASSAGES, "rewrite")
    judge = CorrectnessJudge("judge")
    kinds = read_types()
    order = [kinds[name] for name in ("direct", "follow-up", "clarification", "follow-up", "follow-up")]
    dialogs: list[list[Call]] = []
    model = scripted.Scripted()  # the adapter never asks it
    for row in range(len(library)):
        document = library.document(row)
        adapter = Scripted(*script(document))
        passage = library.passage(library.passage_rows(row)[0])
        with dspy.context(lm=LanguageModel(model, model, seed=0), adapter=adapter, disable_history=True):
            draft = await program.write(Plan("", 0, "train", tuple(order), passage, "", TURNS), {})
            assert len(draft.turns) == TURNS, draft.skipped or draft.end
            for number, turn in enumerate(draft.turns):
                await judge.judge(draft.passages, draft.turns[:number], turn)
        dialogs.append(adapter.calls)
    return dialogs, collect_tasks(program) | {"judge": judge.predictors()[0].signature}


def lay_out_plainly(call: Call) -> list[dict[str, Any]]:
    """Return a call in DSPy's layout, with the same texts of documents and dialog as ours."""
    signature, inputs = call.signature, dict(call.inputs)
    for name, value in inputs.items():
        if isinstance(value, Documents | Conversation):
            signature = signature.with_updated_fields(name, type_=str)
            inputs[name] = value.render()
    return list(dspy.ChatAdapter().format(signature, [], inputs))


def counted(layout: Layout, dialogs: list[list[Call]], tokenizer: Any) -> Usage:
    """Count the tokens that an unlimited cache of whole blocks would serve, for the dialogs one after the other."""
    total, blocks = Usage(), set[int]()
    for call in (call for calls in dialogs for call in calls):
        tokens = tokenizer.apply_chat_template(layout(call), add_generation_prompt=True, return_dict=False)
        prefix, known, cached = 0, True, 0
        for end in range(BLOCK, len(tokens) + 1, BLOCK):
            prefix = hash((prefix, *tokens[end - BLOCK : end]))
            known = known and prefix in blocks and end < len(tokens)  # the last token is always computed
            cached += BLOCK * known
            blocks.add(prefix)
        total += Usage(calls=1, prompt=len(tokens), cached=cached)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--algorithm", choices=["single", "multi"], default="multi")
    arguments = parser.parse_args()
    from transformers import AutoTokenizer

    source = bundled_model()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    with tempfile.TemporaryDirectory() as folder:
        dialogs, signatures = asyncio.run(record(arguments.algorithm, Path(folder)))
    ours = SharedPrefixAdapter(tasks=signatures)
    layouts: dict[str, Layout] = {
        "ChatAdapter": lay_out_plainly,
        "ours": lambda call: ours.format(call.signature, [], call.inputs),
    }
    found = {name: counted(layout, dialogs, tokenizer) for name, layout in layouts.items()}
    computed = {name: usage.prompt - usage.cached for name, usage in found.items()}
    head = ["layout", "calls", "prompt tokens", "from the cache", "computed"]
    rows = [
        [name, str(usage.calls), str(usage.prompt), f"{usage.cached / usage.prompt:.1%}", str(computed[name])]
        for name, usage in found.items()
    ]
    print(table(head, rows))
    print(f"\nOurs computes {computed['ours'] / computed['ChatAdapter']:.1%} of ChatAdapter's tokens.")


if __name__ == "__main__":
    main()
