"""The training itself, on a model of a few thousand weights."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.errors import ConfigError, CorpusError, RunError
from generator.training.data import read_pairs
from tests.training.test_data import STUDENT, dialog, settings

pytestmark = pytest.mark.slow  # imports take longer than five seconds
TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the folder of a chat model whose tokens are bytes."""
    for package in ("bitsandbytes", "peft", "trl"):
        pytest.importorskip(package, reason="the extra train isn't installed")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    vocabulary = {token: number for number, token in enumerate(["<end>", *pre_tokenizers.ByteLevel.alphabet()])}
    tokens = Tokenizer(models.BPE(vocabulary, []))
    tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token="<end>", pad_token="<end>")
    tokenizer.chat_template = TEMPLATE
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=1024, **sizes)
    for part in (LlamaForCausalLM(config).to(torch.bfloat16), tokenizer):
        part.save_pretrained(tmp_path / "chat-model")
    return tmp_path / "chat-model"


def train(folder: Path, model: Path, *dialogs: Any, **student: Any) -> Path:
    """Train a student on dialogs and return the folder."""
    from generator.training import sft

    usual = {"model": str(model), "quantised": True, "learning_rate": 0.01, "batch": 4, "max_tokens": 1024}
    of = STUDENT.model_copy(update=usual | student)
    wanted = settings(folder, list(dialogs), student=of, run_dir=folder / "student", merged=True)
    sft.train(wanted, read_pairs(wanted))
    return folder / "student"


@pytest.mark.parametrize("gpu", [False, True])
def test_the_merged_model_is_the_model_with_the_adapter_and_not_quantised(
    gpu: bool, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    dialogs = [dialog(n, "correct") for n in range(8)]
    folder = train(tmp_path, model, *dialogs)
    if gpu:  # as a later call merges there; bitsandbytes quantises on CPUs, too
        (folder / "model").rename(tmp_path / "of-cpu")
        cuda = SimpleNamespace(is_available=lambda: True)
        monkeypatch.setattr("generator.training.sft.torch", SimpleNamespace(cuda=cuda, bfloat16=torch.bfloat16))
        assert train(tmp_path, model, *dialogs) == folder
    merged = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.bfloat16)
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16)
    expected = PeftModel.from_pretrained(base, str(folder / "adapter")).merge_and_unload().state_dict()
    assert not hasattr(merged.config, "quantization_config")
    assert all(torch.equal(weights, expected[name]) for name, weights in merged.state_dict().items())


def test_losses_are_reported_and_no_raw_log(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = train(tmp_path, model, *(dialog(n, "correct") for n in range(8)))
    (best,) = json.loads((folder / "result.json").read_text(encoding="utf-8"))["losses"]
    done = capsys.readouterr()
    assert "step 0 of 2: training begins\n" in done.err
    assert f"step 2 of 2: loss on the validation pairs {best['eval_loss']:.4f}\n" in done.err
    assert "%|" not in done.err, "no bars without a terminal"
    assert [line.partition(" ")[2] for line in done.out.splitlines()] == [
        f"pairs, loss on 2 validation pairs {best['eval_loss']:.4f}",
        f"folder: {folder}",
    ]


def test_a_second_training_in_a_folder_is_refused_while_the_first_goes_on(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from generator.training import sft

    dialogs = [dialog(n, "correct") for n in range(8)]
    make = sft._make_trainer

    def second(*arguments: Any) -> Any:
        monkeypatch.setattr(sft, "_make_trainer", make)
        with pytest.raises(RunError, match="is writing here"):
            train(tmp_path, model, *dialogs)
        return make(*arguments)

    monkeypatch.setattr(sft, "_make_trainer", second)
    folder = train(tmp_path, model, *dialogs)
    assert (folder / "result.json").exists() and (folder / "model").is_dir()
    (folder / "result.json").unlink()
    train(tmp_path, model, *dialogs)  # the lock is free again, and its file isn't one of another program


def test_a_full_disk_is_one_line(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from generator.training import sft

    def fails(**_: Any) -> None:
        raise RuntimeError("unexpected pos 39616 vs 39508")

    monkeypatch.setattr(sft, "_make_trainer", lambda *_: SimpleNamespace(train=fails))
    monkeypatch.setattr(sft.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(RunError, match="the disk is full"):
        train(tmp_path, model, *(dialog(n, "correct") for n in range(8)))


def test_pairs_that_the_model_has_no_positions_for_are_left_out(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dialogs = [dialog(n, *["correct"] * 30) for n in range(4)]
    folder = train(tmp_path, model, *dialogs, max_tokens=8192)
    counts = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert 0 < counts["pairs"] + counts["validation_pairs"] < 120
    assert "student.model has 1024 positions" in capsys.readouterr().err


def test_a_chat_that_the_template_refuses_is_named(tmp_path: Path, model: Path) -> None:
    refusal = "{{ raise_exception('Roles must alternate') }}"
    (model / "chat_template.jinja").write_text(
        f"{{% if messages|length > 2 %}}{refusal}{{% endif %}}", encoding="utf-8"
    )
    with pytest.raises(CorpusError, match=rf"{tmp_path}/0.jsonl: .*student.model={model}.* Roles must alternate"):
        train(tmp_path, model, *(dialog(n, "correct", "correct") for n in range(4)))


def test_a_hub_that_can_not_be_reached_is_one_line_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("trl", reason="the extra train isn't installed")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"^student\.model=no/such-model: .*Connection refused"):
        train(tmp_path, Path("no/such-model"), *(dialog(n, "correct") for n in range(4)))
    assert not caplog.records, "its client tries again for a minute, and reports each time"
