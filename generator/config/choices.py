"""Compose one choice of `conf/` with the files that it builds on."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from generator.config.installed import CONF, conf_folders
from generator.config.messages import describe_hydra_error
from generator.errors import ConfigError

VERSION = "1.3"  # of Hydra, whose defaults hold
# What Hydra, OmegaConf and PyYAML raise at settings that can't be composed.
COMPOSE_ERRORS = (HydraException, OmegaConfBaseException, YAMLError)


class _InstalledConf(SearchPathPlugin):
    """Lets Hydra find the files of installed packages, behind ours."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in conf_folders()[1:]:
            search_path.append("grounded_dialogs", folder.as_uri())


Plugins.instance().register(_InstalledConf)


def open_conf() -> AbstractContextManager[None]:
    """Let Hydra compose from the files of `conf/`, ours and those of installed packages, while the block lasts."""
    if GlobalHydra.instance().is_initialized():  # by the command that runs, which may have a folder more
        return nullcontext()
    return cast(AbstractContextManager[None], initialize_config_dir(str(CONF), version_base=VERSION))


def compose_choice(group: str, name: str, changes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of one choice of a group, such as `corpus` and `quac`, as plain data.

    Args:
        changes: settings of that choice, each a `name=value` without the group's name.

    Raises:
        ConfigError: there is no such choice or setting.
    """
    overrides = [f"{group}.{change}" for change in changes]
    try:
        with open_conf():
            composed = compose(f"{group}/{name}", overrides)
        return cast(dict[str, Any], OmegaConf.to_container(composed, resolve=True))[group]
    except COMPOSE_ERRORS as error:
        raise ConfigError(describe_hydra_error(error)) from error
