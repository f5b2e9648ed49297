"""What a response shares with reference answers, or with passages, in meaning: BERTScore (Zhang et al. 2020).

The encoder and what belongs to it (its layer, its baseline) are bert-score's, which is imported when the first score is
asked for. Texts are compared here: bert-score cuts what is longer than the encoder reads, and passages often are.
"""

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings, simplefilter

from pydantic import Field

from generator.errors import ConfigError, Rejected
from generator.schema import Record
from judges.metrics.words import Metric, best, rb_alg, rouge_l, spoken

# Texts whose vectors are kept, so that the response and the passages of a dialog are encoded once. At deberta-xlarge's
# size 2 MB for 500 word pieces.
_KEPT = 32
# Windows that are encoded at once.
_BATCH = 16


Name = Annotated[str, Field(min_length=1)]
Layer = Annotated[int, Field(ge=1)]


class BertSettings(Record):
    """Which encoder compares texts; values in `conf/judge/bert_recall.yaml` and its like.

    Attributes:
        encoder: a name on the Hugging Face hub, or a local folder.
        known_as: the name that bert-score knows the encoder by, as it needs for a folder; None: `encoder`.
        layer: whose vectors are compared; None: the one that bert-score has found to be best.
        rescale: whether a score is told from the mean one of unrelated texts (0) and equal ones (1), by the baseline
            that bert-score has of the encoder in English.
    """

    encoder: Name
    known_as: Name | None
    layer: Layer | None
    rescale: bool


class Bert:
    """Compares texts by an encoder's vectors of their word pieces. Safe to use from several threads, one at a time.

    A text longer than the encoder reads is encoded in windows that don't overlap, and each piece's best match is looked
    for in all windows of the other text. Texts that fit give bert-score's own values.

    Raises:
        ConfigError: bert-score isn't installed, the encoder can't be loaded, or bert-score doesn't know what it needs.
    """

    def __init__(self, settings: BertSettings) -> None:
        self._scorer = _scorer(settings)
        self._baseline = [0.0, 0.0]  # precision and recall of unrelated texts
        if settings.rescale:
            with catch_warnings():
                simplefilter("ignore")  # PyTorch's, about how bert-score makes a tensor
                self._baseline = [float(value) for value in self._scorer.baseline_vals[:2]]
        tokenizer, model = self._scorer._tokenizer, self._scorer._model
        self._ends = (tokenizer.cls_token_id, tokenizer.sep_token_id)
        if None in self._ends:
            raise ConfigError(
                f"judge.encoder={settings.encoder}: has no tokens for a text's beginning and end; choose another one"
            )
        # Some tokenizers don't know how much their model reads, others count places that it keeps for itself.
        read = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 0)]
        self.window = min(size for size in read if size > 0)
        tokenizer.model_max_length = 1_000_000_000  # so that bert-score's own way to read a text cuts none
        self._lock = threading.Lock()
        self._vectors = lru_cache(_KEPT)(self._encoded)

    def recall(self, response: str, reference: str) -> float:
        """How much of the reference the response has: 1 at most, rescaled around 0 for unrelated texts, also below.

        0 if one of them has no letter or digit.

        Raises:
            Rejected: the encoder fails, such as for want of memory.
        """
        return self._matched(reference, response, self._baseline[1])

    def precision(self, response: str, reference: str) -> float:
        """How much of the response the reference has; see `recall`."""
        return self._matched(response, reference, self._baseline[0])

    def _matched(self, text: str, other: str, baseline: float) -> float:
        """The mean, over the word pieces of `text`, of the cosine with the one of `other` that is nearest."""
        if not (spoken(text) and spoken(other)):
            return 0.0
        with self._lock:
            try:
                vectors, counted = self._vectors(text)
                candidates, _ = self._vectors(other)
                nearest = (vectors[counted] @ candidates.T).max(dim=1).values
            except RuntimeError as error:  # PyTorch's, for a device that is full or gone as well
                raise Rejected("judge", f"the encoder fails ({' '.join(str(error).split())[:300]})") from error
        return (float(nearest.mean()) - baseline) / (1 - baseline)

    def _encoded(self, text: str) -> tuple[Any, Any]:
        """Unit vectors of a text's pieces and of the ends of its windows, shape (pieces, dimensions), and which of them
        are the text's own, shape (pieces,). Ends can be matched, as bert-score has it, but don't count.
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


def _scorer(settings: BertSettings) -> Any:
    try:
        import bert_score
        from bert_score import BERTScorer
        from bert_score.utils import model2layers
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error
    except ImportError as error:
        raise ConfigError(
            f"BERT scores need the package bert-score ({error}): install the extra 'metrics' (uv sync --extra metrics)"
        ) from error
    set_verbosity_error()
    disable_progress_bar()
    name = settings.known_as or settings.encoder
    layer = settings.layer or model2layers.get(name)
    if layer is None:
        raise ConfigError(
            f"judge.encoder={settings.encoder}: bert-score doesn't know which layer is best; give judge.layer=…, or "
            "judge.known_as=… for a copy of one that it knows"
        )
    table = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{name}.tsv"
    if settings.rescale and not table.is_file():
        raise ConfigError(
            f"judge.encoder={settings.encoder}: bert-score has no baseline of it; give judge.rescale=false, or "
            "judge.known_as=… for a copy of one that it knows"
        )
    folder = Path(settings.encoder).expanduser()
    try:
        return BERTScorer(
            str(folder) if folder.exists() else settings.encoder,
            num_layers=layer,
            lang="en",
            rescale_with_baseline=settings.rescale,
            baseline_path=str(table),
            use_fast_tokenizer=True,
        )
    except Exception as error:  # it raises what its libraries raise
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ConfigError(
            f"judge.encoder={settings.encoder}: can't be loaded, with layer {layer} ({reason}); give a folder, or "
            "a name that the Hugging Face hub has"
        ) from error


_loading = threading.Lock()
_loaded = cache(Bert)


class BertMetric(Metric):
    """A metric by an encoder, which is loaded when the first score is asked for, once for all metrics.

    Args:
        model: as every judge gets it; not used.
        encoder, known_as, layer, rescale: as in `BertSettings`.
    """

    def __init__(self, model: str, encoder: Name, known_as: Name | None, layer: Layer | None, rescale: bool) -> None:
        super().__init__(model)
        self._settings = BertSettings(encoder=encoder, known_as=known_as, layer=layer, rescale=rescale)

    @property
    def bert(self) -> Bert:
        """The encoder.

        Raises:
            ConfigError: see `Bert`.
        """
        with _loading:
            return _loaded(self._settings)

    def k_precision(self, response: str, passages: Sequence[str]) -> float:
        """How much of the response is in the passage that has most of it.

        Raises:
            Rejected: there is no passage, or the encoder fails.
        """
        if not passages:
            raise Rejected("judge", "no passages")
        return max(self.bert.precision(response, passage) for passage in passages)


class BertRecall(BertMetric):
    """How much of the reference answer the response has (Katsis et al. 2025, section 6.3.1); see `Bert.recall`."""

    name = "bert_recall"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        return best(lambda said, expected: self.bert.recall(said, expected), response, references)


class BertKPrecision(BertMetric):
    """How much of the response is in the passages (Katsis et al. 2025, section 6.3.1): in one of them, the best, as in
    mtRAG's published scores; see `Bert.precision`.
    """

    name = "bert_k_precision"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        return self.k_precision(response, passages)


class RbAlg(BertMetric):
    """ROUGE-L, BERT-recall and BERT-k-precision in one number; see `judges.metrics.words.rb_alg`."""

    name = "rb_alg"

    def score(self, response: str, references: Sequence[str], passages: Sequence[str]) -> float:
        supported = self.k_precision(response, passages)

        def one(said: str, expected: str) -> float:
            return rb_alg(rouge_l(said, expected), self.bert.recall(said, expected), supported)

        return best(one, response, references)
