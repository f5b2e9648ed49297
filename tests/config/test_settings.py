"""Settings: each mistake ends in one line that names the setting and the fix; docs/settings.md has them all."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from generator.__main__ import COMMAND
from generator.command import Command, normalise
from generator.config.conf_files import choices
from generator.config.settings import exporters, load
from generator.errors import ConfigError
from generator.output.mtrag import MtragExport
from generator.statistics import COMMAND as STATISTICS
from tests.support import settings
from tests.support.runs import command

ROOT = Path(__file__).parents[2]
# Nothing listens there: whoever asks a model in spite of a wrong setting says so.
NOBODY = ["lm=openai", "lm.model=some-model", "lm.api_base=http://127.0.0.1:9/v1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Go to an empty working directory."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob("*.unfinished*")), "something is half-written"


def refused(*arguments: str) -> str:
    """Return the one line of a command that can't be run, which leaves no run folder and no files of Hydra's."""
    done = command(*arguments)
    assert done.code == 2, done.err
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert {path.name for path in Path("outputs").glob("*")} <= {".cache"}
    assert {path.name for path in Path().iterdir() if path.is_dir()} <= {"outputs", "types"}
    return done.error


# What is given, and what the line must say: the setting as it was typed, and what would be right.
WRONG_VALUES = [
    ("retriever.k=0", "retriever.k=0: must be 1 or more"),
    ("dialogs=ten", "dialogs=ten: must be a whole number"),
    ("seed=-1", "seed=-1: must be 0 or more"),
    ("fresh=perhaps", "fresh=perhaps: must be true or false"),
    ("dedup.threshold=2", "dedup.threshold=2: must be 0.99 or less"),
    ("turns=abc", "turns=abc: must be a number such as 4, or a range such as 3-6"),
    ("judge.filter=foo", "judge.filter=foo: “foo” must be pairs, prefix, dialog, verified, or a condition"),
    ("retriever.overlap=512", "overlap (512) must be less than passage_tokens (512)"),
    ("dedup.against=3", "dedup.against=3: wrong type: expected a list"),
    ("lm.max_tokens=40000", "max_tokens=40000 leaves no room for a prompt in context=32768"),
    ("lm.api_base=localhost:8000", "lm.api_base=localhost:8000: must be an address that begins with http://"),
    ("lm.api_base=http://me:secret@host/v1", "lm.api_base=http://…@host/v1: must hold no password"),
    ('lm.api_base="http://host/v1?key=secret"', "lm.api_base=http://host/v1?…: must hold no password or key"),
    ("lm.api_base=me:secret@host/v1", "lm.api_base=…@host/v1: must be an address that begins with http://"),
    ("lm.model=", "lm.model=: must be a text that isn't empty"),
    ("run_dir=", "run_dir=: is empty"),
    ("run_dir=s3://bucket/run", "run_dir=s3://bucket/run: must be a path on this machine"),
    ("taxonomy.first.direct=nan", "taxonomy.first.direct=nan: must be a finite number"),
    ("taxonomy.first=direct", "taxonomy.first=direct: wrong type; expected values by name"),
    ("taxonomy.first.direct=much", "taxonomy.first.direct=much: must be a number"),
    ("run_dir=3", "run_dir=3: must be a path"),
]


@pytest.fixture(scope="module")
def composed() -> DictConfig:
    return settings.composed(*NOBODY)


@pytest.mark.parametrize(("given", "said"), WRONG_VALUES, ids=[given for given, _ in WRONG_VALUES])
def test_a_wrong_value_is_said_to_be_so(composed: DictConfig, given: str, said: str) -> None:
    override = OverridesParser.create().parse_override(given)
    changed = copy.deepcopy(composed)
    OmegaConf.update(changed, override.key_or_group, override.value())
    with pytest.raises(ConfigError) as error:
        load(changed)
    assert said in str(error.value)


WRONG = [
    ("dedup.against=[nowhere.jsonl]", "dedup.against"),
    ("lm.context=2500", "lm.context=2500: leaves no room for documents"),
    ("user.lm=openai user.lm.model=m user.lm.context=2500", "user.lm.context=2500: leaves no room for documents"),
    ("turns=2-3 min_turns=4", "min_turns=4: no dialog has more than 3 turns"),
    ("retriever=elasticsearch retriever.parts=[elser]", "retriever.parts: must have 2 or more entries"),
    ("turns=1 min_turns=2 taxonomy=unanswerable", "lm.api_base"),  # a type with turns of its own
    # names
    ("+lm.modell=x", "lm.modell: unknown setting; did you mean lm.model?"),
    ("lm.top_k=3", "lm.top_k: unknown setting; did you mean lm.greedy.top_k or lm.sampled.top_k?"),
    ("retriver.k=3", "did you mean retriever.k"),
    ("retreiver=bm25", "retreiver: unknown setting; did you mean retriever"),
    ("xyzzy=3", "xyzzy: unknown setting; `--cfg job` shows all settings"),
    ("corpus.path=x", "corpus.path: unknown here; only these have it: corpus="),
    ("+dialogs=3", "+dialogs: is a setting already; leave out the +"),
    ("input=outputs/run", "input: this command has no such setting"),
    # choices
    ("corpus=./manuals", "a path goes into corpus.path"),
    ("taxonomy=[direct,comparative]", "for one run with each: -m taxonomy=direct,comparative"),
    ("corpus=quack", "corpus=quack: unknown corpus; did you mean quac?"),
    ("lm=openai lm.model=???", "lm.model: has no value; give lm.model=…"),
    ("lm=gpt-4", "a model's own name goes into lm.model"),
    ("judge=null", "judge=null: unknown judge; choose from: "),
    ("-m corpus=quac,null", "corpus=quac,null: unknown corpus; "),
    ("hydra/sweeper=null", "hydra/sweeper=null: unknown hydra/sweeper"),
    ("~corpus", "~corpus: can't be left out; choose from: "),
    ("taxonomy.first=[]", "taxonomy.first: wrong type; expected values by name"),
    ("+experiment=lee2024_orquac", "algorithm.first_questions: has no value"),
    ("+experiment=lee2024_quac taxonomy=mixed", "dialogs: has no value"),
    # a judge or user with its own model
    ("user.lm=opnai", "user.lm=opnai: unknown lm; did you mean openai?"),
    ("judge.lm=openai", "judge.lm.model: has no value; give judge.lm.model=…"),
    # how a command line is written
    ("dialogs", "dialogs: not a setting; write it as name=value"),
    ("outputs/nowhere", "outputs/nowhere: no such file or folder; give the config.yaml"),
    ("=5", "=5: not a setting"),
    ("lm.model=[", "lm.model: can't be parsed"),
    ("turns=2,3", "turns: several values need -m"),
    ("--dialogs 5", "--dialogs; a setting is name=value, without dashes: `python -m generator --help`"),
    ("--cfg", "--cfg"),
    ("--resolve", "--resolve belongs to --cfg job"),
    ("-m --cfg job", "only one of"),
    ("--config-dir nowhere", "nowhere"),
    ("-cn nothere", "-cn nothere: no such file in conf/ or the folder of -cd"),
    ("-cd . --config-name mine/nothere", "-cn mine/nothere: no such file"),
    ("nowhere.yaml", "nowhere.yaml: no such configuration file"),
    # files
    ("dspy_program=nowhere.json", "dspy_program=nowhere.json: no such file"),
    ("cache_dir=/dev/null/x", "/dev/null/x"),
    # shares
    ("taxonomy.measure=[idkk]", "judge=idkk: "),
    ("judge=k_precision judge.lm=embedded", "judge.lm: judge=k_precision asks no model"),
    ("judge=idk judge.panel.a=embedded", "judge.panel: only `python -m judges` asks several models"),
    ("retriever=http retriever.max_k=4", "max_k (4) must be k (5) or more"),
    # corpora
    ("corpus=jsonl", "corpus.path"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[given for given, _ in WRONG])
def test_a_wrong_setting_is_one_line_that_says_what_to_do(given: str, said: str) -> None:
    assert said in refused(*NOBODY, *given.split(" "))


@pytest.mark.parametrize("name", ["dataset", "../up", "..", "run.db", "a/b", ""])
def test_an_exporter_has_a_folder_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has its name in the run folder is replaced, and removed when the run's dialogs change."""
    monkeypatch.setattr(MtragExport, "name", name)
    with pytest.raises(ConfigError, match=f"^export: MtragExport.name={re.escape(name)}: "):
        settings.settings("export=mtrag")
    assert name not in exporters()


@pytest.mark.parametrize(("program", "near"), [(COMMAND, "corpus.path or export.path"), (STATISTICS, "corpus.path?")])
def test_an_unknown_setting_is_compared_with_those_of_the_command(program: Command, near: str) -> None:
    assert f"path: unknown setting; did you mean {near}" in command("path=x", program=program).refused


def test_the_model_in_the_package_has_no_other_name() -> None:
    """Or the data would name a model that wrote none of it, since nobody chose its server."""
    assert refused("lm.model=gpt-4o").startswith("lm: model=gpt-4o is not the model in the package")


def test_a_folder_alone_is_told_where_it_goes() -> None:
    Path("types").mkdir()
    assert "corpus=folder corpus.path=types" in refused("types")


@pytest.mark.parametrize("group", ["corpus", "experiment", "lm"])
def test_an_unknown_choice_is_told_what_there_is(group: str) -> None:
    message = refused(f"{group}=zzz")
    assert message.startswith(f"{group}=zzz: ")
    assert [name for name in choices(group) if not re.search(rf"\b{name}\b", message)] == []


def test_a_file_of_settings_that_is_not_yaml_is_named_with_its_line() -> None:
    Path("types/taxonomy").mkdir(parents=True)
    Path("types/taxonomy/mine.yaml").write_text("name: mine\nfirst: {direct: 1\n", encoding="utf-8")
    message = refused(*NOBODY, "--config-dir", "types", "taxonomy=mine")
    assert re.match(r"\S*types/taxonomy/mine.yaml:3: not valid YAML: ", message)


@pytest.mark.parametrize(("content", "said"), [("{}\n{oops\n", "documents.jsonl:2: not JSON"), ("", "corpus.path")])
def test_a_broken_file_is_named_with_its_line(content: str, said: str) -> None:
    Path("documents.jsonl").write_text(content.replace("{}", '{"id": "a", "text": "One."}'), encoding="utf-8")
    assert said in refused(*NOBODY, "corpus=jsonl", "corpus.path=documents.jsonl")


def test_a_type_file_that_cannot_be_used_is_named_with_its_line() -> None:
    Path("types").mkdir()
    follow_up = (ROOT / "taxonomy" / "questions" / "follow-up.yaml").read_text(encoding="utf-8")
    Path("types/mine.yaml").write_text(f"colour: red\n{follow_up}", encoding="utf-8")
    assert refused(*NOBODY, "taxonomy.path=types").startswith("types/mine.yaml:1: unknown key 'colour'")


@pytest.mark.parametrize("content", ["nope", "{}"])
def test_a_foreign_program_is_refused(content: str) -> None:
    Path("program.json").write_text(content, encoding="utf-8")
    assert "dspy_program=program.json: " in refused(*NOBODY, "dspy_program=program.json", "algorithm=single")


@pytest.mark.parametrize("spelt", ["judge.lm=vllm", "+judge.lm=vllm", "lm@judge.lm=vllm", "+lm@judge.lm=vllm"])
def test_a_judges_own_model_is_chosen_however_it_is_spelt(spelt: str) -> None:
    judge = yaml.safe_load(command("judge.lm.model=strict-one", spelt, "--cfg", "job").out)["judge"]
    assert (judge["lm"]["model"], judge["lm"]["api_key_env"]) == ("strict-one", "VLLM_API_KEY")
    assert judge["name"] == "correctness"


def test_a_type_of_ones_own_joins_the_mix_without_a_plus() -> None:
    composed = yaml.safe_load(command("taxonomy.first.how-to=0.1", "taxonomy.first.direct=0.2", "--cfg", "job").out)
    first = composed["taxonomy"]["first"]
    assert (first["how-to"], first["direct"], first["comparative"]) == (0.1, 0.2, 0.3)


def test_the_home_directory_can_be_a_tilde() -> None:
    assert normalise(["corpus.path=~/documents"], COMMAND)[-1] == f"corpus.path={Path.home()}/documents"


@pytest.mark.parametrize("path", ["Bücher und Hefte", "مكتبة/a=b", "'Bücher, Hefte'", "marks (1).json"])
def test_a_path_may_have_letters_of_any_language_and_a_number_in_brackets(path: str) -> None:
    composed = yaml.safe_load(command("corpus=folder", f"corpus.path={path}", "--cfg", "job").out)
    assert composed["corpus"]["path"] == path.strip("'")
    assert normalise(["annotators=[ann, jörg]"], COMMAND)[-1] == 'annotators=[ann, "jörg"]'
