"""What the verdict of a sweep is to be read with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from app.console.racing import Ended
from app.text.units import printable
from app.verbs.sweep.operation import Asked
from domain.own_transfers import SizeDecision, SizeVerdict

_HARDLY = (
    "the time hardly depends on the size, or start-up hides it: print your own time (--time last), "
    "or send more messages"
)


def notes(found: SizeDecision, ended: Ended, asked: Asked, limit_s: float) -> Iterator[str]:
    """Yield what the verdict is to be read with, and how to go on."""
    if found.hardly_depends and asked.program.reader.is_wall:
        yield f"note: {_HARDLY}"
    if found.is_current_refused or found.verdict is not SizeVerdict.NOT_DECIDED:
        return
    if ended is Ended.TIME:
        yield f"note: no further run fits into the {limit_s:g} s of --time-limit"
    elif ended is Ended.RACE and found.runs + 1 < asked.plan.max_runs:
        yield "note: more than a fifth of the runs failed"
    if found.sizes:
        yield f"go on: the same command with --continue {printable(shlex.quote(asked.target))}"
