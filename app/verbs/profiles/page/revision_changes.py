"""What is said of the difference between two revisions of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from app.text.numbers import format_cost, format_percent
from domain.aggregate import Aggregate
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage
from domain.units import format_bytes

MAX_LISTED = 12


def changes_between(before: CostModel, after: CostModel) -> tuple[str, ...]:
    """Return which stages differ and by how much; of many the first, and the number left."""
    found = list(_changes(before, after))
    if len(found) > MAX_LISTED:
        found = [*found[: MAX_LISTED - 1], f"and {len(found) - MAX_LISTED + 1} more"]
    return tuple(found)


def _changes(before: CostModel, after: CostModel) -> Iterator[str]:
    if isinstance(before, Pipeline) and isinstance(after, Pipeline):
        yield from _stages(before.stages, after.stages)
    elif isinstance(before, Aggregate) and isinstance(after, Aggregate):
        yield from _stage("total", before.total, after.total)
        yield from _stage("bottleneck", before.bottleneck, after.bottleneck)
    elif isinstance(after, Pipeline):
        yield f"{len(after.stages)} stages instead of the total and the bottleneck"
    else:
        yield "the total and the bottleneck instead of stages"
    if before.delay_us != after.delay_us:
        yield f"delay {_moved(before.delay_us, after.delay_us, 'µs')}"


def _stages(before: Sequence[Stage], after: Sequence[Stage]) -> Iterator[str]:
    """Yield changes by name where names are unique, else by place."""
    old, new = {stage.name: stage for stage in before}, {stage.name: stage for stage in after}
    if len(old) < len(before) or len(new) < len(after):
        yield from _by_place(before, after)
        return
    yield from (f"{name}: removed" for name in old if name not in new)
    yield from (f"{name}: added" for name in new if name not in old)
    kept = [name for name in new if name in old]
    if kept != [name for name in old if name in new]:
        yield "the order of the stages"
    for name in kept:
        yield from _stage(name, old[name], new[name])


def _by_place(before: Sequence[Stage], after: Sequence[Stage]) -> Iterator[str]:
    for number, (old, new) in enumerate(zip_longest(before, after), start=1):
        if old is None or new is None:
            yield f"stage {number}, {(old or new).name}: {'removed' if new is None else 'added'}"
            continue
        called = new.name if new.name == old.name else f"{new.name} instead of {old.name}"
        found = list(_stage(f"stage {number}, {called}", old, new))
        yield from found or ([] if new.name == old.name else [f"stage {number}: {called}"])


def _stage(name: str, before: Stage, after: Stage) -> Iterator[str]:
    ends = [line.up_to_bytes for line in before.ranges], [line.up_to_bytes for line in after.ranges]
    if ends[0] != ends[1]:
        yield f"{name}: {_ranges(after)} instead of {_ranges(before)}"
        return
    for old, new in zip(before.ranges, after.ranges, strict=True):
        if words := ", ".join(_costs(old, new)):
            where = "" if after.is_line else f" {_range(new)}"
            yield f"{name}{where}: {words}"


def _costs(before: FitRange, after: FitRange) -> Iterator[str]:
    if before.overhead_us != after.overhead_us:
        yield f"overhead {_moved(before.overhead_us, after.overhead_us, 'µs')}"
    if before.ns_per_byte != after.ns_per_byte:
        yield f"cost a byte {_moved(before.ns_per_byte, after.ns_per_byte, 'ns')}"


def _moved(before: float, after: float, unit: str) -> str:
    if before == 0.0:
        return f"{format_cost(after)} {unit} instead of none"
    moved = (after - before) / before
    return f"{'+' if moved > 0 else '−'}{format_percent(abs(moved))}"


def _ranges(stage: Stage) -> str:
    if stage.is_line:
        return "one line"
    ends = ", ".join(
        format_bytes(line.up_to_bytes) for line in stage.ranges if line.up_to_bytes is not None
    )
    return f"{len(stage.ranges)} fit ranges (up to {ends})"


def _range(one: FitRange) -> str:
    return (
        "in the last range" if one.up_to_bytes is None else f"up to {format_bytes(one.up_to_bytes)}"
    )
