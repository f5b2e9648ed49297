"""Check before a run that a server answers, accepts the key, and has the model with the context that is set."""

import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import aiohttp
from dspy import lm15

from generator.common.console import note
from generator.common.proxies import find_proxy
from generator.common.sanitize import server_message
from generator.errors import ModelError
from generator.models.completions import BAD_ANSWER, ListedModel, read_models
from generator.models.connection import CONNECTION_ERRORS, PROBE_S, Connection
from generator.models.http_errors import connection_cause, error_text


class NoServer(ModelError):
    """Nothing answers at the address, or a server that is starting or broken."""


async def check_server(
    server: Connection, model: str, context: int, call: Callable[[], Awaitable[object]]
) -> ListedModel:
    """Return what a server says of a model, if it can be used; nothing if it doesn't list it.

    Args:
        context: as in `lm.context`; if the server's is smaller, the user is told.
        call: makes a trivial call of the model.

    Raises:
        ModelError: the server refuses the key, or has another API or other models; `NoServer` if it doesn't answer, or
            with a failure of its own.
    """
    known = await _list_models(server)
    if known is None:  # the first call shows what is wrong
        return ListedModel()
    if not known:
        raise ModelError(f"{server.api_base} lists no models: load {model} in it, then try again")
    if model not in known:
        await _try_unlisted(server, model, known, call)
    listed = known.get(model, ListedModel())
    if listed.context is not None and listed.context < context:
        note(
            f"{server.setting}.context={context} is more than the {listed.context} tokens of {server.api_base}, which "
            f"refuses longer prompts: set {server.setting}.context={listed.context}, or start the server with "
            f"--max-model-len {context}"
        )
    return listed


async def _list_models(server: Connection) -> dict[str, ListedModel] | None:
    """Return the models that a server lists; None if it doesn't list them, or not with this key."""
    try:
        status, body = await server.list_models()
    except CONNECTION_ERRORS as error:
        timed_out = isinstance(error, TimeoutError)
        why = f"no response within {PROBE_S} s" if timed_out else connection_cause(error, server.key_env)
        proxy = find_proxy(server.api_base).get("proxy")
        where = f"{server.api_base}, asked by the proxy {proxy}" if proxy else server.api_base
        remedy = f"start it, or set its address with {server.setting}.api_base"
        if isinstance(error, aiohttp.ClientSSLError):
            remedy = f"check {server.setting}.api_base; SSL_CERT_FILE names the certificate of your own authority"
        raise NoServer(f"no model server at {where} ({why}): {remedy}") from error
    if status == 401:
        held = "refuses the API key in" if os.environ.get(server.key_env or "") else "requires an API key: set"
        raise ModelError(f"{server.api_base} {held} {server.key_env or f'{server.setting}.api_key_env'}")
    if status in (403, 404, 405):
        return None
    if status != 200:
        why = f"{server.api_base}/models answered HTTP {status}: {error_text(body, server.key_env)}"
        raise NoServer(f"{why}; try again when it is ready") if status >= 500 else ModelError(why)
    try:
        return read_models(body)
    except BAD_ANSWER as error:
        raise ModelError(
            f"{server.api_base} has no OpenAI API; {server.setting}.api_base usually ends in /v1"
        ) from error


async def _try_unlisted(
    server: Connection, model: str, known: Iterable[str], call: Callable[[], Awaitable[object]]
) -> None:
    """Find out if the server has the model though it doesn't list it, as Azure and gateways don't list aliases."""
    try:
        with suppress(*lm15.RETRYABLE_ERRORS):  # which say nothing of the model
            await call()
    except lm15.LM15Error as error:
        names = server_message(", ".join(known), server.key_env)
        raise ModelError(
            f"{server.api_base} has no model {model}; set {server.setting}.model to one of its models: {names}"
        ) from error
    note(f"{server.api_base} doesn't list the model {model}, which is used all the same")
