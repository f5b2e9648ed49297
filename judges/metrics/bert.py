"""Metrics of the meaning that a response shares with reference answers or passages: BERTScore (Zhang et al. 2020).

The encoder, its layer and its baseline come from bert-score, which is imported when the first score is computed. Texts
are compared here: bert-score truncates what is longer than the encoder's window, as passages often are.
"""

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

from pydantic import Field

from generator.common.hub import load_model
from generator.common.scripts import has_words
from generator.errors import ConfigError, Rejected
from generator.schema import Judge
from judges.base import ComputingJudgeSettings
from judges.metrics.words import Metric, best_score, check_latin, rb_alg, rouge_l

# Texts whose vectors are cached, so that the response and the passages of a dialog are encoded once. 500 word pieces
# take 2 MB with deberta-xlarge.
_CACHED_TEXTS = 32
# Windows encoded in one batch.
_BATCH = 16


class Bert:
    """Compares texts by an encoder's vectors of their word pieces. Thread-safe: one comparison at a time.

    A text longer than the encoder's window is encoded in windows that don't overlap, and a piece is matched with the
    pieces of all windows of the other text. Texts that fit into one window give the same values as bert-score.

    Raises:
        ConfigError: bert-score isn't installed, or it can't load the encoder or has no layer or baseline for it.
    """

    def __init__(self, encoder: str, known_as: str | None, layer: int | None, rescale: bool) -> None:
        self._scorer = _load_scorer(encoder, known_as or encoder, layer, rescale)
        self._baseline = [0.0, 0.0]  # precision and recall of unrelated texts
        if rescale:
            with catch_warnings():
                simplefilter("ignore")  # PyTorch warns about how bert-score creates a tensor
                self._baseline = [float(value) for value in self._scorer.baseline_vals[:2]]
        tokenizer, model = self._scorer._tokenizer, self._scorer._model
        self._ends = (tokenizer.cls_token_id, tokenizer.sep_token_id)
        if None in self._ends:
            raise ConfigError(
                f"judge.encoder={encoder}: has no tokens for the beginning and end of a text; choose another encoder"
            )
        # Some tokenizers don't know their model's window, others count positions that it reserves.
        sizes = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 0)]
        self.window = min(size for size in sizes if size > 0)
        tokenizer.model_max_length = 1_000_000_000  # so that bert-score's tokenization truncates nothing
        self._lock = threading.Lock()
        self._vectors = lru_cache(_CACHED_TEXTS)(self._encode)

    def recall(self, response: str, reference: str) -> float:
        """Return how much of the reference the response covers: 1 at most; rescaled, about 0 for unrelated texts.

        0 if one of them has no letter or digit. An encoder that fails, such as out of memory, raises `Rejected`.
        """
        return self._similarity(reference, response, self._baseline[1])

    def precision(self, response: str, reference: str) -> float:
        """Return how much of the response the reference covers; see `recall`."""
        return self._similarity(response, reference, self._baseline[0])

    def _similarity(self, text: str, other: str, baseline: float) -> float:
        """Return the mean, over the word pieces of `text`, of the cosine with the nearest piece of `other`."""
        if not (has_words(text) and has_words(other)):
            return 0.0
        with self._lock:
            try:
                vectors, counted = self._vectors(text)
                candidates, _ = self._vectors(other)
                nearest = (vectors[counted] @ candidates.T).max(dim=1).values
            except RuntimeError as error:  # PyTorch raises it for a device that is full or lost, too
                raise Rejected("judge", f"the encoder fails ({' '.join(str(error).split())[:300]})") from error
        return (float(nearest.mean()) - baseline) / (1 - baseline)

    def _encode(self, text: str) -> tuple[Any, Any]:
        """Return unit vectors of a text's word pieces and window ends, and a mask of the word pieces.

        Shapes (pieces, dimensions) and (pieces,). As in bert-score, ends can be matched, but don't count in the mean.
        """
        import torch
        from bert_score.utils import bert_encode, padding, sent_encode

        tokenizer, model = self._scorer._tokenizer, self._scorer._model
        first, last = self._ends
        pieces = sent_encode(tokenizer, text)[1:-1]
        size = self.window - 2
        windows = [[first, *pieces[at : at + size], last] for at in range(0, len(pieces), size)]
        vectors, counted = [], []
        for at in range(0, len(windows), _BATCH):
            ids, _, mask = padding(windows[at : at + _BATCH], tokenizer.pad_token_id)
            encoded = bert_encode(model, ids.to(self._scorer.device), mask.to(self._scorer.device)).cpu()
            vectors.append(encoded[mask.bool()])
            counted.append(ids[mask.bool()])
        together = torch.nn.functional.normalize(torch.cat(vectors), dim=-1)
        ids = torch.cat(counted)
        return together, (ids != first) & (ids != last)


def _load_scorer(encoder: str, known_as: str, layer: int | None, rescale: bool) -> Any:
    try:
        import bert_score
        from bert_score import BERTScorer
        from bert_score.utils import model2layers
        from huggingface_hub import snapshot_download
        from transformers import AutoConfig
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error
    except ImportError as error:
        raise ConfigError(
            f"BERT scores need the package bert-score ({error}): install the extra 'metrics' (uv sync --inexact "
            "--extra metrics)"
        ) from error
    set_verbosity_error()
    disable_progress_bar()
    layer = layer or model2layers.get(known_as)
    if layer is None:
        raise ConfigError(
            f"judge.encoder={encoder}: bert-score has no best layer for this encoder; give judge.layer=…, or "
            "judge.known_as=… if it is a copy of one that bert-score knows"
        )
    table = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{known_as}.tsv"
    if rescale and not table.is_file():
        raise ConfigError(
            f"judge.encoder={encoder}: bert-score has no baseline for this encoder; give judge.rescale=false, or "
            "judge.known_as=… if it is a copy of one that bert-score knows"
        )

    def load(name: str, local: bool) -> Any:
        if local and not Path(name).exists():
            name = snapshot_download(name, local_files_only=True)
        # bert-score looks for these letters anywhere, and would fill a T5 with random weights.
        if "t5" in name and "t5" not in AutoConfig.from_pretrained(name).model_type:
            raise ValueError("bert-score takes a path with t5 in it for a T5: rename the folder, or make a link to it")
        return BERTScorer(
            name,
            num_layers=layer,
            lang="en",
            rescale_with_baseline=rescale,
            baseline_path=str(table),
            use_fast_tokenizer=True,
        )

    try:
        return load_model(encoder, load)
    except Exception as error:  # bert-score raises whatever its libraries raise
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ConfigError(
            f"judge.encoder={encoder}: can't be loaded with layer {layer} ({reason}); give a local folder, or the name "
            "of a model on the Hugging Face hub"
        ) from error


_loading = threading.Lock()
_load = cache(Bert)


class BertMetric(Metric):
    """A metric by an encoder, which is loaded when the first score is computed, once for all metrics.

    - `bert_recall`: how much of the reference answer the response covers (Katsis et al. 2025, section 6.3.1).
    - `bert_k_precision`: how much of the response one passage covers, the best, as in mtRAG's published scores.
    - `rb_alg`: both and ROUGE-L in one number; see `judges.metrics.words.rb_alg`.
    """

    def __init__(self, name: str, encoder: str, known_as: str | None, layer: int | None, rescale: bool) -> None:
        self.name = name
        self._arguments = (encoder, known_as, layer, rescale)

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        if self.name == "rb_alg":
            check_latin(references)
        with _loading:
            bert = _load(*self._arguments)
        if self.name == "bert_recall":
            return best_score(bert.recall, response, references)
        if not passages:
            raise Rejected("judge", "no passages")
        supported = max(bert.precision(response, passage) for passage in passages)
        if self.name == "bert_k_precision":
            return supported

        def combined(response: str, reference: str) -> float:
            return rb_alg(rouge_l(response, reference), bert.recall(response, reference), supported)

        return best_score(combined, response, references)


class BertMetricSettings(ComputingJudgeSettings):
    name: Literal["bert_recall", "bert_k_precision", "rb_alg"] = Field(description="Name of the metric.")
    encoder: str = Field(
        min_length=1, description="Encoder that compares texts: a name on the Hugging Face hub, or a local folder."
    )
    known_as: str | None = Field(
        min_length=1,
        description="The name by which bert-score knows the encoder, if that is a local folder; null: `encoder`.",
    )
    layer: int | None = Field(
        ge=1, description="Layer whose vectors are compared; null: the one that bert-score lists as the best."
    )
    rescale: bool = Field(
        description="Rescale scores by bert-score's baseline of the encoder for English, so that unrelated texts get "
        "about 0."
    )

    def build(self, model: str) -> Judge:
        return BertMetric(self.name, self.encoder, self.known_as, self.layer, self.rescale)
