"""Work in the engine on behalf of one client, which may go away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.errors import Cancelled
from domain.solution import Solution

if TYPE_CHECKING:
    from app.pool.protocol import Engine, SolveTask


class Errand:
    """Work in the engine on behalf of one client; `cancel` may be called by any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ticket: str | None = None
        self._cancelled = False

    def solve(self, task: SolveTask) -> Solution:
        """The engine's solution. Raises Cancelled where nobody waits for it any more."""
        self.check()
        self._ticket = self._engine.submit(task)
        if self._cancelled:
            self._engine.cancel(self._ticket)
        solution = self._engine.result(self._ticket)
        self._ticket = None
        self.check()
        return solution

    def check(self) -> None:
        """Raise Cancelled where nobody waits for the result any more."""
        if self._cancelled:
            raise Cancelled("the client went away")

    def cancel(self) -> None:
        """Nobody waits any more. Nothing happens where the work has ended."""
        self._cancelled = True
        ticket = self._ticket
        if ticket is not None:
            self._engine.cancel(ticket)
