"""Failures of a model server as errors of `dspy.lm15`, each with a message on one line.

`dspy.lm15.RETRYABLE_ERRORS` lists those that are worth a retry.
"""

import html
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from dspy import lm15

from generator.common.sanitize import server_message

# A prompt that doesn't fit, in the words of vLLM, OpenAI, SGLang and LM Studio ("context length"), newer vLLM ("maximum
# model length"), llama.cpp ("context size"), Anthropic ("prompt is too long") and Gemini ("input token count");
# beside them OpenAI's code.
_OVERFLOW = re.compile(
    r"context[ _](?:length|size)|maximum model length|prompt is too long|input token count", re.IGNORECASE
)
# Nothing is left to spend, in the codes of OpenAI (429) and of LiteLLM's proxy (400, 422 or 429 by its version), which
# passes on OpenAI's words alone. Gemini begins with the same ones where a minute's limit is reached.
_SPENT = re.compile(
    rb"\b(?:insufficient_quota|budget_exceeded)\b|exceeded your current quota[^{}]{,200}platform\.openai\.com"
)
# What a proxy's page says in its title, such as “502 Bad Gateway”.
_TITLE = re.compile(r"<title[^>]{0,99}>([^<]+)", re.IGNORECASE)


def status_error(
    url: str, status: int, body: bytes, headers: Mapping[str, str], key_env: str | None, setting: str = "lm"
) -> lm15.LM15Error:
    """Return the error for a response with an HTTP status other than 200.

    Args:
        key_env: the environment variable that holds the API key; the message names it, and never shows the key.
        setting: the server's, such as `judge.lm`.
    """
    message = f"{url} answered HTTP {status}: {error_text(body, key_env)}"
    match status:
        case 401 | 403:
            return lm15.AuthError(f"{message}; check the key in {key_env or f'{setting}.api_key_env'}", status=status)
        case 402:
            return lm15.BillingError(message, status=status)
        case 400 | 422 | 429 if _SPENT.search(body):
            return lm15.BillingError(message, status=status)
        case 404 | 501:  # 501: a plain web server, which takes no POST
            place = "ends where /chat/completions begins, usually in /v1"
            hint = f"check {setting}.model, and that {setting}.api_base {place}"
            return lm15.UnsupportedModelError(f"{message}; {hint}", status=status)
        case 408 | 504:
            return lm15.TimeoutError(message, status=status, retry_after=retry_after(headers))
        case 429:
            return lm15.RateLimitError(message, status=status, retry_after=retry_after(headers))
        # A response below 400 is no completion; proxies send 421, 425 and 499 after lost connections and time-outs.
        case _ if status < 400 or status >= 500 or status in (409, 421, 425, 499):
            return lm15.ServerError(message, status=status, retry_after=retry_after(headers))
        case _ if _OVERFLOW.search(body.decode(errors="replace")):
            return lm15.ContextLengthError(message, status=status)
        case _:
            return lm15.InvalidRequestError(message, status=status)


def is_overload(error: lm15.LM15Error) -> bool:
    """Return whether a failure means that the server is overloaded: 429, 503, or a time-out."""
    return isinstance(error, lm15.RateLimitError | lm15.TimeoutError) or getattr(error, "status", None) == 503


def connection_error(url: str, error: Exception, timeout_s: float, key_env: str | None) -> lm15.LM15Error:
    """Return the error for a call without a complete response; `key_env` as in `status_error`."""
    if isinstance(error, TimeoutError):
        return lm15.TimeoutError(f"{url} did not answer within {timeout_s:g} s")
    return lm15.TransportError(f"{url}: {connection_cause(error, key_env)}")


def connection_cause(error: Exception, key_env: str | None) -> str:
    """Return a network error in a few words, on one line and without the API key, which a server may repeat."""
    if isinstance(error, aiohttp.ClientConnectorError):
        # asyncio replaces the system's message by one that leaves out the cause; TLS has numbers of its own.
        number = 0 if isinstance(error, aiohttp.ClientSSLError) else error.os_error.errno or 0
        return os.strerror(number) if number > 0 else str(error.os_error.strerror or error.os_error)
    return server_message(str(error), key_env) or type(error).__name__


def error_text(body: bytes, key_env: str | None) -> str:
    """Return the message in the body of an error response, on one line and without the API key."""
    text: Any = body.decode(errors="replace")
    if page := _TITLE.search(text):
        text = html.unescape(page[1])
    with suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        parsed = parsed[0] if isinstance(parsed, list) and parsed else parsed  # Gemini's
        if isinstance(parsed, dict):
            text = parsed.get("error") or parsed.get("message") or parsed.get("detail") or text
            text = text.get("message", text) if isinstance(text, dict) else text
    return server_message(str(text), key_env) or "no reason given"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, which holds seconds or a date by the server's clock."""
    value = headers.get("Retry-After", "")
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError, KeyError, OverflowError):
        return max(0.0, (parsedate_to_datetime(value) - parsedate_to_datetime(headers["Date"])).total_seconds())
    return None
