"""The spelling of `taxonomy.first={…}` and the like that makes Hydra replace a mix's weights, not merge into them."""

import re

_WEIGHTS = r"taxonomy\.(?:first|later|multi_turn|answerability)"


def normalise_shares(arguments: list[str]) -> list[str]:
    """Return the arguments with the weights of question types as Hydra takes them.

    A type that the mix doesn't have is added (`++taxonomy.first.my-type=1`), and a whole mapping replaces the mix's
    (`++taxonomy.first=null`, then `++taxonomy.first={…}`): Hydra would merge the two.
    """
    done: list[str] = []
    for argument in arguments:
        if whole := re.match(rf"\+*({_WEIGHTS})=(?=\s*\{{)", argument):
            done += [f"++{whole[1]}=null", f"++{argument.lstrip('+')}"]
        else:
            done.append(re.sub(rf"^\+*({_WEIGHTS}\.)", r"++\1", argument))
    return done
