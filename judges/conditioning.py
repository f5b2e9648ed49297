"""A score in the light of what can be known and what the response says it doesn't know."""

from generator.schema import Answerability


def conditioned(score: float, answerability: Answerability, idk: str) -> float | None:
    """A score of 0 to 1 after Katsis et al. 2025, section 6.3.3: what refuses rightly is right, whatever its words.

    Args:
        answerability: of the question.
        idk: what the I-don't-know judge says of the response: yes, partial or no.

    Returns:
        None where the table says nothing: the user asks for nothing, or the response wasn't judged.
    """
    if answerability == "conversational" or idk not in ("yes", "partial", "no"):
        return None
    if answerability == "unanswerable":
        return 1.0 if idk == "yes" else 0.0
    return 0.0 if idk == "yes" else score
