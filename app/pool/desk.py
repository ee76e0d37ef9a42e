"""Where those who ask and those who work meet: what waits, what runs, what has ended.

One lock for all of it, held for moments only: never while something is pickled, started or stopped.
"""

from __future__ import annotations

import secrets
import threading
import time

from app.pool.task import SolveTask
from app.pool.tickets import Ticket, TicketBook, WaitingLine
from domain.errors import Cancelled, NotReady, SluiceError
from domain.solution import Solution
from models.records import JobState


class Desk:
    """The engine's shared state. Every method may be called by any thread."""

    def __init__(self, *, most_waiting: int, most_ended: int, keep_s: float) -> None:
        self._changed = threading.Condition()
        self._line = WaitingLine(most_waiting)
        self._book = TicketBook(most_ended=most_ended, keep_s=keep_s)
        self._closing = False

    @property
    def closing(self) -> bool:
        """Whether the engine is being closed: nothing is accepted, and what runs is to end."""
        return self._closing

    def submit(self, task: SolveTask, *, lane: str) -> str:
        """Add a task to a lane. Raises Overloaded, and NotReady once closing."""
        ticket = Ticket(secrets.token_hex(16), task, lane)
        with self._changed:
            if self._closing:
                raise stopping()
            self._line.add(ticket)
            self._book.add(ticket)
            self._changed.notify()
        return ticket.id

    def take(self, wait_s: float) -> Ticket | None:
        """The next task, which counts as running from now on; None where none came in time."""
        with self._changed:
            if not self._line and not self._closing:
                self._changed.wait(wait_s)
            ticket = None if self._closing else self._line.take()
            if ticket is not None:
                ticket.state = JobState.RUNNING
                ticket.started_s = time.monotonic()
            return ticket

    def conclude(self, ticket: Ticket, outcome: Solution | SluiceError, state: JobState) -> None:
        """The task has ended so. Only the first conclusion counts."""
        with self._changed:
            if ticket.ended_s is not None:
                return
            ticket.ended_s = time.monotonic()
            ticket.state = state
            self._book.end(ticket)
        # Outside the lock: this runs the callbacks of those who wait.
        if isinstance(outcome, Solution):
            ticket.future.set_result(outcome)
        else:
            ticket.future.set_exception(outcome)

    def cancel(self, ticket_id: str) -> None:
        """End it: at once where it waits, soon where it runs; nothing where it has ended."""
        with self._changed:
            ticket = self._book.find(ticket_id)
            if ticket is None or ticket.ended_s is not None:
                return
            ticket.cancel_requested = True
            if ticket.state is JobState.RUNNING:
                return
            self._line.remove(ticket)
        self.conclude(ticket, Cancelled("the solve was cancelled"), JobState.CANCELLED)

    def ticket(self, ticket_id: str) -> Ticket:
        """The ticket of this id. Raises NotFound."""
        with self._changed:
            return self._book.get(ticket_id)

    def forget(self, ticket: Ticket) -> None:
        """Its result was fetched."""
        with self._changed:
            self._book.forget(ticket)

    def close(self) -> None:
        """Accept nothing more and let those who take know."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def fail_open(self) -> None:
        """Conclude all that never will be, because nobody takes any more."""
        with self._changed:
            left = self._book.open_tickets()
        for ticket in left:
            self.conclude(ticket, stopping(), JobState.FAILED)


def stopping() -> NotReady:
    """What is said of work that the end of the service cuts short."""
    return NotReady("the service is stopping")
