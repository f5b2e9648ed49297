"""Spellings of settings that Hydra takes otherwise: `taxonomy.first={…}` is to replace the weights of a mix instead of
being merged into them, and some settings name a model of the group `lm`.
"""

import re

# Settings whose names are those of question types, tasks or users, which one may add.
WEIGHTS = r"(?:taxonomy\.(?:first|later|multi_turn|answerability|tasks|scenarios)|user\.types)"
# Settings that name a model of the group `lm` beside `lm` itself.
OWN_MODEL = r"user\.lm|reflection\.lm|judge\.(?:lm|panel\.[\w-]+)|algorithm\.(?:generators|scorers)\.[\w-]+"


def normalise_shares(arguments: list[str]) -> list[str]:
    """Return the arguments with weights of question types as Hydra understands them.

    A type that the mix doesn't have is added: `++taxonomy.first.my-type=1`. A mapping replaces the mix's:
    `taxonomy.first=null`, then `++taxonomy.first={…}`. The two differ in their plus, because Hydra's sweeper keeps one
    override of each spelling.
    """
    done: list[str] = []
    for argument in arguments:
        if whole := re.match(rf"({WEIGHTS})=(?=\s*\{{)", argument):
            done += [f"{whole[1]}=null", f"++{argument}"]
        else:
            done.append(re.sub(rf"^\+*({WEIGHTS}\.)", r"++\1", argument))
    return done
