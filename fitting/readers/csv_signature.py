"""The project's own format of LogP signatures, with or without round trips and receives.

    message_bytes,burst,computation_us,cost_us
    16,1,0,2.9
    message_bytes,repetition,round_trip_us
    16,0,25.1
    message_bytes,repetition,receive_us
    16,0,2.2

A row: `burst` messages were issued one after the other with `computation_us` of computation between
them, and one of them cost `cost_us` on average, computation and the handling of replies included
(Culler96 sec. 3). A receive is of a message that was there
already. Blocks may come in any order and more than once. Lines `# name: value` say how it was
measured. Two of them change what the rows mean: `# handles_replies: false` where the sender only
sends, `# timer_subtracted: true` where the time that timing takes is in none of the costs.
"""

from __future__ import annotations

import re

from domain.measurement import Reading, Samples, SignatureTrace, TraceKind
from fitting.contract import CSV_BEGINS, FIRST_SIZE, ReaderSpec, mark
from fitting.readers.columns import (
    BURST,
    REPETITION,
    SIZE,
    Block,
    Column,
    header_of,
    read_blocks,
    samples_of,
)
from fitting.readers.text import (
    BELOW_ZERO,
    LEFT_OUT,
    check_kind,
    format_reasons,
    format_sizes,
    refuse,
    refuse_below_zero,
)

FORMAT = "signature CSV"
_REPLIES, _TIMER = "handles_replies", "timer_subtracted"
_FACT = re.compile(r"#\s*([a-z][a-z0-9_]{0,31}):\s*(\S[^\x00-\x1f]{0,199})")
_MAX_FACTS = 30
_COMPUTATION, _COST = "computation_us", "cost_us"
_ROUND_TRIP, _RECEIVE = "round_trip_us", "receive_us"
_BURSTS = (SIZE, BURST, Column(_COMPUTATION), Column(_COST))
_ROUND_TRIPS = (SIZE, REPETITION, Column(_ROUND_TRIP))
_RECEIVES = (SIZE, REPETITION, Column(_RECEIVE))
_LAYOUTS = {
    tuple(column.name for column in layout): layout for layout in (_BURSTS, _ROUND_TRIPS, _RECEIVES)
}
_BURSTS_HEADER, _ROUND_TRIPS_HEADER, _RECEIVES_HEADER = (",".join(names) for names in _LAYOUTS)
_HEADERS = f"{_BURSTS_HEADER}, {_ROUND_TRIPS_HEADER} and {_RECEIVES_HEADER}"


def _detects(head: str) -> bool:
    return header_of(head) in _LAYOUTS


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    blocks = {layout: Block(layout) for layout in _LAYOUTS.values()}
    bursts = blocks[_BURSTS]

    def block_of(names: tuple[str, ...], number: int) -> Block:
        if names not in _LAYOUTS:
            refuse(f"line {number}: expected one of the header lines {_HEADERS}")
        return blocks[_LAYOUTS[names]]

    read_blocks(content, block_of)
    facts = _facts(content)
    below = sum(block.below_zero for block in blocks.values())
    if not len(bursts):
        if bursts.below_zero:
            refuse_below_zero(bursts.below_zero, bursts.below_zero)
        refuse(f"no signature: expected at least one row below {_BURSTS_HEADER}")
    sizes, counts = bursts.whole(SIZE.name), bursts.whole(BURST.name)
    cost = bursts.times(_COST)
    round_trip = samples_of([blocks[_ROUND_TRIPS]], _ROUND_TRIP)
    receive = samples_of([blocks[_RECEIVES]], _RECEIVE)
    computation = bursts.times(_COMPUTATION)
    trace = SignatureTrace(
        sizes,
        counts,
        computation,
        cost,
        round_trip=round_trip,
        receive=receive,
        handles_replies=_is_true(facts, _REPLIES, default=True),
        timer_subtracted=_is_true(facts, _TIMER, default=False),
    )
    check_kind(trace, kind, FORMAT)
    stated = [
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("size_unit", "bytes"),
        ("cost_is", "mean per message, computation and replies included"),
        ("bursts", f"{len(set(counts))} lengths: {min(counts)} to {max(counts)} messages"),
    ]
    if round_trip is not None:
        stated.append(("round_trips", f"{len(round_trip)}, full round trips"))
    if receive is not None:
        stated.append(("receives", f"{len(receive)}, of messages that were there"))
    stated += (*format_sizes(Samples(sizes, cost)), *format_reasons({BELOW_ZERO: below}))
    taken = {LEFT_OUT, *(name for name, _ in stated)}  # counted here, whatever the file says
    said = [(name, value) for name, value in facts.items() if name not in taken]
    return Reading(FORMAT, trace, (*stated, *said[:_MAX_FACTS]))


def _facts(content: bytes) -> dict[str, str]:
    """Return what the lines `# name: value` say, the last of each name."""
    lines = (line for line in content.splitlines() if line.startswith(b"#"))
    found = (_FACT.fullmatch(line.decode(errors="replace").strip()) for line in lines)
    return {match[1]: match[2] for match in found if match}


def _is_true(facts: dict[str, str], name: str, *, default: bool) -> bool:
    value = facts.get(name, str(default).lower())
    if value not in ("true", "false"):
        refuse(f"# {name}: expected true or false, got {value!r}")
    return value == "true"


SPEC = ReaderSpec(
    format=FORMAT,
    about="LogP signatures of an end point, with round trips or without",
    layout=f"the header lines {_BURSTS_HEADER} and {_ROUND_TRIPS_HEADER}",
    marks=(
        mark("message_bytes as the first column", FIRST_SIZE),
        mark("burst as the second", r'^[^,]+,\s*"?burst\b'),
        mark("the columns computation_us and cost_us", r"\bcomputation_us\b.*\bcost_us\b"),
    ),
    detects=_detects,
    read=_read,
    begins=CSV_BEGINS,
)
