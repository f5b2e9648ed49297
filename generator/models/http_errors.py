"""What a model server's failure means: which `dspy.lm15` error it is, and how it reads on one line.

`dspy.lm15.RETRYABLE_ERRORS` says which of them are worth asking again.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from dspy import lm15

from generator.common.sanitize import printable, without_secrets

# As vLLM and OpenAI ("maximum context length"), newer vLLM ("maximum model length") and llama.cpp ("available context
# size") say that a prompt does not fit; OpenAI's code and llama.cpp's type beside them.
_OVERFLOW = re.compile(
    r"maximum (?:context|model) length|context length is only|context size|context_length_exceeded|exceed_context_size",
    re.IGNORECASE,
)
_LONGEST = 300


def refusal(where: str, status: int, body: bytes, headers: Mapping[str, str], key_env: str | None) -> lm15.LM15Error:
    """The error behind an HTTP status other than 200.

    Args:
        where: the address that answered.
        status: of the answer.
        body: of the answer, as it came.
        headers: of the answer.
        key_env: the environment variable that holds the key, for the message.
    """
    text = said(body, key_env)
    message = f"{where} answered HTTP {status}: {text}"
    match status:
        case 401 | 403:
            return lm15.AuthError(f"{message}; check the key in {key_env or 'lm.api_key_env'}", status=status)
        case 402:
            return lm15.BillingError(message, status=status)
        case 429 if b"insufficient_quota" in body:
            return lm15.BillingError(message, status=status)
        case 404:
            hint = "check lm.model, and that lm.api_base ends where /chat/completions begins"
            return lm15.UnsupportedModelError(f"{message}; {hint}", status=status)
        case 408 | 504:
            return lm15.TimeoutError(message, status=status, retry_after=_retry_after(headers))
        case 429:
            return lm15.RateLimitError(message, status=status, retry_after=_retry_after(headers))
        # 1xx to 3xx are no answers; 421, 425 and 499 are a proxy's, which has lost a connection or its patience.
        case 409 | 421 | 425 | 499:
            return lm15.ServerError(message, status=status, retry_after=_retry_after(headers))
        case _ if status < 400 or status >= 500:
            return lm15.ServerError(message, status=status, retry_after=_retry_after(headers))
        case _ if _OVERFLOW.search(body.decode(errors="replace")):
            return lm15.ContextLengthError(message, status=status)
        case _:
            return lm15.InvalidRequestError(message, status=status)


def overloaded(error: lm15.LM15Error) -> bool:
    """Whether a failure says that the server has too much to do: 429, 503, or no answer in time."""
    return isinstance(error, lm15.RateLimitError | lm15.TimeoutError) or getattr(error, "status", None) == 503


def broken(where: str, error: Exception, timeout_s: float, key_env: str | None) -> lm15.LM15Error:
    """The error behind a call that got no whole answer; `key_env` as in `refusal`."""
    if isinstance(error, TimeoutError):
        return lm15.TimeoutError(f"{where} did not answer within {timeout_s:g} s")
    return lm15.TransportError(f"{where}: {reason(error, key_env)}")


def reason(error: Exception, key_env: str | None) -> str:
    """A network error in a few words; they may be the server's, and are treated as in `said`."""
    if isinstance(error, aiohttp.ClientConnectorError):
        # asyncio puts words of its own, without the cause, where the system's would stand.
        number = error.os_error.errno or 0
        return os.strerror(number) if number > 0 else str(error.os_error.strerror or error.os_error)
    return _line(str(error), key_env) or type(error).__name__


def said(body: bytes, key_env: str | None) -> str:
    """The server's own words on one line, from whichever form it wraps them in; without the key, if it repeats that.

    Args:
        body: of its answer.
        key_env: the environment variable that holds the key.
    """
    text: Any = body.decode(errors="replace")
    with suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        if isinstance(parsed, dict):
            text = parsed.get("error") or parsed.get("message") or parsed.get("detail") or text
            text = text.get("message", text) if isinstance(text, dict) else text
    return _line(str(text), key_env)


def _line(text: str, key_env: str | None) -> str:
    line = without_secrets(printable(text), key_env)
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the server asks: the header holds seconds, or a date, which is by the server's own clock."""
    value = headers.get("Retry-After", "")
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError, KeyError, OverflowError):
        return max(0.0, (parsedate_to_datetime(value) - parsedate_to_datetime(headers["Date"])).total_seconds())
    return None
