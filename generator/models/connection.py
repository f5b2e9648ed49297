"""The requests to one server with the OpenAI API, each made once."""

import aiohttp

from generator.common.proxies import find_proxy
from generator.common.sanitize import read_key, server_message
from generator.errors import ModelError
from generator.models.http_errors import connection_error, status_error

# Errors of a request without a complete response; ValueError is raised for an impossible host name.
CONNECTION_ERRORS = (aiohttp.ClientError, OSError, ValueError)
# Time limit for the list of models: a run should not hang on a server that is down.
PROBE_S = 10
# Time limit for a server's metrics, which only vLLM has.
_METRICS_S = 5
_JSON = {"Content-Type": "application/json"}


class Connection:
    """Sends requests to one server.

    Args:
        timeout_s: time limit of a call, in seconds.

    Attributes:
        api_base, url: its address, and that of calls.
        key_env: the environment variable that holds its API key.
        setting: the server's, such as `judge.lm`, for messages.

    Raises (all methods):
        ModelError: a proxy between requires a login.
    """

    def __init__(
        self, session: aiohttp.ClientSession, api_base: str, key_env: str | None, setting: str, timeout_s: float
    ) -> None:
        self.api_base, self.url = api_base, f"{api_base}/chat/completions"
        self.key_env, self.setting = key_env, setting
        key = read_key(key_env)
        # Of each request: headers of a session go to a proxy, too.
        self._session, self._headers = session, {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout_s = timeout_s
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(30, timeout_s))

    async def post(self, body: bytes) -> bytes:
        """Return the response to a call.

        Raises:
            lm15.LM15Error: there is none, or it has an HTTP status other than 200, which the error then has, too.
        """
        try:
            response, content = await self._request("POST", self.url, self._timeout, body)
        except CONNECTION_ERRORS as error:
            raise connection_error(self.url, error, self._timeout_s, self.key_env) from error
        if response.status != 200:
            raise status_error(self.url, response.status, content, response.headers, self.key_env, self.setting)
        return content

    async def list_models(self) -> tuple[int, bytes]:
        """Return the HTTP status of the list of models, and the list.

        Raises:
            aiohttp.ClientError, OSError, ValueError: there is no complete response (`CONNECTION_ERRORS`).
            ModelError: the server is at another address.
        """
        response, content = await self._request("GET", f"{self.api_base}/models", aiohttp.ClientTimeout(total=PROBE_S))
        # Of a call that is redirected like this, the key gets lost, and often the prompt.
        if response.history and response.url.origin() != response.history[0].url.origin():
            place = server_message(str(response.url).removesuffix("/models"), self.key_env)
            raise ModelError(f"{self.api_base} redirects to {place}: set {self.setting}.api_base to that address")
        return response.status, content

    async def is_up(self) -> bool:
        """Return whether the server answers, if only with a refusal."""
        try:
            status, _ = await self.list_models()
        except CONNECTION_ERRORS:
            return False
        return status < 500

    async def read_metrics(self) -> str:
        """Return what the server measures, as vLLM does, or an empty text; errors as of `list_models`."""
        url = f"{self.api_base.removesuffix('/v1')}/metrics"
        response, content = await self._request("GET", url, aiohttp.ClientTimeout(total=_METRICS_S))
        return content.decode(errors="replace") if response.status == 200 else ""

    async def _request(
        self, method: str, url: str, timeout: aiohttp.ClientTimeout, body: bytes | None = None
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        headers = self._headers if body is None else _JSON | self._headers
        try:
            async with self._session.request(method, url, data=body, headers=headers, timeout=timeout) as response:
                content = await response.read()
        except CONNECTION_ERRORS as error:
            self._check_login(getattr(error, "status", None))
            raise
        self._check_login(response.status)
        return response, content

    def _check_login(self, status: int | None) -> None:
        if status == 407:
            proxy = find_proxy(self.api_base).get("proxy", "before it")
            login = "HTTP_PROXY and HTTPS_PROXY take it as http://USER:PASSWORD@HOST:PORT"
            raise ModelError(f"{self.api_base}: the proxy {proxy} requires a login (HTTP 407): {login}")
