"""One model call: its decoding profile, its purpose, and what its errors mean for the dialog and the run.

The model and the adapter come from the context (`asking`), one pair a dialog.
"""

from contextlib import AbstractContextManager

import dspy
from dspy.utils import exceptions as lm_errors

from generator.errors import GroundedDialogsError, ModelError, Rejected
from generator.models.lm import Profile


def asking(lm: dspy.LM, adapter: dspy.Adapter) -> AbstractContextManager[None]:
    """Where modules are called: they ask `lm` through `adapter`. DSPy keeps no history: it would hold every prompt."""
    context: AbstractContextManager[None] = dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None)
    return context


# Errors after which no other call of the run would fare better.
_ENDPOINT_GONE = (
    lm_errors.LMTransportError,
    lm_errors.LMAuthError,
    lm_errors.LMBillingError,
    lm_errors.LMUnsupportedModelError,
    lm_errors.LMConfigurationError,
    lm_errors.LMUnexpectedError,
)


async def call(predict: dspy.Predict, stage: str, profile: Profile, turn: int, **inputs: object) -> dspy.Prediction:
    """Ask the model of the current context, with the decoding profile of this step (Lee et al. 2024, section 2.3).

    Raises:
        Rejected: the prompt would not fit, the server refuses this one request, or the reply is unusable twice.
        ModelError: the endpoint as a whole can't be used.
        RunError: the reply can't be written down.
    """
    try:
        config = {"metadata": {"profile": profile, "stage": stage, "turn": str(turn)}}
        return await predict.acall(config=config, **inputs)
    except lm_errors.ContextWindowExceededError as error:
        raise Rejected("context", "the next prompt does not fit lm.context", _first_line(error)) from error
    except lm_errors.AdapterParseError as error:
        raise Rejected(stage, "unusable reply", error.lm_response) from error
    except _ENDPOINT_GONE as error:
        if isinstance(error.__cause__, GroundedDialogsError):  # the journal's, wrapped by DSPy
            raise error.__cause__ from None
        raise ModelError(_first_line(error)) from error
    except lm_errors.LMError as error:
        raise Rejected("model", type(error).__name__.removeprefix("LM"), _first_line(error)) from error


def _first_line(error: lm_errors.LMError) -> str:
    """DSPy adds advice for its own users below."""
    return str(error.message).partition("\n")[0]
