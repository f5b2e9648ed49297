"""Question types as data: how they are read, mixed and drawn. See `docs/taxonomy.md`.

`questions/*.yaml` holds the question types, `multi_turn/*.yaml` and `answerability/*.yaml` the other dimensions of a
question, `conf/taxonomy/*.yaml` mixes of them.
"""

from taxonomy.draw import NON_QUESTION, TaskDraw, draw_user, first_type, later_types, leave_topic, turn_types
from taxonomy.files import read_criteria, read_facets, read_scenarios, read_tasks, read_types, read_users
from taxonomy.judging import Criteria, Criterion, Level
from taxonomy.mix import (
    UNDERSPECIFIED,
    Mix,
    ScenarioMix,
    Share,
    TaskMix,
    TaskShare,
    Taxonomy,
    UserShare,
    Weights,
    load,
    load_users,
)
from taxonomy.rubric import ItemKind
from taxonomy.scenarios import QUESTIONS, Scenario, ScenarioExample, ScenarioTurn
from taxonomy.tasks import Task, TaskExample
from taxonomy.types import (
    Example,
    Exchange,
    Facet,
    Form,
    FormCheck,
    QuestionCheck,
    QuestionType,
    Reply,
    ReplyCheck,
    Target,
)
from taxonomy.users import PLAIN, Typing, User

__all__ = [
    "NON_QUESTION",
    "PLAIN",
    "QUESTIONS",
    "UNDERSPECIFIED",
    "Criteria",
    "Criterion",
    "Example",
    "Exchange",
    "Facet",
    "Form",
    "FormCheck",
    "ItemKind",
    "Level",
    "Mix",
    "QuestionCheck",
    "QuestionType",
    "Reply",
    "ReplyCheck",
    "Scenario",
    "ScenarioExample",
    "ScenarioMix",
    "ScenarioTurn",
    "Share",
    "Target",
    "Task",
    "TaskDraw",
    "TaskExample",
    "TaskMix",
    "TaskShare",
    "Taxonomy",
    "Typing",
    "User",
    "UserShare",
    "Weights",
    "draw_user",
    "first_type",
    "later_types",
    "leave_topic",
    "load",
    "load_users",
    "read_criteria",
    "read_facets",
    "read_scenarios",
    "read_tasks",
    "read_types",
    "read_users",
    "turn_types",
]
