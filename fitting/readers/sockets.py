"""Messages over sockets: sockperf's full log, and iperf3's JSON; one message size a run.

    ... --mps=600000 --burst=1 --reply-every=1 --msg-size=1024 --time=1
    packet, txTime(sec), rxTime(sec), latency(usec)
    0, 2.424575929, 2.424591201, 7.636

sockperf's latency is half a round trip of each packet, in µs. A test whose messages do not wait for
each other has queues in its latencies, and is refused: reply-every is 1 in a ping-pong. The summary
does not say its message size: the full log (--full-log FILE) does.

    {"start": {"test_start": {"num_streams": 1, "blksize": 65536, ...}},
     "intervals": [{"sum": {"bits_per_second": 9881345276.5, "omitted": false, ...}}, ...]}

iperf3: each interval's block size / rate is the time between blocks, as the sending program writes
them. Several streams (`streams`) are so many lanes: they are taken where there is no run of one
stream, or where they are chosen. Both directions at once share the stages and are left out.
"""

from __future__ import annotations

import re
from typing import Any

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import JSON_BEGINS, ReaderSpec, mark
from fitting.readers.text import (
    Collector,
    check_kind,
    decoded,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
)
from fitting.readers.tool_json import documents_of, number, part, parts, tool_of, whole

SOCKPERF_FORMAT, IPERF_FORMAT = "sockperf full log", "iperf3 JSON"
_SIZE = re.compile(r"--msg-size=([0-9]{1,9})\b")
_REPLIES = re.compile(r"--reply-every=([0-9]{1,9})\b")
_HEADER = re.compile(r"^packet, ?txTime\(sec\), ?rxTime\(sec\), ?latency\(usec\)")
_ROW = re.compile(r"^[0-9]{1,12}, [0-9.]{1,30}, [0-9.]{1,30}, ([0-9.]{1,20})$")
_SUMMARY = "sockperf: Summary: Latency is"
# What the end of a run in both directions has, by versions.
_BOTH_WAYS = frozenset(
    {"sum_bidir_reverse", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"}
)
_IPERF_LINES = re.compile(
    r"^\[[ \t]{0,4}ID\][ \t]{1,8}Interval[ \t]{1,20}Transfer[ \t]{1,20}(?:Bitrate|Bandwidth)\b",
    re.MULTILINE,
)
_BITS, _US_PER_S = 8.0, 1e6


def _detects_sockperf(head: str) -> bool:
    return "txTime(sec)" in head or _SUMMARY in head or "sockperf: [Total Run]" in head


def _read_sockperf(content: bytes, kind: TraceKind | None) -> Reading:
    samples, size, runs = Collector(), 0, 0
    in_rows = False
    for line in lines_of(content):
        if named := _SIZE.search(line.text):
            size, in_rows = int(named.group(1)), False
            replies = _REPLIES.search(line.text)
            if replies and replies.group(1) != "1":
                refuse(
                    f"line {line.number}: {replies.group()} is of a test under load, whose "
                    "messages do not wait for each other; run sockperf ping-pong"
                )
        elif _HEADER.match(line.text):
            in_rows, runs = size > 0, runs + 1
            samples.begin_size(size)
        elif in_rows and line.text[0].isdigit():
            row = _ROW.match(line.text)
            value = number_of(row.group(1)) if row and line.is_whole else None
            if value is None:
                samples.leave_out("cut off or not a number")
            else:
                samples.add(size, value)
    if not samples:
        refuse(
            "no rows of packets with their message size: the summary of sockperf does not say it; "
            "run sockperf ping-pong with --full-log FILE, once for each -m SIZE, and pass the files"
        )
    trace = MessageTrace(latency=samples.samples())
    check_kind(trace, kind, SOCKPERF_FORMAT)
    stated = (
        ("format", SOCKPERF_FORMAT),
        ("time_unit", "µs"),
        ("latency_is", "half a round trip"),
        ("statistic", "every packet"),
        ("runs", str(runs)),
    )
    understood = (*stated, *format_sizes(trace.latency), *format_left_out(samples))
    return Reading(SOCKPERF_FORMAT, trace, understood, conditions=(samples.spans(), ()))


def _detects_iperf(head: str) -> bool:
    return tool_of(head) == "iperf3" or _is_printed(head)


def _is_printed(text: str) -> bool:
    """Whether these are lines of iperf for people, and no JSON."""
    return '"test_start"' not in text and _IPERF_LINES.search(text) is not None


def _read_iperf(content: bytes, kind: TraceKind | None) -> Reading:
    text = decoded(content)
    if _is_printed(text):
        refuse(
            "the lines of iperf do not say the size of its blocks: run iperf3 -c HOST -l 64K -J, "
            "once for each size"
        )
    samples, runs = Collector(), 0
    protocols, left_out = dict[str, None](), dict[str, None]()
    for document in documents_of(text):
        start = part(document, "start", "test_start")
        if why := _unusable(document, start):
            left_out[why] = None
            continue
        runs += 1
        protocols[str(start.get("protocol"))[:20]] = None
        size, streams = whole(start, "blksize") or 0, whole(start, "num_streams") or 1
        named = (("streams", str(streams)),)
        samples.begin_size(size, at_once=streams, named=named, is_spare=streams > 1)
        for interval in parts(document, "intervals"):
            _add_interval(samples, size, part(interval, "sum"))
    listed = ", ".join(left_out)[:300]
    if not samples:
        refuse(
            f"no interval of iperf3 with a block size and a rate; left out are {listed or 'none'}"
        )
    trace = MessageTrace(interarrival=samples.samples())
    check_kind(trace, kind, IPERF_FORMAT)
    stated = [
        ("format", IPERF_FORMAT),
        ("tests", ", ".join(protocols)),
        ("interarrival_is", "block size / bits per second, of all streams together"),
        ("statistic", "every interval but those that iperf3 omits"),
        ("runs", str(runs)),
    ]
    if listed:
        stated.append(("runs_left_out", listed))
    understood = (*stated, *format_sizes(trace.interarrival), *format_left_out(samples))
    return Reading(IPERF_FORMAT, trace, understood, conditions=((), samples.spans()))


def _unusable(document: dict[str, Any], start: dict[str, Any]) -> str:
    """Why a run is none of blocks one way; empty where it is."""
    if "error" in document:
        return "a run that ended with an error"
    if not whole(start, "num_streams"):
        return "a run of no stream"
    if start.get("bidir") in (1, True) or _BOTH_WAYS.intersection(part(document, "end")):
        return "a run in both directions at once"
    if number(start, "target_bitrate"):
        return "a run at a bit rate that was asked for (-b): use -b 0"
    return ""


def _add_interval(samples: Collector, size: int, total: dict[str, Any]) -> None:
    rate = number(total, "bits_per_second")
    if total.get("omitted") is True:
        samples.leave_out("that iperf3 omits")
    elif rate is None:
        samples.leave_out("cut off or not a number")
    elif rate <= 0.0:
        samples.leave_out("of a rate of 0")
    else:
        samples.add(size, size * _BITS / rate * _US_PER_S)


SOCKPERF_SPEC = ReaderSpec(
    format=SOCKPERF_FORMAT,
    about="sockperf ping-pong --full-log",
    layout='"--msg-size=...", then "packet, txTime(sec), rxTime(sec), latency(usec)"',
    marks=(
        mark("a column txTime(sec)", r"\btxTime\(sec\)"),
        mark("its parameters with --msg-size", r"--msg-size="),
    ),
    detects=_detects_sockperf,
    read=_read_sockperf,
)
IPERF_SPEC = ReaderSpec(
    format=IPERF_FORMAT,
    about="iperf3 -J, one block size (-l) a run",
    layout='JSON with "start", "test_start" and "intervals"',
    marks=(
        mark('the key "test_start"', r'"test_start"\s*:'),
        mark('the key "intervals"', r'"intervals"\s*:'),
    ),
    detects=_detects_iperf,
    read=_read_iperf,
    begins=JSON_BEGINS,
)
