"""The judge as the configuration has it; judges are named by class, since the generator knows none of them."""

import inspect
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from generator.config.choices import compose_choice
from generator.config.parts import class_of, no_part, part, validated
from generator.dialogs.filter import Filter
from generator.dialogs.relabel import MEASURES
from generator.models.client import Endpoint
from generator.schema import Judge, Record


class JudgeSettings(Record):
    """Who checks the answers, what becomes of pairs judged incorrect, and the judge's own model if it has one.

    Attributes:
        panel: several models of its own, whose median score counts, by names that tell them apart.
        arguments: settings that only this judge has, by name.
    """

    target: type | None
    name: str
    filter: Filter
    lm: Endpoint | None
    panel: dict[str, Endpoint] = Field(default_factory=dict)
    arguments: dict[str, Any] = Field(default_factory=dict)

    @property
    def asks_model(self) -> bool:
        """Whether the judge asks a model at all."""
        return self.target is not None and getattr(self.target, "asks_model", True)

    def build(self, model: str) -> Judge | None:
        """The judge, asking `model`; None if there is to be none."""
        return cast(Judge, self.target(model, **self.arguments)) if self.target else None


def judge_settings(node: Any) -> JudgeSettings:
    """The settings of a judge, its own among them.

    Raises:
        ConfigError: one is wrong.
    """
    if not isinstance(node, dict):
        raise no_part("judge", node)
    target = class_of("judge", node.get("_target_"))
    common = {name: node[name] for name in ("name", "filter", "lm", "panel") if name in node}
    if common.get("lm"):
        common["lm"] = part("judge.lm", common["lm"])
    if isinstance(panel := common.get("panel"), dict):
        common["panel"] = {name: part(f"judge.panel.{name}", endpoint) for name, endpoint in panel.items()}
    own = {name: value for name, value in node.items() if name not in {"_target_", *common}}
    arguments = dict(validated(_arguments(target), "judge", own))
    return cast(JudgeSettings, validated(JudgeSettings, "judge", {**common, "target": target, "arguments": arguments}))


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
    targets = (class_of("judge", compose_choice("judge", name)["_target_"]) for name in MEASURES)
    return tuple(cast(Judge, target(model)) for target in targets if target)
