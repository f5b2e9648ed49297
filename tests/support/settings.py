"""The settings of a run, as a command line has them."""

from omegaconf import DictConfig

from generator.__main__ import COMMAND
from generator.command import normalise
from generator.config.choices import compose_config
from generator.config.settings import Settings, load


def composed(*arguments: str) -> DictConfig:
    """Return the configuration that Hydra composes for a command line."""
    return compose_config(normalise(arguments, COMMAND))


def settings(*arguments: str) -> Settings:
    """Return the settings of a command line."""
    return load(composed(*arguments))
