"""Tell a call that always fails from a server that fails: the first is given up soon, the second is waited for."""

import time

# From so many failures on, a call is under suspicion while its server answers others.
SUSPECTED_AFTER = 3
# It is then made so often again, after pauses of at most so long, and given up within this time.
_FURTHER = 2
_PAUSE_S = 1.0
_WITHIN_S = 10.0


class Tally:
    """Counts what a server has answered: replies, and attempts that failed."""

    def __init__(self) -> None:
        self.served = self.failed = 0


class FailingCall:
    """The failures of one call.

    Args:
        tally: of its server.
        wait_s: seconds before the first retry; pauses under suspicion aren't longer.

    Attributes:
        failures: the number of attempts that failed.
        given_up: the call has failed too often while the server answered others.
    """

    def __init__(self, tally: Tally, wait_s: float) -> None:
        self.failures, self.given_up = 0, False
        self._tally, self._pause_s = tally, min(_PAUSE_S, wait_s)
        self._served = self._failed = 0
        self._since, self._left = 0.0, _FURTHER

    def fail(self) -> None:
        """Count a failed attempt."""
        self.failures += 1
        self._tally.failed += 1

    @property
    def is_alone(self) -> bool:
        """Whether others got more replies than failures since this call's failure before the last one."""
        return self._tally.served - self._served > self._tally.failed - 1 - self._failed

    @property
    def pause_s(self) -> float | None:
        """The pause before the next attempt, in seconds; None if the server is waited for."""
        return self._pause_s if self._since else None

    def judge(self, own_fault: bool, seconds: float) -> None:
        """Decide about a further attempt.

        Args:
            own_fault: the server answers others.
            seconds: the duration of the last attempt.
        """
        now = time.monotonic()
        self._served, self._failed = self._tally.served, self._tally.failed
        if not own_fault:
            self._since, self._left = 0.0, _FURTHER
            return
        self._since = self._since or now
        self.given_up = not self._left or now + self._pause_s + seconds > self._since + _WITHIN_S
        self._left -= 1
