"""The licences and terms of language models, as far as they are known (`model_terms.yaml`), for data cards."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

from generator.schema import Record


class Terms(Record):
    """The licence or terms of the models whose names hold an expression.

    Attributes:
        name: the expression.
        terms: what the licence or the terms are called.
        binds: what they mean for the users of what the model wrote; empty if nothing that matters for a dataset.
    """

    name: str
    terms: str
    url: str
    binds: str = ""


def find_terms(model: str) -> Terms | None:
    """Return the licence or terms of a model by its name, such as `mistralai/Mixtral-8x7B-Instruct-v0.1`."""
    name = Path(model).name.lower()
    return next((terms for terms in _known() if re.search(terms.name, name)), None)


@cache
def _known() -> tuple[Terms, ...]:
    text = files("generator.output").joinpath("model_terms.yaml").read_text(encoding="utf-8")
    return tuple(map(Terms.model_validate, yaml.safe_load(text)))
