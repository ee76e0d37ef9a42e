"""Who is let in to wait for workers: one rule for solves, readings of files and long work.

A burst waits: BURST for each worker, and more once each has ended STANDING_ENDS of it and all of it
would be done within MAX_WAIT_S. Where something has waited at every moment for STANDING_S, that
many have ended, and what waits would take TARGET_S, more is asked than can be done, and to wait for
longer only makes all answers late: then one waits for every two that run, so that no worker is
idle and nobody waits for longer than half of what one takes, until CALM_S have passed without a
refusal. For a single worker one waits only where that takes SPARE_S at most: else it would double
the time of an answer, and spare the worker the few milliseconds until somebody asks again. Who has
nothing here is let in beside one who has several, while no more than a burst waits: anybody may
come under many names.

This is CoDel's rule (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012), a
queue that stands is no burst, but for who has to leave: here what comes, before its body is read,
since to refuse late costs as much as to answer. How long a queue takes is known by what has ended
lately, whatever it was that held it up.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from starlette.types import Scope

from app.errors import retry_after_s
from app.execution.engine import Pool
from app.http.access import ADMITTED, admitted_of
from app.http.fastpath.responses import SECURITY, AsgiResponse
from app.schemas.base import dump_json, problem_out
from domain.errors import Overloaded, SluiceError

TARGET_S = 0.25
STANDING_S, STANDING_ENDS = 0.25, 8
CALM_S = 0.5
SPARE_S = 0.02
BURST, MAX_WAIT_S = 8, 1.0
_REMEMBERED = 8  # ends by which the next one is judged, about
# Whose workers the requests need that are refused before they are read.
POOLS = {
    "/optimize": Pool.SOLVE,
    "/compare": Pool.SOLVE,
    "/thresholds": Pool.SOLVE,
    "/crossover": Pool.SOLVE,
    "/hide": Pool.SOLVE,
    "/audit": Pool.LONG,
    "/fit": Pool.READ,
    "/compose": Pool.READ,
    "/measurement-plans": Pool.READ,
}
# With these the framework decides: a job, an answer that is known, a reader of the page.
_ASKS_MORE = frozenset((b"prefer", b"idempotency-key", b"cookie", b"x-request-id"))
_TOO_MUCH = "more is being asked than this service can do"
_BODY = dump_json(problem_out(Overloaded(_TOO_MUCH)))


class Admission:
    """Requests that need one of a pool's `slots(clients)` workers. For the event loop's thread."""

    def __init__(self, slots: Callable[[int], int]) -> None:
        self._slots = slots
        self._parallel = 1
        self._of_client: Counter[str] = Counter()
        self._count = 0
        self._waiting_since_s = math.inf
        self._ends = 0  # since then
        self._last_end_s = math.inf  # while something waits
        self._gap_s = 0.0  # between two ends while something waits, about
        self._strict_until_s = -math.inf
        self.refused = 0

    @property
    def waiting(self) -> int:
        """How many are let in beyond what runs at a time."""
        return max(0, self._count - self._parallel)

    @property
    def is_overloaded(self) -> bool:
        """Whether more is asked than can be done; for any thread."""
        now_s = time.monotonic()
        if now_s < self._strict_until_s:
            return True
        stands = now_s - self._waiting_since_s > STANDING_S
        return stands and self._is_known and self._wait_s >= TARGET_S

    @property
    def _is_known(self) -> bool:
        """Whether enough of this queue has ended: what ended before may have been quicker work."""
        return self._ends >= STANDING_ENDS * self._parallel

    @property
    def _wait_s(self) -> float:
        """How long what waits takes, about."""
        return self.waiting * self._gap_s

    def check(self, client: str) -> None:
        """Raise Overloaded where one more of this client would wait for too long."""
        if self._count < self._parallel:
            return
        is_full = self.waiting >= BURST * self._parallel
        if (
            not (self._of_client[client] or is_full)
            and max(self._of_client.values(), default=0) > 1
        ):
            return
        if self.is_overloaded:
            if self._count < self._parallel + max(self._parallel // 2, self._gap_s <= SPARE_S):
                return
            self._strict_until_s = time.monotonic() + CALM_S
            self._refuse(_TOO_MUCH)
        is_short = self._is_known and self._wait_s < MAX_WAIT_S
        if is_full and not is_short:
            self._refuse("what waits already takes too long")

    @contextmanager
    def entered(self, client: str) -> Iterator[None]:
        """Count a request of this client while the block lasts. Raises Overloaded."""
        if self._count >= self._parallel:  # those of a cluster come and go
            self._parallel = max(1, self._slots(len({*self._of_client, client})))
        self.check(client)
        self._of_client[client] += 1
        self._count += 1
        now_s = time.monotonic()
        if self.waiting and self._waiting_since_s == math.inf:
            self._waiting_since_s, self._ends = now_s, 0
        runs_since_s = math.inf if self.waiting else now_s
        try:
            yield
        finally:
            self._end(client, runs_since_s)

    def _end(self, client: str, runs_since_s: float) -> None:
        """Count an end; `runs_since_s` is inf where the request had to wait before it ran."""
        now_s = time.monotonic()
        if self.waiting:
            if self._last_end_s < now_s:
                self._learn(now_s - self._last_end_s)
            self._last_end_s = now_s
        elif runs_since_s < now_s < self._strict_until_s:
            # Nothing waits now whose ends would tell it.
            self._learn((now_s - runs_since_s) / self._parallel)
        self._count -= 1
        self._ends += 1
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]
        if not self.waiting:
            self._waiting_since_s = self._last_end_s = math.inf

    def _learn(self, gap_s: float) -> None:
        weight = _REMEMBERED if self._gap_s else 1  # from nothing, all would be let in
        self._gap_s += (gap_s - self._gap_s) / weight

    def _refuse(self, why: str) -> None:
        self.refused += 1
        raise Overloaded(why)


def refused_unread(admissions: Mapping[Pool, Admission], scope: Scope) -> AsgiResponse | None:
    """Return the refusal of a request that would wait for too long; None where it may go on.

    It costs a tenth of a refusal by the framework, whose layers cost as much as an answer.
    """
    pool = POOLS.get(scope["path"]) if scope["method"] == "POST" else None
    if pool is None or isinstance(scope.get(ADMITTED), SluiceError):  # who may not ask is told that
        return None
    if any(name in _ASKS_MORE for name, _ in scope["headers"]):
        return None
    try:
        admissions[pool].check(_client(scope))
    except Overloaded:
        return _refusal(scope["path"])
    return None


def _client(scope: Scope) -> str:
    """Name who asks as `client_of` does, where no page is read."""
    admitted = admitted_of(scope)
    if admitted is not None:
        return f"owner {admitted.owner}"
    return f"{scope['client'][0] if scope.get('client') else ''} "


def _refusal(route: str) -> AsgiResponse:
    headers = (
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(_BODY)),
        (b"retry-after", b"%d" % retry_after_s()),
        (b"x-request-id", b"%032x" % random.getrandbits(128)),  # a name, and no secret
        SECURITY,
    )
    start = {"type": "http.response.start", "status": 503, "headers": headers}
    return AsgiResponse(start, {"type": "http.response.body", "body": _BODY}, (route, 503))
