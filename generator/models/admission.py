"""Limit the dialogs under way on a server to those that its prefix cache holds; the older ones go first.

A dialog that is evicted from the cache before its next call has its whole prompt computed again, so beyond what the
cache holds, more dialogs make fewer calls. The number is found while the run goes on:

- A server that says its cache's size: as many dialogs as fit, by the tokens that dialogs of this run took so far. Where
  replies say how much of a prompt was cached, the number is corrected by it, as by Chiu and Jain (1989): some more
  while nothing that an earlier call of the dialog brought in is lost, fewer when it is.
- A server whose replies say that alone: all that can be under way, corrected in the same way.
- A server that says neither: the lowest number that calls answered a minute don't fall with, by trials.

The data doesn't depend on the number: calls of a dialog only wait.
"""

import time
from asyncio import Event
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter

from generator.common.console import count_noun, note
from generator.models.corrections import LossCorrection, RateTrials
from generator.schema import Usage

CACHE_CURE = (
    "fewer dialogs (lm.dialogs), fewer passages (retriever.k), an fp8 cache (--kv-cache-dtype fp8) or more memory for "
    "the cache help"
)

_ages = count()
_AGE = attrgetter("age")
# Dialogs that have ended and are remembered for how many tokens a dialog takes.
_REMEMBERED = 200
# A dialog's last prompt is so many times as long as its first, until some have ended.
_GROWTH = 2
# Of the dialogs that fit by their longest prompts; dialogs of all lengths are under way, so more do.
_MOST_FACTOR = 2.0
# Calls of each dialog between two corrections, and at the least in all.
_WINDOW, _WINDOW_CALLS = 3, 24
# What is lost is worth a warning from this share of all prompt tokens.
_STAKE = 0.1
# Nothing is tried while there are fewer dialogs, since there is no more to do.
_BUSY = 0.75
# The number is reported again when it has changed by so much, and not within so many seconds.
_NEWS, _NEWS_S = 0.25, 60.0


@dataclass(eq=False)
class Place:
    """A dialog on a server, under way or waiting for its first call.

    Attributes:
        age: its number in the order in which dialogs began.
        may_call: set while it is one of those under way.
        sent: its last request.
        calls: its calls so far.
        first, longest: tokens of its first prompt, and of its longest with the reply.
        shared: of those, what other dialogs had brought into the cache before.
    """

    age: int
    may_call: Event = field(default_factory=Event)
    sent: bytes = b""
    calls: int = 0
    first: int = 0
    longest: int = 0
    shared: int = 0


@dataclass
class _Window:
    """The calls between two corrections; of dialogs' later calls, the tokens that could be and that were cached."""

    begun: float
    skipped: int = 0
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    known: int = 0
    kept: int = 0


class Admission:
    """The dialogs of a run on one server: the `limit` oldest of them are under way, the others wait.

    Args:
        server: its address, for what is reported.
        most: the most dialogs that can be under way.
        processes: so many share the server, each with as many dialogs.
        found: find the number, of `most` at the most; otherwise it is `most`.

    Attributes:
        limit: the most dialogs under way.
    """

    def __init__(self, server: str, most: int, found: bool = True, processes: int = 1) -> None:
        self._server, self._most, self._found, self._processes = server, most, found, processes
        self._capacity: int | None = None
        self.limit = most
        self._places: list[Place] = []
        # Of the last dialogs that ended: what each added to the cache times its calls, and its calls.
        self._ended: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._rules = 0  # tokens that all prompts begin with
        self._reports_cached = False
        self._losses, self._rates = LossCorrection(), RateTrials()
        self._reported, self._reported_at = 0, 0.0
        self._window = _Window(time.monotonic())

    def set_capacity(self, tokens: int | None, context: int) -> None:
        """Set how many tokens the server's cache holds; None: unknown.

        Args:
            context: the longest prompt and reply, in tokens.
        """
        self._capacity = tokens = tokens and tokens // self._processes
        if self._found and tokens:  # before anything is measured, those that fit whatever they become
            self._set_limit(max(1, min(self._most, tokens // context)))

    @property
    def measures(self) -> bool:
        """Return whether the number of dialogs can matter."""
        return self._most > 1

    @property
    def dialogs(self) -> int:
        """The dialogs that have a place."""
        return len(self._places)

    @property
    def under_way(self) -> int:
        return min(len(self._places), self.limit)

    @property
    def has_room(self) -> bool:
        """Return whether one more dialog would be under way at once."""
        return len(self._places) < self.limit

    def enter(self, age: int | None = None) -> Place:
        """Return a place for a dialog, which has the age of one that it had on another server."""
        place = Place(next(_ages) if age is None else age)
        insort(self._places, place, key=_AGE)
        for waiting in self._places[self.limit : self.limit + 1]:
            waiting.may_call.clear()
        if len(self._places) <= self.limit or place.age < self._places[self.limit].age:
            place.may_call.set()
        return place

    def leave(self, place: Place) -> None:
        """Release the place of a dialog that has ended, or moves to another server."""
        del self._places[bisect_left(self._places, place.age, key=_AGE)]
        for waiting in self._places[self.limit - 1 : self.limit]:
            waiting.may_call.set()
        place.may_call.set()  # a call that waits here is made where the dialog has moved to
        place.sent = b""
        if place.calls:
            self._ended.append((self._own(place, place.longest) * place.calls, place.calls))
            self._fit()

    def record(self, place: Place, request: bytes, usage: Usage) -> None:
        """Take account of a reply to a dialog's request, and perhaps change the limit by it."""
        if not self.measures:
            return
        window = self._window
        if window.skipped:  # calls that were made before the limit was changed
            window.skipped -= 1
            if not window.skipped:
                self._window = window = _Window(time.monotonic())
        self._reports_cached |= usage.cached > 0
        window.calls += 1
        window.prompt += usage.prompt
        window.cached += usage.cached
        place.calls += 1
        place.longest = max(place.longest, usage.prompt + usage.completion)
        if place.calls == 1:
            place.first, place.shared = usage.prompt, usage.cached
            self._rules = min(self._rules or usage.cached, usage.cached or self._rules)
            self._fit()
        elif self._reports_cached:
            known = usage.prompt * _common_prefix(place.sent, request) // len(request) - self._rules
            if known > 0:
                window.known += known
                window.kept += min(known, max(0, usage.cached - self._rules))
        place.sent = request
        if not window.skipped:
            self._end_window(time.monotonic())

    def _end_window(self, now: float) -> None:
        """Correct the limit when enough calls were answered since the last time."""
        window = self._window
        if window.calls < max(_WINDOW * self.under_way, _WINDOW_CALLS):
            return
        if not self._reports_cached and self._capacity is None:
            self._compare_rates(window.calls, now - window.begun, now)
            return
        self._window = _Window(now)
        if self._reports_cached and window.known:
            self._correct(1 - window.kept / window.known, window)
        self._fit()
        if self._calls_ended > self._calls_under_way:
            self._report(now)

    def _fit(self) -> None:
        """Set the limit by the tokens of the dialogs so far; small changes of the estimate leave it as it is."""
        if not self._found:
            return
        room = self._room()
        if room is None:
            return
        limit = max(1, min(self._most, int(room)))
        if limit > self.limit or room < self.limit - max(0.5, 0.03 * self.limit):
            self._set_limit(limit)

    def _room(self) -> float | None:
        """Return how many dialogs fit; None if that can't be said yet."""
        factor = self._losses.factor * self._rates.factor
        if self._capacity is None:
            return self._most * factor
        tokens = self._dialog_tokens()
        return None if tokens is None else max(0, self._capacity - self._rules) / tokens * factor

    @property
    def _calls_ended(self) -> int:
        return sum(calls for _, calls in self._ended)

    @property
    def _calls_under_way(self) -> int:
        return sum(place.calls for place in self._places)

    def _own(self, place: Place, tokens: int) -> int:
        """Return how many of a dialog's tokens no other dialog had brought into the cache."""
        return max(1, tokens - max(place.shared, self._rules))

    def _dialog_tokens(self) -> float | None:
        """Return the tokens that a dialog adds to the cache; each counts by its calls, as the time that it is there."""
        begun = [place for place in self._places if place.calls]
        ended, calls_ended, calls = sum(tokens for tokens, _ in self._ended), self._calls_ended, self._calls_under_way
        if calls_ended > calls:  # else dialogs under way say more about how long dialogs become
            return ended / calls_ended
        if not begun:
            return None
        longest = sum(self._own(place, place.longest) * place.calls for place in begun) + ended
        first = sum(self._own(place, _GROWTH * place.first) for place in begun)
        return max(longest / (calls + calls_ended), first / len(begun))

    def _correct(self, lost: float, window: _Window) -> None:
        """Lower the limit when dialogs are evicted between their calls, and raise it while none is."""
        matters = window.known - window.kept > _STAKE * window.prompt
        if self._losses.must_warn(lost if matters else 0, self._found):
            self._warn(window)
        can_grow = len(self._places) >= self.limit < self._most
        self._losses.correct(lost, can_grow, None if self._capacity is None else _MOST_FACTOR)

    def _compare_rates(self, calls: int, seconds: float, now: float) -> None:
        """Try fewer dialogs, and stay with them unless fewer calls are answered."""
        if self._rates.must_wait(calls, seconds, max(1, self.under_way)):
            return
        self._window = _Window(now)
        if not self._found or len(self._places) < _BUSY * self.limit:
            return
        if self._rates.compare(calls / max(seconds, 1e-9)):
            self._report(now)
        self._fit()
        self._window.skipped = 2 * self.under_way

    def _set_limit(self, limit: int) -> None:
        self.limit = limit
        for place in self._places[: self.limit]:
            place.may_call.set()
        for place in self._places[self.limit :]:
            place.may_call.clear()

    def close(self) -> None:
        """Report what was found, if the run was too short to do so before."""
        if not self._reported:
            self._report(time.monotonic())

    def _report(self, now: float) -> None:
        """Report how many dialogs there is room for, once, and when it has changed much."""
        room, tokens = self._room(), self._dialog_tokens()
        unknown = self._capacity is None and (self.limit == self._most or self._losses.warned)
        if room is None or tokens is None or unknown:
            return
        if self._reported and (abs(room / self._reported - 1) < _NEWS or now - self._reported_at < _NEWS_S):
            return
        self._reported, self._reported_at = max(1, int(room)), now
        dialogs = count_noun(self._reported * self._processes, "dialog")
        note(f"{self._server}: room for {dialogs} of {round(tokens, -2):,.0f} tokens")

    def _warn(self, window: _Window) -> None:
        capacity = f" don't fit its {self._capacity * self._processes:,}" if self._capacity else " are too many for it"
        tokens = round(self._dialog_tokens() or 0, -2)
        could = (window.cached + window.known - window.kept) / window.prompt
        note(
            f"warning: {self._server}: {window.cached / window.prompt:.0%} of the prompt tokens come from its cache, "
            f"where {could:.0%} could: {self.under_way * self._processes} dialogs of {tokens:,.0f} tokens{capacity}; "
            f"{CACHE_CURE}"
        )


def _common_prefix(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
