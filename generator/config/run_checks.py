"""Check settings of a run against each other, and reckon how much of a document its prompts can hold."""

from collections.abc import Sequence

from generator.common.console import count_noun
from generator.config.settings import Settings
from generator.errors import ConfigError
from generator.models.endpoints import Endpoint
from generator.output.mt_bench_101 import MtBench101Export
from generator.output.mtrag import MtragExport
from generator.output.rad_bench import RadBenchExport
from generator.schema import Record
from taxonomy import PLAIN, QUESTIONS, Scenario, ScenarioMix, Share, TaskMix, Taxonomy, User

# Of `lm.context`, tokens that are kept free of documents: for the rules, the task and a dialog of four turns; for each
# turn more; for the rules on more dimensions than question types, with the judges that measure them; and for a task.
RESERVED_TOKENS, RESERVED_FOR_TURN, RESERVED_FOR_TARGETS, RESERVED_FOR_TASK = 1500, 120, 600, 500
# A generous guess at how many of a model's tokens a word or punctuation mark becomes.
TOKENS_PER_WORD = 1.6
# What algorithms write in place of questions of types, and a taxonomy that has it.
_WRITES = {"whole": ("tasks", "qa"), "progressive": ("scenarios", "rad_bench")}


def check_settings(settings: Settings, taxonomy: Taxonomy) -> None:
    """Check what can be checked before documents are read.

    Raises:
        ConfigError: settings contradict each other.
    """
    _check_tasks(settings, taxonomy)
    _check_turns(settings, taxonomy)
    _check_models(settings)


def _check_tasks(settings: Settings, taxonomy: Taxonomy) -> None:
    """Raise ConfigError where some of the settings are about tasks or scenarios, and others are not."""
    algorithm, whole = f"algorithm={settings.algorithm.name}", settings.algorithm.name == "whole"
    mixes: dict[type[Record], str] = {TaskMix: "tasks", ScenarioMix: "scenarios"}
    has = mixes.get(type(settings.taxonomy))
    wanted, such = _WRITES.get(settings.algorithm.name, (None, ""))
    if has and has != wanted:
        able = next(name for name, (each, _) in _WRITES.items() if each == has)
        raise ConfigError(f"{algorithm}: can't write the {has} of taxonomy={taxonomy.name}; set algorithm={able}")
    if wanted and has != wanted:
        raise ConfigError(
            f"{algorithm}: taxonomy={taxonomy.name} has no {wanted}; set one that has, such as taxonomy={such}"
        )
    if settings.corpus.topics and not whole:
        raise ConfigError(
            f"corpus={settings.corpus.name}: has topics, and no documents that answers could rest on; "
            "set algorithm=whole, or another corpus"
        )
    if settings.corpus.topics and isinstance(settings.exporter, MtragExport):
        raise ConfigError(
            f"export=mtrag: writes the dialogs' documents, and corpus={settings.corpus.name} has none; leave it out"
        )
    for export, written in ((MtBench101Export, "tasks"), (RadBenchExport, "scenarios")):
        if isinstance(settings.exporter, export) and written != wanted:
            what = f"writes dialogs of {written}, and {algorithm} has none"
            raise ConfigError(f"export={settings.exporter.name}: {what}; leave it out")


def _check_turns(settings: Settings, taxonomy: Taxonomy) -> None:
    """Raise ConfigError where every dialog is planned shorter than `min_turns`, or `turns` is more than tasks have."""
    tasks = [share.type for share in taxonomy.tasks]
    own = [QUESTIONS if isinstance(task, Scenario) else (task.turns or settings.turns).most for task in tasks]
    if own and settings.turns.least > max(own):
        raise ConfigError(
            f"turns: no dialog of taxonomy={taxonomy.name} has more than {count_noun(max(own), 'turn')}, which it sets "
            "itself; leave it out"
        )
    most = max([settings.turns.most, *(share.type.turns or 0 for share in taxonomy.first)])
    if settings.min_turns > most and not taxonomy.tasks:
        raise ConfigError(
            f"min_turns={settings.min_turns}: no dialog has more than {count_noun(most, 'turn')}; lower it or "
            "raise turns"
        )


def check_users(settings: Settings, users: Sequence[Share[User]]) -> None:
    """Raise ConfigError where nobody asks as a user: dialogs and sets of questions are written as a whole."""
    of_user = {
        "user.lm": settings.user.lm,
        "user.rewording=true": settings.user.rewording,
        f"user={settings.user.name}": any(share.type != PLAIN for share in users),
    }
    if settings.algorithm.name in _WRITES and (setting := next((name for name, given in of_user.items() if given), "")):
        raise ConfigError(f"{setting}: has no effect with algorithm={settings.algorithm.name}; leave it out")


def _check_models(settings: Settings) -> None:
    """Raise ConfigError where a model writes sets of questions twice, or rates them twice: its replies are the same."""
    for group, models in (("generators", [settings.lm.model]), ("scorers", [])):
        for name, endpoint in settings.algorithm.endpoints.items():
            if f".{group}." in name:
                if endpoint.model in models:
                    raise ConfigError(f"{name}: the model {endpoint.model} is there already; give another model")
                models.append(endpoint.model)


def find_tightest(settings: Settings) -> tuple[str, Endpoint]:
    """Return the setting and the model that has least room, of those that write dialogs."""
    models = {"lm": settings.lm, **settings.others}
    return min(models.items(), key=lambda named: named[1].context - named[1].max_tokens)


def size_window(settings: Settings, taxonomy: Taxonomy) -> int:
    """Return how much of a document a prompt may hold, in tokens as `generator.common.passages` counts them."""
    reserved = RESERVED_TOKENS + RESERVED_FOR_TURN * max(0, settings.turns.most - 4)
    reserved += RESERVED_FOR_TARGETS * (taxonomy.has_targets and settings.lm.shares_rules)
    if settings.algorithm.name == "progressive":  # beside the source, a set is rated by what three searches found
        retriever = settings.retriever
        reserved += RESERVED_FOR_TASK + int(QUESTIONS * retriever.k * retriever.passage_tokens * TOKENS_PER_WORD)
    elif taxonomy.tasks:  # the judge's prompt holds what may be a whole reply
        reserved += RESERVED_FOR_TASK + settings.lm.max_tokens
    name, lm = find_tightest(settings)
    free = lm.context - lm.max_tokens - reserved
    if free < RESERVED_TOKENS / 3:
        raise ConfigError(
            f"{name}.context={lm.context}: leaves no room for documents beside replies of "
            f"{name}.max_tokens={lm.max_tokens}; set {name}.context={lm.max_tokens + reserved + RESERVED_TOKENS} or "
            f"more, with which the server loads the model, or lower {name}.max_tokens"
        )
    return int(free / TOKENS_PER_WORD)
