"""Correct the number of dialogs under way: by what the server's cache lost of them, or by calls answered a minute."""

# Of the tokens that earlier calls of the dialogs brought in, those that are no longer cached: too many, and hardly any.
# What is expected is computed from bytes and whole blocks, so it is never quite reached.
LOST = 0.25
_KEPT, _COLLAPSED = 0.1, 0.5
_MORE, _FEWER = 1.05, 0.85
# Corrections without an effect before the loss is taken for no fault of the number, and how many then pass.
_TRIES, _REST = 3, 32
# Windows that lose most before there is a warning: with a number that was set, and with one that can still fall.
_WARN_SET, _WARN_FOUND = 2, 5
# Calls answered a minute are compared over so many seconds and calls of each dialog; a trial that loses ends sooner.
_RATE_S, _RATE_CALLS, _TRIAL_S = 20.0, 5, 5.0
_SAME_RATE, _WORSE_RATE = 0.97, 0.8


class LossCorrection:
    """Fewer dialogs when some are evicted between their calls, some more while none is (after Chiu and Jain 1989).

    Attributes:
        factor: so many times the number that was estimated.
        warned: most is lost, and the user knows.
    """

    def __init__(self) -> None:
        self.factor = self._highest = 1.0
        self._tries, self._rest, self._next_rest = 0, 0, _REST
        self._before = (1.0, 0.0)
        self._collapsed, self.warned = 0, False

    def must_warn(self, lost: float, found: bool) -> bool:
        """Return whether most is lost for so long that the user should know, once until it is better.

        Args:
            lost: the share of tokens lost.
            found: the number can still fall.
        """
        self._collapsed = self._collapsed + 1 if lost > _COLLAPSED else 0
        if lost <= LOST:
            self.warned = False
        elif not self.warned and self._collapsed >= (_WARN_FOUND if found and self.factor > 0.1 else _WARN_SET):
            self.warned = True
            return True
        return False

    def correct(self, lost: float, can_grow: bool, most: float | None) -> None:
        """Change the factor by the share of tokens lost.

        Args:
            can_grow: there are dialogs that wait.
            most: the highest factor; None: the estimate is no more than a guess, so at most 1, and halved at need.
        """
        if self._rest:
            self._rest -= 1
        elif lost > LOST:
            if not self._tries:
                self._before = (self.factor, lost)
            self._tries += 1
            if self._tries > _TRIES and lost > 0.8 * self._before[1]:  # it isn't their number
                self.factor, self._tries = self._before[0], 0
                self._rest, self._next_rest = self._next_rest, 2 * self._next_rest
                return
            self._highest = _FEWER**0.5 * self.factor
            self.factor *= 0.5 if most is None and lost > _COLLAPSED else _FEWER
            self._rest = 1  # until it has an effect
        else:
            self._tries = 0
            if lost < _KEPT and can_grow:
                self._highest *= _MORE**0.1
                self.factor = min(most or 1.0, max(self.factor, min(self.factor * _MORE, self._highest)))


class RateTrials:
    """The lowest number that calls answered a minute don't fall with, by trials of half as many dialogs.

    Attributes:
        factor: so many times the highest number.
    """

    def __init__(self) -> None:
        self.factor, self._rate, self._trying = 1.0, 0.0, False
        self._last = 0.0  # the rate of the comparison before, with the same number
        self._wait, self._next_wait = 2, 4  # comparisons before the next trial

    def must_wait(self, calls: int, seconds: float, dialogs: int) -> bool:
        """Return whether calls were answered for too short a time to be compared."""
        lost = self._trying and seconds >= _TRIAL_S and calls < _WORSE_RATE * self._rate * seconds
        return not lost and (seconds < _RATE_S or calls < _RATE_CALLS * dialogs)

    def compare(self, rate: float) -> bool:
        """Change the factor by the calls answered a second; return whether fewer dialogs were found to do."""
        if not self._trying:
            # Of two, since one may have been slow for another reason, and nothing leads back from fewer dialogs.
            self._rate, self._last, self._wait = max(rate, self._last), rate, self._wait - 1
            if self._wait == 0:
                self.factor, self._trying = self.factor / 2, True
            return False
        self._trying = False
        if rate >= _SAME_RATE * self._rate:
            self._last, self._wait, self._next_wait = rate, 1, 4
            return True
        self.factor *= 2
        self._wait, self._next_wait = self._next_wait, 2 * self._next_wait
        return False
