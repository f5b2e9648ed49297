"""Find model servers that run on this machine at the ports that they usually have."""

import asyncio
import json
import shlex

import aiohttp

from generator.common.sanitize import server_message

# The choices of `lm=` for them, and their ports.
PORTS = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
_TIMEOUT_S = 0.5


async def find_servers() -> list[str]:
    """Return the settings that use each server on the loopback that lists a model, such as `lm=ollama lm.model=NAME`.

    It takes no longer than half a second, and no time where no server is.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S)) as session:
        models = await asyncio.gather(*(_find_model(session, port) for port in PORTS.values()))
    return [f"lm={name} lm.model={model}" for name, model in zip(PORTS, models, strict=True) if model]


async def _find_model(session: aiohttp.ClientSession, port: int) -> str:
    """Return the first model of a server that isn't one for embeddings, quoted for a shell; empty if there is none."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/v1/models") as response:
            names = [str(model["id"]) for model in json.loads(await response.read())["data"]]
            return next((shlex.quote(server_message(name)) for name in names if "embed" not in name.lower()), "")
    except (aiohttp.ClientError, OSError, ValueError, TypeError, LookupError, RecursionError):
        return ""
