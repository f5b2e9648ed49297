"""Load models from a folder, the cache of the Hugging Face hub, or the hub."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Loaded = TypeVar("Loaded")

# How long to wait for the hub; its own client tries for a minute and prints each failure.
_TIMEOUT_S = 10


def load_model(name: str, load: Callable[[str, bool], Loaded]) -> Loaded:
    """Return the model of a folder, or of a name on the hub, which is asked only for what its cache hasn't whole.

    Args:
        load: takes a folder or name, and whether it must do without the hub.

    Raises:
        Exception: whatever `load` or the hub's client raises; within ten seconds where the hub can't be reached.
    """
    folder = Path(name).expanduser()
    if folder.exists():
        return load(str(folder), True)
    try:
        return load(name, True)
    except Exception:  # not in the cache, or incomplete there
        from huggingface_hub import HfApi

        HfApi().model_info(name, timeout=_TIMEOUT_S)
        return load(name, False)
