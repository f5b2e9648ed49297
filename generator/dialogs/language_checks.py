"""Find dialogs that slip into another language than theirs: such a dialog is a drop."""

from collections.abc import Sequence

from generator.common.detection import find_other_language
from generator.common.language import dialog_language, languages
from generator.dialogs.candidates import Refused
from generator.errors import Rejected
from generator.schema import Turn

SLIP = "language"  # the stage of such a drop


def check_language(text: str) -> None:
    """Raise `Refused`, by which a step is asked again, if a text is surely in another language than the dialog.

    If no further attempt is in the right language, its stage tells that the dialog is a drop.
    """
    if other := find_other_language(text, dialog_language()):
        raise Refused(SLIP, _reason(other), text)


def find_slip(turns: Sequence[Turn]) -> tuple[int, Rejected] | None:
    """Return the number of the first turn that is in another language than the dialog's, with the reason; or None.

    What no single text is long enough to show, all questions or all answers together do: then the last turn is named.
    """
    texts = [(turn.turn, text) for turn in turns for text in (turn.query, turn.answer)]
    if turns:
        said = (" ".join(turn.query for turn in turns), " ".join(turn.answer for turn in turns))
        texts += [(turns[-1].turn, text) for text in said]
    for number, text in texts:
        if other := find_other_language(text, dialog_language()):
            return number, Rejected(SLIP, _reason(other), text)
    return None


def _reason(other: str) -> str:
    return f"slips into {other}, in place of {languages().dialog.name}"
