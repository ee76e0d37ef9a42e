"""The stored form of fits: one versioned JSON document each.

Version 1 had one line by ordinary least squares a stage; it is read as a fit of one range.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

from domain.conditions import RowChoice
from domain.errors import Conflict
from domain.fit import (
    AggregateFit,
    Combine,
    ComposedStage,
    ExcludedSample,
    FitMethod,
    FitOptions,
    FitShape,
    LineFit,
    SizeFit,
    StageFit,
    StepGroup,
    TraceFit,
    Verdict,
    WholeMessages,
)
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from domain.measurement import TraceKind
from domain.solution import Notice
from domain.structure import (
    Evidence,
    KnownOverlap,
    PlaceFlag,
    SharedProcessors,
    Structure,
    StructureKind,
    TracedWindow,
)
from models.records import FitRequest

VERSION = 2
_FIRST = 1
# A reader of version 1 knows no samples left out by hand, one of version 2 no measurement that is
# called a stage, one of version 3 no stages of files of their own, one of version 4 no columns of
# tables, one of version 5 no total that is said to be uncut, one of version 6 no stages that handle
# several fragments at once or do not, one of version 7 no stages that overlap or do not, and one of
# version 8 no runs and conditions that are taken: they would make another fit.
REQUEST_VERSION = 9
_OVERLAPS = 8
_SEVERAL_AT_ONCE, _IS_UNCUT = 7, 6
_NAMES_COLUMNS = 5
_COMPOSES, _AS_STAGE, _EXCLUDES, _FIRST_REQUEST = 4, 3, 2, 1

# How a document begins what begins have shown, and how where they show no structure. No text of
# a document holds either: there every quotation mark has a backslash before it.
STRUCTURE_IN_DOCUMENT = '"structure":{"kind":"'
NO_STRUCTURE_IN_DOCUMENT = f'{STRUCTURE_IN_DOCUMENT}{StructureKind.SWEEP}"'

T = TypeVar("T")


def dump_fit(fit: TraceFit) -> str:
    """The document of a fit."""
    document = {"version": VERSION, **asdict(replace(fit, events=None))}
    del document["events"]  # they are in the trace, which is kept
    if fit.overlap == KnownOverlap():
        del document["overlap"]  # as earlier software wrote it
    # ASCII on purpose: a name may hold characters that a text column refuses (NUL, surrogates).
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)


def load_fit(text: str) -> TraceFit:
    """The fit of a document. Raises Conflict for a version that is not known."""
    return fit_of(json.loads(text))


def fit_of(document: dict[str, Any]) -> TraceFit:
    """The fit of a document that was read already. Raises Conflict as `load_fit` does."""
    version = document["version"]
    if version not in (_FIRST, VERSION):
        raise Conflict(
            f"the stored fit has version {version}, and this version of Sluice reads {VERSION}: "
            "it was written by newer software"
        )
    stage = _stage if version == VERSION else _first_stage
    common = TraceFit(
        kind=TraceKind(document["kind"]),
        method=FitMethod.ORDINARY if version == _FIRST else FitMethod(document["method"]),
        understood=tuple((key, value) for key, value in document["understood"]),
        stages=tuple(stage(part) for part in document["stages"]),
        notices=tuple(_notice(notice) for notice in document["notices"]),
    )
    return common if version == _FIRST else _with_rest(common, document)


def dump_request(request: FitRequest) -> str:
    """The document of how a fit was asked for."""
    version = _EXCLUDES if request.options.excluded else _FIRST_REQUEST
    if request.options.as_stage is not None:
        version = _AS_STAGE
    if request.options.composed:
        version = _COMPOSES
    asked = asdict(request)
    if not request.is_document:  # earlier software finds no samples in a document, and says so
        del asked["is_document"]
    # Left out where there are none, so that what earlier software reads is as it wrote it.
    of_files = (asked["options"], *asked["options"]["composed"])
    named = [_without_none(one) for one in of_files]
    chosen = [_without_choice(one) for one in of_files]
    if any(named):
        version = _NAMES_COLUMNS
    if request.options.total_is_uncut:
        version = _IS_UNCUT
    else:
        del asked["options"]["total_is_uncut"]
    if request.options.several_at_once is not None:
        version = _SEVERAL_AT_ONCE
    else:
        del asked["options"]["several_at_once"]
    if request.options.stages_overlap is not None:
        version = _OVERLAPS
    else:
        del asked["options"]["stages_overlap"]
    if any(chosen):
        version = REQUEST_VERSION
    document = {"version": version, **asked}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)


def _without_none(options: dict[str, Any]) -> bool:
    """Whether columns are named; the key goes where they are not."""
    if options["columns"] is None:
        del options["columns"]
    return "columns" in options


def _without_choice(options: dict[str, Any]) -> bool:
    """Whether rows are chosen; the key goes where they are not."""
    if all(value is None for value in options["choice"].values()):
        del options["choice"]
    return "choice" in options


def load_request(text: str | None) -> FitRequest | None:
    """The request of a document; None for one that was not kept, or that newer software wrote."""
    document: dict[str, Any] = {"version": None} if text is None else json.loads(text)
    if document["version"] not in range(_FIRST_REQUEST, REQUEST_VERSION + 1):
        return None
    options = document["options"]
    return FitRequest(
        options=FitOptions(
            method=FitMethod(options["method"]),
            shape=FitShape(options["shape"]),
            max_ranges=options["max_ranges"],
            groups=tuple(
                StepGroup(group["name"], tuple(group["steps"]), Combine(group["combine"]))
                for group in options["groups"]
            ),
            excluded=tuple(ExcludedSample(**one) for one in options.get("excluded", ())),
            as_stage=options.get("as_stage"),
            composed=tuple(
                ComposedStage(**{**one, "choice": RowChoice(**one.get("choice", {}))})
                for one in options.get("composed", ())
            ),
            columns=options.get("columns"),
            total_is_uncut=options.get("total_is_uncut", False),
            several_at_once=options.get("several_at_once"),
            stages_overlap=options.get("stages_overlap"),
            choice=RowChoice(**options.get("choice", {})),
        ),
        message_bytes=document["message_bytes"],
        kinds=tuple(None if kind is None else TraceKind(kind) for kind in document["kinds"]),
        is_document=document.get("is_document", False),
    )


def _with_rest(common: TraceFit, document: dict[str, Any]) -> TraceFit:
    aggregate, loggp = document["aggregate"], document["loggp"]
    return TraceFit(
        kind=common.kind,
        method=common.method,
        understood=common.understood,
        stages=common.stages,
        aggregate=aggregate
        and AggregateFit(
            _stage(aggregate["total"]),
            _stage(aggregate["bottleneck"]),
            aggregate.get("total_is_uncut", False),
        ),
        loggp=loggp and _loggp(loggp),
        delay_us=document["delay_us"],
        notices=common.notices,
        timed_whole=tuple(_made(WholeMessages, one) for one in document.get("timed_whole", ())),
        overlap=_overlap(document.get("overlap")),
    )


def _overlap(stored: dict[str, Any] | None) -> KnownOverlap:
    if stored is None:
        return KnownOverlap()
    structure = stored["structure"]
    return _made(KnownOverlap, stored, structure=structure and _structure(structure))


def _structure(stored: dict[str, Any]) -> Structure:
    shared = stored["shared"]
    return _made(
        Structure,
        {
            name: _tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        },
        kind=StructureKind(stored["kind"]),
        evidence=Evidence(**stored["evidence"]),
        windows=tuple(TracedWindow(**one) for one in stored["windows"]),
        turns=tuple(map(tuple, stored["turns"])),
        shared=shared and SharedProcessors(tuple(shared["stages"]), shared["processors"]),
        places=tuple(PlaceFlag(**one) for one in stored["places"]),
    )


def _notice(stored: dict[str, Any]) -> Notice:
    # Fits that earlier versions stored have the sentence alone, which names the stage.
    return _made(Notice, stored, values=tuple((name, at) for name, at in stored.get("values", ())))


def _stage(stored: dict[str, Any]) -> StageFit:
    return _made(
        StageFit,
        stored,
        method=FitMethod(stored["method"]),
        lines=tuple(_line(line) for line in stored["lines"]),
        sizes=tuple(_made(SizeFit, size) for size in stored["sizes"]),
    )


def _line(stored: dict[str, Any]) -> LineFit:
    return _made(
        LineFit,
        stored,
        overhead_us_interval=tuple(stored["overhead_us_interval"]),
        ns_per_byte_interval=tuple(stored["ns_per_byte_interval"]),
        overhead_verdict=Verdict(stored["overhead_verdict"]),
        ns_per_byte_verdict=Verdict(stored["ns_per_byte_verdict"]),
        clipped=tuple(stored["clipped"]),
        up_to_bytes_interval=_tuple(stored.get("up_to_bytes_interval")),
        covariance=_tuple(stored.get("covariance")),
    )


def _tuple(stored: list[Any] | None) -> tuple[Any, ...] | None:
    # Fits that earlier versions stored have neither an interval of an end nor a covariance.
    return None if stored is None else tuple(stored)


def _loggp(stored: dict[str, Any]) -> LogGPFit:
    gap = stored["byte_gap_ns"]
    return _made(
        LogGPFit,
        stored,
        sizes=tuple(_parameters(size) for size in stored["sizes"]),
        byte_gap_ns=gap and _estimate(gap),
        assumptions=tuple(stored["assumptions"]),
    )


def _parameters(stored: dict[str, Any]) -> LogGPParameters:
    estimates = {name: _estimate(value) for name, value in stored.items() if _is_estimate(value)}
    return _made(LogGPParameters, stored, **estimates)


def _is_estimate(value: Any) -> bool:
    return isinstance(value, dict) and "interval" in value


def _estimate(stored: dict[str, Any]) -> Estimate:
    return _made(Estimate, stored, interval=tuple(stored["interval"]))


def _made(kind: type[T], stored: dict[str, Any], /, **converted: Any) -> T:
    """An object of this type; what the document has beyond its fields is left out."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    given = {name: value for name, value in stored.items() if name in known}
    return kind(**{**given, **converted})


def _first_stage(stored: dict[str, Any]) -> StageFit:
    line = LineFit(
        overhead_us=stored["overhead_us"],
        ns_per_byte=stored["ns_per_byte"],
        overhead_std_error_us=stored["overhead_std_error_us"],
        ns_per_byte_std_error=stored["ns_per_byte_std_error"],
        correlation=0.0,
        overhead_us_interval=tuple(stored["overhead_us_interval"]),
        ns_per_byte_interval=tuple(stored["ns_per_byte_interval"]),
        overhead_verdict=Verdict.SUPPORTED,
        ns_per_byte_verdict=Verdict.SUPPORTED,
        from_bytes=0,
        to_bytes=0,
        up_to_bytes=None,
        num_samples=stored["num_samples"],
        clipped=tuple(stored["clipped"]),
    )
    return StageFit(
        name=stored["name"],
        method=FitMethod.ORDINARY,
        lines=(line,),
        sizes=(),
        num_samples=stored["num_samples"],
        outliers=0,
        relative_residual_std=0.0,
        residual_std_us=stored["residual_std_us"],
        r_squared=stored["r_squared"],
    )
