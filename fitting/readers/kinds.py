"""Whether a file is what the user says it is."""

from __future__ import annotations

from domain.errors import UnreadableTrace
from domain.measurement import Trace, TraceKind

_ASKED = {
    TraceKind.DIRECT: "the time of every stage",
    TraceKind.INDIRECT: "inter-arrival times",
    TraceKind.END_TO_END: "latencies alone",
    TraceKind.LOGP: "signatures of an end point",
}


def check_kind(trace: Trace, kind: TraceKind | None, format_name: str) -> None:
    """Raise UnreadableTrace, naming the kind, where it contradicts what the file holds."""
    if kind is None or kind is trace.kind:
        return
    raise UnreadableTrace(
        f"kind {kind} means {_ASKED[kind]}; this file ({format_name}) holds {_ASKED[trace.kind]}: "
        f"it is {trace.kind}",
        field="kind",
    )
