"""A further file of measurements beside those of a stored fit: both fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request

from app.flows.held_trace import HeldTrace
from app.web.kept_fits import kept_fit, stored_traces
from domain.fit import FitOptions
from domain.measurement import TraceKind
from models.records import FitRecord, FitRequest

WANTED = {
    TraceKind.END_TO_END: "A bandwidth test of the same path: osu_bw, ib_send_bw, ib_write_bw, "
    "ucx_perftest tag_bw, or CSV message_bytes,interarrival_us",
    TraceKind.INDIRECT: "A latency test of the same path: osu_latency, IMB PingPong, ib_send_lat, "
    "ucx_perftest tag_lat, or CSV message_bytes,latency_us",
    TraceKind.LOGP: "What is missing, of the same end point: CSV message_bytes,round_trip_us, or "
    "signatures of further sizes",
}


async def fit_beside(
    request: Request, record: FitRecord, more: Sequence[HeldTrace], added: FitRequest
) -> str:
    """The stored measurements and these as one; the new fit's address.

    `added` has the kinds and exclusions that came with them. Raises what `Service.fit` does.
    """
    before = record.request or FitRequest(FitOptions())
    stored = await stored_traces(request, record)
    options = before.options
    asked = replace(
        before,
        options=replace(options, excluded=(*options.excluded, *added.options.excluded)),
        kinds=(*_kinds(before.kinds, len(stored)), *_kinds(added.kinds, len(more))),
    )
    return await kept_fit(request, (*stored, *more), asked)


def _kinds(kinds: Sequence[TraceKind | None], count: int) -> Sequence[TraceKind | None]:
    return kinds or (None,) * count
