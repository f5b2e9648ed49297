"""Look up what tokens cost, by LiteLLM's price table, which comes with its package: nothing is fetched."""

import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from generator.errors import ConfigError, describe
from generator.models.embedded import EmbeddedEndpoint
from generator.models.endpoints import Endpoint, OpenAIEndpoint
from generator.schema import Record

_TABLE = "model_prices_and_context_window_backup.json"
# What the table puts before the names of a provider's models, by the end of its host's name.
_PROVIDERS = {
    "anthropic.com": "anthropic",
    "deepseek.com": "deepseek",
    "fireworks.ai": "fireworks_ai",
    "googleapis.com": "gemini",
    "groq.com": "groq",
    "mistral.ai": "mistral",
    "openai.com": "openai",
    "openrouter.ai": "openrouter",
    "together.ai": "together_ai",
    "together.xyz": "together_ai",
    "x.ai": "xai",
}


class Price(Record):
    """The price of a model's tokens, in dollars each.

    Attributes:
        name: of the model, as the table has it.
        cached: of a prompt token that the provider had in its cache; the full price where the table has none.
    """

    name: str
    prompt: float
    cached: float
    completion: float

    def __str__(self) -> str:
        if not self.prompt + self.cached + self.completion:
            return f"{self.name}: free"
        parts = (self.prompt, "prompt"), (self.cached, "cached"), (self.completion, "completion")
        each = ", ".join(f"${1e6 * price:.4g} {kind}" for price, kind in parts)
        return f"{self.name}: {each} for a million tokens"


class PriceTable:
    """Prices by model: those of a file in the form of LiteLLM's table, and of that table.

    Args:
        path: the file; None: the table alone.

    Raises:
        ConfigError: it can't be read.
    """

    def __init__(self, path: Path | None) -> None:
        litellm = f"the price table of LiteLLM {version('litellm')}"
        self.source = f"prices={path}" if path else litellm
        self._own = _read(path, self.source) if path else {}
        package = find_spec("litellm")  # without the import, which takes seconds
        assert package is not None and package.origin is not None
        self._table = _read(Path(package.origin).with_name(_TABLE), litellm) | self._own

    def find(self, endpoint: Endpoint) -> Price | None:
        """Return the price of an endpoint's model; None if the table has none. A model in this process costs nothing.

        The provider is recognised by its address. A name in the table stands for itself, whatever the address.

        Raises:
            ConfigError: what the table says of it isn't a price.
        """
        if isinstance(endpoint, EmbeddedEndpoint):
            return Price(name=endpoint.model, prompt=0, cached=0, completion=0)
        addresses = endpoint.api_base if isinstance(endpoint, OpenAIEndpoint) else ()
        hosts = [urlsplit(address).hostname or "" for address in addresses]
        providers = [name for host in hosts for end, name in _PROVIDERS.items() if f".{host}".endswith(f".{end}")]
        for name in (*(f"{provider}/{endpoint.model}" for provider in providers), endpoint.model):
            if (entry := self._table.get(name)) is None:
                continue
            try:
                prompt, completion = float(entry["input_cost_per_token"]), float(entry["output_cost_per_token"])
                read = entry.get("cache_read_input_token_cost")
                cached = prompt if read is None else float(read)
            except KeyError as error:  # an entry such as an embedding model's
                if name in self._own:
                    raise ConfigError(f"{self.source}: {name} has no {error.args[0]}; add it") from error
                continue
            except (TypeError, ValueError, AttributeError) as error:
                raise ConfigError(f"{self.source}: {name} has no usable price ({describe(error)})") from error
            return Price(name=name, prompt=prompt, cached=cached, completion=completion)
        return None


def _read(file: Path, source: str) -> dict[str, Any]:
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(table, dict):
            raise ValueError("it isn't a JSON object")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source}: can't be read ({describe(error)}); give a JSON file such as "
            '{"MODEL": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}'
        ) from error
    return table
