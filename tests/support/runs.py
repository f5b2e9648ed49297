"""Whole runs for the tests: the command line, in this process or in one that can be killed.

site = Site(tmp_path)
done = site.run(server, "dialogs=10", "algorithm=single")
done.code, done.err, site.summary(), site.data()
"""

import json
import multiprocessing
import os
import random
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import yaml
from pyarrow import parquet

from generator.__main__ import COMMAND
from generator.command import Command, run_command
from generator.common.detection import load_detector
from tests.support.openai_server import Body, OpenAIServer, Responder, fill, prompt, words

Program = Command | Mapping[str, Command] | Callable[[], int]
# The key of the summary that counts the drops of a scope.
_DROPPED = {"dialog": "dropped", "turn": "dropped_turns", "pair": "dropped_pairs", "candidate": "dropped_candidates"}


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The error of one line."""
        assert "Traceback" not in self.out + self.err, self.err
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        return line.removeprefix("error: ")

    @property
    def refused(self) -> str:
        """The error of a command that printed nothing else."""
        assert (self.code, self.out, self.err.count("\n")) == (2, "", 1), self.out + self.err
        return self.error


def run_program(program: Program) -> int:
    """Run a command with the arguments of this process, and return its exit code."""
    return program() if callable(program) else run_command(program)


def command(*arguments: str | Path, program: Program = COMMAND) -> Ended:
    """Run a command line to its end, in this process; what interrupts it, Ctrl-C or `timeout`, ends the tests."""
    out, err, argv = StringIO(), StringIO(), sys.argv
    sys.argv = ["generator", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = run_program(program)
    finally:
        sys.argv = argv
    if code == 130:
        raise KeyboardInterrupt(err.getvalue())
    return Ended(code, out.getvalue(), err.getvalue())


class Site:
    """A folder with documents and a run folder.

    Args:
        folder: where both go; made unless it exists.
        texts: the documents; 8 of made-up words, and a sentence they share, if not given.

    Attributes:
        program: the command.
    """

    program: Program = COMMAND

    def __init__(self, folder: Path, texts: list[str] | None = None) -> None:
        self.folder, self.run_dir = folder, folder / "run"
        folder.mkdir(parents=True, exist_ok=True)
        chance = random.Random(1)
        shared = "The harbour office opens on Sundays."
        texts = texts or [" ".join([*(words(chance, 120) for _ in range(8)), shared]) for _ in range(8)]
        self.documents = folder / "documents.jsonl"
        lines = [json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(texts)]
        self.documents.write_text("\n".join(lines), encoding="utf-8")

    def cut(self) -> dict[str, str]:
        """Cut the documents into records of a sentence, as one's own pipeline may; return their texts by id."""
        whole = [json.loads(line) for line in self.documents.read_text(encoding="utf-8").splitlines()]
        cut = [
            {"id": f"{record['id']}#{number}", "document_id": record["id"], "text": text}
            for record in whole
            for number, text in enumerate(record["text"].split(". "))
        ]
        self.documents.write_text("\n".join(map(json.dumps, cut)), encoding="utf-8")
        return {record["id"]: record["text"] for record in cut}

    def check_evidence(self, texts: Mapping[str, str]) -> None:
        """Check that passages are these, and that there is evidence, all of it words of a passage."""
        evidence = 0
        for dialog in self.dialogs():
            passages = {passage["id"]: passage["text"] for passage in dialog["passages"]}
            assert passages.items() <= texts.items()
            for span in (span for turn in dialog["turns"] for span in turn["evidence"]):
                evidence += 1
                assert passages[span["passage_id"]][span["start"] : span["end"]] == span["text"]
        assert evidence

    def arguments(self, server: OpenAIServer, *more: str) -> list[str]:
        """Return the command line; `more` comes last, so that it takes precedence."""
        return [
            "corpus=jsonl",
            f"corpus.path={self.documents}",
            "corpus.language=en",  # no language has these words
            f"cache_dir={self.folder / 'cache'}",
            f"run_dir={self.run_dir}",
            *server.settings(),
            "turns=2",
            *more,
        ]

    def run(self, server: OpenAIServer, *more: str) -> Ended:
        """Run the command to its end, in this process."""
        return command(*self.arguments(server, *more), program=self.program)

    def start(self, server: OpenAIServer, *more: str, largest_file: int | None = None) -> ForkServerProcess:
        """Start the command in a process of its own; `ended` waits for it.

        The process is forked from one that has done the imports, which would be most of the time of a short run.

        Args:
            largest_file: bytes that a file of the process may have, as on a disk that is full.
        """
        context = multiprocessing.get_context("forkserver")
        ours = ["generator.config.hydra_main", "generator.run", "judges.run", "tests.support.runs"]
        context.set_forkserver_preload([*ours, "datasketch", "bm25s", "Stemmer"])
        settings = (self.program, self.arguments(server, *more), self.folder / "log", largest_file)
        process = context.Process(target=run_logged, args=settings, daemon=True)
        process.start()
        return process

    def ended(self, process: ForkServerProcess) -> Ended:
        """Wait for a started command; the code of a killed one is the negative number of the signal."""
        process.join(300)
        assert process.exitcode is not None, "the command did not end within five minutes"
        log = (self.folder / "log").read_text(encoding="utf-8")
        return Ended(process.exitcode, "", log)

    def summary(self) -> dict[str, Any]:
        """Return the run's summary."""
        return dict(json.loads((self.run_dir / "summary.json").read_text(encoding="utf-8")))

    def counts(self) -> dict[str, Any]:
        """Return the summary without what depends on timing, and calls and tokens of the attempted dialogs by stage."""
        summary = self.summary()
        for name in ("seconds", "surplus", "cached_share", "lm_calls", "tokens", "stages", "pair_cost"):
            del summary[name]
        with closing(sqlite3.connect(f"{(self.run_dir / 'run.db').as_uri()}?mode=ro", uri=True)) as db:
            usage = db.execute("SELECT stage, calls, prompt, completion FROM usage ORDER BY stage").fetchall()
        return summary | {"usage": usage}

    def dialogs(self) -> list[dict[str, Any]]:
        """Return the records of dialogs.jsonl."""
        return [json.loads(line) for line in lines(self.run_dir / "dialogs.jsonl")]

    def drops(self) -> list[dict[str, Any]]:
        """Return the records of drops.jsonl."""
        return [json.loads(line) for line in lines(self.run_dir / "drops.jsonl")]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the dataset."""
        files = sorted((self.run_dir / "dataset" / "data").glob("*.parquet"))
        return [row for file in files for row in parquet.read_table(file).to_pylist()]

    def data(self) -> Mapping[str, bytes]:
        """Return the bytes of dialogs, drops and the dataset's files, by file name."""
        files = [self.run_dir / "dialogs.jsonl", self.run_dir / "drops.jsonl", *self.run_dir.rglob("*.parquet")]
        return {file.name: file.read_bytes() for file in files}

    def made(self) -> tuple[Mapping[str, bytes], dict[str, Any]]:
        """Return all that is the same however a run came about, data and counts, once the ledger is checked."""
        self.check_ledger()
        return self.data(), self.counts()

    def recorded(self) -> int:
        """Return the number of finished calls that run.db has."""
        file = self.run_dir / "run.db"
        if not file.exists():
            return 0
        # Read only: otherwise SQLite would recover what a kill left, which is the next run's to do.
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
            try:
                query = "SELECT (SELECT count(*) FROM calls) + (SELECT coalesce(sum(calls), 0) FROM usage)"
                return int(db.execute(query).fetchone()[0])
            except sqlite3.OperationalError:  # killed before the tables were made
                return 0

    def check_calls(self, made: int) -> None:
        """Check that the run knows of all calls made, but for those in flight when the last dialog was accepted."""
        summary, settings = self.summary(), yaml.safe_load((self.run_dir / "config.yaml").read_text(encoding="utf-8"))
        assert summary["lm_calls"] == self.recorded()
        assert 0 <= made - summary["lm_calls"] <= (settings["lm"]["concurrency"] if summary["complete"] else 0)

    def check_ledger(self) -> None:
        """Check that every attempt is accepted or dropped, and that summary, drops and dataset agree."""
        summary, drops, pairs = self.summary(), self.drops(), len(self.rows())
        dropped = sum(count for reasons in summary["dropped"].values() for count in reasons.values())
        assert summary["accepted"] + dropped == summary["attempted"]
        assert summary["accepted"] == len(self.dialogs())
        for scope, key in _DROPPED.items():
            counted = Counter((drop["stage"], drop["reason"]) for drop in drops if drop["scope"] == scope)
            assert {(s, r): n for s, reasons in summary[key].items() for r, n in reasons.items()} == counted
        whole = [drop["dialog_id"] for drop in drops if drop["scope"] == "dialog"]
        assert len(whole) == len(set(whole))
        assert not set(whole) & {dialog["id"] for dialog in self.dialogs()}
        assert all(drop["stage"] and drop["reason"] for drop in drops)
        assert summary["pairs"] == pairs
        # A question without an answer, in a benchmark's item, ends its pairs.
        answers = ([turn["answer"] for turn in dialog["turns"]] for dialog in self.dialogs())
        made = sum([*each, ""].index("") for each in answers)
        assert pairs + sum(drop["scope"] == "pair" for drop in drops) == made


def lines(path: Path) -> list[str]:
    """Return the lines of a file, split at line feeds alone (`splitlines` splits at more characters)."""
    *found, last = path.read_text(encoding="utf-8").split("\n")
    assert last == ""
    return found


def stage(body: Body) -> str:
    """Return the purpose of a call: `ask`, `rewrite`, `answer` or `judge`."""
    return str(body["response_format"]["json_schema"]["name"])


def turn(body: Body) -> int:
    """Return the turn of the dialog that a call is for, from 1."""
    return prompt(body).count("\nAgent: ") + 1


def replying(**stages: Callable[[Body], Mapping[str, object] | str]) -> Responder:
    """Return a responder with the default replies, but for some stages these fields or this text."""

    def responder(body: Body) -> str:
        change = stages[stage(body)](body) if stage(body) in stages else {}
        return change if isinstance(change, str) else json.dumps(json.loads(fill(body)) | change)

    return responder


def some(body: Body, share: float) -> bool:
    """Return True for a share of all calls, the same ones whatever the wording of the prompts."""
    return random.Random(f"{stage(body)} {turn(body)} {body['seed']}").random() < share


def until(condition: Callable[[], bool], process: ForkServerProcess | None = None, seconds: float = 300) -> None:
    """Wait for a condition that a run brings about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        assert process is None or process.is_alive(), "the run ended too early"
        time.sleep(0.001)


def run_logged(program: Program, arguments: list[str], log: Path, largest_file: int | None) -> None:
    """Run a command, print into a file, and end this process with its exit code."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if largest_file is not None:
        from resource import RLIMIT_FSIZE, setrlimit

        load_detector()  # unpacks its model first
        setrlimit(RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = ["generator", *arguments]
    sys.exit(run_program(program))


def kill(process: ForkServerProcess, server: OpenAIServer) -> None:
    """Kill a run, and wait until the server has noticed."""
    assert process.is_alive()
    process.kill()
    process.join()
    arrived = -1
    while arrived < len(server.bodies) or server.in_flight:  # a request may still lie unread in the server's socket
        arrived = len(server.bodies)
        time.sleep(0.1)
