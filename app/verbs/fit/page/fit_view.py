"""What the page of a fit shows beside its charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from app.schemas.fits import stored_fit_out
from app.text.notices import NoticeItem, notice_items
from app.ui.fit_parts import logp_table, parameters_table, understood
from app.ui.html import as_html
from app.ui.parts import Facts, Part
from app.verbs.fit.page.charts import sample_value
from app.verbs.fit.page.refit_form import AgainForm, again_form, sample_of
from contract.fit import FitOut
from domain.errors import InvalidInput, MeasurementMissing
from domain.fit import ExcludedSample, TraceFit
from domain.measurement import TraceKind
from models.records import FitRecord

WANTED = {
    TraceKind.END_TO_END: "A bandwidth test of the same path: osu_bw, ib_send_bw, ib_write_bw, "
    "ucx_perftest tag_bw, or CSV message_bytes,interarrival_us",
    TraceKind.INDIRECT: "A latency test of the same path: osu_latency, IMB PingPong, ib_send_lat, "
    "ucx_perftest tag_lat, or CSV message_bytes,latency_us",
    TraceKind.LOGP: "What is missing, of the same end point: CSV message_bytes,round_trip_us, or "
    "signatures of further sizes",
}
TITLES = {
    TraceKind.DIRECT: "Times of every stage",
    TraceKind.END_TO_END: "Latencies of whole messages",
    TraceKind.INDIRECT: "A pipeline seen from outside",
    TraceKind.LOGP: "LogP signatures of an end point",
}


@dataclass(frozen=True, slots=True)
class FitView:
    """The page of a fit, but what its charts show. `excluded` are as a form names them, and whole.

    `notices` begin with what matters most; `missing` says why it gives no model, and `wanted` which
    measurements would.
    """

    id: str
    title: str
    method: str
    understood: Facts
    notices: tuple[NoticeItem, ...]
    parameters: str
    logp: str
    excluded: tuple[tuple[str, ExcludedSample], ...]
    again: AgainForm | None
    digests: tuple[str, ...]
    missing: str
    wanted: str


def view_as_typed(view: FitView, pairs: Sequence[tuple[str, str]]) -> FitView:
    """Return the page with the form that fits once more as it was sent; samples that are none are
    left out.
    """
    if view.again is None:
        return view
    samples = dict[str, ExcludedSample]()
    for name, value in pairs:
        if name == "excluded":
            with suppress(InvalidInput):
                samples[value] = sample_of(value)
    return replace(view, again=view.again.typed(pairs), excluded=tuple(samples.items()))


def fit_view(record: FitRecord) -> FitView:
    """Return the page of a stored fit."""
    fit, sent = record.fit, stored_fit_out(record)
    options = record.request.options if record.request else None
    is_document = record.request is not None and record.request.is_document
    return FitView(
        id=record.id,
        title=TITLES[fit.kind],
        method=str(fit.method),
        understood=understood(sent),
        notices=notice_items(fit.notices),
        parameters=as_html(_parameters(sent)),
        logp=as_html(_logp(sent)),
        excluded=tuple((sample_value(sample), sample) for sample in options.excluded)
        if options
        else (),
        again=None if is_document else again_form(record),
        digests=record.trace_digests,
        missing=_missing(fit),
        wanted=WANTED.get(fit.kind, ""),
    )


def _missing(fit: TraceFit) -> str:
    try:
        fit.to_model()
    except MeasurementMissing as refusal:
        return refusal.detail
    return ""


def _parameters(fit: FitOut) -> Iterator[Part]:
    if fit.fitted_stages:
        yield parameters_table(fit.fitted_stages)


def _logp(fit: FitOut) -> Iterator[Part]:
    if fit.loggp is not None and fit.loggp.sizes:
        yield logp_table(fit.loggp)
