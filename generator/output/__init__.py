"""The outputs of a run: dataset and card, exports, summary, tables and progress; comparisons of sets in `stats/`."""
