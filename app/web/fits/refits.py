"""Fits that pages make: one more time with other options, and what differs from the fit before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeVar

from fastapi import Request

from app.http.dependencies import service_of
from app.questions.fits import get_trace
from app.questions.question import LoadedTrace
from app.text.notices import MEANINGS, named, notice_items
from app.web.fitted import fitted_now
from app.web.workbench.choices import SAID, as_said, said_of
from contract.fit_options import METHODS, SHAPES
from contract.limits import MAX_NAME_LENGTH
from domain.errors import InvalidInput
from domain.fit import (
    Combine,
    ExcludedSample,
    FitMethod,
    FitOptions,
    FitShape,
    StageFit,
    StepGroup,
    TraceFit,
)
from domain.measurement import TraceKind
from domain.units import format_bytes
from models.packing import PackedTrace
from models.records import FitRecord, FitRequest

_SAME = 1e-9  # relative: less is the arithmetic's
SHOWN = 10


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A number of a stage, before and after; `share` is None where it was 0."""

    stage: str
    what: str
    before: float
    after: float
    share: float | None


@dataclass(frozen=True, slots=True)
class FitChanges:
    """`asked` is what was asked differently, in words; `rows` the largest changes first.

    `ranges` says where their number changed, `stages` which came instead of which.
    """

    before_id: str
    asked: tuple[str, ...]
    rows: tuple[ChangeRow, ...]
    ranges: tuple[str, ...]
    stages: str
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def first(self) -> tuple[ChangeRow, ...]:
        """The rows that are shown at once."""
        return self.rows[:SHOWN]

    @property
    def rest(self) -> tuple[ChangeRow, ...]:
        """Those behind a click."""
        return self.rows[SHOWN:]


def fitted_stages(fit: TraceFit) -> tuple[StageFit, ...]:
    """Return what was fitted: stages, or total and bottleneck."""
    if fit.aggregate is not None:
        return (fit.aggregate.total, fit.aggregate.bottleneck)
    return fit.stages


def fit_changes(before: FitRecord, after: FitRecord) -> FitChanges:
    """Return the differences of two fits of the same measurements."""
    old = {stage.name: stage for stage in fitted_stages(before.fit)}
    new = {stage.name: stage for stage in fitted_stages(after.fit)}
    rows, remarks, same = list[ChangeRow](), list[str](), list[str]()
    for name in (one for one in new if one in old):
        found = list(_rows(old[name], new[name]))
        counts = (len(old[name].lines), len(new[name].lines))
        if counts[0] != counts[1]:
            remarks.append(f"{name} {counts[1]} instead of {counts[0]}")
        elif not found:
            same.append(name)
        rows += found
    if before.fit.delay_us != after.fit.delay_us:
        rows.append(_row("all", "delay, µs", before.fit.delay_us, after.fit.delay_us))
    notices_before, notices_after = _notices(before), _notices(after)
    rows.sort(key=lambda row: -abs(row.share) if row.share is not None else 0.0)
    return FitChanges(
        before_id=before.id,
        asked=tuple(_asked(_options(before), _options(after))),
        rows=tuple(rows),
        ranges=tuple(remarks),
        stages="; ".join(_stages_moved(old, new)),
        unchanged=tuple(same),
        removed=tuple(_differing(notices_before, notices_after)),
        new=tuple(_differing(notices_after, notices_before)),
    )


def _rows(old: StageFit, new: StageFit) -> Iterator[ChangeRow]:
    """Yield parameters where the ranges are the same, else times at the ends of the sizes."""
    if [line.up_to_bytes for line in old.lines] == [line.up_to_bytes for line in new.lines]:
        for one, other in zip(old.lines, new.lines, strict=True):
            reach = ""
            if len(new.lines) > 1:
                end = other.up_to_bytes
                reach = f", up to {format_bytes(end)}" if end else ", above"
            for what, name in (("overhead, µs", "overhead_us"), ("cost, ns/byte", "ns_per_byte")):
                row = _row(old.name, what + reach, getattr(one, name), getattr(other, name))
                if _is_change(row):
                    yield row
        return
    sizes = [size.message_bytes for size in new.sizes]
    for size in dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])) if sizes else ():
        times = (stage.to_stage().time_us(size) for stage in (old, new))
        row = _row(old.name, f"time of {format_bytes(size)}, µs", *times)
        if _is_change(row):
            yield row


def _row(stage: str, what: str, before: float, after: float) -> ChangeRow:
    return ChangeRow(stage, what, before, after, after / before - 1.0 if before else None)


def _is_change(row: ChangeRow) -> bool:
    return abs(row.after - row.before) > _SAME * abs(row.before)


def _stages_moved(old: Mapping[str, StageFit], new: Mapping[str, StageFit]) -> Iterator[str]:
    removed, come = (
        [name for name in old if name not in new],
        [name for name in new if name not in old],
    )
    if come:
        yield (f"{named(come)} instead of {named(removed)}" if removed else f"{named(come)} came")
    elif removed:
        yield f"{named(removed)} went"


# --- differences of the requests ------------------------------------------------------------------


def _options(record: FitRecord) -> FitOptions:
    return record.request.options if record.request else FitOptions()


def _asked(before: FitOptions, after: FitOptions) -> Iterator[str]:
    out, back = (
        set(after.excluded) - set(before.excluded),
        set(before.excluded) - set(after.excluded),
    )
    if out:
        yield f"{_samples(len(out))} left out"
    if back:
        yield f"{_samples(len(back))} taken back"
    for words, name in (("method", "method"), ("shape", "shape"), ("at most", "max_ranges")):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"{words} {other} instead of {one}" + (" ranges" if name == "max_ranges" else "")
    if before.total_is_uncut != after.total_is_uncut:
        yield "latencies of uncut messages" if after.total_is_uncut else "latencies of any messages"
    for name, words in _OF_OVERLAP:
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"{words}: {_SAID_IN_WORDS[other]} instead of {_SAID_IN_WORDS[one]}"
    if before.as_stage != after.as_stage:
        yield f"times of the stage {after.as_stage}" if after.as_stage else "times of messages"
    for group in after.groups:
        if group not in before.groups:
            yield f"one stage made of {named(group.steps)}"
    for group in before.groups:
        if group not in after.groups:
            yield f"stages of their own for {named(group.steps)}"


_OF_OVERLAP = (
    ("stages_overlap", "stages overlap"),
    ("several_at_once", "several fragments at once in a stage"),
)
_SAID_IN_WORDS = {None: "not said", True: "yes", False: "no"}


def _samples(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"


# --- differences of the notices -------------------------------------------------------------------


def _notices(record: FitRecord) -> dict[str, list[str]]:
    """Return codes, important ones first, and the measured steps each is about."""
    steps = {group.name: group.steps for group in _options(record).groups}
    return {
        item.code: [step for stage in item.stages or ("",) for step in steps.get(stage, (stage,))]
        for item in notice_items(record.fit.notices)
    }


def _differing(these: dict[str, list[str]], those: dict[str, list[str]]) -> Iterator[str]:
    """Yield what is reported here and not there."""
    for code, stages in these.items():
        only = [stage for stage in stages if stage not in those.get(code, ())]
        if not only:
            continue
        title = MEANINGS[code].title if code in MEANINGS else code.replace("_", " ")
        yield f"{named(only)}: {title}" if any(only) else title


# --- fitted again ---------------------------------------------------------------------------------


async def fit_again(request: Request, record: FitRecord, wanted: FitRequest) -> str:
    """Fit the measurements of a stored fit in another way; return the new fit's address.

    Raises NotFound, and what `Service.fit` does.
    """
    service = service_of(request)
    traces = await stored_traces(request, record)
    fitted = await fitted_now(request, traces, wanted)

    def keep() -> str:
        with service.context.store.unit_of_work() as unit:
            return unit.fits.add(record.trace_digests, fitted.fit, wanted)

    return f"/ui/fits/{await service.write(keep)}"


async def stored_traces(request: Request, record: FitRecord) -> tuple[LoadedTrace, ...]:
    """Return the files that a fit was made of. Raises NotFound."""
    service = service_of(request)
    store = service.context.store

    def found() -> list[PackedTrace]:
        return [get_trace(store, digest) for digest in record.trace_digests]

    packed = await service.call(found)
    return tuple(
        LoadedTrace(one.digest, one.content_bytes, one.pieces, one.content) for one in packed
    )


# --- the form that fits again ---------------------------------------------------------------------


Kind = TypeVar("Kind", FitMethod, FitShape)

OWN = "own"
JOINS = (
    (OWN, "a stage of its own"),
    (str(Combine.OVERLAP), "at the same time as the one before"),
    (str(Combine.SEQUENCE), "after the one before, on one processor"),
)
MAX_RANGES = 16
_NARROWED = (FitShape.NARROWED, "one line over the sizes in use")


@dataclass(frozen=True, slots=True)
class StepChoice:
    """A measured step, and how it goes together with the one before it; "" for the first."""

    name: str
    join: str


@dataclass(frozen=True, slots=True)
class AgainForm:
    """How a fit was made, to be changed. `steps` are there where a trace has several, `as_stage`
    where the times may be those of one stage ("": they are not), `total_is_uncut` where latencies
    of whole messages were measured, and `stages_overlap` and `several_at_once` where the stages are
    of one trace ("": nothing is said).
    """

    method: str
    methods: tuple[tuple[str, str], ...]
    shape: str
    shapes: tuple[tuple[str, str], ...]
    max_ranges: str
    steps: tuple[StepChoice, ...]
    as_stage: str | None = None
    total_is_uncut: bool | None = None
    stages_overlap: str | None = None
    several_at_once: str | None = None
    said: tuple[tuple[str, str], ...] = SAID
    joins: tuple[tuple[str, str], ...] = JOINS

    @property
    def is_unusual(self) -> bool:
        """Whether anything was chosen, so that the choices are shown open."""
        default = FitOptions()
        chosen = (self.method, self.shape, self.max_ranges, self.as_stage or "")
        usual = (default.method, default.shape, str(default.max_ranges), "")
        said = self.total_is_uncut or self.stages_overlap or self.several_at_once
        return chosen != usual or self.has_groups or bool(said)

    @property
    def has_groups(self) -> bool:
        """Whether steps form one stage."""
        return any(step.join not in ("", OWN) for step in self.steps)


def again_form(record: FitRecord) -> AgainForm:
    """Return the form as the fit was made."""
    request = record.request or FitRequest()
    options = request.options
    narrowed = (_NARROWED,) if options.shape is FitShape.NARROWED else ()
    may_overlap = _may_overlap(record, options)
    return AgainForm(
        method=options.method,
        methods=METHODS,
        shape=options.shape,
        shapes=(*SHAPES, *narrowed),
        max_ranges=str(options.max_ranges),
        steps=tuple(_steps(record)) if _has_steps(record, options) else (),
        as_stage=(options.as_stage or "") if _may_be_a_stage(record, options) else None,
        total_is_uncut=None if record.fit.aggregate is None else options.total_is_uncut,
        stages_overlap=as_said(options.stages_overlap) if may_overlap else None,
        several_at_once=as_said(options.several_at_once) if may_overlap else None,
    )


def _has_steps(record: FitRecord, options: FitOptions) -> bool:
    """Whether the stages are steps of one trace, and not of files of their own."""
    return record.fit.kind is TraceKind.DIRECT and not options.composed


def _may_overlap(record: FitRecord, options: FitOptions) -> bool:
    """Whether there are several stages of one trace, or were before something was said of them."""
    is_said = options.stages_overlap is not None or options.several_at_once is not None
    several = len(record.fit.stages) > 1 or is_said
    return several and _has_steps(record, options) and options.as_stage is None


def _may_be_a_stage(record: FitRecord, options: FitOptions) -> bool:
    """Whether times of messages were fitted, or times that were called a stage before."""
    times_alone = record.fit.kind in (TraceKind.END_TO_END, TraceKind.INDIRECT)
    return times_alone or options.as_stage is not None


def _steps(record: FitRecord) -> Iterable[StepChoice]:
    groups = (
        {group.name: group for group in record.request.options.groups} if record.request else {}
    )
    place = 0
    for stage in fitted_stages(record.fit):
        group = groups.get(stage.name)
        for number, name in enumerate(group.steps if group else (stage.name,)):
            join = group.combine if group and number else OWN
            yield StepChoice(name, str(join) if place else "")
            place += 1


def asked_again(record: FitRecord, pairs: Sequence[tuple[str, str]]) -> FitRequest:
    """Return a fit's own request as the form changes it. Raises InvalidInput naming the field."""
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    before = record.request or FitRequest()
    options = before.options
    shape = _choice(FitShape, given, "shape", options.shape)
    names = [step.name for step in again_form(record).steps]
    groups = _groups(names, given["join"], options.groups) if "join" in given else options.groups
    asked = replace(
        options,
        method=_choice(FitMethod, given, "method", options.method),
        shape=shape,
        max_ranges=_maximum(given.get("max_ranges", [""])[-1], options.max_ranges),
        groups=groups,
        as_stage=_stage_name(given, options.as_stage),
        total_is_uncut="total_is_uncut" in given,
        stages_overlap=_said(given, "stages_overlap", options.stages_overlap),
        several_at_once=_said(given, "several_at_once", options.several_at_once),
        excluded=tuple(dict.fromkeys(map(sample_of, given.get("excluded", ())))),
    )
    message_bytes = before.message_bytes if shape is FitShape.NARROWED else None
    if shape is FitShape.NARROWED and message_bytes is None:
        raise InvalidInput("this shape needs a message", field="shape")
    return replace(before, options=asked, message_bytes=message_bytes)


def _choice(kind: type[Kind], given: dict[str, list[str]], name: str, default: Kind) -> Kind:
    sent = given.get(name, [str(default)])[-1]
    return kind(sent) if sent in tuple(kind) else default


def _stage_name(given: dict[str, list[str]], default: str | None) -> str | None:
    return given["as_stage"][-1].strip() or None if "as_stage" in given else default


def _said(given: dict[str, list[str]], name: str, default: bool | None) -> bool | None:
    return said_of(given[name][-1]) if name in given else default


def _maximum(text: str, default: int) -> int:
    if not text.strip():
        return default
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) <= 4):
        raise InvalidInput(f"expected a whole number from 1 to {MAX_RANGES}", field="max_ranges")
    return int(text)


def _groups(
    names: Sequence[str], joins: Sequence[str], before: Sequence[StepGroup]
) -> tuple[StepGroup, ...]:
    """Return runs of joined steps; `joins` begins with the second step."""
    runs: list[tuple[list[str], set[str]]] = []
    for name, join in zip_longest(names, ("", *joins[: len(names) - 1]), fillvalue=OWN):
        if join in tuple(Combine) and runs:
            runs[-1][0].append(name)
            runs[-1][1].add(join)
        else:
            runs.append(([name], set()))
    return tuple(_group(tuple(run), kinds, before) for run, kinds in runs if len(run) > 1)


def _group(steps: tuple[str, ...], kinds: set[str], before: Sequence[StepGroup]) -> StepGroup:
    if len(kinds) > 1:
        raise InvalidInput(
            f"{', '.join(steps)}: the steps of one stage run either all at the same time or all "
            "one after the other",
            field="join",
        )
    combine = Combine(kinds.pop())
    known = next((one for one in before if (one.steps, one.combine) == (steps, combine)), None)
    name = " + ".join(steps)
    if len(name) > MAX_NAME_LENGTH:
        name = f"{steps[0]} to {steps[-1]}"[:MAX_NAME_LENGTH]
    return known or StepGroup(name, steps, combine)


def sample_of(value: str) -> ExcludedSample:
    """Return the sample that a form names. Raises InvalidInput."""
    size, _, rest = value.partition("|")
    time, _, stage = rest.partition("|")
    try:
        return ExcludedSample(stage[:200], int(size[:20]), float(time[:40]))
    except ValueError:
        raise InvalidInput("expected samples as bytes|µs|stage", field="excluded") from None
