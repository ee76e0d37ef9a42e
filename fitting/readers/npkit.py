"""NPKit: its trace of events inside NCCL, RCCL or MSCCL, each kind of event a stage.

    {"traceEvents": [
      {"ph": "B", "ts": 10.0, "pid": 0, "tid": 1, "name": "NPKIT_EVENT_SEND_ENTRY",
       "cat": "GPU", "args": {"rank": 0, "size_0": 65536}},
      {"ph": "E", "ts": 17.5, "pid": 0, "tid": 1, "args": {"size": 65536, "bw (GB/s)": 8.7}}]}

An end has no name: it closes the last beginning of its process and thread. Times are µs, sizes
bytes. The file of statistics (npkit_event_stats.txt) sums bandwidths over channels, of which no
time can be made, and is refused by name; so are trace events of other programs.
"""

from __future__ import annotations

from typing import Any

from domain.measurement import Reading, Samples, TraceKind
from fitting.contract import JSON_BEGINS, ReaderSpec, mark
from fitting.readers.stage_rows import StageRows
from fitting.readers.text import check_kind, decoded, format_left_out, format_sizes, refuse
from fitting.readers.tool_json import documents_of, number, part, parts, tool_of, whole

FORMAT = "NPKit trace"
_PREFIX, _SUFFIX = "NPKIT_EVENT_", "_ENTRY"


def _detects(head: str) -> bool:
    return tool_of(head) == "trace events" or head.startswith("gpu_rank_")


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    text = decoded(content)
    if text.startswith("gpu_rank_"):
        refuse(
            "the statistics of NPKit sum bandwidths over channels, of which no time can be made: "
            "pass npkit_event_trace.json, as written without --gpu_run_stats"
        )
    rows, others = StageRows(), 0
    begun: dict[tuple[str, str], dict[str, Any]] = {}
    for document in documents_of(text):
        for event in parts(document, "traceEvents"):
            place = (str(event.get("pid")), str(event.get("tid")))
            if event.get("ph") == "B" and str(event.get("name")).startswith(_PREFIX):
                begun[place] = event
            elif event.get("ph") == "E" and place in begun:
                _add(rows, begun.pop(place), event)
            else:
                others += 1
    trace = rows.trace()
    if trace is None:
        refuse(
            f"no event of NPKit with a size, its beginning and its end, and {others} others: trace "
            "events are read of NPKit alone; a CSV of sizes and times is read with columns"
        )
    check_kind(trace, kind, FORMAT)
    stated = [
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("measured", "from each event's beginning to its end, on every rank and channel"),
        ("statistic", "every event"),
    ]
    if others:
        stated.append(("events_left_out", str(others)))
    counted = format_sizes(Samples(trace.message_bytes, trace.stage_us[0]))
    left_out = format_left_out(*rows.stages.values())
    return Reading(FORMAT, trace, (*stated, *counted, *left_out))


def _add(rows: StageRows, begin: dict[str, Any], end: dict[str, Any]) -> None:
    name = str(begin["name"])[len(_PREFIX) :].removesuffix(_SUFFIX).lower()
    stage = "".join(one if one.isalnum() else "_" for one in name)[:60] or "event"
    size = whole(part(end, "args"), "size") or whole(part(begin, "args"), "size_0")
    first, last = number(begin, "ts"), number(end, "ts")
    if first is None or last is None:
        rows.of(stage).leave_out("not a number")
    else:
        rows.of(stage).add(size or 0, last - first)


SPEC = ReaderSpec(
    format=FORMAT,
    about="npkit_event_trace.json of NPKit: a stage a kind of event",
    layout='JSON with "traceEvents", whose names begin with NPKIT_EVENT_',
    marks=(
        mark('the key "traceEvents"', r'"traceEvents"\s*:'),
        mark("names NPKIT_EVENT_...", r"\bNPKIT_EVENT_"),
    ),
    detects=_detects,
    read=_read,
    begins=JSON_BEGINS,
)
