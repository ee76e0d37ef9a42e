"""What all operations that solve share: the time beyond their limit, the note where they are cut
off, and what their workers load.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import solvers
from domain.solution import Notice, Solution, Status

if TYPE_CHECKING:
    from domain.errors import SluiceError


GRACE_S = 1.0  # the solver keeps its own time limit; this much later it is ended


def cut_off(best: Solution, why: SluiceError) -> Solution:
    """Return the solution with the note that the search for a better one was ended, and why.

    What is proven to be the best stays so.
    """
    if best.status is Status.OPTIMAL:
        return best
    notice = Notice(why.code, f"{why.detail}; this is the best answer so far")
    return replace(best, status=Status.TIME_LIMIT, notices=(*best.notices, notice))


def warm_up() -> None:
    """Load what solving needs: what a worker is sent of a message, and the solvers."""
    import analysis.solve  # noqa: F401

    solvers.warm_up()
