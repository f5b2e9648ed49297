"""What kinds of question users ask, as data: `questions/*.yaml` holds the types, `multi_turn/*.yaml` and
`answerability/*.yaml` what a question can be besides, `conf/taxonomy/*.yaml` mixes of them.

Knows how types are read, checked and drawn; knows nothing of documents or models. See `docs/taxonomy.md`.
"""

from taxonomy.draw import first_type, later_types, turn_types
from taxonomy.files import read_facets, read_types
from taxonomy.mix import Mix, Share, Taxonomy, load
from taxonomy.types import Example, Exchange, Facet, QuestionType, Target

__all__ = [
    "Example",
    "Exchange",
    "Facet",
    "Mix",
    "QuestionType",
    "Share",
    "Target",
    "Taxonomy",
    "first_type",
    "later_types",
    "load",
    "read_facets",
    "read_types",
    "turn_types",
]
