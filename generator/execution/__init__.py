"""Execution of a run: in this process, or in worker processes on a Ray cluster."""
