"""How long to wait before what failed for the moment is tried again."""

from tenacity import wait_exponential, wait_random
from tenacity.wait import wait_base

LONGEST_PAUSE_S = 60


def backoff(first_s: float) -> wait_base:
    """The pauses between attempts: they double, up to a minute, and are not the same for all who wait."""
    return wait_exponential(multiplier=first_s, max=LONGEST_PAUSE_S) + wait_random(0, first_s)
