"""The plain settings of `python -m generator.finetune` and of a student; light to import, for `--help`."""

from typing import Annotated

from pydantic import Field

from generator.dialogs.filter import Filter
from generator.schema import LocalPath, OneOrMore, Operational, Record


class Student(Record):
    """The settings of `conf/student/<name>.yaml`: a model, and how it is trained."""

    name: str = Field(description="Name of the student, in the run folder's name.")
    model: str = Field(min_length=1, description="A chat model: a local folder, or a name on the Hugging Face hub.")
    rank: int = Field(ge=1, description="Rank of the LoRA adapter, on all linear layers.")
    alpha: int = Field(ge=1, description="Scale of the adapter.")
    quantised: bool = Field(description="Train on 4-bit weights (QLoRA), where there is a GPU.")
    learning_rate: float = Field(gt=0, description="At its peak; it falls linearly.")
    epochs: float = Field(gt=0, description="Passes over the pairs; the checkpoint with the lowest loss counts.")
    batch: int = Field(ge=1, description="Pairs of one step of the optimizer.")
    at_once: int = Field(ge=1, description="Pairs on a device at a time; it divides `batch`.")
    max_tokens: int = Field(ge=64, description="Longest pair in the model's tokens; longer ones are left out.")


class FinetuneSettings(Record):
    """Plain settings of `python -m generator.finetune`, as in `conf/finetune.yaml`."""

    data: Annotated[tuple[str, ...], OneOrMore, Field(min_length=1)] = Field(
        description="What is learned from, one or a list: run folders, files of dialogs, human dialogs as in "
        "`quac:PATH`, dataset folders or names on the hub."
    )
    pairs: int | None = Field(
        ge=2, description="Draw so many context-response pairs, from each of `data` the same number; null: all."
    )
    keep: Filter | None = Field(
        description="Which pairs of runs are learned from, as `judge.filter`; null: all, also those judged incorrect."
    )
    passage_tokens: int | None = Field(
        ge=1, description="Words and punctuation marks of a pair's passages, around its evidence; null: all of them."
    )
    held_out: float = Field(
        gt=0, lt=1, description="Share of the pairs that validate, of other documents; a validation split does instead."
    )
    seed: int = Field(ge=0, description="Seed of the draw, of the order of pairs, and of the adapter.")
    merged: Annotated[bool, Operational] = Field(
        description="Write the model with the adapter in its weights, too, as vLLM serves it (`model/`)."
    )
    run_dir: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of the adapter; null: outputs/students/<student>-<data>-<seed>."
    )
    fresh: Annotated[bool, Operational] = Field(description="Empty run_dir first, instead of continuing.")
