"""perftest's --out_json: one test of one message size a file, or several files put together.

    {"test_info": {"test": "RDMA_Write_Latency_Test", ...},
     "results": {"MsgSize": 4096, "n_iterations": 1000, "t_typical": 3.07, "t_avg": 3.10, ...}}

Times are µs: t_typical is the median and half a round trip, but a read or an atomic is a whole
operation; t_avg where a run by duration has no median. Of a bandwidth test MsgRate is taken, in
millions a second: the JSON does not say the unit of its bandwidths.
"""

from __future__ import annotations

from typing import Any

from domain.measurement import MessageTrace, Reading, TraceKind
from domain.solution import Notice
from fitting.contract import JSON_BEGINS, ReaderSpec, mark
from fitting.readers.perftest import BOTH_WAYS
from fitting.readers.text import (
    Collector,
    check_kind,
    decoded,
    format_left_out,
    format_sizes,
    refuse,
)
from fitting.readers.tool_json import documents_of, number, part, tool_of, whole

FORMAT = "perftest JSON"
_QPS = "number_of_qps"
_TIMES = ("t_typical", "t_avg")


def _detects(head: str) -> bool:
    return tool_of(head) == "perftest"


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    latency, interarrival = Collector(), Collector()
    tests, columns = dict[str, None](), dict[str, None]()
    for document in documents_of(decoded(content)):
        test = str(part(document, "test_info").get("test", ""))[:60]
        _check(test, tests)
        results, qps = part(document, "results"), _queue_pairs(part(document, "test_info"))
        one = latency if "Latency" in test else interarrival
        named = () if qps is None else (("qps", str(qps)),)
        one.begin_size(whole(results, "MsgSize") or 0, at_once=qps or 1, named=named)
        if "Latency" in test:
            _add_latency(results, latency, columns)
        else:
            _add_rate(results, interarrival, columns)
    if not latency and not interarrival:
        refuse("no results with a message size and a time or a message rate (MsgRate)")
    trace = MessageTrace(latency.samples(), interarrival.samples())
    check_kind(trace, kind, FORMAT)
    is_whole = any("Read" in test or "Atomic" in test for test in tests if "Latency" in test)
    stated = [("format", FORMAT), ("tests", ", ".join(tests)[:300])]
    if trace.latency is not None:
        stated.append(("latency_is", "a whole operation" if is_whole else "half a round trip"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "1 / MsgRate"))
    stated.append(("statistic", ", ".join(columns)))
    counted = format_sizes(trace.latency, trace.interarrival)
    left_out = format_left_out(latency, interarrival)
    understood, notices = (*stated, *counted, *left_out), _notices(is_whole=is_whole)
    return Reading(FORMAT, trace, understood, notices, (latency.spans(), interarrival.spans()))


def _queue_pairs(info: dict[str, Any]) -> int | None:
    """How many sent at once, where the document says it."""
    return next((whole(info, name) for name in info if name.lower() == _QPS), None)


def _check(test: str, tests: dict[str, None]) -> None:
    """Keep the test's name. Raises UnreadableTrace for one that cannot be read with the others."""
    if "Bidirectional" in test:
        refuse(f"{test} is not read: {BOTH_WAYS}")
    verbs = {one.replace("RDMA_", "").split("_")[0] for one in (*tests, test)}
    if len(verbs) > 1:
        refuse(
            f"{', '.join(sorted(verbs))} in one file: each takes a way of its own; "
            "pass one at a time"
        )
    tests[test] = None


def _add_latency(results: dict[str, Any], part: Collector, columns: dict[str, None]) -> None:
    size = whole(results, "MsgSize")
    column = next((name for name in _TIMES if number(results, name) is not None), None)
    if size is None or column is None:
        part.leave_out("without a message size or a time")
        return
    columns[column] = None
    part.add(size, number(results, column) or 0.0)


def _add_rate(results: dict[str, Any], part: Collector, columns: dict[str, None]) -> None:
    size, rate = whole(results, "MsgSize"), number(results, "MsgRate")
    if size is None or rate is None:
        part.leave_out("without a message size or a message rate")
    elif rate <= 0.0:
        part.leave_out("of a message rate that was printed as 0")
    else:
        columns["MsgRate"] = None
        part.add(size, 1.0 / rate)


def _notices(*, is_whole: bool) -> tuple[Notice, ...]:
    if not is_whole:
        return ()
    return (
        Notice(
            "read_is_round_trip",
            "the latency of an RDMA read or atomic has the way of the request in it; it is "
            "taken as it is, as a larger overhead",
        ),
    )


SPEC = ReaderSpec(
    format=FORMAT,
    about="ib_send_lat and the like with --out_json",
    layout='JSON with "test_info" and "results"',
    marks=(
        mark('the key "test_info"', r'"test_info"\s*:'),
        mark('the key "results"', r'"results"\s*:'),
    ),
    detects=_detects,
    read=_read,
    begins=JSON_BEGINS,
)
