"""Which types of question a run asks for, in which shares: the settings, and what they resolve to."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from generator.errors import TaxonomyError
from generator.schema import OneOrMore, Record
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
        without: types that are left out of both, the others' shares growing in proportion.
        examples: whether the model is shown the examples of later types. Lee et al. 2024 show some; a model of 1.5B
            took over what they are about (docs/runs.md).
        focus: `sentences` starts each dialog of a document from sentences that those before did not use;
            `none` leaves the choice to the model, as Lee et al. 2024 do.
    """

    name: str
    path: Path | None = None
    first: dict[str, float]
    later: dict[str, float]
    without: Annotated[tuple[str, ...], OneOrMore] = ()
    examples: bool = True
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
    for name in mix.without:
        if name not in types:
            raise _unknown(f"taxonomy.without={name}", name, types)
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
            raise _unknown(f"{where}.{name}", name, types)
        kind = types[name]
        if kind.stage != stage:
            raise TaxonomyError(f"{where}.{name}: is for {kind.stage} turns; name it under {kind.stage!r}")
        if not share > 0:
            raise TaxonomyError(f"{where}.{name}: a share is above 0, not {share:g}; leave out a type you don't want")
    if not abs((total := sum(shares.values())) - 1) <= 1e-6:
        raise TaxonomyError(f"{where}: the shares sum to {total:g}; they must sum to 1")
    if not mix.examples:
        types = {name: kind.model_copy(update={"examples": ()}) for name, kind in types.items()}
    kept = {name: share for name, share in shares.items() if name not in mix.without}
    if not kept:
        raise TaxonomyError(f"{where}: taxonomy.without leaves no type; leave out fewer")
    targets = tuple(Share(type=types[name], share=share / sum(kept.values())) for name, share in kept.items())
    for target in targets:
        if not target.type.may_repeat and target.share > 0.5 + 1e-9:
            raise TaxonomyError(
                f"{where}.{target.type.name}: never comes twice in a row, so at most a share of 0.5, "
                f"not {target.share:g}"
            )
    return targets


def _unknown(where: str, name: str, types: Iterable[str]) -> TaxonomyError:
    near = difflib.get_close_matches(name, types, 1)
    right = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(types))}"
    return TaxonomyError(f"{where}: there is no such question type; {right}")
