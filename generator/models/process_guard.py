"""Run a command, and end it with all its child processes when the parent of this process is gone, even if killed.

    python process_guard.py COMMAND …

A killed process can't clean up, but the system closes its end of the pipe to this process, which watches for that.
This file is run as a script, so it imports nothing else of the package.
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
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None:
        if select.select([sys.stdin], [], [], 0.5)[0]:  # nothing is ever written: readable means closed
            end(process)
    kill(process.pid, signal.SIGKILL)  # its remaining children
    return process.returncode


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process group with SIGTERM, after a grace period with SIGKILL."""
    kill(process.pid, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    kill(process.pid, signal.SIGKILL)
    process.wait()


def kill(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group that may have ended."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main())
