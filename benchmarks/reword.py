"""Say the questions of a run in other words, as `user.rewording=true` would: what that does to rankings of retrievers.

    python -m benchmarks.reword RUN COPY lm=vllm lm.model=NAME

RUN is a run with `retriever.query=rewrite`. COPY gets its dialogs and its `config.yaml`, for
`benchmarks.rank_agreement`; answers and evidence stay as they are. A rewritten query that isn't the question itself is
said in other words, too. The settings are those of `python -m generator` (`lm`).
"""

import argparse
import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.answers import NoJournal, read_settings
from benchmarks.command_line import errors_on_one_line
from generator.config.parts import build_choice
from generator.dialogs.checks.later_turns import leans
from generator.dialogs.dedup import Repetition
from generator.dialogs.referring import refer
from generator.dialogs.rewording import Reword
from generator.dialogs.users import Asker
from generator.models.lm import LanguageModel
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import use_model
from generator.prompts.sections import Documents
from generator.schema import Dialog, Turn
from generator.sets import dialog_set
from taxonomy import PLAIN, read_types, read_users


async def reword_dialog(dialog: Dialog, reword: Reword, counts: Counter[str]) -> Dialog:
    """Return a dialog with its questions and queries in other words, typed as its user types."""
    asker = Asker(read_users().get(dialog.user, PLAIN), dialog.seed)
    documents, turns, owed = Documents(passages=dialog.passages), list[Turn](), 0
    for turn in dialog.turns:
        question_type = read_types().get(turn.question_type)
        owed += bool(turns and turn.planned and turn.planned.standalone is False)
        if question_type is not None and "clarification" not in (turn.multi_turn_type or ""):
            asked, query = turn.meant, turn.retrieval_query
            alone = await reword.acall(asked, documents, turns, question_type)
            said = refer(alone, documents, turns, question_type, reword.repetition) if turns and owed else alone
            typed = turn.query if said == asked else asker.type_out(said, turn.turn)
            if said != alone:
                searched = alone
            elif query and query != turn.query:
                searched = await reword.acall(query, documents, turns, question_type)
            else:
                searched = query and typed
            counts.update(questions=1, changed=said != asked, pronouns=said != alone)
            clean = "" if typed == said else said
            turn = turn.model_copy(update={"query": typed, "clean_query": clean, "retrieval_query": searched})
        owed = max(0, owed - leans(turn))
        turns.append(turn)
    return dialog.model_copy(update={"turns": tuple(turns)})


async def reword_run(run: Path, copy: Path, settings: dict[str, Any]) -> None:
    """Write the copy of a run, and print how many questions were changed."""
    endpoint, counts = build_choice("lm", settings["lm"]), Counter[str]()
    reword = Reword(Repetition(0.8))
    dialogs = list(dialog_set(str(run)).dialogs())
    busy = asyncio.Semaphore(endpoint.concurrency)

    async def one(dialog: Dialog) -> str:
        async with busy:
            with clients.for_dialog(dialog.id) as client:
                model = LanguageModel(client, NoJournal(), dialog.seed)
                with use_model(model, SharedPrefixAdapter()):
                    return (await reword_dialog(dialog, reword, counts)).model_dump_json()

    with tempfile.TemporaryDirectory() as folder:
        async with endpoint.open(Path(folder)) as clients:
            lines = await asyncio.gather(*map(one, dialogs))
    copy.mkdir(parents=True)
    shutil.copy(run / "config.yaml", copy)
    (copy / "dialogs.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{counts['changed']} of {counts['questions']} questions are in other words, {counts['pronouns']} with “it”")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("copy", type=Path, metavar="COPY", help="a folder that isn't there yet")
    parser.add_argument("settings", nargs="*", metavar="SETTING=VALUE")
    given = parser.parse_args()
    if given.copy.exists():
        parser.error(f"COPY: {given.copy} is there already; name another folder")
    with errors_on_one_line():
        asyncio.run(reword_run(given.run, given.copy, read_settings(given.settings)))


if __name__ == "__main__":
    main()
