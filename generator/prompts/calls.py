"""Make one model call, and map its errors: those that lose a turn, and those that end the run.

The model and the adapter come from the context (`use_model`), one pair for each dialog.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import dspy
from dspy.utils import exceptions as lm_errors

from generator.errors import ModelError, Rejected
from generator.models.lm import ChatReply, LanguageModel, Profile
from generator.prompts.replies import CUT_OFF, EMPTY, FILTERED
from generator.schema import Message

# Our own check finds most such prompts; lm.context is set by hand, and many servers don't say theirs.
TOO_LONG = "the server refuses the next prompt as too long: the context set for its model may be too large"


class Model(NamedTuple):
    """A model for one dialog, and the adapter that lays out its prompts."""

    lm: LanguageModel
    adapter: dspy.Adapter


# Models by the names of their settings.
Others = Mapping[str, Model]


def use_model(lm: dspy.LM, adapter: dspy.Adapter, trace: list[Any] | None = None) -> AbstractContextManager[None]:
    """Return a context in which modules call `lm` through `adapter`.

    DSPy keeps no history in it: that would hold every prompt.

    Args:
        trace: gets predictor, inputs and reply of each call, for an optimiser; None: nothing is kept.
    """
    return dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=trace)


def use_other(model: Model | None) -> AbstractContextManager[None]:
    """Return a context in which modules call another model; None: the one that they call already."""
    return use_model(*model) if model else nullcontext()


# Errors after which every other call would fail, too.
_ENDPOINT_ERRORS = (
    lm_errors.LMTransportError,
    lm_errors.LMAuthError,
    lm_errors.LMBillingError,
    lm_errors.LMUnsupportedModelError,
    lm_errors.LMConfigurationError,
)


async def call(
    predict: dspy.Predict,
    stage: str,
    profile: Profile,
    turn: int,
    temperature: float | None = None,
    /,
    **inputs: object,
) -> dspy.Prediction:
    """Call the model of the current context with the decoding profile of a step (Lee et al. 2024, section 2.3).

    The journal and the drops name the step (`stage`) and the number of its turn.

    Args:
        temperature: in place of the profile's; None: that one.

    Raises:
        Rejected: the prompt doesn't fit, the server refuses this request, or two replies in a row can't be parsed.
        ModelError: the endpoint can't be used at all.
        RunError: the reply can't be stored.
    """
    with _mapped_errors(stage):
        try:
            return await predict.acall(config={"metadata": _purpose(stage, profile, turn, temperature)}, **inputs)
        except lm_errors.AdapterParseError as error:
            if dspy.settings.trace is not None:  # an optimiser learns from these, too
                dspy.settings.trace.append((predict, inputs, dspy.Prediction(unusable=error.lm_response)))
            raise


async def chat(lm: LanguageModel, messages: tuple[Message, ...], stage: str, turn: int) -> ChatReply:
    """Send a chat to a model as it is, without a task or a form of ours, and return the reply; decoding is greedy.

    Raises:
        Rejected, ModelError, RunError: as `call`.
    """
    with _mapped_errors(stage):
        return await lm.chat(messages, _purpose(stage, "greedy", turn))


def _purpose(stage: str, profile: Profile, turn: int, temperature: float | None = None) -> dict[str, str]:
    purpose = {"profile": profile, "stage": stage, "turn": str(turn)}
    return purpose if temperature is None else {**purpose, "temperature": str(temperature)}


@contextmanager
def _mapped_errors(stage: str) -> Iterator[None]:
    try:
        yield
    except lm_errors.ContextWindowExceededError as error:
        reason = TOO_LONG if error.status else "the next prompt does not fit its model's context"
        raise Rejected("context", reason, _first_line(error)) from error
    except lm_errors.AdapterParseError as error:
        problem = error.args[0].partition("\n")[0]
        reason = "empty reply" if EMPTY in problem else "unusable reply"
        if FILTERED in problem:
            reason += f", {FILTERED}"
        elif CUT_OFF in problem:
            reason += ", cut off (a higher lm.max_tokens, or that of its own model, may help)"
        raise Rejected(stage, reason, f"{error.lm_response}\nThe reason: {problem}") from error
    except lm_errors.LMUnexpectedError as error:  # DSPy's, around the journal's error or a bug of ours
        raise (error.__cause__ or error) from None
    except _ENDPOINT_ERRORS as error:
        raise ModelError(_first_line(error)) from error
    except lm_errors.LMError as error:
        raise Rejected("model", _why_failed(error), _first_line(error)) from error


def _why_failed(error: lm_errors.LMError) -> str:
    """Return why a call failed in a few words, which are the same for all calls that fail alike."""
    if error.status:
        return f"the server answers HTTP {error.status}"
    return "no reply in time" if isinstance(error, lm_errors.LMTimeoutError) else "no complete reply"


def _first_line(error: lm_errors.LMError) -> str:
    # The lines below it are DSPy's advice to its own users.
    return str(error.message).partition("\n")[0]
