"""Write items in the publisher's files of RAD-Bench (Kuo et al. 2025): questions, and their reference answers."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from generator.corpora.rad_bench import QUESTION_ID, REFERENCES
from generator.errors import ExportError
from generator.output.base import ExportSource, kept_items, open_text, to_json
from generator.schema import LocalPath, Operational, Record
from taxonomy import read_scenarios


class RadBenchExport(Record):
    """Writes `question.jsonl` and `reference_answer/reference.jsonl`; see `generator.output.base.Exporter`."""

    name: ClassVar[str] = "rad_bench"

    path: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of your own scenarios (`*.yaml`), added to ours; null: those of `taxonomy.path`."
    )

    def write(self, source: ExportSource, folder: Path) -> None:
        """Write the items of which every pair is kept; the same items give the same bytes.

        Ids are the dialogs' if all of them have the publisher's form, such as RS_news_00; else they count from 00 in
        each scenario.

        Raises:
            ExportError: a dialog belongs to no scenario.
            TaxonomyError: a scenario file can't be used.
        """
        scenarios = read_scenarios(self.path, "export.path")
        named = all(QUESTION_ID.fullmatch(dialog.id) for dialog in source.dialogs())
        counts = Counter[str]()
        (folder / REFERENCES).mkdir()
        with (
            open_text(folder / "question.jsonl") as questions,
            open_text(folder / REFERENCES / "reference.jsonl") as answers,
        ):
            for dialog in kept_items(source, self.name):
                if (scenario := scenarios.get(dialog.task)) is None:
                    known = ", ".join(sorted(scenarios))
                    raise ExportError(
                        f"export={self.name}: no file for the scenario {dialog.task!r} of the dialog {dialog.id}; "
                        f"export.path=FOLDER adds yours to {known}"
                    )
                name = dialog.id if named else f"{scenario.aspect}_{scenario.name}_{counts[scenario.name]:02}"
                counts[scenario.name] += 1
                references = [turn.answer for turn in dialog.turns]
                question: dict[str, Any] = {
                    "question_id": name,
                    "category": scenario.name,
                    "aspect": scenario.aspect,
                    "turns": [turn.query for turn in dialog.turns],
                    "contexts": [[p.titled for p in dialog.retrieved(turn.turn)] for turn in dialog.turns],
                    "references": references,
                }
                if any(turn.evidence or turn.other_answers for turn in dialog.turns):
                    quotes = ([*(span.text for span in turn.evidence), *turn.other_answers] for turn in dialog.turns)
                    question["evidence_text"] = [each if len(each) > 1 else "".join(each) for each in quotes]
                answer = {
                    "question_id": name,
                    "answer_id": name,
                    "model_id": "reference",
                    "choices": [{"index": 0, "turns": references}],
                    "tstamp": 0,
                }
                questions.write(to_json(question) + "\n")
                answers.write(to_json(answer) + "\n")
