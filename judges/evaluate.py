"""`python -m judges.evaluate`: any model on a benchmark of dialogs; see `docs/mt_bench_101.md`, `docs/rad_bench.md`."""

import sys

from generator.command import Command, generator_groups, run_command

COMMAND = Command(
    program="python -m judges.evaluate",
    primary="evaluate",
    task="judges.benchmarks.run:evaluate",
    settings="judges.benchmarks.settings:EvaluationSettings",
    usage=(
        "python -m judges.evaluate +benchmark=NAME input=PATH lm=NAME judge.lm=NAME [setting=value ...]",
        "python -m judges.evaluate +benchmark=NAME input=RUN judge.lm=NAME    a run's answers are judged again",
        "python -m judges.evaluate +benchmark=NAME input=PATH answers=FILE judge.lm=NAME    those of a file",
        "python -m judges.evaluate +benchmark=NAME judgments=PATH    judgments that exist are aggregated",
        "",
        "The model lm answers the questions of a benchmark's dialogs, judge.lm rates the answers, the tables come out.",
        "The same command again continues a run. `--cfg job` shows all settings, `--hydra-help` Hydra's own options.",
    ),
    groups=(("benchmark", "benchmarks"), *generator_groups("lm")),
)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
