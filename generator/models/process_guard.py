"""Runs a command and ends it, with all that it started, when whoever started this is gone, however that came about.

    python guard.py COMMAND …

A process that is killed can end nothing; but its end of a pipe is closed for it, and this waits at the other one.
Run as a file of its own: it imports nothing of ours.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

_GRACE_S = 15


def main() -> int:
    """Returns the command's exit code."""
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None:
        if select.select([sys.stdin], [], [], 0.5)[0]:  # nobody writes: it is readable when it is closed
            end(process)
    kill(process.pid, signal.SIGKILL)  # what it left behind
    return process.returncode


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask, then insist."""
    kill(process.pid, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    kill(process.pid, signal.SIGKILL)
    process.wait()


def kill(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it is still there."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main())
