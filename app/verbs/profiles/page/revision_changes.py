"""What is said of the difference between two revisions of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from app.schemas.stages import pipeline_out
from app.text.numbers import format_cost, format_percent
from app.verbs.profiles.show import window_words
from contract.pipeline import PipelineOut, StageOut, WindowOut
from domain.aggregate import Aggregate
from domain.machine import Machine
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage
from domain.units import format_bytes

MAX_LISTED = 12
Staged = Pipeline | Machine
_WORDS = ("lanes", "shared_ns_per_byte", "delay_us", "processor")


def changes_between(before: CostModel, after: CostModel) -> tuple[str, ...]:
    """Return which stages differ and by how much; of many the first, and the number left."""
    found = list(_changes(before, after))
    if len(found) > MAX_LISTED:
        found = [*found[: MAX_LISTED - 1], f"and {len(found) - MAX_LISTED + 1} more"]
    return tuple(found)


def _changes(before: CostModel, after: CostModel) -> Iterator[str]:
    if isinstance(before, Staged) and isinstance(after, Staged):
        yield from _stages(before.stages, after.stages)
        yield from _words(pipeline_out(before), pipeline_out(after))
    elif isinstance(before, Aggregate) and isinstance(after, Aggregate):
        yield from _stage("total", before.total, after.total)
        yield from _stage("bottleneck", before.bottleneck, after.bottleneck)
    elif isinstance(after, Staged):
        yield f"{len(after.stages)} stages instead of the total and the bottleneck"
    else:
        yield "the total and the bottleneck instead of stages"
    if before.delay_us != after.delay_us:
        yield f"delay {_moved(before.delay_us, after.delay_us, 'µs')}"


def _words(before: PipelineOut, after: PipelineOut) -> Iterator[str]:
    """Yield what else stages of the same places say, and which windows are other ones."""
    if len(before.stages) == len(after.stages):
        for old, new in zip(before.stages, after.stages, strict=True):
            changes = (
                f"{word} {_said(new, word)} instead of {_said(old, word)}"
                for word in _WORDS
                if getattr(old, word) != getattr(new, word)
            )
            if words := ", ".join(changes):
                yield f"{new.name}: {words}"
    yield from (f"window added: {window_words(one)}" for one in _only(after, before))
    yield from (f"window removed: {window_words(one)}" for one in _only(before, after))


def _said(stage: StageOut, word: str) -> str:
    value = getattr(stage, word)
    if isinstance(value, float):
        return format_cost(value)
    return "none" if value is None else str(value)


def _only(one: PipelineOut, other: PipelineOut) -> list[WindowOut]:
    return [window for window in one.windows if window not in other.windows]


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
