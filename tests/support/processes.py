"""The processes of this machine."""

from pathlib import Path


def processes_with(argument: str) -> list[int]:
    """Return the numbers of the processes of this machine that have an argument."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in process.read_bytes().split(b"\0"):
                found.append(int(process.parent.name))
        except OSError:  # it has ended
            continue
    return found
