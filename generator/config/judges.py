"""The judge as the configuration has it; judges are named by class, since the generator knows none of them."""

import inspect
from importlib import import_module
from typing import Annotated, Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from generator.config.choices import compose_choice
from generator.config.parts import build, validate
from generator.dialogs.judging import JudgeSettings
from generator.dialogs.relabel import MEASURES
from generator.schema import Judge, Operational


class ReflectedJudge(JudgeSettings):
    """A judge whose class takes its settings as arguments."""

    target: Annotated[Any, Operational]
    arguments: dict[str, Any] = Field(default_factory=dict)

    def build(self, model: str) -> Judge | None:
        return cast(Judge, self.target(model, **self.arguments)) if self.target else None


def judge_settings(node: Any) -> JudgeSettings:
    """The settings of a judge, its own among them.

    Raises:
        ConfigError: one is wrong.
    """
    if not isinstance(node, dict):
        node = compose_choice("judge", node)
    module, _, name = str(node.get("_target_") or "").rpartition(".")
    target = getattr(import_module(module), name) if name else None
    common = {name: node[name] for name in ("name", "filter", "lm", "panel") if name in node}
    if common.get("lm"):
        common["lm"] = build("judge.lm", common["lm"])
    if isinstance(panel := common.get("panel"), dict):
        common["panel"] = {name: build(f"judge.panel.{name}", endpoint) for name, endpoint in panel.items()}
    own = {name: value for name, value in node.items() if name not in {"_target_", *common}}
    arguments = dict(validate(_arguments(target), "judge", own))
    return cast(JudgeSettings, validate(ReflectedJudge, "judge", {**common, "target": target, "arguments": arguments}))


def _arguments(judge: type | None) -> type[BaseModel]:
    """What a judge is made with beside the name of its model, so that it is checked before there is one."""
    made = getattr(judge, "__init__", None)
    own = list(inspect.signature(made).parameters.values())[2:] if made and judge else []
    hints = get_type_hints(made, include_extras=True) if own else {}
    fields = {p.name: (hints.get(p.name, Any), ... if p.default is p.empty else p.default) for p in own}
    config = ConfigDict(extra="forbid", allow_inf_nan=False, protected_namespaces=(), arbitrary_types_allowed=True)
    return cast(type[BaseModel], create_model("Arguments", __config__=config, **cast(Any, fields)))


def measures(model: str) -> tuple[Judge, ...]:
    """The judges that label what turns turned out to be (`generator.dialogs.relabel`), asking `model`."""
    return tuple(cast(Judge, judge_settings(compose_choice("judge", name)).build(model)) for name in MEASURES)
