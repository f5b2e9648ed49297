"""Files of others, read within bounds: some kilobytes can unpack to a line, a record or a text that no memory holds.

What is beyond them is an OSError, as anything is that keeps a file from being read to its end.
"""

from collections.abc import Iterator
from typing import IO, AnyStr

# Bytes, or characters of a file that is read as text.
LONGEST_LINE = 1 << 28
LARGEST = 1 << 30


def read_lines(stream: IO[AnyStr]) -> Iterator[AnyStr]:
    """The lines of a file, as a stream.

    Raises:
        OSError: it can't be read, or a line is longer than 256 MiB.
    """
    number = 1
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise OSError(f"line {number} is longer than 256 MiB; break it up, or leave the file out")
        yield line
        number += 1


def read_whole(stream: IO[AnyStr]) -> AnyStr:
    """All that a file holds.

    Raises:
        OSError: it can't be read, or holds more than 1 GiB.
    """
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError("it holds more than 1 GiB; divide it, or leave it out")
    return content


class RecordStream:
    """A file for a parser that keeps what it reads of a record until that ends, and calls `ended` then."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = 0

    def read(self, size: int) -> bytes:
        """`size` bytes, or as many as are kept: a text is gone through from its beginning with each further part.

        Raises:
            OSError: it can't be read, or a record is longer than 256 MiB.
        """
        part = self._stream.read(max(size, self._kept))
        self._kept += len(part)
        if self._kept > LONGEST_LINE:
            raise OSError("a record is longer than 256 MiB; break it up, or leave the file out")
        return part

    def ended(self) -> None:
        self._kept = 0
