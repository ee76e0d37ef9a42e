"""When a call is sent again, when it ends, and how long to wait in between. No network here.

A call that may be repeated is sent again after a failure of the connection, after a time-out and
after 429, 502, 503 and 504. So is one that has a key, under which the service does it once; and
also while the service still works on the first. Any other is sent again only where it certainly had
no effect: the connection never stood, or the service said that it took nothing on. Other refusals
are final.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from sluice_client.calls import Answer, Call
from sluice_client.errors import (
    DeadlineExceeded,
    InvalidRequest,
    UnexpectedAnswer,
    Unreachable,
)
from sluice_client.problems import problem_of

_LOG = logging.getLogger("sluice_client")
_MAX_TAKES_S = 86_400.0
_BUSY = (429, 503)
_BEHIND_A_PROXY = (502, 504)
_NOT_TAKEN_ON = ("overloaded", "not_ready")
_UNDER_WAY = "idempotency_key_in_flight"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a call is sent, the waits in between (s), and the time that all may take (s).

    The waits double from `first_wait_s` to `max_wait_s`, each shortened by chance to half of it
    at the least, so that many clients do not come back together; `Retry-After` makes a wait as
    long as it says. `deadline_s` gives way where the operation itself may take longer.
    """

    attempts: int = 4
    first_wait_s: float = 0.1
    max_wait_s: float = 5.0
    deadline_s: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidRequest("expected attempts >= 1")
        if not (0.0 <= self.first_wait_s <= self.max_wait_s and self.deadline_s > 0.0):
            raise InvalidRequest("expected 0 <= first_wait_s <= max_wait_s and deadline_s > 0")


NO_RETRY = Retry(attempts=1)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why no answer came; `was_sent`: the service may have had the request."""

    was_sent: bool
    is_timeout: bool
    reason: str


STREAM_ENDED = Failure(
    was_sent=True, is_timeout=False, reason="the stream of events ended before the job did"
)


class Pauses:
    """The pauses between looks at something that takes its time; they grow to a second."""

    def __init__(
        self, within_s: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock, self._within_s, self._started_s = clock, within_s, clock()
        self._pause_s = 0.05

    def next_s(self) -> float:
        """Return how long to wait before the next look, s. Raises DeadlineExceeded."""
        pause_s, self._pause_s = self._pause_s, min(1.0, 1.5 * self._pause_s)
        if self._within_s is None:
            return pause_s
        left_s = self._started_s + self._within_s - self._clock()
        if left_s <= 0.0:
            raise DeadlineExceeded(f"it has not ended within {self._within_s:g} s")
        return min(pause_s, left_s)


class RetryState:
    """One call from its first attempt to its last."""

    def __init__(
        self,
        call: Call[Any],
        retry: Retry,
        timeout_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._call, self._retry = call, retry
        self._may_repeat = call.may_repeat or call.is_keyed
        self._clock, self._chance = clock, chance
        # The service decides on the time that a request asks for; it may be anything.
        takes_s = min(max(call.takes_s, 0.0), _MAX_TAKES_S)
        self._answer_s = takes_s + timeout_s
        self._total_s = max(retry.deadline_s, self._answer_s if takes_s else 0.0)
        self._ends_s = clock() + self._total_s
        self._sent = 0

    def begin_attempt(self) -> float:
        """Return how long the service may be silent in this attempt, s. Raises DeadlineExceeded."""
        self.check()
        self._sent += 1
        return min(self._answer_s, self._ends_s - self._clock())

    def check(self) -> None:
        """Raise DeadlineExceeded where the time is up."""
        if self._clock() >= self._ends_s:
            raise self._too_late()

    def after_failure(self, failure: Failure) -> float:
        """Return how long to wait before the next attempt, s. Raises Unreachable,
        DeadlineExceeded.
        """
        may_repeat = self._may_repeat or not failure.was_sent
        wait_s = self._wait_s(0.0) if may_repeat else None
        if wait_s is not None:
            self._log_wait(failure.reason, wait_s)
            return wait_s
        if failure.is_timeout:
            raise DeadlineExceeded(f"no answer came in time: {failure.reason}")
        times = "" if self._sent == 1 else f" ({self._sent} times)"
        raise Unreachable(f"no answer came: {failure.reason}{times}")

    def after_answer(self, answer: Answer) -> float | None:
        """Return how long to wait before asking again, s; None for an answer to keep."""
        if not self._may_ask_again(answer):
            return None
        wait_s = self._wait_s(_retry_after_s(answer))
        if wait_s is not None:
            self._log_wait(f"status {answer.status}", wait_s)
        return wait_s

    def after_refusal(self, answer: Answer) -> float:
        """Return the same for an answer that cannot be kept. Raises ProblemError,
        UnexpectedAnswer.
        """
        wait_s = self.after_answer(answer)
        if wait_s is not None:
            return wait_s
        answer.check()
        raise UnexpectedAnswer(f"the service answered {answer.status}", status=answer.status)

    def _log_wait(self, reason: str, wait_s: float) -> None:
        """Path and reason: neither what was asked nor an address, which may hold a password."""
        _LOG.info(
            "%s %s: %s; sent again in %.2f s, attempt %d of %d",
            self._call.method,
            self._call.path,
            reason,
            wait_s,
            self._sent + 1,
            self._retry.attempts,
        )

    def _may_ask_again(self, answer: Answer) -> bool:
        if answer.status == 409:
            return self._call.is_keyed and _code_of(answer) == _UNDER_WAY
        if self._may_repeat:
            return answer.status in (*_BUSY, *_BEHIND_A_PROXY)
        if answer.status == 503:
            return _code_of(answer) in _NOT_TAKEN_ON
        return answer.status == 429

    def _wait_s(self, min_s: float) -> float | None:
        """None where no attempt is left, or the wait would end too late."""
        if self._sent >= self._retry.attempts:
            return None
        doubled_s = self._retry.first_wait_s * 2.0 ** min(self._sent - 1, 60)
        typical_s = min(self._retry.max_wait_s, doubled_s) * (0.5 + 0.5 * self._chance())
        # Behind Retry-After the clients spread as well: nobody comes before it.
        wait_s = min_s + typical_s if min_s else typical_s
        return wait_s if self._clock() + wait_s < self._ends_s else None

    def _too_late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"no answer came within {self._total_s:g} s")


def _retry_after_s(answer: Answer) -> float:
    """Seconds, or the time until a date; 0 for none and for what is neither."""
    header = answer.headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _code_of(answer: Answer) -> str:
    try:
        return problem_of(answer.json(), status=answer.status).code
    except Exception:
        return ""
