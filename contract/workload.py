"""A workload: message sizes and how much each counts."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, asked, rule
from .limits import MAX_AUDIT_WORKLOAD_SIZES, MAX_WEIGHT
from .rules import Bytes

Objective: TypeAlias = Literal["time", "mean", "worst"]
Weight = Annotated[float, rule(ge=0.0, le=MAX_WEIGHT)]


class WorkloadSizeIn(Input):
    """A message size and how much it counts; weights may have any sum above 0."""

    message_bytes: Bytes = asked("size of the message, bytes")
    weight: Weight = asked("how much it counts, beside the others", default=1.0)


WorkloadList = Annotated[
    list[WorkloadSizeIn], rule(min_length=1, max_length=MAX_AUDIT_WORKLOAD_SIZES, fail_fast=True)
]
