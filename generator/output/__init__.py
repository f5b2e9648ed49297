"""Datasets to train on, from accepted dialogs."""

from generator.output.card import DatasetInfo, DropCount, Origin, Share
from generator.output.chat import Row, rows
from generator.output.dataset import DatasetResult, write_dataset
from generator.output.stats.statistics import Statistics

__all__ = [
    "DatasetInfo",
    "DatasetResult",
    "DropCount",
    "Origin",
    "Row",
    "Share",
    "Statistics",
    "rows",
    "write_dataset",
]
