"""Configuration runs nothing, files of a run hold no key, and what we write for others can't be taken for markup."""

import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from generator.common.sanitize import without_secrets
from generator.config.settings import near_duplicates
from generator.corpora.library import Library
from generator.dialogs.dedup import Repetition
from generator.dialogs.single import SingleDocumentDialog
from generator.errors import RetrieverError
from generator.output import markdown
from generator.output.progress import closing_table
from generator.output.stats.comparison import Column, comparison
from generator.output.stats.statistics import Tally
from generator.output.stats.variety import VarietyTally
from generator.output.summary import Summary
from generator.retrievers.bm25 import Bm25Settings
from generator.schema import Document
from generator.statistics import main as statistics
from judges.__main__ import main as judging
from tests.output.test_dataset import made_dialogs
from tests.support import openai_server as fake
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.runs import Ended, Site, command

__all__ = ["openai_server"]

NOBODY = ("lm=openai", "lm.model=m", "lm.api_base=http://127.0.0.1:9/v1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(done: Ended) -> str:
    assert done.code == 2, done.out + done.err
    return done.error


# --- configuration


@pytest.mark.parametrize(
    "given",
    [
        "corpus._target_=os.system",
        "corpus._target_=3",
        "corpus._target_=[os.system]",
        "corpus._target_={_target_:os.system}",
        "corpus._target_=builtins.exec",
        "corpus._target_=generator.config.parts.import_module",  # a function that ours imports
        "corpus._target_=generator.config.settings.Path",  # a class that ours imports
        "corpus._target_=generator.corpora.library.shutil.rmtree",
        "corpus._target_=generator.x.os.system",
        "corpus._target_=generator..os.system",
        "corpus._target_=generator.",
        "corpus._target_=generator.common.atomic_files.written",  # a function of ours
        "corpus._target_=generator.execution.store.Store",  # a class of ours that does things when it is made
        "retriever._target_=generator.retrievers.encoder.Encoder",
        "dedup._target_=generator.common.terminal.Parser",
        "export._target_=os.system",
        "+export._target_=os.system",
        "taxonomy._target_=os.system",
        "lm._target_=subprocess.Popen",
        "judge._target_=generator.execution.store.Store",
        "judge=none +judge.lm={_target_:os.system,command:true}",
        "judge.lm=openai judge.lm.model=m judge.lm._target_=os.system",
        "judge=none +judge.panel.x={_target_:os.system,command:true}",
        "judge._target_=os.system",
        # further in, where nothing is made of it
        "+lm.greedy._target_=os.system",
        "+retriever.x={_target_:os.system}",
        "retriever.k={_target_:os.system}",
        "dedup.against=[{_target_:os.system,command:true}]",
        "+judge.arguments={_target_:os.system}",
        "taxonomy.first={_target_:os.system}",
        "+corpus.x=[{_target_:os.system}]",
        # Hydra's own
        "+hydra.callbacks.x._target_=generator.execution.store.Store",
        "+hydra.callbacks={x:{_target_:os.system}}",
        "++hydra.launcher._target_=generator.execution.store.Store",
        "hydra.job_logging.formatters={x:{}}",
        "hydra.run.dir=outputs",
        "hydra.mode=MULTIRUN",
        "hydra/job_logging=default",
        "+hydra/job_logging=../../x/nice",
        "+corpus@hydra.job_logging=sample",
        "corpus@hydra=sample",
        "corpus=../x/nice",
        "corpus=[sample,../x/nice]",
        "-m corpus=sample,../x/nice",
        "corpus=/x/nice",
        "+experiment=../x/nice",
        "hydra.searchpath=[pkg://antigravity]",
        "hydra.searchpath=pkg://antigravity",
        "--experimental-rerun=config.pickle",
        "--info",
        "--hydra-help",
        "--cfg=hydra",
        "--shell-completion",
    ],
)
def test_settings_make_nothing_but_parts(given: str, tmp_path: Path) -> None:
    message = refused(command(*NOBODY, *given.split(" ")))
    assert "\n" not in message
    assert not (tmp_path / "outputs").exists()


def stored(site: Site, server: OpenAIServer) -> dict[str, Any]:
    assert site.run(server, "dialogs=1").code == 0
    return dict(yaml.safe_load((site.run_dir / "config.yaml").read_text(encoding="utf-8")))


def test_a_stored_configuration_runs_nothing(tmp_path: Path, openai_server: OpenAIServer) -> None:
    site, owned, file = Site(tmp_path), tmp_path / "owned", tmp_path / "evil" / "config.yaml"
    file.parent.mkdir()
    call = {"_target_": "os.system", "command": f"touch {owned}"}
    good = stored(site, openai_server)
    asked = len(openai_server.bodies)
    evil = [
        good | {"hydra": {"callbacks": {"x": call}}},
        good | {"hydra": {"job_logging": {"handlers": {"x": {"()": "os.system"}}}}},
        good | {"defaults": ["/corpus: sample", {"override /hydra/launcher": "basic"}]},
        good | {"corpus": good["corpus"] | call},
        good | {"judge": good["judge"] | {"lm": call}},
        good | {"judge": good["judge"] | {"panel": {"x": call}}},
        good | {"export": call},
        good | {"dedup": good["dedup"] | {"against": [call]}},
        good | {"lm": good["lm"] | {"greedy": call}},
        good | {"turns": call},
        [call],
        "text",
    ]
    for program in (None, judging):
        more = {} if program is None else {"program": program}
        for number, content in enumerate(evil if program is None else evil[:1]):
            file.write_text(yaml.safe_dump(content), encoding="utf-8")
            assert refused(command(str(file), f"run_dir={tmp_path / 'new'}", **more)), number
        for text in (f"dialogs: !!python/object/apply:os.system [touch {owned}]\n", "a: [\n", "[" * 5000, "\x00"):
            file.write_text(text, encoding="utf-8")
            assert str(file) in refused(command(str(file), **more))
    assert not owned.exists() and not (tmp_path / "new").exists()
    assert len(openai_server.bodies) == asked


@pytest.mark.parametrize(
    "header", ["# @package hydra.job_logging", "\n#@package hydra.job_logging", "# @package _global_"]
)
def test_no_file_of_settings_is_obeyed_by_hydra(header: str, tmp_path: Path) -> None:
    """Neither one that a run stores nor one in a folder like `conf/`, however that is named."""
    owned, file = tmp_path / "owned", tmp_path / "conf" / "corpus" / "nice.yaml"
    handlers: dict[str, Any] = {"x": {"()": "distutils.spawn.spawn", "cmd": ["touch", str(owned)]}}
    handlers["y"] = {"class": "logging.FileHandler", "filename": str(owned), "mode": "w"}
    logging = {"version": 1, "handlers": handlers, "root": {"handlers": ["x", "y"]}}
    callbacks = {"x": {"_target_": "os.system", "command": f"touch {owned}"}}
    sections = dict.fromkeys(("job_logging", "hydra_logging"), logging) | {"callbacks": callbacks}
    content = {"hydra": sections} if "_global_" in header else logging
    file.parent.mkdir(parents=True)
    file.write_text(f"{header}\n{yaml.safe_dump(content)}", encoding="utf-8")
    folder = tmp_path / "conf"
    for given in (
        [str(file)],
        ["--config-dir", str(folder), "corpus=nice"],
        ["--config-dir", str(folder), "-m", "corpus=nice,sample"],
        ["--config-dir", "conf", "corpus=nice", "--cfg", "job", "--resolve"],
        [f"hydra.searchpath=[file://{folder}]", "corpus=nice"],
        ["--config-dir", str(folder), "+corpus@lm=nice"],
    ):
        for program in ({}, {"program": judging}):
            done = command("lm=vllm", "lm.api_base=http://127.0.0.1:9/v1", "lm.retries=0", *given, **program)
            assert "Traceback" not in done.out + done.err, given
            assert done.code == 2 or "--cfg" in given, given
            assert not owned.exists(), given


def test_a_folder_of_ones_own_asks_for_no_variable(tmp_path: Path) -> None:
    file = tmp_path / "corpus" / "nice.yaml"
    file.parent.mkdir()
    file.write_text("# @package _global_\nhydra: {job: {env_copy: [NOBODY_SET_THIS]}}\n", encoding="utf-8")
    message = refused(command("--config-dir", str(tmp_path), "corpus=nice"))
    assert message == "hydra.job.env_copy: there is no environment variable 'NOBODY_SET_THIS'; leave it out"


def test_a_question_type_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "types").mkdir()
    owned = tmp_path / "owned"
    (tmp_path / "types" / "x.yaml").write_text(f"name: !!python/object/apply:os.system [touch {owned}]\n", "utf-8")
    assert "not valid YAML" in refused(command(*NOBODY, f"taxonomy.path={tmp_path / 'types'}"))
    assert not owned.exists()


class _Owner:
    """What a pickle can do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["program.pkl", "program.json"])
def test_a_program_is_no_pickle(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(_Owner(tmp_path / "owned")))
    assert "no program of this algorithm" in refused(command(*NOBODY, f"program={name}", "algorithm=single"))
    assert not (tmp_path / "owned").exists()


def test_a_program_brings_no_model_of_its_own(tmp_path: Path, openai_server: OpenAIServer) -> None:
    site = Site(tmp_path)
    SingleDocumentDialog(Repetition(0.8)).save(str(tmp_path / "program.json"))
    program = json.loads((tmp_path / "program.json").read_text(encoding="utf-8"))
    for state in program.values():
        if "lm" in state:
            state["lm"] = {"model": "openai/other", "api_base": "http://127.0.0.1:9/v1", "_target_": "os.system"}
    (tmp_path / "program.json").write_text(json.dumps(program), encoding="utf-8")
    more = ["dialogs=1", "max_attempts=1", "algorithm=single", f"program={tmp_path / 'program.json'}"]
    assert site.run(openai_server, *more).code == 0
    assert site.summary()["lm_calls"] == len(openai_server.bodies) > 0


def test_what_is_cached_is_no_pickle(tmp_path: Path) -> None:
    def library() -> Library:
        documents = [Document(id=str(n), text=f"The harbour number {n} opens.") for n in range(5)]
        return Library.open("c", "f" * 64, lambda: documents, tmp_path / "cache", 64, 8)

    settings = Bm25Settings(k=2, query="full", passage_tokens=64, overlap=8, k1=1.2, b=0.75)
    settings.open(library(), np.zeros(5, dtype=bool))
    arrays = list((tmp_path / "cache").rglob("*.npy"))
    assert len(arrays) > 3
    for file in arrays:
        whole = file.read_bytes()
        np.save(file, np.array([_Owner(tmp_path / "owned")], dtype=object), allow_pickle=True)
        with pytest.raises(RetrieverError, match="delete that folder"):
            settings.open(library(), np.zeros(5, dtype=bool))
        file.write_bytes(whole)
    assert not (tmp_path / "owned").exists()


# --- keys

CANARY = "sk-canary-7f3a91"
KEYS = {"LM_KEY": f"{CANARY}-lm", "JUDGE_KEY": f"{CANARY}-judge", "ELASTICSEARCH_API_KEY": f"{CANARY}-es"}
KEYS |= {"ELASTIC_PASSWORD": f"{CANARY}-password", "OPENAI_API_KEY": f"{CANARY}-openai", "HF_TOKEN": f"{CANARY}-hf"}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, f"{value}\n")  # as a file of secrets often ends
    yield


def check_nowhere(folder: Path, *ended: Ended) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert not [path for path in folder.rglob("*") if CANARY in str(path)]
    assert all(CANARY not in done.out + done.err for done in ended)


def own_judge(server: OpenAIServer) -> list[str]:
    settings = {"model": server.model, "api_base": server.url, "api_key_env": "JUDGE_KEY", "retries": 1}
    return ["judge.lm=openai", *(f"judge.lm.{name}={value}" for name, value in settings.items())]


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("status", [401, 400, 403, 429, 500, 200])
def test_a_key_that_a_server_repeats_is_nowhere(status: int, tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer(key=KEYS["LM_KEY"]) as server, OpenAIServer(key=KEYS["JUDGE_KEY"]) as other:
        arguments = ["algorithm=single", "lm.api_key_env=LM_KEY", *own_judge(other)]
        first = site.run(server, "dialogs=1", *arguments)
        assert first.code == 0, first.err
        told = {"LM_KEY": server, "JUDGE_KEY": other}
        ended = [first]
        for name, evil in told.items():
            message = f"Incorrect key provided: {KEYS[name]}."
            fault = fake.plain(message) if status == 200 else fake.status(status, message)
            evil.faults = lambda number, body, fault=fault: fault
            ended.append(site.run(server, "dialogs=3", "max_attempts=4", "lm.retries=1", *arguments))
            evil.faults = ()
            evil.key = "another now"
            ended.append(site.run(server, "dialogs=9", *arguments))
            assert ended[-1].code == 2
            evil.key = KEYS[name]
    check_nowhere(tmp_path, *ended)


def test_a_secret_is_recognised_plain_and_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2/+ö\n")
    for form in ("hunter2/+ö", "hunter2%2F%2B%C3%B6"):
        assert without_secrets(f"the header [{form}] is wrong", "SECRET", None, "ANOTHER") == "the header […] is wrong"
    monkeypatch.setenv("SECRET", "EMPTY")
    assert without_secrets("EMPTY", "SECRET") == "EMPTY"


@pytest.mark.usefixtures("keys")
def test_the_judges_command_keeps_keys_to_itself(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer(key=KEYS["LM_KEY"]) as server:
        made = site.run(server, "dialogs=2", "algorithm=single", "lm.api_key_env=LM_KEY")
        settings = [f"lm.model={server.model}", f"lm.api_base={server.url}", "lm.api_key_env=LM_KEY", "lm.retries=1"]
        arguments = ["judge=idk", f"input={site.run_dir}", f"run_dir={tmp_path / 'judged'}", "lm=openai", *settings]
        faults = iter([None, fake.status(400, f"no, {KEYS['LM_KEY']}"), fake.status(401, KEYS["LM_KEY"])])
        server.faults = lambda number, body: next(faults, None)
        ended = [command(*arguments, program=judging) for _ in range(2)]
        server.key = "another now"
        ended.append(command(*arguments, "fresh=true", program=judging))
    assert [made.code, *(done.code for done in ended)] == [0, 2, 0, 2]
    assert "…" in ended[0].err
    check_nowhere(tmp_path, made, *ended)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    "setting", ["lm.model=${oc.env:LM_KEY}", "corpus.source=${oc.env:LM_KEY}", "run_dir=${oc.env:LM_KEY,x}"]
)
def test_a_setting_holds_no_variable(setting: str, tmp_path: Path) -> None:
    name = setting.partition("=")[0]
    for given in (setting, setting.replace("${oc.env:", "${oc.${algorithm.x}:"), f"{name}=${{oc.decode:{setting}}}"):
        done = command(*NOBODY, "+algorithm.x=env", given)
        assert done.code == 2
        check = done.out + done.err
        assert CANARY not in check and "Traceback" not in check
    plain = refused(command(*NOBODY, setting))
    assert plain.startswith(f"{name}: can't be resolved") and "hold no environment variable (LM_KEY)" in plain
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("keys")
def test_what_only_shows_settings_shows_no_variable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = command("corpus.source=${oc.env:LM_KEY}", "--cfg", "job", "--resolve")
    assert refused(shown).startswith("corpus.source: can't be resolved: ")
    assert CANARY not in shown.out + shown.err
    assert command("corpus.source=${corpus.name}", "--cfg", "job", "--resolve").out.count("source: sample\n") == 1
    (tmp_path / "quac.json").write_text("{}", "utf-8")
    assert statistics([str(tmp_path / "quac.json"), "--corpus", "quac", "--set", "split=${oc.env:LM_KEY}"]) == 2
    said = "".join(capsys.readouterr())
    assert "hold no environment variable (LM_KEY)" in said and CANARY not in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (f"lm=vllm lm.serve_args='--api-key {CANARY}'", "VLLM_API_KEY"),
        (f"lm=vllm lm.serve=true lm.serve_args='--api_key={CANARY}'", "VLLM_API_KEY"),
        (f'lm=vllm lm.serve=true lm.serve_args="--x \'{CANARY}"', "No closing quotation"),
        (f"lm=vllm lm.serve_args='--hf-token {CANARY}'", "HF_TOKEN"),
        (f"lm=vllm lm.api_base='http://127.0.0.1:9/v1#{CANARY}'", "must hold no password or key"),
        (f"lm=vllm lm.api_base='http://me:{CANARY}/@127.0.0.1:9/v1'", "must hold no password or key"),
        (f"corpus=coqa corpus.base_url=http://me:{CANARY}@127.0.0.1:9", "must hold no password or key"),
        (f"corpus=coqa corpus.base_url='http://127.0.0.1:9?{CANARY}'", "must hold no password or key"),
        (f"corpus=coqa corpus.base_url=http://127.0.0.1:9/x?token={CANARY}", "corpus.base_url: can't be read"),
        (f"corpus=coqa corpus.base_url=http://127.0.0.1:9/x?token,{CANARY}", "corpus.base_url: a run for each"),
        (f"retriever=elasticsearch retriever.hosts='http://127.0.0.1:9#{CANARY}'", "must hold no password or key"),
        (f"lm.greedy=[{CANARY}]", "lm.greedy: "),
    ],
)
def test_a_key_where_none_belongs_is_refused_and_not_repeated(given: str, said: str, tmp_path: Path) -> None:
    chosen = (f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}")
    done = command(*NOBODY, *chosen, *re.split(r" (?=[\w.]+=)", given))
    assert said in refused(done)
    assert CANARY not in done.out + done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("setting", ["lm.api_key_env", "retriever.api_key_env", "retriever.password_env"])
def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(setting: str, tmp_path: Path) -> None:
    chosen = (f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}", "retriever=elasticsearch")
    done = command(*NOBODY, *chosen, f"{setting}={CANARY}")
    assert refused(done).startswith(f"{setting}: must be the name of an environment variable")
    assert CANARY not in done.out + done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["two\nlines of it", "né", "\x00\x07bell"])
def test_what_can_be_no_key_is_not_sent(key: str, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer) -> None:
    if "\x00" not in key:
        monkeypatch.setenv("LM_KEY", key)
    else:
        monkeypatch.setenv("LM_KEY", key.replace("\x00", ""))
    message = refused(Site(Path()).run(openai_server, "dialogs=1", "lm.api_key_env=LM_KEY"))
    assert "LM_KEY is not a valid API key" in message and key[-5:] not in message


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
def test_a_line_of_markdown_is_text_alone(text: str) -> None:
    shown = markdown.line(text)
    assert "\n" not in shown and shown.isprintable()
    assert not re.search(r"(?<!\\)[`*_\[\]|~$]|<", shown)
    assert "&lt;" in shown or "<" not in text


@pytest.mark.parametrize("text", EVIL)
def test_names_in_tables_are_names(text: str) -> None:
    tally, variety = Tally(), VarietyTally(near_duplicates())
    for dialog in made_dialogs():
        turns = tuple(turn.model_copy(update={"question_type": text}) for turn in dialog.turns)
        tally.add(dialog.model_copy(update={"turns": turns}))
        variety.add(dialog)
    column = Column(name=text, statistics=tally.statistics(), variety=variety.variety())
    rows = comparison([column], "markdown").splitlines()
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert not re.search(r"<|(?<!\\)`", "".join(rows))
    shown = comparison([column], "terminal")
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "nonsense" not in text or "[/nonsense]" in shown


def test_the_closing_table_shows_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[red]x[/nonsense] \x1b[2J :boom:"
    share = {"type": name, "target": 0.5, "achieved": 0.5, "stage": "first", "turns": 2}
    names = ("multi_turn_types", "answerability", "stages", "pair_cost", "ended", "unjudged")
    empty: dict[str, Any] = {key: {} for key in names}
    tokens = {"prompt": 1, "cached": 0, "completion": 1}
    counts = {"attempted": 1, "accepted": 1, "pairs": 1, "unjudged_pairs": 0, "lm_calls": 1, "skipped": 0, "seconds": 1}
    reasons = {"dropped": {"ask": {name: 2}}, "dropped_turns": {}, "dropped_pairs": {}}
    summary = {"question_types": {name: share}, "tokens": tokens, "complete": True, **empty, **counts, **reasons}
    closing_table(Summary.model_validate(summary))
    shown = capsys.readouterr().out
    assert shown.count("[red]x[/nonsense]") == 2 and "\x1b[2J" not in shown


def test_a_card_is_the_same_page_whatever_documents_hold(tmp_path: Path, openai_server: OpenAIServer) -> None:
    pages = []
    for place, evil in enumerate(["harmless", "\n".join(EVIL)]):
        folder = tmp_path / str(place)
        folder.mkdir()
        site = Site(folder)
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
