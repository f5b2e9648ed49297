"""The identity of a run, the settings that decide its data: as it is stored, and what makes two of them differ."""

import json
from collections.abc import Collection, Mapping

# A setting that says which pairs of accepted dialogs are kept, so that a run may go on with another value of it.
FILTER = "judge.filter"
# How names of hashes end: of what the files hold that a setting names.
_CONTENT = " (content)"


def encode(identity: Mapping[str, object]) -> dict[str, str]:
    """Return an identity as `run.db` has it: each value as JSON, by name."""
    return {name: json.dumps(value, sort_keys=True) for name, value in identity.items()}


def list_changes(stored: Mapping[str, str], identity: Mapping[str, str]) -> set[str]:
    """Return the names of what makes these the identities of different runs."""
    return {name for name in stored.keys() | identity.keys() if stored.get(name) != identity.get(name)} - {FILTER}


def describe_changes(stored: Mapping[str, str], identity: Mapping[str, str]) -> str:
    """Return what makes these the identities of different runs, for a message: the settings with both values."""
    causes = _find_causes(list_changes(stored, identity))
    shown = sorted({"turns" if name.startswith("turns.") else name for name in causes})
    return ", ".join(_describe_change(name, stored, identity) for name in shown)


def _find_causes(changed: Collection[str]) -> Collection[str]:
    """Return what others follow from: of another choice of a group its name alone, and hashes only without a cause."""
    chosen = {_group(name) for name in changed if name.endswith(".name")}
    plain = [name for name in changed if name.endswith(".name") or _group(name) not in {*chosen, "prompt_version"}]
    # A hash of a group's files changes with some of its settings, too.
    settings = {_group(name) for name in plain if "." in name and not name.endswith(_CONTENT)}
    return [name for name in plain if not (name.endswith(_CONTENT) and _group(name) in settings)] or changed


def _describe_change(name: str, stored: Mapping[str, str], identity: Mapping[str, str]) -> str:
    if name.endswith(_CONTENT):
        return f"{name.removesuffix(_CONTENT)} (other content)"
    keys = ("turns.least", "turns.most") if name == "turns" else (name,)
    values = (dict.fromkeys(each.get(key, "unset").strip('"') for key in keys) for each in (stored, identity))
    before, now = ("-".join(each) for each in values)
    return f"{name.removesuffix('.name')} (was {before}, is {now})"


def _group(name: str) -> str:
    return name.partition(".")[0]
