"""What contract/schedule.py declares: answers of a compiled table to lookups, written as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from app.schemas.base import dump_json, notices_out
from app.schemas.stages import constraints_out
from contract.profile import ProfileRevisionOut
from domain.problem import FragmentLimits
from domain.solution import Notice
from exports.table.lookup import Answer

FORM = 1  # of the answers: to be raised with every change of what a table's answer looks like
_ULP = 2.0**-52


class ScheduleRenderer:
    """Writes the answers of one table; what they all share is written once."""

    def __init__(
        self,
        digest: str,
        profile: tuple[str, int],
        limits: FragmentLimits,
        *,
        relative_gap: float,
        stages: int,
    ) -> None:
        name, revision = profile
        about = ProfileRevisionOut(name, revision) if name else None
        self._tolerance = relative_gap
        self._stages = stages
        shared = {"constraints": constraints_out(limits), "profile": about, "table": digest}
        self._tail = b"," + dump_json(shared)[1:-1] + b',"warnings":%b}'
        self._unwarned = self._tail % b"[]"

    def body(self, message_bytes: int, answer: Answer, verified: Notice | None = None) -> bytes:
        """Return TableScheduleOut as JSON. `verified` is what transfers said of the model."""
        fragments, sizes, latency_us, gap, size_bytes, repeats, repeat_us = answer
        bound = bound_below(latency_us, gap, operations=fragments + self._stages)
        # A message below the table's size is sent whole, and the answer has it so.
        repeated_bytes = min(size_bytes, message_bytes)
        best = _BEST % (repeated_bytes, repeats, _number(repeat_us)) if repeats else b"null"
        if repeats and gap <= self._tolerance and verified is None:
            tail = self._unwarned
        else:
            first = () if verified is None else (verified,)
            notices = (*first, *_notices(missed=gap > self._tolerance, repeats=repeats))
            tail = self._tail % dump_json(notices_out(notices))
        return _BODY % (
            message_bytes,
            sizes,
            fragments,
            _number(latency_us),
            _number(bound),
            _number(gap),
            best,
            tail,
        )


_number = orjson.dumps
_BODY = (
    b'{"strategy":"table","message_bytes":%d,"fragment_bytes":[%b],"fragments":%d,"latency_us":%b,'
    b'"lower_bound_us":%b,"relative_gap":%b,"status":"proven_gap","best_fixed":%b%b'
)
_BEST = b'{"size_bytes":%d,"fragments":%d,"latency_us":%b}'


def bound_below(latency_us: float, relative_gap: float, *, operations: int) -> float:
    """Return latency / (1 + gap), rounded down by more than rounding could have added.

    Derivation: the latency is a sum of at most `operations` terms of three roundings each, along
    one path of the recurrence; two more roundings are in this quotient.
    """
    return latency_us / (1.0 + relative_gap) * (1.0 - (operations + 4) * _ULP)


def _notices(*, missed: bool, repeats: int) -> Iterator[Notice]:
    if missed:
        yield Notice(
            "tolerance_missed",
            "at this message size the table is not proven to its tolerance; relative_gap is what "
            "is proven of its model",
        )
    if not repeats:
        yield Notice("no_repeated_size", "no size can be repeated within the limits")
