"""The connection to an Elasticsearch server: how it is reached, what is retried, and what its errors mean to a user."""

import logging
import os
import re
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field
from tenacity import RetryCallState, Retrying, stop_after_attempt, stop_any, stop_when_event_set
from tenacity.nap import sleep_using_event

from generator.common.concurrency import WaitNotes, backoff
from generator.common.sanitize import printable, read_key, without_secrets
from generator.errors import RetrieverError, describe
from generator.retrievers.base import Connection
from generator.schema import Address, OneOrMore, Operational, VariableName

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

Result = TypeVar("Result")

# Characters of the server's message that an error quotes.
_LONGEST = 400
TRANSIENT = frozenset({429, 502, 503, 504})
# What helps, by patterns of status, type and reason of a refusal; the first that is found counts.
_ADVICE = {
    "^401 ": "authentication failed with {credentials}; set the environment variable {key} to a valid API key, or set "
    "retriever.user and the environment variable {password}",
    "^403 .*licen": "the server's licence does not include ELSER; start a trial (POST "
    "/_license/start_trial?acknowledge=true), or choose retriever.mode=bm25, dense, or hybrid with "
    "retriever.parts=[bm25,dense]",
    "media_type_header|compatible-with|Accept version": "the installed client is of version {version} and the server "
    "is not; install the client of the server's major version, such as pip install 'elasticsearch>=8.15,<9'",
    "cluster_block": "the index is read-only; free disk space on the server",
    "^403 ": "{credentials}: permission denied; docs/elasticsearch.md lists the privileges",
    "invalid_index_name": "give another name as retriever.index",
    "index_not_found": "the index was deleted; the same command builds it again",
    "chunking_settings": "ELSER on whole passages needs Elasticsearch 8.19, 9.1 or newer; use retriever.mode=bm25 or "
    "dense",
    "deploy|allocat|trained model|inference (endpoint|id|entity)": "the model is not deployed; GET "
    "/_ml/trained_models/_stats shows why. Free memory for it, or delete the inference endpoint to create it again "
    "(see docs/elasticsearch.md); then the same command continues",
    "^413 ": "send fewer passages at a time with a smaller retriever.chunk",
    "^(429|502|503|504) ": "the server is overloaded or starting; later the same command continues",
    "": "docs/elasticsearch.md says what the server needs",
}


class Access(Connection):
    """The settings of a connection with Elasticsearch."""

    hosts: Annotated[tuple[Address, ...], OneOrMore, Operational] = Field(
        min_length=1, description="Address of the server, or a list of addresses of one cluster."
    )
    user: Annotated[str | None, Operational] = Field(
        min_length=1, description="User to sign in as, with a password, in place of an API key; null: no user."
    )
    password_env: Annotated[VariableName, Operational] = Field(
        description="Environment variable that holds the password of `user`."
    )
    ca_certs: Annotated[str | None, Operational] = Field(
        min_length=1,
        description="File with the certificate of the authority behind `https://`, in PEM form; null: the system's.",
    )
    build_timeout_s: Annotated[float, Operational] = Field(
        gt=0,
        description="Time-out of a request while the index is built, in seconds. On a small machine ELSER takes "
        "minutes for a chunk.",
    )

    @property
    def where(self) -> str:
        """The addresses, to show to the user."""
        return ", ".join(self.hosts)


class Refusal(Exception):
    """An error that Elasticsearch returned, for a request or for one of the items in it: HTTP status, type, reason."""

    def __init__(self, status: int, error: Any) -> None:
        if not isinstance(error, dict):
            error = {"reason": str(error or "")}  # nothing at all, as of a 413
        reasons: list[str] = []
        for reason in _reasons(error):
            if not any(reason in earlier for earlier in reasons):  # causes often repeat one another
                reasons.append(reason)
        self.status, self.kind, self.reason = status, error.get("type", ""), ": ".join(reasons)
        super().__init__(f"{status} {self.kind}: {self.reason}")


class Server:
    """A client that retries what failed temporarily, and explains in one line what remains.

    Raises:
        RetrieverError: the package isn't installed, or a secret or the certificate can't be used.
    """

    def __init__(self, access: Access) -> None:
        try:
            import elasticsearch
            from elastic_transport.client_utils import basic_auth_to_header, url_to_node_config
        except ImportError as error:
            raise RetrieverError(
                f"retriever=elasticsearch: the package elasticsearch is missing ({error}); install the extra "
                "'elasticsearch' (uv sync --inexact --extra elasticsearch), or choose retriever=bm25"
            ) from error
        self.access = access
        # They would report each attempt that failed; only the last one matters.
        logging.getLogger("elastic_transport").setLevel(logging.CRITICAL)
        warnings.filterwarnings("ignore", category=elasticsearch.ElasticsearchWarning)
        options: dict[str, Any] = {}
        if access.ca_certs is not None:
            certificate = Path(access.ca_certs).expanduser()
            try:
                ssl.create_default_context(cafile=certificate)
            except OSError as error:  # ssl.SSLError is one too
                raise RetrieverError(
                    f"retriever.ca_certs={certificate}: can't be used ({describe(error)}); give a certificate "
                    "in PEM form"
                ) from error
            options["ca_certs"] = str(certificate)
        self._credentials = "no credentials"
        if access.user is not None:
            password = os.environ.get(access.password_env)
            if not password:
                raise RetrieverError(
                    f"retriever.user={access.user}: no password; set the environment variable {access.password_env}"
                )
            # The client's own `basic_auth` takes ASCII only.
            options["headers"] = {"authorization": basic_auth_to_header((access.user, password))}
            self._credentials = f"the user {access.user} and the password in {access.password_env}"
        elif key := read_key(access.api_key_env):
            options["api_key"] = key
            self._credentials = f"the API key in {access.api_key_env}"
        try:
            nodes = [url_to_node_config(host, use_default_ports_for_scheme=True) for host in access.hosts]
        except ValueError as error:
            raise RetrieverError(f"retriever.hosts={access.where}: {error}") from error
        # Retries are ours, since the client of version 8 makes no pauses between them.
        self.client = elasticsearch.Elasticsearch(nodes, max_retries=0, request_timeout=access.timeout_s, **options)
        self._given_up = threading.Event()
        self._reached = False
        self._building = self.client.options(request_timeout=access.build_timeout_s)

    @contextmanager
    def giving_up_on_errors(self) -> Iterator[None]:
        """End the retries of requests that other threads make, at an error or an interruption in the block."""
        try:
            yield
        except BaseException:
            self._given_up.set()
            raise

    def request(self, doing: str, send: "Callable[[Elasticsearch], Result]") -> Result:
        """Return the result of `send`, with the time-out of building and with retries.

        The first request of all isn't made again if no server can be connected with.

        Args:
            doing: what the request is for, as in "while loading passages".

        Raises:
            RetrieverError: all attempts failed; one line.
        """
        from elastic_transport import ConnectionError

        def again(state: RetryCallState) -> bool:
            error = state.outcome.exception() if state.outcome else None
            self._reached |= not isinstance(error, ConnectionError)
            # Of several servers each attempt asks another one.
            gone = not self._reached and state.attempt_number >= len(self.access.hosts)
            return error is not None and self.transient(error) and not gone

        attempts = Retrying(
            retry=again,
            stop=stop_any(stop_after_attempt(self.access.retries + 1), stop_when_event_set(self._given_up)),
            wait=backoff(self.access.retry_wait_s),
            before_sleep=self.wait_notes(doing, self.access.build_timeout_s),
            sleep=sleep_using_event(self._given_up),
            reraise=True,
        )
        try:
            return attempts(send, self._building)
        except Exception as error:
            raise self.explain(doing, error, self.access.build_timeout_s) from error

    def wait_notes(self, doing: str, timeout_s: float) -> WaitNotes:
        """Return what says why the server is waited for, in the words of `explain`."""
        # Without the advice for when it has given up.
        return WaitNotes(lambda error: str(self.explain(doing, error, timeout_s)).partition("; ")[0])

    def transient(self, error: BaseException) -> bool:
        """Return True if the same request may succeed later."""
        from elastic_transport import ApiError, ConnectionError, ConnectionTimeout, TlsError

        if isinstance(error, ApiError | Refusal):
            return (error.status if isinstance(error, Refusal) else error.meta.status) in TRANSIENT
        return isinstance(error, ConnectionError | ConnectionTimeout) and not isinstance(error, TlsError)

    def explain(self, doing: str, error: Exception, timeout_s: float) -> Exception:
        """Return a RetrieverError that says what went wrong and what to do; an error of our own comes back as it is."""
        from elastic_transport import ApiError, ConnectionError, ConnectionTimeout, SerializationError, TlsError
        from elasticsearch import UnsupportedProductError

        where = self.access.where
        stranger = RetrieverError(
            f"{where}: not an Elasticsearch server (while {doing}); check retriever.hosts, and any proxy in front of it"
        )
        if isinstance(error, UnsupportedProductError | SerializationError):
            return stranger
        if isinstance(error, ApiError):
            status, body = error.meta.status, error.body
            # With these statuses it may be a proxy in front of Elasticsearch that refuses.
            if status not in (401, 403, 413, *TRANSIENT) and "x-elastic-product" not in error.meta.headers:
                return stranger
            return self._explain_refusal(
                doing, Refusal(status, body.get("error", body) if isinstance(body, dict) else body)
            )
        if isinstance(error, Refusal):
            return self._explain_refusal(doing, error)
        why = self._quote(_cause(error))
        if isinstance(error, TlsError):
            if "WRONG_VERSION_NUMBER" in why or "RECORD_LAYER_FAILURE" in why:
                return RetrieverError(f"{where}: the server does not use https; write http:// in retriever.hosts")
            return RetrieverError(
                f"{where}: the server's certificate can't be verified ({why}); set retriever.ca_certs to the file with "
                "the certificate of its authority"
            )
        if isinstance(error, ConnectionTimeout):
            return RetrieverError(
                f"{where}: timed out after {timeout_s:g} s while {doing}; the same command continues, with a longer "
                "retriever.timeout_s or retriever.build_timeout_s if need be"
            )
        if isinstance(error, ConnectionError):
            secure = "" if where.startswith("https") else ", with https:// if the server uses it"
            return RetrieverError(
                f"{where}: connection failed while {doing} ({why}); start Elasticsearch there (see "
                f"docs/elasticsearch.md) or set retriever.hosts{secure}; the same command continues"
            )
        return error

    def _explain_refusal(self, doing: str, refusal: Refusal) -> RetrieverError:
        import elasticsearch

        access, kind, reason = self.access, self._quote(refusal.kind), self._quote(refusal.reason)
        text = f"{refusal.status} {kind} {reason}"
        advice = next(advice for pattern, advice in _ADVICE.items() if re.search(pattern, text, re.IGNORECASE))
        advice = advice.format(
            credentials=self._credentials,
            key=access.api_key_env,
            password=access.password_env,
            version=elasticsearch.__version__[0],
        )
        what = f"{access.where}: {refusal.status} {kind}".rstrip() + f" while {doing}"
        return RetrieverError(f"{what} ({reason}): {advice}" if reason else f"{what}: {advice}")

    def _quote(self, text: str) -> str:
        """Return the server's words, fit for an error message."""
        return without_secrets(printable(text), self.access.api_key_env, self.access.password_env)[:_LONGEST]


def body(response: Any) -> dict[str, Any]:
    """Return the JSON object of a response; raise `SerializationError` if it is another thing, as a login page."""
    from elastic_transport import SerializationError

    if not isinstance(response.body, dict):
        raise SerializationError("expected a JSON object")
    return response.body


def missing_shards() -> Refusal:
    """Return what to raise for a reply that lacks what some shards hold; it may pass."""
    return Refusal(503, {"type": "partial_result", "reason": "some shards of the index did not answer"})


def _reasons(error: dict[str, Any]) -> Iterator[str]:
    """Yield the reason of an error and those of its causes."""
    yield error.get("reason") or ""
    for root in error.get("root_cause", []):
        if root.get("type") != error.get("type"):  # as of a search, whose own reason is that all shards failed
            yield f"{root.get('type')}: {root.get('reason')}"
    for shard in error.get("failed_shards", []):  # what a script failed at stands here alone
        yield from _reasons(shard.get("reason") or {})
    if cause := error.get("caused_by"):
        yield from _reasons(cause)


def _cause(error: BaseException) -> str:
    """Return the message of the operating system or of TLS, without the client's wrapping."""
    text = " ".join(str(getattr(error, "message", None) or error).split())
    if found := re.search(r"\[Errno -?\d+\] ([^'\")]+)|(\[SSL[^'\"]+)", text):
        return found[1] or found[2]
    return text
