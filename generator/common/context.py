"""Give a block of code, and the tasks and threads that it starts, the value of a context variable."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def bind(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Yield the value, which the variable has until the block ends."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
