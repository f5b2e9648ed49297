"""Errors of a model server, from the words of its reply."""

import json

import pytest
from dspy import lm15

from generator.models.http_errors import status_error


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4744 in the messages, "
        "256 in the completion).",
        "You passed 5001 input tokens and requested 256 output tokens. However, the model's context length is only "
        "4096 tokens.",
        "The decoder prompt (length 5001) is longer than the maximum model length of 4096.",
        "request (6049 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        "The number of tokens to keep from the initial prompt is greater than the context length "
        "(n_keep: 13055>= n_ctx: 4096).",
        "prompt is too long: 216868 tokens > 200000 maximum",
        "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
    ],
)
def test_an_overflow_is_known_by_its_words(message: str) -> None:
    body = json.dumps({"error": {"message": message, "code": 400}}).encode()
    error = status_error("http://x/v1", 400, body, {}, None)
    assert isinstance(error, lm15.ContextLengthError)
    assert error.message.startswith(f"http://x/v1 answered HTTP 400: {message}")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"object": "error", "message": "older\\n vLLM"}', "older vLLM"),
        (b'{"detail": [{"msg": "FastAPI"}]}', "[{'msg': 'FastAPI'}]"),
        (b"<html>\n proxy </html>", "<html> proxy </html>"),
        (b"<html><HEAD><title>\n502 Bad&nbsp;Gateway</title></HEAD></html>", "502 Bad Gateway"),
        (b"[1]", "[1]"),
        (b'[{"error": {"code": 400, "message": "Gemini"}}]', "Gemini"),
        (b'{"error": {"message": ""}}', "no reason given"),
    ],
)
def test_errors_are_told_on_one_line(body: bytes, words: str) -> None:
    assert status_error("http://x/v1", 400, body, {}, None).message == f"http://x/v1 answered HTTP 400: {words}"


def test_a_web_server_that_takes_no_post_is_a_wrong_address_and_not_asked_again() -> None:
    error = status_error("http://x/chat/completions", 501, b"<title>Error response</title>", {}, None)
    assert not isinstance(error, lm15.RETRYABLE_ERRORS) and "lm.api_base" in error.message


@pytest.mark.parametrize(
    ("status", "code"), [(429, "insufficient_quota"), (400, "budget_exceeded"), (422, "budget_exceeded")]
)
def test_a_spent_budget_is_neither_retried_nor_the_calls_fault(status: int, code: str) -> None:
    body = json.dumps({"error": {"message": "Budget has been exceeded!", "type": code, "code": str(status)}}).encode()
    error = status_error("http://x/v1", status, body, {}, None)
    assert isinstance(error, lm15.BillingError) and "Budget has been exceeded!" in error.message


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.", lm15.BillingError),
        ("head to: https://ai.google.dev/gemini-api/docs/rate-limits. Please retry in 38.9s.", lm15.RateLimitError),
    ],
)
def test_a_spent_quota_of_openai_is_known_behind_a_proxy_that_drops_its_code(words: str, kind: type) -> None:
    begins = "litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, please check "
    message = f"{begins}your plan and billing details. For more information on this error, {words}"
    body = json.dumps({"error": {"message": message, "type": "throttling_error", "code": "429"}}).encode()
    assert type(status_error("http://x/v1", 429, body, {}, None)) is kind
