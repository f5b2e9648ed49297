"""Fine-tune a chat model on datasets of this project, with the settings of Lee et al. 2024 (section 3).

    python docs/finetune.py --model ibm/merlinite-7b --output adapters/quac outputs/<run>/dataset [more datasets]

Needs torch, trl, peft and, for 4-bit weights on a GPU, bitsandbytes; nothing of this project. See docs/finetune.md.
"""

import argparse

import torch
from datasets import DatasetDict, concatenate_datasets, load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer


def rows(folders: list[str], held_out: float) -> DatasetDict:
    """Return the rows of all folders as prompt and completion, so that the loss is on the response alone."""
    splits: dict[str, list] = {"train": [], "validation": []}
    for folder in folders:
        for split, part in load_dataset(folder).items():
            splits[split].append(part)
    data = {split: concatenate_datasets(parts) for split, parts in splits.items() if parts}
    if "validation" not in data:  # a small dataset may have none
        data["validation"] = (halves := data["train"].train_test_split(held_out, seed=0))["test"]
        data["train"] = halves["train"]
    return DatasetDict(data).map(
        lambda row: {"prompt": row["messages"][:-1], "completion": row["messages"][-1:]},
        remove_columns=data["train"].column_names,
    )


def main() -> None:
    """Train, and save the adapter with the lowest loss on the validation split."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("datasets", nargs="+", help="dataset folders; their rows are concatenated")
    parser.add_argument("--model", required=True, help="a folder or a hub name; it needs a chat template")
    parser.add_argument("--output", required=True, help="folder for the adapter")
    parser.add_argument("--epochs", type=float, default=5)
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--batch", type=int, default=1, help="rows per device and step; 16 in all")
    parser.add_argument("--devices", type=int, default=max(1, torch.cuda.device_count()))
    parser.add_argument("--max-length", type=int, default=8192, help="tokens; a longer row loses its response")
    parser.add_argument("--held-out", type=float, default=0.1, help="validation share of a dataset without that split")
    arguments = parser.parse_args()

    gpu = torch.cuda.is_available()
    weights = {"dtype": torch.bfloat16 if gpu else torch.float32}
    if gpu:
        weights["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="fp4", bnb_4bit_compute_dtype=torch.bfloat16
        )
    data = rows(arguments.datasets, arguments.held_out)
    print({split: part.num_rows for split, part in data.items()})
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(arguments.model, **weights),
        args=SFTConfig(
            output_dir=arguments.output,
            num_train_epochs=arguments.epochs,
            per_device_train_batch_size=arguments.batch,
            per_device_eval_batch_size=arguments.batch,
            gradient_accumulation_steps=max(1, 16 // (arguments.batch * arguments.devices)),
            learning_rate=arguments.learning_rate,
            weight_decay=0.1,
            adam_beta1=0.9,
            adam_beta2=0.95,
            adam_epsilon=1e-10,
            max_length=arguments.max_length,
            bf16=gpu,
            gradient_checkpointing=gpu,
            use_cpu=not gpu,
            eval_strategy="epoch",
            eval_on_start=True,
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="eval_loss",
            logging_steps=1 if len(data["train"]) < 1000 else 20,
            report_to="none",
            seed=0,
        ),
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        peft_config=LoraConfig(r=8, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    trainer.train()
    trainer.save_model()
    for entry in trainer.state.log_history:
        shown = {key: round(entry[key], 4) for key in ("loss", "eval_loss") if key in entry}
        if shown:
            print(f"step {entry['step']:>4}, epoch {entry['epoch']:.2f}: {shown}")


if __name__ == "__main__":
    main()
