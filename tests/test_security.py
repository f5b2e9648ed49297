"""Configuration runs nothing, keys stay out of files and logs, and text of documents can't be taken for markup."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.common.sanitize import without_secrets
from generator.dialogs.dedup import Repetition
from generator.dialogs.single import SingleDocumentDialog
from generator.output import markdown
from judges.__main__ import COMMAND as judging
from tests.support import openai_server as fake
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Ended, Site, command

UNREACHABLE = ("lm=openai", "lm.model=m", "lm.api_base=http://127.0.0.1:9/v1")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(done: Ended) -> str:
    assert done.code == 2, done.out + done.err
    return done.error


# --- configuration


def test_a_stored_configuration_runs_nothing(tmp_path: Path, openai_server: OpenAIServer) -> None:
    site, owned, file = Site(tmp_path), tmp_path / "owned", tmp_path / "evil" / "config.yaml"
    assert site.run(openai_server, "dialogs=1", "algorithm=single").code == 0
    good = yaml.safe_load((site.run_dir / "config.yaml").read_text(encoding="utf-8"))
    calls = len(openai_server.bodies)
    file.parent.mkdir()
    call = {"_target_": "os.system", "command": f"touch {owned}"}
    evil = [
        good | {"hydra": {"callbacks": {"x": call}}},
        good | {"hydra": {"job_logging": {"handlers": {"x": {"()": "os.system"}}}}},
        good | {"defaults": ["/corpus: sample", {"override /hydra/launcher": "basic"}]},
        good | {"corpus": good["corpus"] | call},
        good | {"corpus": {"_target_": "generator.config.parts.import_module"}},  # a function that ours imports
        good | {"corpus": {"_target_": "generator.execution.store.Store"}},  # a class of ours that opens files
        good | {"corpus": {"_target_": "generator.corpora.base.FileCorpus"}},  # a class that lacks methods
        good | {"judge": good["judge"] | {"panel": {"x": call}}},
        good | {"turns": call},
    ]
    texts = [yaml.safe_dump(content) for content in evil]
    for text in (*texts, f"dialogs: !!python/object/apply:os.system [touch {owned}]\n"):
        file.write_text(text, encoding="utf-8")
        assert refused(command(str(file), f"run_dir={tmp_path / 'new'}"))
    assert refused(command(str(file), program=judging))
    assert not owned.exists() and not (tmp_path / "new").exists()
    assert len(openai_server.bodies) == calls


def test_a_question_type_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "types").mkdir()
    owned = tmp_path / "owned"
    (tmp_path / "types" / "x.yaml").write_text(f"name: !!python/object/apply:os.system [touch {owned}]\n", "utf-8")
    assert "YAML" in refused(command(*UNREACHABLE, f"taxonomy.path={tmp_path / 'types'}"))
    assert not owned.exists()


class _Owner:
    """A file that is touched by whoever unpickles this."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_program_is_no_pickle_and_brings_no_model(tmp_path: Path, site: Site, openai_server: OpenAIServer) -> None:
    (tmp_path / "program.pkl").write_bytes(pickle.dumps(_Owner(tmp_path / "owned")))
    assert "program" in refused(command(*UNREACHABLE, "dspy_program=program.pkl", "algorithm=single"))
    assert not (tmp_path / "owned").exists()
    SingleDocumentDialog(Repetition(0.8)).save(str(tmp_path / "program.json"))
    program = json.loads((tmp_path / "program.json").read_text(encoding="utf-8"))
    for state in program.values():
        if "lm" in state:
            state["lm"] = {"model": "openai/other", "api_base": "http://127.0.0.1:9/v1", "_target_": "os.system"}
    (tmp_path / "program.json").write_text(json.dumps(program), encoding="utf-8")
    more = ("dialogs=1", "max_attempts=1", "algorithm=single", f"dspy_program={tmp_path / 'program.json'}")
    assert site.run(openai_server, *more).code == 0
    assert site.summary()["lm_calls"] == len(openai_server.bodies) > 0


# --- keys

CANARY = "sk-canary-7f3a91"
KEYS = {"LM_KEY": f"{CANARY}-lm", "JUDGE_KEY": f"{CANARY}-judge"}


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, f"{value}\n")  # as a file of secrets often ends


def check_nowhere(folder: Path, *ended: Ended) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "run.db" for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert all(CANARY not in done.out + done.err for done in ended)


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize("status", [401, 200])
def test_a_key_that_a_server_repeats_is_in_no_file_or_log(status: int, tmp_path: Path, site: Site) -> None:
    with OpenAIServer(key=KEYS["LM_KEY"]) as server, OpenAIServer(key=KEYS["JUDGE_KEY"]) as other:
        judge = {"model": other.model, "api_base": other.url, "api_key_env": "JUDGE_KEY", "retries": 0}
        arguments = ["algorithm=single", "lm.api_key_env=LM_KEY", "lm.retries=0", "judge.lm=openai"]
        arguments += [f"judge.lm.{name}={value}" for name, value in judge.items()]
        ended = [site.run(server, "dialogs=1", *arguments)]
        assert ended[0].code == 0, ended[0].err
        for name, evil in {"LM_KEY": server, "JUDGE_KEY": other}.items():
            message = f"Incorrect key provided: {KEYS[name]}."
            fault = fake.plain(message) if status == 200 else fake.status(status, message)
            evil.faults = lambda number, body, fault=fault: fault
            ended.append(site.run(server, "dialogs=3", "max_attempts=4", *arguments))
            evil.faults = ()
    check_nowhere(tmp_path, *ended)


def test_a_secret_is_masked_plain_and_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter/2-hunter2\n")
    for form in ("hunter/2-hunter2", "hunter%2F2-hunter2"):
        assert "hunter" not in without_secrets(f"the header [{form}] is wrong", "SECRET", None, "ANOTHER")
    monkeypatch.setenv("SECRET", "EMPTY")
    assert without_secrets("EMPTY", "SECRET") == "EMPTY"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (f"lm=vllm lm.serve_args='--api-key {CANARY}'", "VLLM_API_KEY"),
        (f"lm=vllm lm.api_base=http://me:{CANARY}@127.0.0.1:9/v1", "password or key"),
        (f"corpus=coqa corpus.base_url=http://me:{CANARY}@127.0.0.1:9", "password or key"),
        (f"lm.api_key_env={CANARY}", "lm.api_key_env"),
    ],
)
def test_a_key_among_the_settings_is_refused_and_not_repeated(given: str, named: str, tmp_path: Path) -> None:
    done = command(*UNREACHABLE, f"run_dir={tmp_path / 'run'}", *re.split(r" (?=[\w.]+=)", given))
    assert named in refused(done)
    assert CANARY not in done.out + done.err
    assert not list(tmp_path.iterdir())


# --- what we write

EVIL = [
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](http://127.0.0.1/pixel.png)",
    "a | b |\n| --- |",
    "`code` ```",
    "# heading\n## another",
    "---\nlicense: mit\n---",
    "\x1b[2J\u202e\x07\x9b",
    "[red]x[/nonsense]",
    "&lt;b&gt; $x$ ~~s~~ *b* _i_",
]


@pytest.mark.parametrize("text", EVIL)
def test_a_name_in_a_table_is_text_alone(text: str) -> None:
    shown = markdown.line(text)
    assert "\n" not in shown and shown.isprintable()
    assert not re.search(r"(?<!\\)[`*_\[\]|~$]|<", shown)


def test_a_card_is_the_same_page_whatever_documents_hold(tmp_path: Path, openai_server: OpenAIServer) -> None:
    pages = []
    for place, evil in enumerate(["harmless", "\n".join(EVIL)]):
        site = Site(tmp_path / str(place))
        records = [json.loads(line) for line in site.documents.read_text("utf-8").splitlines()]
        records = [record | {"title": evil, "text": f"{evil}\n{record['text']}\n{evil}"} for record in records]
        site.documents.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        done = site.run(openai_server, "dialogs=2", "algorithm=single")
        assert done.code == 0, done.err
        text = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
        _, metadata, body = text.split("---\n", 2)
        assert yaml.safe_load(metadata)["tags"]
        assert all(line.isprintable() for line in text.split("\n"))
        (shown,) = re.findall(r"^```json\n(.*?)^```\n", body, flags=re.DOTALL | re.MULTILINE)
        assert evil[:100] in json.loads(shown)["messages"][0]["content"]
        fences = [line for line in body.split("\n") if line.startswith(("```", "#", "---"))]
        outside = re.sub(r"^```json\n.*?^```\n", "", body, flags=re.DOTALL | re.MULTILINE)
        pages.append((fences, "<script" in outside, "javascript:" in outside))
    assert pages[0] == pages[1] and pages[1][1:] == (False, False)
