"""Which proxy of the environment a server is reached by."""

from base64 import b64decode

import pytest

from generator.common.proxies import find_proxy
from generator.errors import ConfigError


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_proxy("https://llm.test/v1") == {}
    monkeypatch.setenv("HTTPS_PROXY", "http://me:se%40cr%E2%82%AC@proxy.test:3128")
    monkeypatch.setenv("HTTP_PROXY", "proxy.test:3129")
    monkeypatch.setenv("NO_PROXY", "inside.test")
    found = find_proxy("https://llm.test/v1")
    assert found["proxy"] == "http://proxy.test:3128"
    assert b64decode(found["proxy_auth"].encode().removeprefix("Basic ")).decode() == "me:se@cr€"
    assert find_proxy("http://llm.test/v1") == {"proxy": "http://proxy.test:3129", "proxy_auth": None}
    for own in ("https://inside.test/v1", "http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]:80/v1"):
        assert find_proxy(own) == {}


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("socks5://me:secret@proxy.test:1080", "socks5"),
        ("http://a%3Ab:secret@p.test", ""),
        ("http://me:secret@[::1", ""),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused(proxy: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigError, match=f"HTTPS_PROXY: .*{why}") as refused:
        find_proxy("https://llm.test/v1")
    assert "secret" not in str(refused.value)
