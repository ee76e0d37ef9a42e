"""Every error that Sluice raises on purpose.

    SluiceError
    |- InvalidInput            a value breaks a rule; `field` names it
    |  |- InvalidStage         a stage or a pipeline
    |  |  `- WouldDeadlock     processors and windows that wait for each other
    |  |- InvalidLimits        limits on fragments that contradict themselves
    |  |- UnreadableTrace      a measurement file that cannot be understood
    |  |- InvalidTable         a table file that is damaged, or none at all
    |  |- UnitMismatch         a quantity without a unit, or with the wrong one
    |  |- InconsistentInput    fields that exclude each other
    |  |- MissingClassCost     a class of instructions without its cycles
    |  |- NotPublished         a cost that a published layer does not tell
    |  |- IdempotencyKeyReused another request was answered under this key
    |  `- InvalidFields        several fields at once
    |- Infeasible              no cut of the message satisfies the limits
    |- StrategyDeclined        this strategy cannot run on this problem
    |- NeedsPlainStages        what is asked for takes no lanes, windows, delays and processors
    |- ItemsDeclined           what a message that is cut between items alone cannot have
    |- PoorFit                 the data do not support an estimate
    |- MeasurementMissing      what was measured is not enough for what was asked
    |- NotMeasurable           what was to be measured is not here, or fails
    |- CannotRun               a program of the user's own is not here
    |- SolverFailed            a solver broke its contract (a defect, never bad input)
    |- NotFound, Conflict      about stored things
    |- StoreUnavailable        the database cannot be reached
    |- MalformedRequest, HeadTooLarge, NotJson, BodyTooLarge, BodyTooSlow,
    |  UnsupportedMediaType, ForeignOrigin,
    |  Unauthenticated, ScopeMissing, RateLimited, QuotaExceeded,
    |  MalformedIdempotencyKey, IdempotencyKeyInFlight, PreconditionFailed,
    |  RouteNotFound, MethodNotAllowed, Overloaded, NotReady   about a request to the service
    `- LimitReached            a solve was stopped before it had any answer
       |- TimeLimitReached     by its time limit
       |- MemoryLimitReached   by its memory limit
       `- Cancelled            by the requester

None of them knows HTTP. `code` is stable: clients, the command line and the documents use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contract.limits import MAX_REPORTED


class SluiceError(Exception):
    """Root of the tree. `detail` is a sentence for the user, `field` the offending input's path.

    `subject` is the name or identifier that was asked for: a terminal shows it behind the sentence,
    a problem document, which never repeats an input, does not.
    """

    code: ClassVar[str] = "internal_error"

    def __init__(
        self, detail: str, *, field: str | None = None, subject: str | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.subject = subject

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling; these errors cross processes.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(
    kind: type[SluiceError], args: tuple[object, ...], state: dict[str, object]
) -> SluiceError:
    error = kind.__new__(kind, *args)  # not its constructor, whose arguments each class chooses
    error.__dict__.update(state)
    return error


class InvalidInput(SluiceError):
    """A value breaks a rule; the detail states the rule."""

    code = "invalid_input"


class InvalidStage(InvalidInput):
    """A stage or a pipeline breaks a rule."""

    code = "invalid_stage"


class WouldDeadlock(InvalidStage):
    """Processors and windows wait for each other; the detail names both and what is needed."""

    code = "would_deadlock"


class InvalidLimits(InvalidInput):
    """A limit on fragments is out of its own range."""

    code = "invalid_limits"


class UnreadableTrace(InvalidInput):
    """A measurement file cannot be understood."""

    code = "unreadable_trace"


class InvalidTable(InvalidInput):
    """A table file, or its JSON twin, is damaged or not one at all; the detail states the rule."""

    code = "invalid_table"


class UnitMismatch(InvalidInput):
    """A quantity has no unit, or the wrong one."""

    code = "unit_mismatch"


class Infeasible(SluiceError):
    """No cut of the message satisfies the limits; the detail names the two that clash."""

    code = "infeasible"


class StrategyDeclined(SluiceError):
    """The strategy asked for cannot run on this problem; the detail says what it needs."""

    code = "strategy_declined"


class NeedsPlainStages(SluiceError):
    """What is asked for takes stages without lanes, delays, processors and windows; the detail
    names the first of these that is set.
    """

    code = "needs_plain_stages"


class ItemsDeclined(SluiceError):
    """A message that is cut between items alone, and something that such a message cannot have."""

    code = "items_declined"


class PoorFit(SluiceError):
    """The data do not support the estimate that was asked for."""

    code = "poor_fit"


class MeasurementMissing(SluiceError):
    """What was measured is not enough for what was asked; the detail names what is missing."""

    code = "measurement_missing"


class NotMeasurable(SluiceError):
    """What was to be measured is not here, fails, or does not answer."""

    code = "not_measurable"


class CannotRun(SluiceError):
    """A program of the user's own is not here, or may not be run."""

    code = "cannot_run"


class SolverFailed(SluiceError):
    """A solver broke its contract: a defect of the software, never of the input."""

    code = "solver_failed"


class LimitReached(SluiceError):
    """The work was ended from outside before there was any answer."""

    code = "limit_reached"


class TimeLimitReached(LimitReached):
    """The time limit ended the work before there was any answer; the detail gives its value."""

    code = "time_limit"


class MemoryLimitReached(LimitReached):
    """The memory limit ended the work before there was any answer; the detail gives its value."""

    code = "memory_limit"


class Cancelled(LimitReached):
    """The requester cancelled the work before there was any answer."""

    code = "cancelled"


class MalformedIdempotencyKey(SluiceError):
    """The key of a request is none."""

    code = "malformed_idempotency_key"


class IdempotencyKeyReused(InvalidInput):
    """Another request was answered under this key."""

    code = "idempotency_key_reused"


class IdempotencyKeyInFlight(SluiceError):
    """A request under this key is under way; `retry_after_s` is when to try again."""

    code = "idempotency_key_in_flight"
    retry_after_s: ClassVar[int] = 1


class PreconditionFailed(SluiceError):
    """What is to be changed is not in the state that the request names."""

    code = "precondition_failed"


class NotFound(SluiceError):
    """Nothing is stored under this name or identifier."""

    code = "not_found"


class Conflict(SluiceError):
    """The stored state contradicts the request."""

    code = "conflict"


class StoreUnavailable(SluiceError):
    """The database cannot be reached, or did not answer in time."""

    code = "store_unavailable"


class NotJson(SluiceError):
    """The body is not a JSON document in UTF-8."""

    code = "not_json"


class BodyTooLarge(SluiceError):
    """The body is longer than the limit, as sent or once expanded."""

    code = "body_too_large"


class BodyTooSlow(SluiceError):
    """The body did not arrive in time."""

    code = "body_too_slow"


class HeadTooLarge(SluiceError):
    """The request line and the headers, or the trailers, are longer or more than the limit."""

    code = "head_too_large"


class MalformedRequest(SluiceError):
    """What came is no request of HTTP."""

    code = "malformed_request"


class UnsupportedMediaType(SluiceError):
    """The body's media type or encoding is not one that this operation reads."""

    code = "unsupported_media_type"


class RouteNotFound(SluiceError):
    """There is no such path."""

    code = "route_not_found"


class MethodNotAllowed(SluiceError):
    """The path exists, the method does not."""

    code = "method_not_allowed"


class ForeignOrigin(SluiceError):
    """A page of another host has a browser ask."""

    code = "foreign_origin"


class Unauthenticated(SluiceError):
    """Nobody says who asks, or not by a key that is valid."""

    code = "unauthenticated"


class ScopeMissing(SluiceError):
    """The key that asks does not have the scope that this takes."""

    code = "scope_missing"


class RateLimited(SluiceError):
    """A key asked more often than it may: `requests_per_s`; again after `retry_after_s`."""

    code = "rate_limited"

    def __init__(self, detail: str, *, requests_per_s: int, retry_after_s: int) -> None:
        super().__init__(detail)
        self.requests_per_s = requests_per_s
        self.retry_after_s = retry_after_s


class QuotaExceeded(SluiceError):
    """An owner has as much as one may have; `retry_after_s` is when to try again."""

    code = "quota_exceeded"
    retry_after_s: ClassVar[int] = 10


class Overloaded(SluiceError):
    """More work is waiting than this service accepts."""

    code = "overloaded"


class UnreadableRecord(SluiceError):
    """What is stored has the form of another version: its bytes can be sent, but not read."""

    code = "unreadable_record"


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """Where in the input (RFC 6901 JSON pointer) and which rule it breaks."""

    pointer: str
    detail: str


class NotReady(SluiceError):
    """The database or the workers cannot be reached: `problems` says which, where it is known."""

    code = "not_ready"

    def __init__(self, detail: str, *, problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(detail)
        self.problems = problems


class InvalidFields(InvalidInput):
    """Several fields break rules; `problems` holds the first of them."""

    def __init__(self, detail: str, *, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__(detail)
        self.problems = problems[:MAX_REPORTED]


class InconsistentInput(InvalidInput):
    """Fields that are valid one by one, and not together."""

    code = "inconsistent_input"


class MissingClassCost(InvalidInput):
    """A class of instructions is counted, and nothing says what one of them takes."""

    code = "missing_class_cost"


class NotPublished(InvalidInput):
    """A cost of a published layer is asked for that its publication does not tell."""

    code = "not_published"
