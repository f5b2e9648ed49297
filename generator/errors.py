"""The errors, each named by the boundary that was crossed.

A record of a corpus that can't be read is data too: `generator.schema.SkippedRecord`.
"""

import re

from pydantic import ValidationError

# PyYAML raises these beside its own errors: for invalid dates, numbers and booleans, and for deep nesting.
YAML_SLIPS = (ValueError, LookupError, AttributeError, RecursionError)


class GroundedDialogsError(Exception):
    """An error that the user can fix: one line that says what, where, and what to do; exit code 2."""


class ConfigError(GroundedDialogsError):
    """A setting is unknown, out of range, or contradicts another."""


class TaxonomyError(GroundedDialogsError):
    """A question-type file or a mix of question types can't be used."""


class CorpusError(GroundedDialogsError):
    """Documents can't be read, or there are none."""


class MissingSplit(CorpusError):
    """A data set has no human dialogs of the wanted split."""


class RetrieverError(GroundedDialogsError):
    """An index can't be built, opened or queried."""


class ModelError(GroundedDialogsError):
    """The model endpoint can't be used at all: the run stops, and the same command continues it once it can."""


class ExportError(GroundedDialogsError):
    """A dataset can't be written."""


class RunError(GroundedDialogsError):
    """The run folder can't be used: it has other settings, is in use, or the disk is full."""


class Rejected(Exception):
    """A question, answer or dialog that is not kept: no error of the run, but a `Drop` with the reason.

    Args:
        stage: the step that rejected it (`ask`, `rewrite`, `retrieve`, `answer`, `context`, `model`, …).
        reason: a short phrase by which the summary groups cases.
        text: the offending text.
    """

    def __init__(self, stage: str, reason: str, text: str = "") -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage = stage
        self.reason = reason
        self.text = text


def describe(error: BaseException) -> str:
    """Return the cause of an error on one line: the system's words, pydantic's first problem, else its first line."""
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        why = re.sub(r"^Value error, | or instance of _\w+$", "", problem["msg"])
        return ": ".join([*([".".join(map(str, problem["loc"]))] if problem["loc"] else []), why])
    return getattr(error, "strerror", None) or str(error).strip().partition("\n")[0] or type(error).__name__
