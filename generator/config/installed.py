"""Find the parts that installed packages add: classes that entry points name, and the files in their folder `conf/`.

Nothing of a package is imported here; a class is when a configuration names it.
"""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

CONF = Path(__file__).parents[2] / "conf"
# The groups of settings that packages can add a part to, with the groups of entry points that name the classes.
ENTRY_POINTS = {
    "corpus": "grounded_dialogs.corpora",
    "retriever": "grounded_dialogs.retrievers",
    "judge": "grounded_dialogs.judges",
    "export": "grounded_dialogs.exporters",
}


@cache
def installed_classes(group: str) -> dict[str, str]:
    """Return the classes that packages add to a group of settings, as `_target_` names them, with their package."""
    if group not in ENTRY_POINTS:
        return {}
    found = entry_points(group=ENTRY_POINTS[group])
    return {f"{each.module}.{each.attr}": each.dist.name if each.dist else each.module for each in found}


@cache
def conf_folders() -> tuple[Path, ...]:
    """Return this project's folder `conf/`, which comes first, and those of the packages that add parts."""
    targets = [target for group in ENTRY_POINTS for target in installed_classes(group)]
    return tuple(dict.fromkeys([CONF, *(folder for target in targets for folder in _beside(target))]))


def _beside(target: str) -> Iterator[Path]:
    """Yield the folders `conf/` in the packages that a class is in, the outermost package first."""
    top, *inner = target.split(".")[:-2]
    spec = find_spec(top)  # of a top-level package, which isn't imported by that
    for location in (spec and spec.submodule_search_locations) or ():
        for depth in range(len(inner) + 1):
            folder = Path(location, *inner[:depth], "conf")
            if folder.is_dir():
                yield folder
