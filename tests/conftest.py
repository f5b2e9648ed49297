"""Fixtures of several test modules."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def data() -> Path:
    if "GROUNDED_DIALOGS_DATA" not in os.environ:
        pytest.skip("GROUNDED_DIALOGS_DATA, the folder of real data sets, isn't set")
    return Path(os.environ["GROUNDED_DIALOGS_DATA"])
