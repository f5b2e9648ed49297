"""How a command line of ours ends: the exit code, and one line for what a person can mend. Knows no command."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from generator.errors import ConfigError, GroundedDialogsError
from generator.untrusted import printable


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


def despite_closed_pipe(command: Callable[[], int]) -> int:
    """The exit code of a command; 0 once nobody reads on what it prints."""
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:  # of `| head`, which has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
