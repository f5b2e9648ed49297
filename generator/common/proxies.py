"""The environment's proxy for requests by aiohttp, whose own `trust_env` would also send what ~/.netrc has."""

from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import BasicAuth

from generator.errors import ConfigError

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def find_proxy(address: str) -> dict[str, Any]:
    """Return the arguments for a session or request to an address, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say.

    This machine itself is reached without a proxy.

    Raises:
        ConfigError: it is a SOCKS proxy, which aiohttp would ask as an HTTP one, or no address.
    """
    url = urlsplit(address)
    found = getproxies().get(url.scheme, "")
    if not found or url.hostname in LOCAL_HOSTS or proxy_bypass(url.netloc):
        return {}
    name = f"{url.scheme.upper()}_PROXY"
    try:
        proxy = urlsplit(found if "://" in found else f"http://{found}")
        user, password = unquote(proxy.username or ""), unquote(proxy.password or "")
        # In the address, the login would get into error messages.
        login = BasicAuth(user, password, "utf-8") if user else None
    except ValueError:  # whose text may have the login
        raise ConfigError(
            f"{name}: not the address of a proxy; write http://USER:PASSWORD@HOST:PORT, with %XX for special characters"
        ) from None
    if proxy.scheme not in ("http", "https"):
        raise ConfigError(
            f"{name}: a proxy by {proxy.scheme} can't be used; give an http:// one, or name {url.hostname} in NO_PROXY"
        )
    return {"proxy": proxy._replace(netloc=proxy.netloc.rpartition("@")[2]).geturl(), "proxy_auth": login}
