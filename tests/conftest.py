"""Fixtures of several test modules, and the number of processes."""

import gc
import os
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra

from generator.common import console
from generator.config import parts, settings
from tests.support.openai_server import openai_server
from tests.support.runs import Site

__all__ = ["openai_server"]

# Tests talk to servers on 127.0.0.1, which proxies and HF_HUB_OFFLINE would keep them from, and need no key.
_UNSET = ("HF_HUB_OFFLINE", "OPENAI_API_KEY")
for name in [name for name in os.environ if name.lower().endswith("_proxy") or name in _UNSET]:
    del os.environ[name]
os.environ["NO_PROXY"] = "127.0.0.1"  # of macOS, too, whose proxies aren't in the environment


# On a busy machine work that is long by the clock says how far it is; tests that want to see that set it lower.
console.PACE_S = 3600

# A command parses two dozen YAML files; libyaml does so in a tenth of the time that PyYAML's own parser takes.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# A run ends with the names of all exporters, and what finds no dialogs names the corpora that have some; for each one
# Hydra composes its file, in a third of a short run's time. Here it does so once for each list of places to look in.
_compose_choice = parts.compose_choice


@cache
def _composed(group: str, name: str, places: str) -> dict[str, Any]:
    return _compose_choice(group, name)


def _compose_once(group: str, name: str) -> dict[str, Any]:
    hydra = GlobalHydra.instance()
    places = str(hydra.config_loader().get_search_path()) if hydra.is_initialized() else ""
    return deepcopy(_composed(group, name, places))


parts.compose_choice = settings.compose_choice = _compose_once


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's folder, and the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def data() -> Path:
    if "GROUNDED_DIALOGS_DATA" not in os.environ:
        pytest.skip("GROUNDED_DIALOGS_DATA, the folder of real data sets, isn't set")
    return Path(os.environ["GROUNDED_DIALOGS_DATA"])


def pytest_collection_finish() -> None:
    """Leave the imported modules out of each later garbage collection, a twentieth of the tests' time."""
    gc.freeze()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return two processes a core for the whole suite, which mostly waits, and none for chosen files."""
    return 0 if config.args_source is pytest.Config.ArgsSource.ARGS else 2 * min(os.cpu_count() or 1, 4)
