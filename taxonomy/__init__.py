"""What kinds of question users ask, as data: `questions/*.yaml` holds the types, `conf/taxonomy/*.yaml` mixes of them.

Knows how types are read, checked and drawn; knows nothing of documents or models. See `docs/taxonomy.md`.
"""

from taxonomy.draw import first_type, later_types
from taxonomy.files import read_types
from taxonomy.mix import Mix, Share, Taxonomy, load
from taxonomy.types import Example, Exchange, QuestionType

__all__ = [
    "Example",
    "Exchange",
    "Mix",
    "QuestionType",
    "Share",
    "Taxonomy",
    "first_type",
    "later_types",
    "load",
    "read_types",
]
