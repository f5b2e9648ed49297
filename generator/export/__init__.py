"""Datasets to train on, from accepted dialogs."""

from generator.export.card import DatasetInfo, DropCount, Origin, Share
from generator.export.chat import Filter, Row, pairs
from generator.export.dataset import DatasetResult, write_dataset
from generator.export.statistics import Statistics

__all__ = [
    "DatasetInfo",
    "DatasetResult",
    "DropCount",
    "Filter",
    "Origin",
    "Row",
    "Share",
    "Statistics",
    "pairs",
    "write_dataset",
]
