"""Reckon what a run will take: calls, tokens, hours and money."""
