"""Measure a function in a process of its own, whose memory is of nothing else."""

import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_new_process(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what a function returns in a new process; it must be one of a module."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **named).result()


def peak_memory() -> float:
    """Return the highest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
