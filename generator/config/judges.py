"""The judge's part of a configuration, with the models that are parts within it."""

from typing import Any, cast

from generator.config.parts import part
from generator.dialogs.judging import JudgeSettings


def judge_settings(node: Any) -> JudgeSettings:
    """Return the settings of a judge, with its own models as endpoints.

    Raises:
        ConfigError: a setting is wrong.
    """
    if isinstance(node, dict):
        panel = node.get("panel")
        if isinstance(panel, dict):
            node = {**node, "panel": {name: part(f"judge.panel.{name}", each) for name, each in panel.items()}}
        if node.get("lm"):
            node = {**node, "lm": part("judge.lm", node["lm"])}
    return cast(JudgeSettings, part("judge", node))
