"""BERT scores with a real encoder, beside those of bert-score itself."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from generator.errors import ConfigError
from judges.metrics.bert import Bert, BertMetric
from judges.metrics.words import rb_alg, rouge_l
from tests.support.encoders import find_minilm

pytestmark = pytest.mark.engines

PAIRS = [
    ("The tram is green.", "A green tram runs at night."),
    ("I don't know when the museum opens.", "It opens at nine, except on Mondays."),
    ("Yes.", "Yes, the ferry takes bicycles, and children travel free."),
    ("The tram is green.", "The tram is green."),
]
# Longer than what the encoder reads, and its last sentence is about something else.
LONG = " ".join(f"House number {n} was built by a mason with a red beard." for n in range(60))
LAST = "Penguins swim faster than most boats."


@pytest.fixture(scope="module")
def folder() -> str:
    """Return the folder of MiniLM."""
    pytest.importorskip("bert_score", reason="bert-score isn't installed (extra metrics)")
    return find_minilm()


def load(folder: str, **changes: Any) -> Bert:
    return Bert(**{"encoder": folder, "known_as": None, "layer": 6, "rescale": False} | changes)


@pytest.fixture(scope="module")
def bert(folder: str) -> Bert:
    return load(folder)


@pytest.fixture(scope="module")
def own(folder: str) -> Any:
    from bert_score import BERTScorer

    return BERTScorer(folder, num_layers=6)


def test_scores_are_bert_scores_own(own: Any, bert: Bert) -> None:
    for response, reference in PAIRS:
        precision, recall, _ = own.score([response], [reference])
        assert bert.precision(response, reference) == pytest.approx(precision.item(), abs=1e-5)
        assert bert.recall(response, reference) == pytest.approx(recall.item(), abs=1e-5)
    assert bert.recall(*PAIRS[0]) != pytest.approx(bert.precision(*PAIRS[0]), abs=1e-3)


def test_rescaled_scores_are_bert_scores_own(folder: str) -> None:
    import bert_score

    name = "microsoft/deberta-xlarge-mnli"
    table = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{name}.tsv"
    own = bert_score.BERTScorer(folder, num_layers=6, lang="en", rescale_with_baseline=True, baseline_path=str(table))
    ours = load(folder, known_as=name, rescale=True)
    precision, recall, _ = own.score([PAIRS[0][0]], [PAIRS[0][1]])
    assert ours.precision(*PAIRS[0]) == pytest.approx(precision.item(), abs=1e-5)
    assert ours.recall(*PAIRS[0]) == pytest.approx(recall.item(), abs=1e-5)


def test_nothing_of_a_long_text_is_cut(own: Any, bert: Bert) -> None:
    long = f"{LONG} {LAST}"
    assert bert.window == 512
    cut, without = (own.score([text], [LAST])[1].item() for text in (long, LONG))
    assert cut == pytest.approx(without, abs=1e-5), "it is no longer cut there: are our windows needed?"
    assert bert.recall(long, LAST) > bert.recall(LONG, LAST) + 0.2
    assert bert.precision(long, long) == pytest.approx(1, abs=1e-5)
    assert bert.precision(long, LAST) < 0.5


def test_scores_are_the_same_from_many_threads(bert: Bert) -> None:
    alone = [bert.recall(*pair) for pair in PAIRS]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda pair: bert.recall(*pair), PAIRS * 10))
    assert together == alone * 10


def test_rb_alg_is_made_of_them(folder: str, bert: Bert) -> None:
    pytest.importorskip("rouge_score", reason="rouge-score isn't installed (extra metrics)")
    response, reference = PAIRS[0]
    passages = [LAST, "A tram that is green."]
    supported = max(bert.precision(response, passage) for passage in passages)
    expected = rb_alg(rouge_l(response, reference), bert.recall(response, reference), supported)
    judge = BertMetric("rb_alg", folder, None, 6, False)
    assert judge.score(response, [LAST, reference], passages) == pytest.approx(expected, abs=1e-6)
    assert supported > bert.precision(response, LAST)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"layer": None}, "give judge.layer=…"),
        ({"layer": 7}, "can't be loaded with layer 7 ("),
        ({"rescale": True}, "give judge.rescale=false"),
        ({"encoder": "/nowhere/at/all"}, "give a local folder"),
    ],
)
def test_an_encoder_that_can_not_be_used_is_one_line(folder: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(folder, **changes)
    assert str(error.value).startswith(f"judge.encoder={changes.get('encoder', folder)}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("folder")
def test_a_hub_that_can_not_be_reached_is_one_line_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match="Connection refused"):
        Bert("no/such-encoder", known_as="roberta-large", layer=1, rescale=False)
    assert not caplog.records, "its client tries again for a minute, and reports each time"


def test_an_encoder_in_the_cache_of_the_hub_is_loaded_without_the_hub(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cached = tmp_path / "models--an--encoder"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("0" * 40)
    (cached / "snapshots").mkdir()
    (cached / "snapshots" / ("0" * 40)).symlink_to(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert load("an/encoder").recall("The tram is green.", "The tram is green.") == pytest.approx(1)
    assert not caplog.records
