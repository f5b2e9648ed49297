"""A part that can't be imported: what the error says is missing, and whose it is."""

import re
import sys
from pathlib import Path

import pytest

from generator.config import parts
from generator.errors import ConfigError


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("import no_such_reader", "ours.Faq", "my-parts can't be imported: No module named 'no_such_reader'; install"),
        ("from json import nothing", "ours.Faq", "my-parts can't be imported: cannot import name 'nothing'"),
        ("import json\njson.nothing", "ours.Faq", "my-parts can't be imported: module 'json' has no attribute"),
        ("", "ours.Faq", "no such class; reinstall my-parts"),
        ("", "gone.inner.Faq", "no such class; reinstall my-parts"),
        ("", "generator.corpora.gone.Faq", "no such class; a run of another release can't be continued"),
        ("import no_such_reader", "taxonomy.ours.Faq", "taxonomy.ours can't be imported: No module named"),
    ],
)
def test_a_missing_class_and_a_module_that_fails_are_told_apart(
    source: str, target: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours.py").write_text(source)
    monkeypatch.delitem(sys.modules, "ours", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("taxonomy.__path__", [str(tmp_path)])
    named = dict.fromkeys(("ours.Faq", "gone.inner.Faq"), "my-parts")
    monkeypatch.setattr(parts, "installed_classes", lambda name: named)
    with pytest.raises(ConfigError, match=re.escape(f"corpus._target_={target}: {reason}")):
        parts.class_of("corpus", target)
