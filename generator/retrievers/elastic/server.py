"""How an Elasticsearch server is reached, what is asked again, and what its errors mean for a person."""

import base64
import logging
import os
import re
import ssl
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from generator.common.concurrency import backoff
from generator.common.sanitize import server_message
from generator.errors import RetrieverError, describe
from generator.retrievers.elastic.answers import Refusal, Unreadable
from generator.schema import Address, OneOrMore, Record, VariableName

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

Answer = TypeVar("Answer")

# Characters of the server's words that a message repeats.
_LONGEST = 400
TRANSIENT = frozenset({429, 502, 503, 504})
_UNDEPLOYED = re.compile(r"deploy|allocat|trained model|inference (endpoint|id|entity)", re.IGNORECASE)


class Access(Record):
    """The settings that say how a server is reached. None of them changes what is found there.

    `api_key_env` and `password_env` name environment variables: the secrets themselves are no settings, so that they
    are never stored. With a `user` the password is sent, else the API key if there is one.
    """

    hosts: Annotated[tuple[Address, ...], OneOrMore, Field(min_length=1)]
    api_key_env: VariableName
    user: str | None = Field(min_length=1)
    password_env: VariableName
    ca_certs: str | None = Field(min_length=1)
    timeout_s: float = Field(gt=0)
    build_timeout_s: float = Field(gt=0)
    retries: int = Field(ge=0)
    retry_wait_s: float = Field(gt=0)

    @field_validator("hosts")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_address(host) for host in value)

    @property
    def where(self) -> str:
        """The addresses, for a person."""
        return ", ".join(self.hosts)


class Server:
    """A client that asks again what failed for the moment, and says in one line what remains.

    Raises:
        RetrieverError: the package isn't installed, or a secret or the certificate can't be used. Nothing is sent yet.
    """

    def __init__(self, access: Access) -> None:
        try:
            import elasticsearch
        except ImportError as error:
            raise RetrieverError(
                f"retriever=elasticsearch needs the package elasticsearch ({error}): install the extra "
                "'elasticsearch' (uv sync --extra elasticsearch), or choose retriever=bm25"
            ) from error
        self.access = access
        # What they would say of an attempt that failed is ours to say, once none is left.
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
        self.signed_in = "without credentials"
        if access.user is not None:
            password = os.environ.get(access.password_env)
            if not password:
                raise RetrieverError(
                    f"retriever.user={access.user} needs a password: set the environment variable {access.password_env}"
                )
            # In UTF-8; of the client's own `basic_auth` only ASCII gets through.
            pair = f"{access.user}:{password}".encode(errors="surrogateescape")
            options["headers"] = {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
            self.signed_in = f"the user {access.user} with the password in {access.password_env}"
        elif key := _key(access.api_key_env):
            options["api_key"] = key
            self.signed_in = f"the API key in {access.api_key_env}"
        # Attempts are counted here: before version 9 the client made no pauses between them.
        self.client = elasticsearch.Elasticsearch(
            list(access.hosts), max_retries=0, request_timeout=access.timeout_s, **options
        )
        self._patient = self.client.options(request_timeout=access.build_timeout_s)

    def ask(self, doing: str, request: "Callable[[Elasticsearch], Answer]", at_once: bool = False) -> Answer:
        """What `request` gives, asked with the time-out of building, again and again if need be.

        Args:
            doing: what it is for, as in "while loading passages".
            at_once: True says at once that nobody is there, or somebody else, for the first request of all.

        Raises:
            RetrieverError: it can't be had; one line.
        """
        attempts = Retrying(
            retry=retry_if_exception(lambda error: self.transient(error) and not (at_once and _nobody_there(error))),
            stop=stop_after_attempt(self.access.retries + 1),
            wait=backoff(self.access.retry_wait_s),
            reraise=True,
        )
        try:
            return attempts(request, self._patient)
        except Exception as error:
            raise self.explained(doing, error, self.access.build_timeout_s) from error

    def transient(self, error: BaseException) -> bool:
        """Whether the same request may succeed later."""
        from elastic_transport import ApiError, ConnectionError, ConnectionTimeout, TlsError

        if _strange(error):  # whatever stands in front of the server may go again, as with a 502
            return True
        if isinstance(error, ApiError):
            return error.meta.status in TRANSIENT
        if isinstance(error, Refusal):
            return error.status in TRANSIENT
        return isinstance(error, ConnectionError | ConnectionTimeout) and not isinstance(error, TlsError)

    def explained(self, doing: str, error: Exception, timeout_s: float) -> Exception:
        """What went wrong and what to do, as an error for a person; what isn't the server's comes back as it is."""
        from elastic_transport import ApiError, ConnectionError, ConnectionTimeout, TlsError

        where = self.access.where
        stranger = RetrieverError(f"{where}: what answers there is not Elasticsearch; look at retriever.hosts")
        if what := _strange(error):
            return RetrieverError(
                f"{where}: what answers there is not Elasticsearch, while {doing} ({self._repeated(what)}); look at "
                "retriever.hosts, and at what stands in front of it; the same command continues"
            )
        if isinstance(error, ApiError):
            if not speaks_as_elasticsearch(error):
                return stranger
            body = error.body
            return self._refused(
                doing, Refusal(error.meta.status, body.get("error") if isinstance(body, dict) else body)
            )
        if isinstance(error, Refusal):
            return self._refused(doing, error)
        why = self._repeated(_cause(error))
        if isinstance(error, TlsError):
            if "WRONG_VERSION_NUMBER" in why or "RECORD_LAYER_FAILURE" in why:
                return RetrieverError(f"{where}: has no https there; write http:// in retriever.hosts")
            return RetrieverError(
                f"{where}: its certificate isn't trusted ({why}); give the certificate of its authority as "
                "retriever.ca_certs=FILE"
            )
        if isinstance(error, ConnectionTimeout):
            return RetrieverError(
                f"{where}: no answer within {timeout_s:g} s while {doing}; when the server is well, the same command "
                "continues, with more patience by retriever.timeout_s and retriever.build_timeout_s"
            )
        if isinstance(error, ConnectionError):
            secure = "" if where.startswith("https") else ", with https:// if it has that"
            return RetrieverError(
                f"{where}: can't be reached while {doing} ({why}); start Elasticsearch there (docs/elasticsearch.md "
                f"says how) or give its address as retriever.hosts{secure}; the same command continues"
            )
        return error

    def _refused(self, doing: str, refusal: Refusal) -> RetrieverError:
        status, kind, reason = refusal.status, self._repeated(refusal.kind), self._repeated(refusal.reason)
        text = f"{kind} {reason}"
        said = f"{self.access.where}: {status} {kind}".rstrip() + f" while {doing}" + (f" ({reason})" if reason else "")
        access = self.access
        if status == 401:
            return RetrieverError(
                f"{access.where}: refuses {self.signed_in}; set the environment variable {access.api_key_env} to a "
                f"valid API key, or retriever.user and the environment variable {access.password_env}"
            )
        if status == 403 and "licen" in text:
            return RetrieverError(
                f"{access.where}: its licence forbids ELSER ({reason}); start a trial (POST "
                "/_license/start_trial?acknowledge=true), or choose retriever.mode=bm25, dense, or hybrid with "
                "retriever.parts=[bm25,dense], which every licence allows"
            )
        if "media_type_header" in kind or "compatible-with" in reason or "Accept version" in reason:
            import elasticsearch

            version = elasticsearch.__version__[0]
            return RetrieverError(
                f"{said}: the client is of version {version} and the server isn't; install the client of the server's "
                "version, such as pip install 'elasticsearch>=8.15,<9'"
            )
        if "cluster_block" in kind:
            advice = "the server lets nobody write; make room on its disk"
        elif status == 403:
            advice = f"{self.signed_in} may not do that; docs/elasticsearch.md lists the privileges"
        elif "index_not_found" in kind:
            advice = "the index is gone; the same command builds it again"
        elif "chunking_settings" in reason:
            advice = "ELSER on whole passages needs Elasticsearch 8.19, 9.1 or newer; take retriever.mode=bm25 or dense"
        elif _UNDEPLOYED.search(text):
            advice = (
                "the model isn't deployed: see GET /_ml/trained_models/_stats for why, make room for it, or delete the "
                "inference endpoint so that it is made anew (docs/elasticsearch.md says how); then the same command "
                "continues"
            )
        elif status == 413:
            advice = "send fewer passages at a time: a smaller retriever.chunk"
        elif status in TRANSIENT:
            advice = "it has too much to do or is just starting; later the same command continues"
        else:
            advice = "docs/elasticsearch.md says what the server must have and allow"
        return RetrieverError(f"{said}: {advice}")

    def _repeated(self, text: str) -> str:
        """The server's words as a message may repeat them."""
        return server_message(text, self.access.api_key_env, self.access.password_env, longest=_LONGEST)


def speaks_as_elasticsearch(error: Any) -> bool:
    """Whether an error may be Elasticsearch's own: proxies in front of it refuse and fail in their own words."""
    if error.meta.status in (401, 403, 413) or error.meta.status in TRANSIENT:
        return True
    return "x-elastic-product" in error.meta.headers or (isinstance(error.body, dict) and "error" in error.body)


def _address(host: str) -> str:
    try:
        parts = urlsplit(host.rstrip("/"))
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError as error:
        raise ValueError(f"is no address ({error})") from error
    if not (port and parts.hostname):
        raise ValueError("must be addresses that begin with http:// or https://, such as http://127.0.0.1:9200")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{name}:{port}{parts.path}"


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise RetrieverError(f"the environment variable {variable} holds what can't be an API key; set it anew")
    return key


def _nobody_there(error: BaseException) -> bool:
    from elastic_transport import ConnectionError

    return isinstance(error, ConnectionError) or bool(_strange(error))


def _strange(error: BaseException) -> str:
    """Why what came with a 200 is no answer of Elasticsearch's; empty: that isn't what went wrong."""
    from elastic_transport import SerializationError
    from elasticsearch import UnsupportedProductError

    if isinstance(error, UnsupportedProductError):
        return "it doesn't say that it is"
    if isinstance(error, SerializationError):
        return "no JSON"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) if isinstance(error, Unreadable) else ""


def _cause(error: BaseException) -> str:
    """The cause without the client's wrappings."""
    text = " ".join(str(getattr(error, "message", None) or error).split())
    if found := re.search(r"\[Errno -?\d+\] ([^'\")]+)|(\[SSL[^'\"]+)", text):
        return found[1] or found[2]
    return text
