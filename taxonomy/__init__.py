"""Question types, tasks, scenarios, user types and criteria as data: how they are read, mixed and drawn.

`questions/*.yaml` holds the question types, `multi_turn/*.yaml` and `answerability/*.yaml` the other dimensions of a
question, the folders beside them the rest, and `conf/taxonomy/*.yaml` mixes of them. See `docs/taxonomy.md`.
"""

from taxonomy.criteria import Criteria, Criterion
from taxonomy.draw import TaskDraw, draw_evenly, draw_one, leave_topic
from taxonomy.files import read_criteria, read_facets, read_scenarios, read_tasks, read_types, read_users
from taxonomy.item_kind import ItemKind
from taxonomy.mix import UNDERSPECIFIED, Mix, ScenarioMix, Share, TaskMix, Taxonomy, Weights, load, load_users
from taxonomy.scenarios import QUESTIONS, Scenario
from taxonomy.targets import NON_QUESTION, turn_types
from taxonomy.tasks import Task
from taxonomy.types import Facet, Form, FormCheck, QuestionCheck, QuestionType, ReplyCheck, Target
from taxonomy.users import PLAIN, User
