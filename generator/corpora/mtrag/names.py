"""How things are called in mtRAG's files (Katsis et al. 2025), for those who read them and those who write them."""

import re

# The publisher's collections are named after the indexes that they were searched in.
COLLECTIONS = {
    "clapnq": "mt-rag-clapnq-elser-512-100-20240503",
    "cloud": "mt-rag-ibmcloud-elser-512-100-20240502",
    "fiqa": "mt-rag-fiqa-beir-elser-512-100-20240501",
    "govt": "mt-rag-govt-elser-512-100-20240611",
}
SEPARATOR = "<::>"  # between a conversation and the number of a turn
SPEAKER = "|user|:"  # in front of every question of a query
NO_LABEL = "N/A"

_COLLECTION = re.compile(r"mt-rag-(?:ibm)?(clapnq|cloud|fiqa|govt)-.*")
# The publisher writes conversation<::>turn in some files and conversation::turn in others.
_TURN_ID = re.compile(r"(?P<conversation>.+?)(?:<::>|::)(?P<turn>[1-9]\d*)", re.DOTALL)
# A correction says what the user meant: mtRAG's clarification of intent (table 10).
_SPELT = {"how-to": "How-To", "non-question": "Non-Question", "correction": "Clarification"}


def domain(collection: str) -> str:
    """The publisher's domain of a collection; a collection of somebody else's is its own.

    Raises:
        ValueError: it is called as the publisher's are, and is none of them.
    """
    found = _COLLECTION.fullmatch(collection)
    if found is None and (collection.startswith("mt-rag-") or not collection.strip()):
        raise ValueError(f"{collection!r} names no domain of mtRAG")
    return found[1] if found else collection


def turn_id(conversation: str, turn: int) -> str:
    """The id of a turn, of its task and of its queries; turns count from 1."""
    return f"{conversation}{SEPARATOR}{turn}"


def parted(name: str) -> tuple[str, int]:
    """The conversation and the turn of a `turn_id`.

    Raises:
        ValueError: it is none.
    """
    found = _TURN_ID.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} isn't a conversation and a turn joined by <::> or ::")
    return found["conversation"], int(found["turn"])


def spelt(label: str) -> str:
    """A label of ours as the publisher writes it (`how-to`: How-To, `follow-up`: Follow-up); others get a capital."""
    return _SPELT.get(label) or label[:1].upper() + label[1:]


def read(label: str) -> str:
    """A label of the publisher's as our records have it."""
    return label.lower().replace(" ", "-")
