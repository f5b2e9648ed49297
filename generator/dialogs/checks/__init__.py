"""Checks of what a model wrote, before it is kept. They ask no model: words, numbers and patterns decide.

`questions` is asked of every question, with `later_turns` after the first one and `requests` for those that have no
answer; `answers` and `evidence` are asked of every answer; `tasks` and `scenarios` of what is written as a whole. What
fails is asked for again, and told why.
"""
