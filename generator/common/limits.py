"""Bounded reads of untrusted files: a few compressed kilobytes can unpack to more than memory holds.

A line, record or file beyond the bounds is an OSError, as any other failure to read a file is.
"""

from collections.abc import Iterator
from typing import IO, AnyStr

# Bytes; of a file in text mode, characters.
LONGEST_LINE = 1 << 28
LARGEST = 1 << 30


def read_lines(stream: IO[AnyStr]) -> Iterator[AnyStr]:
    """Yield the lines of a file.

    Raises:
        OSError: the file can't be read, or a line is longer than 256 MiB.
    """
    number = 1
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise OSError(f"line {number} is longer than 256 MiB; split it, or leave the file out")
        yield line
        number += 1


def read_whole(stream: IO[AnyStr]) -> AnyStr:
    """Return the content of a file.

    Raises:
        OSError: the file can't be read, or holds more than 1 GiB.
    """
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError("the file is larger than 1 GiB; split it, or leave it out")
    return content


class RecordStream:
    """A file for a parser that buffers a whole record, and calls `end_record` after each."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._buffered = 0

    def read(self, size: int) -> bytes:
        """Read at least `size` bytes, and with each further part of a record more: the parser scans it from its start.

        Raises:
            OSError: the file can't be read, or a record is longer than 256 MiB.
        """
        part = self._stream.read(max(size, self._buffered))
        self._buffered += len(part)
        if self._buffered > LONGEST_LINE:
            raise OSError("a record is longer than 256 MiB; split it, or leave the file out")
        return part

    def end_record(self) -> None:
        """Start counting again."""
        self._buffered = 0
