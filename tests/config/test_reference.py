"""docs/settings.md is what the fields of the settings say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_settings_is_up_to_date_and_describes_every_setting() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "settings.py"))["reference"]()
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == page, (
        "run: python docs/settings.py > docs/settings.md"
    )
    assert [line for line in page.splitlines() if line.startswith("| `") and line.endswith("|  |")] == []
