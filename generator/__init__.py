import signal
import sys

# Until `run_command` takes over, Ctrl-C ends a command at once, without a traceback of half an import.
_program = sys.orig_argv[1:3]
if _program[:1] == ["-m"] and _program[-1].partition(".")[0] in ("generator", "judges"):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
