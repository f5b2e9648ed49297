"""Group what belongs together because it shares documents, so that a split puts it on one side."""

from collections.abc import Hashable, Iterable, Sequence

from scipy.cluster.hierarchy import DisjointSet


def link(keys: Sequence[Iterable[Hashable]]) -> list[int]:
    """Return the group of each item, as a number: items that share a key, directly or through others, have the same.

    Args:
        keys: those of each item.
    """
    linked, first = DisjointSet(range(len(keys))), dict[Hashable, int]()
    for item, own in enumerate(keys):
        for key in own:
            linked.merge(item, first.setdefault(key, item))
    return [linked[item] for item in range(len(keys))]
