"""Which proxy of the environment a server is reached by."""

import pytest

from generator.common.proxies import find_proxy
from generator.errors import ConfigError


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_proxy("https://llm.test/v1") == {}
    monkeypatch.setenv("HTTPS_PROXY", "http://me:se%40cret@proxy.test:3128")
    monkeypatch.setenv("HTTP_PROXY", "proxy.test:3129")
    monkeypatch.setenv("NO_PROXY", "inside.test")
    found = find_proxy("https://llm.test/v1")
    assert found["proxy"] == "http://proxy.test:3128"
    assert found["proxy_auth"].login == "me" and found["proxy_auth"].password == "se@cret"
    assert find_proxy("http://llm.test/v1") == {"proxy": "http://proxy.test:3129", "proxy_auth": None}
    for own in ("https://inside.test/v1", "http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]:80/v1"):
        assert find_proxy(own) == {}


def test_a_socks_proxy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:secret@proxy.test:1080")
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY: .*socks5") as refused:
        find_proxy("https://llm.test/v1")
    assert "secret" not in str(refused.value)
