"""What contract/export.py declares, as the domain has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from app.questions.settings import ExportScope
from app.schemas.base import dump_json, parse_json
from app.schemas.queries import MessageBytes, Query
from app.schemas.settings import workload_of
from contract.declare import words_of
from contract.export import (
    ExportIn,
    ExportQueryIn,
    ExportTimeLimitS,
    TargetOption,
    Weighted,
)
from contract.limits import DEFAULT_AUDIT_LIMIT_S, MAX_AUDIT_WORKLOAD_SIZES, MAX_EXPORT_OPTIONS
from contract.table import Digest
from contract.workload import Objective as ObjectiveName
from contract.workload import WorkloadSizeIn
from domain.errors import InconsistentInput, InvalidFields, InvalidInput
from domain.problem import FragmentLimits
from domain.regret import Objective
from domain.workload import Workload

_MEANS = {word.place[0]: word.means for word in words_of(ExportQueryIn)}


class ExportQuery(Query):
    """The parameters of an export: those of ExportQueryIn."""

    min_message_bytes: MessageBytes | None = Field(None, description=_MEANS["min_message_bytes"])
    max_message_bytes: MessageBytes | None = Field(None, description=_MEANS["max_message_bytes"])
    workload: Annotated[tuple[Weighted, ...], Field(max_length=MAX_AUDIT_WORKLOAD_SIZES)] = Field(
        (), description=_MEANS["workload"]
    )
    objective: ObjectiveName | None = Field(None, description=_MEANS["objective"])
    min_fragment_bytes: MessageBytes | None = Field(None, description=_MEANS["min_fragment_bytes"])
    max_fragment_bytes: MessageBytes | None = Field(None, description=_MEANS["max_fragment_bytes"])
    alignment_bytes: MessageBytes | None = Field(None, description=_MEANS["alignment_bytes"])
    max_fragments: MessageBytes | None = Field(None, description=_MEANS["max_fragments"])
    option: Annotated[tuple[TargetOption, ...], Field(max_length=MAX_EXPORT_OPTIONS)] = Field(
        (), description=_MEANS["option"]
    )
    time_limit_s: ExportTimeLimitS = Field(
        DEFAULT_AUDIT_LIMIT_S, description=_MEANS["time_limit_s"]
    )
    table: Digest | None = Field(None, description=_MEANS["table"])


class ItemExportQuery(Query):
    """The options of a target of items."""

    option: Annotated[tuple[TargetOption, ...], Field(max_length=MAX_EXPORT_OPTIONS)] = Field(
        (), description=_MEANS["option"]
    )


def options_of_target(given: Sequence[str]) -> dict[str, str]:
    """Return the options of `name:value`. Raises InconsistentInput for one that is given twice."""
    pairs = [split_option(option) for option in given]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InconsistentInput("expected each option once", field="option")
    return found


def export_scope(asked: ExportIn | ExportQuery, target: str) -> ExportScope:
    """Return what is asked for. Raises InvalidInput."""
    minimum, maximum = asked.min_message_bytes, asked.max_message_bytes
    workload = _workload(asked) if asked.workload else None
    if workload is not None:
        minimum, maximum = workload.sizes[0].message_bytes, workload.sizes[-1].message_bytes
    if minimum is not None and maximum is not None and minimum > maximum:
        raise InconsistentInput(
            "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
        )
    return ExportScope(
        target=target,
        options=tuple(split_option(option) for option in asked.option),
        min_message_bytes=minimum,
        max_message_bytes=maximum,
        workload=workload,
        objective=None if asked.objective is None else Objective(asked.objective),
        limits=_limits(asked),
        time_limit_s=asked.time_limit_s,
    )


def _workload(asked: ExportIn | ExportQuery) -> Workload:
    if asked.min_message_bytes is not None or asked.max_message_bytes is not None:
        raise InconsistentInput(
            "expected a range of messages or a workload, not both", field="workload"
        )
    return workload_of_weights(asked.workload)


def _limits(asked: ExportIn | ExportQuery) -> FragmentLimits | None:
    given = {name: getattr(asked, name) for name in FragmentLimits.__slots__}
    given = {name: value for name, value in given.items() if value is not None}
    return FragmentLimits(**given) if given else None


def workload_of_weights(weighted: Sequence[str]) -> Workload:
    """Return the workload of `message_bytes:weight`, once each or repeated. Raises InvalidInput and
    InconsistentInput.
    """
    if not 1 <= len(weighted) <= MAX_AUDIT_WORKLOAD_SIZES:
        raise InvalidInput(
            f"expected 1 to {MAX_AUDIT_WORKLOAD_SIZES} message sizes", field="workload"
        )
    pairs = [pair.split(":") for pair in weighted]
    try:
        given = ({"message_bytes": int(size), "weight": float(weight)} for size, weight in pairs)
        sizes = [parse_json(WorkloadSizeIn, dump_json(size)) for size in given]
    except (ValueError, InvalidFields):
        raise InvalidInput("expected sizes and weights, as 1048576:700", field="workload") from None
    return workload_of(sizes)


def split_option(text: str) -> tuple[str, str]:
    """Return name and value of `name:value`."""
    name, _, value = text.partition(":")
    return name, value
