"""The pages name links, files, modules and settings that are there."""

import re
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin

ROOT = Path(__file__).parents[1]
PATH = r"(?<![\w./~-])(?:generator|judges|taxonomy|conf|benchmarks|tests|docs|\.ci)/[\w./-]+"
SETTINGS = set(re.findall(r"^\| `(\w+\.\w+)`", (ROOT / "docs" / "settings.md").read_text("utf-8"), re.MULTILINE))
SETTING = rf"(?:{'|'.join({name.partition('.')[0] for name in SETTINGS})})\.(?!jsonl?\b|py\b)[a-z_0-9]+"


@cache
def tokens(page: Path) -> list[Token]:
    parsed = MarkdownIt("gfm-like", {"linkify": False}).use(anchors_plugin, max_level=6).parse(page.read_text("utf-8"))
    return [each for token in parsed for each in (token, *(token.children or ()))]


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path) -> None:
    for link in {str(token.attrs.get("href") or token.attrs.get("src", "")) for token in tokens(page)}:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        there = target.exists() and (not anchor or anchor in {token.attrs.get("id") for token in tokens(target)})
        assert ":" in link or there, link
    if page.name in ("CHANGELOG.md", "extending.md"):  # name what was, and what a reader adds
        return
    code = "\n".join(token.content for token in tokens(page) if token.type == "code_inline" or token.info == "sh")
    paths = [path for path in re.findall(PATH, code) if not re.search(r"NAME|MIX|\bxx\b", path)]
    paths += [name.replace(".", "/") for name in re.findall(r"python -m ((?:generator|judges|benchmarks)[.\w]*)", code)]
    assert [path for path in paths if not ((ROOT / path).exists() or (ROOT / f"{path}.py").exists())] == []
    assert set(re.findall(rf"(?<![\w./]){SETTING}(?=(?:\.[\w.]+)?=)|^{SETTING}$", code, re.MULTILINE)) <= SETTINGS
