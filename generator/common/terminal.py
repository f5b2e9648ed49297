"""The end of a command: its exit code."""

import io
import os
import sys
from collections.abc import Callable


def run_quietly(command: Callable[[], int]) -> int:
    """Run a command and return its exit code: its own, 130 when interrupted, 0 when its reader has gone (`| head`)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a Latin-1 terminal has no quotation marks
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
