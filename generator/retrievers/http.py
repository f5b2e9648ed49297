"""Passages from a search of one's own, asked over HTTP: one's retrieval in production, in the loop of the dialogs."""

from typing import Annotated

import aiohttp
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.common.proxies import find_proxy
from generator.corpora.library import Library
from generator.models.http_errors import connection_cause
from generator.retrievers.remote import RemoteRetriever, RemoteSettings, SearchFailed, SearchRequest
from generator.schema import Address, Operational


class HttpSettings(RemoteSettings):
    url: Annotated[Address, Operational] = Field(description="Address that searches are POSTed to.")

    @property
    def where(self) -> str:
        return self.url

    def open(self, library: Library, validation: NDArray[np.bool_]) -> RemoteRetriever:
        retriever = HttpRetriever(self, library, validation)
        retriever.check()
        return retriever


class HttpRetriever(RemoteRetriever):
    """Posts each search as JSON, and reads the passages of the reply."""

    def __init__(self, settings: HttpSettings, library: Library, validation: NDArray[np.bool_]) -> None:
        super().__init__(settings, library, validation)
        self._settings = settings
        self._headers = {"Content-Type": "application/json"} | settings.headers()

    async def send(self, request: SearchRequest) -> bytes:
        settings = self._settings
        body, timeout = request.model_dump_json().encode(), aiohttp.ClientTimeout(total=settings.timeout_s)
        try:
            # A connection for each search: beside the calls of a turn it costs nothing, and nothing is left to close.
            async with aiohttp.request(
                "POST", settings.url, data=body, headers=self._headers, timeout=timeout, **find_proxy(settings.url)
            ) as response:
                content = await response.read()
        except TimeoutError as error:
            raise self.timed_out() from error
        except aiohttp.ClientSSLError as error:
            cause = connection_cause(error, settings.api_key_env)
            raise SearchFailed(f"no secure connection ({cause}); check retriever.url and the certificate") from error
        except (aiohttp.ClientError, OSError) as error:
            cause = connection_cause(error, settings.api_key_env)
            raise self.broken(cause, isinstance(error, aiohttp.ClientConnectorError)) from error
        if response.method != "POST":  # as after a 301
            raise SearchFailed(f"redirects to {response.url}; set retriever.url to that address")
        if response.status == 200:
            return content
        raise self.refused(response.status, content, response.headers)
