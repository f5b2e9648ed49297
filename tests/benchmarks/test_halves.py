"""The halves of mtRAG that students learn from and answer share no document."""

import random

from benchmarks.halves import cut, find_documents, halve


def _conversation(*passages: str) -> dict[str, object]:
    contexts = [{"document_id": passage} for passage in passages]
    return {
        "retriever": {"collection": {"name": "mt-rag-clapnq-elser-512-100-20240503"}},
        "messages": [{"speaker": "user"}, {"speaker": "agent", "contexts": contexts}],
    }


def test_conversations_linked_by_documents_are_in_one_half() -> None:
    linked = [_conversation("a-0-9", "b-0-9"), _conversation("b-10-19", "c-0-9"), _conversation("c-10-19")]
    others = [_conversation(f"{name}-0-9") for name in "defgh"]
    train, test = halve([*linked, *others], random.Random(0))
    documents = [set().union(*map(find_documents, half)) for half in (train, test)]
    assert not documents[0] & documents[1]
    assert len(train) == len(test) == 4


def test_a_conversation_without_contexts_is_kept() -> None:
    train, test = halve([_conversation("a-0-9"), _conversation()], random.Random(0))
    assert len(train) == len(test) == 1


def test_a_passage_is_cut_to_whole_sentences() -> None:
    text = "tail of a sentence. " + "A sentence of five words. " * 40
    assert cut(text) == " ".join(["A sentence of five words."] * 30)
