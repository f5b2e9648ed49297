"""Tell a call that always fails from a server that fails: the first is given up soon, the second is waited for."""

import time

# A call that fails while its server answers others is under suspicion. It is given up after three failures at the
# earliest, when the next attempt would end more than ten seconds after the third; and after five in any case, if the
# last three were under suspicion.
GIVEN_UP_AFTER, _WITHIN_S = 3, 10.0
_ATTEMPTS, _SUSPECTED = 5, 3
_PAUSE_S = 1.0


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
        self._served, self._failed = tally.served, tally.failed
        self._suspected, self._since = 0, 0.0

    def fail(self) -> None:
        """Count a failed attempt."""
        self.failures += 1
        self._tally.failed += 1

    @property
    def others_fare_well(self) -> bool:
        """True if most other calls are answered since this one's failure before the last, half of them if suspected."""
        replies, failures = self._tally.served - self._served, self._tally.failed - self._failed - 1
        return replies > failures or (replies == failures and self._suspected > 0)

    @property
    def pause_s(self) -> float | None:
        """The pause before the next attempt, in seconds; None if the server is waited for."""
        return self._pause_s if self._suspected else None

    def judge(self, own_fault: bool, seconds: float) -> None:
        """Decide about a further attempt.

        Args:
            own_fault: the server answers others.
            seconds: the duration of the last attempt.
        """
        now = time.monotonic()
        self._served, self._failed = self._tally.served, self._tally.failed
        self._suspected = self._suspected + 1 if own_fault else 0
        if not own_fault or self.failures < GIVEN_UP_AFTER:
            self._since = 0.0
            return
        self._since = self._since or now
        ends = now + self._pause_s + seconds
        enough = self.failures >= _ATTEMPTS and self._suspected >= _SUSPECTED
        self.given_up = enough or ends > self._since + _WITHIN_S
