"""Files of question types, tasks and the like that can't be used."""

from collections.abc import Callable
from pathlib import Path

import pytest

from generator.errors import TaxonomyError


def refuse(read: Callable[[Path], object], folder: Path, text: str | bytes) -> str:
    """Return the one line that tells what is wrong with a file, the only one in a folder, behind the file's path."""
    file = folder / "t.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TaxonomyError) as caught:
        read(folder)
    path, _, problem = str(caught.value).partition(str(file))
    assert not path and "\n" not in problem
    return problem
