import signal
import sys

# Until `run_command` takes over, Ctrl-C ends a command at once, without a traceback of half an import. What a shell has
# in the background goes on ignoring it.
_program = sys.orig_argv[1:3]
_is_command = _program[:1] == ["-m"] and _program[-1].partition(".")[0] in ("generator", "judges")
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
