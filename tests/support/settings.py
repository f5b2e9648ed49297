"""The settings of a run, as a command line has them."""

from copy import deepcopy
from functools import cache

from hydra import compose
from omegaconf import DictConfig

from generator.__main__ import COMMAND
from generator.command import normalise
from generator.config.choices import open_conf
from generator.config.settings import Settings, load


def composed(*arguments: str) -> DictConfig:
    """Return the configuration that Hydra composes for a command line; of equal ones it composes the first alone."""
    return deepcopy(_composed(*arguments))


@cache
def _composed(*arguments: str) -> DictConfig:
    with open_conf():
        return compose("config", normalise(arguments, COMMAND))


def settings(*arguments: str) -> Settings:
    """Return the settings of a command line."""
    return load(composed(*arguments))
