"""A fit as a source: the document that POST /fit gave, checked and made a fit again.

`FitOut` is the one declaration of both ways. Its types hold each field to its range; what is said
here is how fields go together. What the document says of where the fit was stored is left out:
nobody has looked whether that is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from itertools import pairwise
from typing import Any

from app.questions.fits import GivenFit
from app.schemas.base import dump_json, parse_json
from app.schemas.fits import aggregate_fit_out, stage_fit_out
from contract.declare import Input
from contract.fit import AggregateFitOut, FitOut, LineFitOut, StageFitOut
from contract.limits import MAX_TIME_US
from domain.errors import InconsistentInput, InvalidInput
from domain.fit import ExcludedSample, FitOptions, StageFit, TraceFit, check_enough
from domain.measurement import TraceKind
from domain.pipeline import FitRange
from domain.uncertain_fit import has_errors, uncertain_model, uncertain_stage
from domain.uncertainty import UncertainLine
from models.fit_documents import VERSION, fit_of
from models.records import FitRequest

MAX_FIT_BYTES = 2**20  # as JSON, without a plot: 60 stages of 60 sizes take so much
MAX_NUMBER = 2**53  # whole numbers that every JSON reader takes; times are at most 1e12 µs
MIN_TIME_US = 1e-9  # of a median: no clock tells shorter times


def alone(document: FitOut) -> FitOut:
    """Return the fit without where it was stored, and what was drawn of it."""
    return replace(document, fit_id=None, profile=None, plot=None)


def given_fit(document: FitOut, field: str) -> GivenFit:
    """Return the fit of a document, which is in this field of a request.

    Raises InvalidInput and InconsistentInput that name the field inside it which breaks a rule, and
    MeasurementMissing for a fit by which no message can be cut.
    """
    kept = alone(document)
    for name, part in asdict(kept).items():
        if name not in ("understood", "warnings"):
            _check_bounds(part, f"{field}.{name}")
    content = dump_json(kept)
    if len(content) > MAX_FIT_BYTES:
        raise InvalidInput(f"expected a fit of at most {MAX_FIT_BYTES} bytes", field=field)
    _check_parts(kept, field)
    with _inside(f"{field}.overlap.structure"):
        fit = fit_of(_as_stored(kept))
    for place, stage, sent in _stages(fit, kept):
        with _inside(f"{field}.{place}"):
            _check_stage(stage, sent)
    _check_sums(kept, fit, field)
    with _inside(f"{field}.{'aggregate' if fit.aggregate else 'pipeline'}"):
        fit.to_model()
        uncertain_model(fit)
    options = FitOptions(
        method=fit.method,
        excluded=tuple(ExcludedSample(**asdict(one)) for one in kept.excluded),
        total_is_uncut=fit.aggregate is not None and fit.aggregate.total_is_uncut,
        several_at_once=fit.overlap.several_at_once,
    )
    return GivenFit(fit, kept.trace_digests, FitRequest(options), document=content)


class _FitIn(Input):
    """A fit by itself."""

    fit: FitOut


def read_fit(content: bytes) -> GivenFit:
    """Return the fit of a document that stands by itself. Raises as `given_fit` does, and NotJson;
    fields are named as in a request's `fit`.
    """
    return given_fit(parse_json(_FitIn, b'{"fit":' + content + b"}").fit, "fit")


def may_be_fit(content: bytes) -> bool:
    """Return whether this is meant as a fit, and not as measurements: of JSON it is what says how
    measurements were understood.
    """
    return content.lstrip()[:1] == b"{" and b'"understood"' in content


def _check_bounds(value: object, place: str) -> None:
    """Raise InconsistentInput, naming the field, for a number that no fit of measurements has:
    counts, times and ratios are bounded as readers bound times, and covariances as their squares.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            _check_bounds(part, f"{place}.{name}")
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            _check_bounds(part, f"{place}.{at}")
    elif isinstance(value, (int, float)):
        bound = MAX_TIME_US**2 if ".covariance." in place else MAX_NUMBER
        if abs(value) > bound:
            raise InconsistentInput(f"expected numbers of at most {bound:g}", field=place)
        if place.endswith(".median_us") and 0.0 < value < MIN_TIME_US:
            raise InconsistentInput(f"expected 0, or at least {MIN_TIME_US:g}", field=place)


def _check_parts(document: FitOut, field: str) -> None:
    if document.aggregate is None:
        check_enough(TraceKind(document.kind))
        if not document.pipeline.stages:
            raise InconsistentInput("expected a stage or more", field=f"{field}.pipeline.stages")
    elif document.pipeline.stages:
        raise InconsistentInput(
            "expected no stages beside an aggregate", field=f"{field}.pipeline.stages"
        )


def _as_stored(document: FitOut) -> dict[str, Any]:
    """Return the document as the store has it, which is read by one reader."""
    sent, aggregate = asdict(document), document.aggregate
    stages = [_stage_as_stored(stage) for stage in document.pipeline.stages]
    return {
        "version": VERSION,
        **{name: sent[name] for name in ("kind", "method", "loggp", "timed_whole")},
        "understood": list(document.understood.items()),
        "stages": stages,
        "delay_us": document.pipeline.delay_us,
        "aggregate": aggregate
        and {
            "total": _stage_as_stored(aggregate.total),
            "bottleneck": _stage_as_stored(aggregate.bottleneck),
            "total_is_uncut": aggregate.total_is_uncut,
        },
        "notices": [
            {**asdict(one), "values": list(one.values.items())} for one in document.warnings
        ],
        "overlap": document.overlap and asdict(document.overlap),
    }


def _stage_as_stored(stage: StageFitOut) -> dict[str, Any]:
    sent = asdict(stage)
    return {**sent, "lines": sent["ranges"]}


def _stages(fit: TraceFit, document: FitOut) -> Iterator[tuple[str, StageFit, StageFitOut]]:
    """Yield each fitted stage, where it is in the document, and how it was sent."""
    if fit.aggregate is not None and document.aggregate is not None:
        for name in ("total", "bottleneck"):
            place = f"aggregate.{name}"
            yield place, getattr(fit.aggregate, name), getattr(document.aggregate, name)
    for at, pair in enumerate(zip(fit.stages, document.pipeline.stages, strict=True)):
        yield f"pipeline.stages.{at}", *pair


def _check_stage(stage: StageFit, sent: StageFitOut) -> None:
    for at, line in enumerate(sent.ranges):
        with _inside(f"ranges.{at}"):
            _check_line(line)
    stage.to_stage()
    for at, (left, right) in enumerate(pairwise(sent.ranges), 1):
        if not left.to_bytes < right.from_bytes:
            rule = "expected to begin above the sizes of the range before"
            raise InconsistentInput(rule, field=f"ranges.{at}.from_bytes")
    for at, (one, other) in enumerate(pairwise(sent.sizes), 1):
        if not one.message_bytes <= other.message_bytes:
            raise InconsistentInput("expected ascending sizes", field=f"sizes.{at}.message_bytes")
    if has_errors(stage):
        uncertain_stage(stage)
    _check_same(stage_fit_out(stage), sent)


def _check_line(line: LineFitOut) -> None:
    if line.from_bytes > line.to_bytes:
        raise InconsistentInput("expected from_bytes <= to_bytes", field="to_bytes")
    for name in ("overhead_us_interval", "ns_per_byte_interval", "up_to_bytes_interval"):
        low, high = getattr(line, name) or (0, 0)
        if low > high:
            raise InconsistentInput("expected low <= high", field=name)
    if line.covariance is not None:
        free = line.free_overhead_us or 0.0, line.free_ns_per_byte or 0.0
        UncertainLine(FitRange(0.0, 0.0, line.up_to_bytes), *free, line.covariance)


def _check_sums(document: FitOut, fit: TraceFit, field: str) -> None:
    if fit.aggregate is not None and document.aggregate is not None:
        with _inside(f"{field}.aggregate"):
            _check_same(aggregate_fit_out(fit.aggregate), document.aggregate)


def _check_same(derived: StageFitOut | AggregateFitOut, sent: object) -> None:
    """Raise InconsistentInput where a field contradicts those that it follows from."""
    for one in fields(derived):
        if getattr(derived, one.name) != getattr(sent, one.name):
            rule = "expected what follows from the ranges"
            raise InconsistentInput(rule, field=one.name)


@contextmanager
def _inside(place: str) -> Iterator[None]:
    """Have a refusal name its field inside this place."""
    try:
        yield
    except InvalidInput as refusal:
        refusal.field = f"{place}.{refusal.field}" if refusal.field else place
        raise
