"""Which types of question a run asks for, in which shares: the settings, and what they resolve to."""

import difflib
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from generator.errors import TaxonomyError
from generator.schema import LocalPath, OneOrMore, Record
from taxonomy.files import Dimension, read_facets, read_types
from taxonomy.types import Facet, QuestionType

Focus = Literal["sentences", "passages", "none"]
_DIMENSIONS: dict[Dimension, str] = {"multi_turn": "multi-turn type", "answerability": "answerability"}


class Mix(Record):
    """The settings of `conf/taxonomy/<name>.yaml`.

    Args:
        name: of the mix.
        path: a folder of question-type files of your own, added to ours (`read_types`).
        first: the share of each type among first questions; above 0, together 1.
        later: the same among later questions.
        multi_turn: the share of each multi-turn type among later questions, together 1; empty: their question types say
            it all, as in Lee et al. 2024.
        answerability: the share of questions that the documents answer fully, in part, not at all, or that ask for
            nothing, together 1; empty: left to the question types.
        non_standalone: the share of later questions that make no sense without what was said before; null: all of them.
        measure: label what was really asked and answered, in place of what was planned (`generator.dialogs.relabel`).
        without: types that are left out of both, the others' shares growing in proportion.
        examples: whether the model is shown the examples of later types. Lee et al. 2024 show some; a model of 1.5B
            took over what they are about (docs/runs.md).
        focus: `sentences` starts each dialog of a document from sentences that those before did not use;
            `none` leaves the choice to the model, as Lee et al. 2024 do. `passages` is `sentences`, and each later
            question starts from a passage that no answer of the dialog rests on yet.
    """

    name: str
    path: LocalPath | None = None
    first: dict[str, float]
    later: dict[str, float]
    multi_turn: dict[str, float] = Field(default_factory=dict)
    answerability: dict[str, float] = Field(default_factory=dict)
    non_standalone: float | None = Field(default=None, ge=0, le=1)
    measure: bool = False
    without: Annotated[tuple[str, ...], OneOrMore] = ()
    examples: bool = True
    focus: Focus = "sentences"


class Share(Record):
    """A type of question and its target share among the questions of its stage, in (0, 1]."""

    type: QuestionType
    share: float


class FacetShare(Record):
    """The same of what a question can be besides."""

    type: Facet
    share: float


class Taxonomy(Record):
    """A mix with its types resolved: everything that plans and prompts take from it. Empty, None: not planned."""

    name: str
    focus: Focus
    first: tuple[Share, ...]
    later: tuple[Share, ...]
    multi_turn: tuple[FacetShare, ...] = ()
    answerability: tuple[FacetShare, ...] = ()
    non_standalone: float | None = None
    measure: bool = False

    @property
    def has_targets(self) -> bool:
        """Whether more than its type is planned of a question: then each is a `Target`."""
        return bool(self.multi_turn or self.answerability or self.non_standalone is not None)


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
        multi_turn=_facets(mix, "multi_turn", mix.multi_turn),
        answerability=_facets(mix, "answerability", mix.answerability),
        non_standalone=mix.non_standalone,
        measure=mix.measure,
    )


def _facets(mix: Mix, dimension: Dimension, shares: dict[str, float]) -> tuple[FacetShare, ...]:
    """The shares of a dimension; those of 0 are left out."""
    where = f"taxonomy={mix.name}: {dimension}"
    if not shares:
        return ()
    facets = read_facets(dimension)
    for name, share in shares.items():
        if name not in facets:
            raise _unknown(f"{where}.{name}", name, facets, _DIMENSIONS[dimension])
        if not 0 <= share <= 1:
            raise TaxonomyError(f"{where}.{name}: a share is between 0 and 1, not {share:g}")
    _sum_to_one(where, shares)
    return tuple(FacetShare(type=facets[name], share=share) for name, share in shares.items() if share)


def _sum_to_one(where: str, shares: dict[str, float]) -> None:
    if not abs((total := sum(shares.values())) - 1) <= 1e-6:
        raise TaxonomyError(f"{where}: the shares sum to {total:g}; they must sum to 1")


def _shares(
    mix: Mix, stage: Literal["first", "later"], shares: dict[str, float], types: dict[str, QuestionType]
) -> tuple[Share, ...]:
    where = f"taxonomy={mix.name}: {stage}"
    for name, share in shares.items():
        if name not in types:
            raise _unknown(f"{where}.{name}", name, types)
        kind = types[name]
        if kind.stage not in (stage, "any"):
            raise TaxonomyError(f"{where}.{name}: is for {kind.stage} turns; name it under {kind.stage!r}")
        if not share > 0:
            raise TaxonomyError(f"{where}.{name}: a share is above 0, not {share:g}; leave out a type you don't want")
    _sum_to_one(where, shares)
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


def _unknown(where: str, name: str, types: Iterable[str], of: str = "question type") -> TaxonomyError:
    near = difflib.get_close_matches(name, types, 1)
    right = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(types))}"
    return TaxonomyError(f"{where}: there is no such {of}; {right}")
