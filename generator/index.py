"""`python -m generator.index`: documents, passages and the retriever's index, built without asking a model."""

import sys
from typing import TYPE_CHECKING

from generator.command import Command, generator_groups, run_command

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMMAND = Command(
    program="python -m generator.index",
    primary="config",
    task="generator.index:build",
    settings="generator.config.run_settings:RunSettings",
    usage=(
        "python -m generator.index [corpus=NAME] [retriever=NAME] [setting=value ...]",
        "",
        "Reads the documents, cuts them into passages and builds the retriever's index, whatever the algorithm.",
        "A run with the same settings then begins at once.",
    ),
    groups=generator_groups("corpus", "retriever", "executor"),
)


def build(cfg: "DictConfig", job: object) -> None:
    """Build what a run needs before its first model call, and print where it is.

    Raises:
        GroundedDialogsError: documents can't be read, or the index can't be built.
    """
    from generator.common.console import count_noun, note
    from generator.components import find_languages, open_library, skipped_documents
    from generator.config.settings import load

    settings = load(cfg)
    fingerprint, retriever = settings.corpus.fingerprint(), settings.retriever
    with settings.executor.open() as executor:
        library = open_library(settings, fingerprint)
        _, notes = find_languages(settings, library)
        for text in notes:
            note(text)
        retriever.build(library, executor.spread)
        retriever.open(library, library.validation(settings.validation, retriever.k))
    print(
        f"indexed: {count_noun(library.passage_count, 'passage')} of {count_noun(len(library), 'document')}, "
        f"{retriever.place(library)}",
        flush=True,
    )
    skipped = skipped_documents(settings, fingerprint)
    if lines := skipped.read_text(encoding="utf-8").count("\n") if skipped.exists() else 0:
        note(f"skipped: {count_noun(lines, 'document')} that can't be read, listed in {skipped}")


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
