"""docs/settings.md is what the fields of the settings say."""

import runpy
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]


def test_the_page_of_settings_is_up_to_date_and_describes_every_setting() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "settings.py"))["reference"]()
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == page, (
        "run: python docs/settings.py > docs/settings.md"
    )
    assert [line for line in page.splitlines() if line.startswith("| `") and line.endswith("|  |")] == []


def test_a_browser_shows_the_placeholders_of_folder_names() -> None:
    page = MarkdownIt("gfm-like", {"linkify": False}).parse((ROOT / "docs" / "settings.md").read_text(encoding="utf-8"))
    inside = [part for token in page for part in [token, *(token.children or ())]]
    assert [part.content for part in inside if part.type.startswith("html")] == []
