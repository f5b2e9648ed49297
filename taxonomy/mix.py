"""The mix of question types that a run asks for: its settings, and the types with their shares that they stand for."""

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field

from generator.errors import TaxonomyError
from generator.schema import LocalPath, OneOrMore, Operational, Record
from taxonomy.files import Dimension, read_facets, read_scenarios, read_tasks, read_types, read_users
from taxonomy.scenarios import Scenario
from taxonomy.tasks import Task
from taxonomy.types import Facet, QuestionType
from taxonomy.users import User

T = TypeVar("T", covariant=True)
N = TypeVar("N", QuestionType, Task, Scenario, User)
Focus = Literal["sentences", "passages", "none"]
Weights = dict[str, Annotated[float, Field(ge=0)]]
_DIMENSIONS: dict[Dimension, str] = {"multi_turn": "multi-turn type", "answerability": "answerability"}
UNDERSPECIFIED = "underspecified"
_WEIGHTS = "Weights are relative: they need not sum to 1, and 0 leaves a type out."


class AnyMix(Record):
    """The settings of every `conf/taxonomy/<name>.yaml`."""

    name: str = Field(description="Name of the mix, in the run folder's name and on the data card.")
    path: Annotated[LocalPath | None, Operational] = Field(
        default=None,
        description="Folder of your own question types, tasks or scenarios (`*.yaml`), whichever the mix is of, added "
        "to ours; one with the name of one of ours replaces it.",
    )


class Mix(AnyMix):
    """The settings of a `conf/taxonomy/<name>.yaml` whose dialogs are of question types, turn by turn."""

    first: Weights = Field(
        description=f"Weight of each question type among first questions. {_WEIGHTS} `taxonomy.first.direct=2` changes "
        "one weight, `taxonomy.first={direct: 1, comparative: 1}` replaces them all."
    )
    later: Weights = Field(description=f"Weight of each question type among later questions. {_WEIGHTS}")
    multi_turn: Weights = Field(
        default_factory=dict,
        description=f"Weight of each multi-turn type among later questions. {_WEIGHTS} Empty: not planned; the later "
        "question types of Lee et al. 2024 are multi-turn types themselves.",
    )
    answerability: Weights = Field(
        default_factory=dict,
        description="Weight, among all questions, of those that the documents answer fully (`answerable`), in part "
        f"(`partial`) or not (`unanswerable`), of those that several documents answer, each of another thing "
        f"(`underspecified`), and of turns that ask for nothing (`conversational`). {_WEIGHTS} Empty: "
        "left to the question types.",
    )
    non_standalone: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of later questions that can't be understood without the dialog so far, 0 to 1; null: not "
        "planned.",
    )
    measure: Annotated[tuple[str, ...], OneOrMore] = Field(
        default=(),
        description="Judges that label what was really asked and answered, in place of what was planned: "
        "`question_type`, `answerability`, `idk`; `needs_documents` adds that column. They ask the model of the judge. "
        "[]: the labels are those planned.",
    )
    examples: bool = Field(
        default=True,
        description="Show the model the examples of later question types, as Lee et al. 2024 do; a small model copies "
        "their topics.",
    )
    focus: Focus = Field(
        default="sentences",
        description="What questions start from. `sentences`: a dialog from sentences of its document that earlier "
        "dialogs did not use; `passages`: also each later question from a passage that no answer of the dialog rests "
        "on yet; `none`: the model chooses, as in Lee et al. 2024.",
    )


class TaskMix(AnyMix):
    """The settings of a `conf/taxonomy/<name>.yaml` whose dialogs are of tasks, each written as a whole."""

    tasks: Weights = Field(
        description=f"Weight of each task among the dialogs. {_WEIGHTS} `taxonomy.tasks={{CM: 1, TS: 1}}` replaces "
        "them all."
    )
    answerability: Weights = Field(
        default_factory=dict,
        description="Weight, among the questions of open-ended tasks such as QA, of those that the documents answer "
        f"(`answerable`) or not (`unanswerable`). {_WEIGHTS} Empty: all are to be answered.",
    )
    examples: bool = Field(
        default=True,
        description="Show the model the examples of the task; a small model copies them, and such a dialog is a drop.",
    )


class ScenarioMix(AnyMix):
    """The settings of a `conf/taxonomy/<name>.yaml` whose dialogs are items of scenarios."""

    scenarios: Weights = Field(
        description=f"Weight of each scenario among the dialogs. {_WEIGHTS} `taxonomy.scenarios={{news: 1}}` replaces "
        "them all."
    )


@dataclass(frozen=True)
class Share(Generic[T]):
    """A value that is drawn, such as a question type, a task or a user type, and its share of the draws, in (0, 1]."""

    type: T
    share: float


class Taxonomy(Record):
    """A mix with its types resolved, from which plans and prompts are made; a dimension not planned is empty.

    It has either tasks, or scenarios (as `tasks`), or question types. `underspecified` is set if some questions are to
    be, by their answerability or their type.
    """

    name: str
    focus: Focus = "none"
    first: tuple[Share[QuestionType], ...] = ()
    later: tuple[Share[QuestionType], ...] = ()
    tasks: tuple[Share[Task | Scenario], ...] = ()
    multi_turn: tuple[Share[Facet], ...] = ()
    answerability: tuple[Share[Facet], ...] = ()
    non_standalone: float | None = None
    measure: tuple[str, ...] = ()
    underspecified: Facet | None = None

    @property
    def has_targets(self) -> bool:
        """True if more than its type is planned of a question; then each question has a `Target`."""
        planned = self.multi_turn or self.answerability or self.non_standalone is not None
        return not self.tasks and bool(planned or self.underspecified)

    @property
    def has_replies(self) -> bool:
        """True if some questions can't be answered, and have a reply of their own."""
        return any(share.type.reply for share in (*self.first, *self.later))


def load(mix: Mix | TaskMix | ScenarioMix) -> Taxonomy:
    """Resolve a mix.

    Raises:
        TaxonomyError: a type file or a weight can't be used; one line with the place and the fix.
    """
    if isinstance(mix, TaskMix):
        tasks = _read(read_tasks, "taxonomy.path", mix.path, {"taxonomy.tasks": mix.tasks})
        if not mix.examples:
            tasks = {name: task.model_copy(update={"examples": ()}) for name, task in tasks.items()}
        shares = _resolve("taxonomy.tasks", mix.tasks, tasks, "task")
        if mix.answerability and not any(share.type.open_ended for share in shares):
            raise TaxonomyError("taxonomy.answerability: none of taxonomy.tasks is open-ended, as QA is; leave it out")
        aims = _facet_shares("answerability", mix.answerability, ("answerable", "unanswerable"))
        return Taxonomy(name=mix.name, tasks=shares, answerability=aims)
    if isinstance(mix, ScenarioMix):
        scenarios = _read(read_scenarios, "taxonomy.path", mix.path, {"taxonomy.scenarios": mix.scenarios})
        items = _resolve("taxonomy.scenarios", mix.scenarios, scenarios, "scenario")
        return Taxonomy(name=mix.name, tasks=items)
    stages = {"taxonomy.first": mix.first, "taxonomy.later": mix.later}
    types = _read(read_types, "taxonomy.path", mix.path, stages)
    first, later = (_type_shares(mix, "first", mix.first, types), _type_shares(mix, "later", mix.later, types))
    aims = _facet_shares("answerability", mix.answerability)
    labels = {*(share.type.name for share in aims), *(share.type.answerability for share in (*first, *later))}
    return Taxonomy(
        name=mix.name,
        focus=mix.focus,
        first=first,
        later=later,
        multi_turn=_facet_shares("multi_turn", mix.multi_turn),
        answerability=aims,
        underspecified=read_facets("answerability")[UNDERSPECIFIED] if UNDERSPECIFIED in labels else None,
        non_standalone=mix.non_standalone,
        measure=mix.measure,
    )


def load_users(weights: Weights, path: Path | None) -> tuple[Share[User], ...]:
    """Resolve the weights of user types, ours and those of the folder `path`.

    Raises:
        TaxonomyError: as `load`.
    """
    users = _read(read_users, "user.path", path, {"user.types": weights})
    return _resolve("user.types", weights, users, "user type")


def _read(
    read: Callable[..., dict[str, N]], setting: str, path: Path | None, weights: Mapping[str, Weights]
) -> dict[str, N]:
    """Return our types and those of the folder `path`, the value of `setting`, each of which must have a weight."""
    known, named = read(path), set[str]().union(*weights.values())
    ours = read() if path else known
    for name, each in known.items():
        if name not in named and each != ours.get(name):
            place = [*weights][-1 if getattr(each, "stage", None) == "later" else 0]
            raise TaxonomyError(f"{setting}: {name} has no weight; set {place}.{name}=1, or 0 to leave it out")
    return known


def _type_shares(
    mix: Mix, stage: Literal["first", "later"], weights: Weights, types: dict[str, QuestionType]
) -> tuple[Share[QuestionType], ...]:
    setting = f"taxonomy.{stage}"
    for name in weights:
        if name in types and types[name].stage not in (stage, "any"):
            raise TaxonomyError(
                f"{setting}.{name}: is a type for {types[name].stage} turns; move it to taxonomy.{types[name].stage}"
            )
    if not mix.examples:
        types = {name: type.model_copy(update={"examples": ()}) for name, type in types.items()}
    shares = _resolve(setting, weights, types)
    for each in shares:
        if not each.type.may_repeat and each.share > 0.5 + 1e-9:
            raise TaxonomyError(
                f"{setting}.{each.type.name}: has {each.share:g} of the weights, but never comes twice in a row, so it "
                "can have at most 0.5; lower its weight"
            )
    return shares


def _facet_shares(dimension: Dimension, weights: Weights, of: Collection[str] = ()) -> tuple[Share[Facet], ...]:
    """Return the shares of a dimension's values, or of those named `of`."""
    if not weights:
        return ()
    known = {name: facet for name, facet in read_facets(dimension).items() if not of or name in of}
    return _resolve(f"taxonomy.{dimension}", weights, known, _DIMENSIONS[dimension])


def _resolve(
    setting: str, weights: Weights, known: Mapping[str, T], noun: str = "question type"
) -> tuple[Share[T], ...]:
    """Return what has a weight above 0, with its share; the shares sum to 1."""
    for name in weights:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            advice = f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(sorted(known))}"
            raise TaxonomyError(f"{setting}.{name}: unknown {noun}; {advice}")
    total = sum(weights.values())
    if total == 0:
        raise TaxonomyError(f"{setting}: no type has a weight above 0; give one, such as {setting}={{TYPE: 1}}")
    return tuple(Share(known[name], weight / total) for name, weight in weights.items() if weight)
