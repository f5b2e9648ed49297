"""How a command line of ours ends: the exit code, and one line for what a person can mend. Knows no command."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NoReturn, TextIO, cast

from generator.common.sanitize import printable
from generator.errors import ConfigError, GroundedDialogsError


class Parser(argparse.ArgumentParser):
    """Raises what is wrong as a ConfigError; argparse's own prints the usage and exits."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; `{self.prog} --help` shows what can be given")


def ended(command: Callable[[], None]) -> int:
    """Run a command; returns the exit code: 0, 2 something to mend, 130 interrupted."""
    try:
        command()
    except SystemExit:  # of --help; what is wrong is a ConfigError
        return 0
    except GroundedDialogsError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def run_quietly(command: Callable[[], int]) -> int:
    """The exit code of a command, which goes on when nobody reads what it says; `| head` has read enough."""
    out, err = _Output(sys.stdout), _Output(sys.stderr)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        code = command()
        out.flush()
        if out.error is None or isinstance(out.error, BrokenPipeError):
            return code
        print(f"error: standard output: can't be written ({out.error.strerror}); send it elsewhere", file=sys.stderr)
        return code or 2


class _Output:
    """A standard stream that may be closed, full or unread: what is said then is lost, and nothing else.

    What its encoding has no character for is spelt out.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or io.StringIO()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        with self._lossy():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._lossy():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _lossy(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error
            # What the stream still holds would be tried again, at the latest when the program ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
