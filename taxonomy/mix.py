"""Which types of question a run asks for, in which shares: the settings, and what they resolve to."""

import difflib
from pathlib import Path
from typing import Literal

from generator.errors import TaxonomyError
from generator.schema import Record
from taxonomy.files import read_types
from taxonomy.types import QuestionType, Stage

Focus = Literal["sentences", "none"]


class Mix(Record):
    """The settings of `conf/taxonomy/<name>.yaml`.

    Args:
        name: of the mix.
        path: a folder of question-type files of your own, added to ours (`read_types`).
        first: the share of each type among first questions; above 0, together 1.
        later: the same among later questions.
        focus: `sentences` starts each dialog of a document from sentences that those before did not use;
            `none` leaves the choice to the model, as Lee et al. 2024 do.
    """

    name: str
    path: Path | None = None
    first: dict[str, float]
    later: dict[str, float]
    focus: Focus = "sentences"


class Share(Record):
    """A type of question and its target share among the questions of its stage, in (0, 1]."""

    type: QuestionType
    share: float


class Taxonomy(Record):
    """A mix with its types resolved: everything that plans and prompts take from it."""

    name: str
    focus: Focus
    first: tuple[Share, ...]
    later: tuple[Share, ...]


def load(mix: Mix) -> Taxonomy:
    """Resolve a mix.

    Raises:
        TaxonomyError: a type file or a share can't be used; one line that says where and what would be right.
    """
    types = read_types(mix.path)
    return Taxonomy(
        name=mix.name,
        focus=mix.focus,
        first=_shares(mix, "first", mix.first, types),
        later=_shares(mix, "later", mix.later, types),
    )


def _shares(mix: Mix, stage: Stage, shares: dict[str, float], types: dict[str, QuestionType]) -> tuple[Share, ...]:
    where = f"taxonomy={mix.name}: {stage}"
    for name, share in shares.items():
        if name not in types:
            near = difflib.get_close_matches(name, types, 1)
            right = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(types))}"
            raise TaxonomyError(f"{where}.{name}: there is no such question type; {right}")
        kind = types[name]
        if kind.stage != stage:
            raise TaxonomyError(f"{where}.{name}: is for {kind.stage} turns; name it under {kind.stage!r}")
        if not share > 0:
            raise TaxonomyError(f"{where}.{name}: a share is above 0, not {share:g}; leave out a type you don't want")
        if not kind.may_repeat and share > 0.5:
            raise TaxonomyError(f"{where}.{name}: never comes twice in a row, so at most a share of 0.5, not {share:g}")
    if not abs((total := sum(shares.values())) - 1) <= 1e-6:
        raise TaxonomyError(f"{where}: the shares sum to {total:g}; they must sum to 1")
    return tuple(Share(type=types[name], share=share) for name, share in shares.items())
