"""Train a student with TRL and PEFT, as Lee et al. 2024 did (section 3): LoRA, the loss on the response alone."""

import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from generator.common.atomic_files import lock_folder, make_folder, write_text
from generator.common.console import count_noun, note
from generator.common.hub import load_model
from generator.errors import ConfigError, RunError, describe
from generator.execution.run_folder import empty_folder
from generator.training.data import Finetuning, Pair, has_training, identify_training
from generator.training.draw import draw_pairs

try:
    import torch
    from datasets import Dataset, disable_progress_bars
    from peft import LoraConfig, PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, PrinterCallback, TrainerCallback
    from transformers.utils.logging import disable_progress_bar
    from trl import SFTConfig, SFTTrainer
except ImportError as error:
    raise ConfigError(
        f"python -m generator.finetune needs the extra 'train' ({error}): install it (uv sync --inexact --extra train)"
    ) from error


def train(settings: Finetuning, read: Sequence[Sequence[Pair]]) -> None:
    """Train, or continue from the last checkpoint; write the adapter with the lowest loss on the validation pairs.

    Args:
        read: the pairs of each of `data`.

    Raises:
        ConfigError: the model can't be loaded, or the folder holds another training.
        CorpusError: too few pairs are short enough.
        RunError: the folder can't be made, another training is writing there, or the disk is full.
    """
    if not sys.stderr.isatty():  # a log would hold each step of the bars
        disable_progress_bars()
        disable_progress_bar()
    student, folder = settings.student, settings.folder
    identity = identify_training(settings, read)
    continues = has_training(folder, identity, settings.fresh)
    if continues and (folder / "result.json").exists():  # only the whole model is missing
        with _alone(folder):
            _merge(settings)
        return
    tokenizer, model = _load(settings, quantised=student.quantised)

    def measure(pair: Pair) -> int:
        try:
            return len(tokenizer.apply_chat_template(pair.messages)["input_ids"])
        except TemplateError as error:
            raise ValueError(
                f"the chat template of student.model={student.model} refuses a chat: {error}; give another model, or "
                "data without such chats"
            ) from error

    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    training, validation = map(_to_rows, draw_pairs(settings, read, measure, positions))
    with _alone(folder):
        if settings.fresh:
            empty_folder(folder, "student.json")
        counts = {"pairs": len(training), "validation_pairs": len(validation)}
        write_text(folder / "student.json", json.dumps({"settings": identity, **counts}, indent=2) + "\n")
        start = time.monotonic()
        trainer = _make_trainer(settings, tokenizer, model, training, validation)
        resumes = _has_checkpoint(folder / "checkpoints")
        if continues:
            note(f"run_dir={folder}: " + ("continues from its last checkpoint" if resumes else "begins again"))
        with _full_disk_told(folder):
            trainer.train(resume_from_checkpoint=resumes)
            trainer.model.save_pretrained(folder / "adapter")
            if settings.merged:
                _merge(settings)
        result = {
            **counts,
            "best_loss": trainer.state.best_metric,
            "seconds": None if resumes else round(time.monotonic() - start),  # those of an earlier session aren't known
            "losses": _list_losses(trainer.state.log_history),
        }
        write_text(folder / "result.json", json.dumps(result, indent=2) + "\n")
        shutil.rmtree(folder / "checkpoints")
        held = count_noun(len(validation), "validation pair")
        print(f"{count_noun(len(training), 'pair')}, loss on {held} {trainer.state.best_metric:.4f}")
        print(f"run folder: {folder}", flush=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder, and keep a second training out of it: a killed `judges.students` leaves one at work."""
    make_folder(folder)
    try:
        lock = lock_folder(folder)
    except OSError as error:
        raise RunError(
            f"run_dir={folder}: can't be written ({describe(error)}); free space, or set another run_dir"
        ) from error
    with lock:
        yield


@contextmanager
def _full_disk_told(folder: Path) -> Iterator[None]:
    """Raise RunError in place of torch's riddles (`unexpected pos 39616 vs 39508`) if the disk is full."""
    try:
        yield
    except Exception as error:
        if shutil.disk_usage(folder).free > 2**20:
            raise
        raise RunError(f"run_dir={folder}: the disk is full; free space, and the same command continues") from error


def _make_trainer(
    settings: Finetuning, tokenizer: Any, model: Any, training: Dataset, validation: Dataset
) -> SFTTrainer:
    student, gpu = settings.student, torch.cuda.is_available()
    trainer = SFTTrainer(
        model=model,
        processing_class=tokenizer,
        args=SFTConfig(
            output_dir=str(settings.folder / "checkpoints"),
            num_train_epochs=student.epochs,
            per_device_train_batch_size=student.at_once,
            per_device_eval_batch_size=student.at_once,
            gradient_accumulation_steps=student.batch // student.at_once,
            learning_rate=student.learning_rate,
            lr_scheduler_type="linear",
            # Those of Lee et al. 2024, section 3.
            weight_decay=0.1,
            adam_beta2=0.95,
            adam_epsilon=1e-10,
            max_length=None,
            bf16=gpu,
            gradient_checkpointing=gpu,
            use_cpu=not gpu,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=2,
            load_best_model_at_end=True,
            metric_for_best_model="eval_loss",
            logging_steps=5,
            report_to="none",
            disable_tqdm=True,
            seed=settings.seed,
        ),
        train_dataset=training,
        eval_dataset=validation,
        peft_config=LoraConfig(
            r=student.rank, lora_alpha=student.alpha, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
        callbacks=[_Losses()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


class _Losses(TrainerCallback):
    """Reports the losses while the student is trained, in place of the trainer's raw log."""

    def on_train_begin(self, _: Any, state: Any, *__: Any, **___: Any) -> None:
        note(f"step {state.global_step} of {state.max_steps}: training begins")  # the first losses may take minutes

    def on_log(self, _: Any, state: Any, *__: Any, logs: Mapping[str, Any], **___: Any) -> None:
        for name, what in (("loss", "loss"), ("eval_loss", "loss on the validation pairs")):
            if name in logs:
                note(f"step {state.global_step} of {state.max_steps}: {what} {logs[name]:.4f}")


def _has_checkpoint(folder: Path) -> bool:
    """Return whether a folder has a whole checkpoint; remove the others."""
    checkpoints = list(folder.glob("checkpoint-*"))
    for checkpoint in checkpoints:
        if not (checkpoint / "trainer_state.json").exists():  # written last: the training was killed meanwhile
            shutil.rmtree(checkpoint)
    return any(checkpoint.exists() for checkpoint in checkpoints)


def _list_losses(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps of a trainer's log that have a loss."""
    return [
        {"step": entry["step"], **{key: round(entry[key], 4) for key in ("loss", "eval_loss") if key in entry}}
        for entry in history
        if {"loss", "eval_loss"} & entry.keys()
    ]


def _merge(settings: Finetuning) -> None:
    """Write the model with the adapter in its weights; the folder `model` is there when it is whole.

    The weights aren't quantised: in steps of 4 bits most of what the adapter adds is rounded off.
    """
    folder = settings.folder
    tokenizer, model = _load(settings, quantised=False)
    unfinished = folder / "model.part"
    PeftModel.from_pretrained(model, str(folder / "adapter")).merge_and_unload().save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    shutil.rmtree(folder / "model", ignore_errors=True)  # of a training that was killed behind this line
    unfinished.rename(folder / "model")


def _load(settings: Finetuning, quantised: bool) -> tuple[Any, Any]:
    """Return the tokenizer and the model; on 4-bit weights if there is a GPU for them."""
    student = settings.student
    if Path(student.model).is_absolute() and not Path(student.model).is_dir():
        raise ConfigError(f"student.model={student.model}: no such folder; give a model's folder, or a name on the hub")
    weights: dict[str, Any] = {"dtype": torch.bfloat16}
    if quantised and torch.cuda.is_available():
        weights["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="fp4", bnb_4bit_compute_dtype=torch.bfloat16
        )

    def load(name: str, local: bool) -> tuple[Any, Any]:
        return (
            AutoTokenizer.from_pretrained(name, local_files_only=local),
            AutoModelForCausalLM.from_pretrained(name, local_files_only=local, **weights),
        )

    try:
        tokenizer, model = load_model(student.model, load)
    except Exception as error:  # whatever their libraries raise
        raise ConfigError(
            f"student.model={student.model}: can't be loaded ({describe(error)}); give a chat model's folder, or a "
            "name on the hub"
        ) from error
    if tokenizer.chat_template is None:
        raise ConfigError(f"student.model={student.model}: has no chat template; give a chat model")
    return tokenizer, model


def _to_rows(pairs: Sequence[Pair]) -> Dataset:
    """Return prompts and completions."""
    return Dataset.from_list([{"prompt": pair.messages[:-1], "completion": pair.messages[-1:]} for pair in pairs])
