"""Documents are cut into passages."""

import random
from itertools import pairwise

import pytest

from generator.common.passages import TOKEN, count_tokens, windows
from generator.schema import Document
from tests.support.corpora import random_text, split

TRAM = "Go by tram. It costs 3 (see p. 7). Dogs pay half."


def test_a_token_is_a_word_or_a_punctuation_mark() -> None:
    assert TOKEN.findall("Don't pay £3, naïve!") == ["Don", "'", "t", "pay", "£", "3", ",", "naïve", "!"]
    assert count_tokens("Don't pay £3, naïve!") == 9
    assert count_tokens(" \n ") == 0


def test_what_no_space_parts_is_more_than_a_token() -> None:
    assert TOKEN.findall("在9点开门。ที่ 日本のバス") == [*"在9点开门。ที่日本のバス"]
    assert TOKEN.findall("한국어 문서") == ["한국어", "문서"]
    assert [len(token) for token in TOKEN.findall("x" * 64 + " " + "x" * 130)] == [64, 64, 64, 2]
    assert max(len(p.text) for p in split(Document(id="d", text="x" * 100_000))) == 512 * 64


def test_passages_are_exact_slices_with_ids_made_of_their_offsets() -> None:
    document = Document(id="doc", title="Title", url="https://example.org/", text="  One two. Three  four! ")
    (passage,) = split(document)
    assert (passage.start, passage.end) == (2, 23)
    assert passage.text == document.text[2:23]
    assert passage.id == "doc:2-23"
    assert (passage.document_id, passage.title, passage.url) == ("doc", "Title", "https://example.org/")


@pytest.mark.parametrize("seed", range(6))
def test_windows_of_any_text(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randint(1, 40)
    overlap = rng.randint(0, size - 1)
    document = Document(id="d", text=random_text(seed, 400))
    passages = split(document, size, overlap)
    tokens = TOKEN.findall(document.text)
    assert all(p.text == document.text[p.start : p.end] == p.text.strip() for p in passages)
    assert all(count_tokens(p.text) == size for p in passages[:-1])
    joined = TOKEN.findall(passages[0].text)
    for passage in passages[1:]:
        mine = TOKEN.findall(passage.text)
        assert len(mine) > overlap
        assert mine[:overlap] == joined[len(joined) - overlap :]
        joined += mine[overlap:]
    assert joined == tokens


@pytest.mark.parametrize("seed", range(6))
def test_windows_with_slack_lose_no_token_and_share_at_least_the_overlap(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randint(2, 60)
    overlap, slack = rng.randint(0, size - 1), rng.randint(1, size - 1)
    text = random_text(seed, 400)
    spans = [*windows(text, size, overlap, slack)]
    assert (spans[0][0], spans[-1][1]) == (len(text) - len(text.lstrip()), len(text.rstrip()))
    assert all(count_tokens(text[start:end]) <= size for start, end in spans)
    for (_, before), (start, end) in pairwise(spans):
        assert end > before and not text[before:start].strip() and count_tokens(text[start:before]) >= overlap


@pytest.mark.parametrize(
    ("text", "size", "overlap", "passages"),
    [
        (TRAM, 17, 0, ["Go by tram. It costs 3 (see p. 7).", "Dogs pay half."]),
        (TRAM, 17, 1, ["Go by tram. It costs 3 (see p. 7).", "It costs 3 (see p. 7). Dogs pay half."]),
        ("A list\n\nof it\nthat goes on", 6, 0, ["A list", "of it\nthat goes on"]),
        ("Use git --[no-]keep-index", 9, 0, ["Use git", "--[no-]keep-index"]),
        ("駅は近い。５分です。犬は半額です。", 12, 0, ["駅は近い。５分です。", "犬は半額です。"]),
    ],
)
def test_with_slack_a_passage_begins_with_a_sentence_or_a_line_or_else_a_word(
    text: str, size: int, overlap: int, passages: list[str]
) -> None:
    assert [text[start:end] for start, end in windows(text, size, overlap, size - 1)] == passages


@pytest.mark.parametrize(
    ("size", "overlap", "passages"),
    [
        (4, 1, ["It was", "was 36.3", "36.3 in", "in May."]),
        (5, 1, ["It was 36.3", "36.3 in May", "May."]),
        (3, 0, ["It was", "36.3", "in May."]),
    ],
)
def test_no_passage_begins_or_ends_within_a_number(size: int, overlap: int, passages: list[str]) -> None:
    document = Document(id="doc", text="It was 36.3 in May.")
    assert [passage.text for passage in split(document, size, overlap)] == passages
