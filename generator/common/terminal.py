"""The end of a command: its exit code, and one line for an error that the user can fix."""

import argparse
import io
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from generator.common.sanitize import printable
from generator.errors import ConfigError, GroundedDialogsError


class Parser(argparse.ArgumentParser):
    """An argument parser that raises ConfigError where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; `{self.prog} --help` lists the arguments")


def exit_code(command: Callable[[], None]) -> int:
    """Run a command and return its exit code: 0, 2 after an error that the user can fix, 130 when interrupted."""
    try:
        command()
    except SystemExit:  # of --help; a wrong argument is a ConfigError
        return 0
    except GroundedDialogsError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def run_quietly(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; it ends quietly when its reader has gone, as with `| head`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a Latin-1 terminal has no quotation marks
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
