"""A stand-in for vLLM's server: takes its options, starts a child process, answers as `tests.support.openai_server`."""

import argparse
import os
import subprocess
import sys
import threading
import time

from tests.support.openai_server import OpenAIServer

parser = argparse.ArgumentParser()
for option in ("--model", "--served-model-name", "--host", "--generation-config", "--structured-outputs-config"):
    parser.add_argument(option, required=True)
for option in ("--port", "--max-model-len"):
    parser.add_argument(option, type=int, required=True)
parser.add_argument("--enable-prompt-tokens-details", action="store_true")
parser.add_argument("--seconds", type=float, default=0, help="until it answers")
parser.add_argument("--fail", help="the error that it ends with")
arguments = parser.parse_args()
time.sleep(arguments.seconds)
if arguments.fail:
    raise ValueError(arguments.fail)
engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(f"engine {engine.pid} of {os.getpid()}", flush=True)
with OpenAIServer(model=arguments.served_model_name, port=arguments.port):
    threading.Event().wait()
