"""Translate the names in mtRAG's files (Katsis et al. 2025), to read them and to write them."""

import re

# The publisher's collections have the names of the indexes that they were searched in.
COLLECTIONS = {
    "clapnq": "mt-rag-clapnq-elser-512-100-20240503",
    "cloud": "mt-rag-ibmcloud-elser-512-100-20240502",
    "fiqa": "mt-rag-fiqa-beir-elser-512-100-20240501",
    "govt": "mt-rag-govt-elser-512-100-20240611",
}
SEPARATOR = "<::>"  # between a conversation and the number of a turn
SPEAKER = "|user|:"  # before every question of a query
NO_LABEL = "N/A"

_COLLECTION = re.compile(r"mt-rag-(?:ibm)?(clapnq|cloud|fiqa|govt)-.*")
# The publisher writes conversation<::>turn in some files and conversation::turn in others.
_TURN_ID = re.compile(r"(?P<conversation>.+?)(?:<::>|::)(?P<turn>[1-9]\d*)", re.DOTALL)
# A correction says what the user meant: mtRAG's clarification of intent (table 10).
_PUBLISHED_LABELS = {"how-to": "How-To", "non-question": "Non-Question", "correction": "Clarification"}


def domain_of(collection: str) -> str:
    """Return the publisher's domain of a collection; any other collection is its own domain.

    Raises:
        ValueError: it has the publisher's prefix, and is none of the publisher's.
    """
    match = _COLLECTION.fullmatch(collection)
    if match is None and (collection.startswith("mt-rag-") or not collection.strip()):
        raise ValueError(f"{collection!r} names no domain of mtRAG")
    return match[1] if match else collection


def format_turn_id(conversation: str, turn: int) -> str:
    """Return the id of a turn, of its task and of its queries; turns count from 1."""
    return f"{conversation}{SEPARATOR}{turn}"


def parse_turn_id(turn_id: str) -> tuple[str, int]:
    """Return the conversation and the turn of a turn's id.

    Raises:
        ValueError: it isn't one.
    """
    match = _TURN_ID.fullmatch(turn_id)
    if match is None:
        raise ValueError(f"{turn_id!r} isn't a conversation and a turn joined by <::> or ::")
    return match["conversation"], int(match["turn"])


def to_published_label(label: str) -> str:
    """Return a label of ours as the publisher writes it: `how-to` is How-To, `follow-up` is Follow-up."""
    return _PUBLISHED_LABELS.get(label) or label[:1].upper() + label[1:]


def from_published_label(label: str) -> str:
    """Return a label of the publisher's as our records have it."""
    return label.lower().replace(" ", "-")
