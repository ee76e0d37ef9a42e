"""A C header with a plan table compiled in, for C11 and C++17; it needs no library and no file.

Exact     the integer arithmetic of docs/format.md: the same bytes as from every other reader.
Traps     a comment must not be ended by a name from outside, so every line of the head goes through
          `commentary`; an identifier must not hold two underscores in a row (reserved in C++) nor
          begin with a digit, so the prefix is made of the profile's name and not the name itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from itertools import accumulate

from domain.errors import InvalidInput
from domain.plan_table import PlanTable
from exports.targets.c_header_code import FUNCTIONS
from exports.targets.commentary import commentary
from exports.targets.target import ExportInput, Takes, Target, TargetOption

_INDENT = "   "
_WIDTH = 96
_MAX_PREFIX = 48
_PREFIX = r"([a-z](_?[a-z0-9]){0,46})?"


def render(given: ExportInput) -> str:
    """The header's text. Raises InvalidInput where there is no table."""
    if given.table is None:
        raise InvalidInput("expected a plan table", field="table")
    table, prefix = given.table.table, prefix_for(given)
    capitals = prefix.upper()
    parts = (
        f"/*\n{commentary(given, TARGET, prefix=_INDENT)}{_promises(table, prefix)} */",
        f"#ifndef {capitals}_H\n#define {capitals}_H\n\n#include <stddef.h>\n#include <stdint.h>",
        _figures(table, capitals),
        *_arrays(table, prefix),
        FUNCTIONS.substitute(p=prefix, P=capitals) + f"\n#endif /* {capitals}_H */\n",
    )
    return "\n\n".join(parts)


def prefix_for(given: ExportInput) -> str:
    """What every name begins with: the option, or `sluice_` and the profile's name."""
    if given.options["prefix"]:
        return given.options["prefix"]
    words = re.sub(r"[^a-z0-9]+", "_", given.profile).strip("_")
    return f"sluice_{words or 'plan'}"[:_MAX_PREFIX].rstrip("_")


def _promises(table: PlanTable, prefix: str) -> str:
    cut_gap = max(cut.relative_gap for cut in table.cuts)
    repeat_gap = max(repeat.relative_gap for repeat in table.repeats)
    lines = (
        f"messages of {table.min_message_bytes} to {table.max_message_bytes} bytes",
        *_limits(table),
        f"tolerance asked for: {_share(table.relative_gap)}; proven of this model at every size:",
        f"  the schedule is at most {_proven(cut_gap)} over every other one,",
        f"  the repeated size at most {_proven(repeat_gap)} over every other repeated size",
        f"lookups: {prefix}_repeat, {prefix}_schedule,",
        f"  {prefix}_begin with {prefix}_next",
    )
    return "".join(f"{_INDENT}{line}\n" for line in lines)


def _limits(table: PlanTable) -> Iterator[str]:
    limits = table.limits
    max_bytes = f" to {limits.max_fragment_bytes}" if limits.max_fragment_bytes else " and more"
    maximum = min(limits.max_fragments or table.fragment_cap, table.fragment_cap)
    yield f"fragments of {limits.min_fragment_bytes}{max_bytes} bytes, at most {maximum} of them"
    if limits.alignment_bytes > 1:
        yield f"every fragment but the last is a multiple of {limits.alignment_bytes} bytes"


def _share(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _proven(share: float) -> str:
    """Three digits, rounded up: less would not be proven."""
    percent = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(share) * 100)
    return f"{percent.normalize():f} %"


def _figures(table: PlanTable, capitals: str) -> str:
    sizes = (
        ("MIN_MESSAGE_BYTES", table.min_message_bytes),
        ("MAX_MESSAGE_BYTES", table.max_message_bytes),
        ("ALIGNMENT_BYTES", table.limits.alignment_bytes),
    )
    counts = (
        ("MAX_FRAGMENTS", max(cut.fragments for cut in table.cuts)),
        ("CUTS", len(table.cuts)),
        ("REPEATS", len(table.repeats)),
    )
    return "\n".join(
        (
            *(f"#define {capitals}_{name} UINT64_C({value})" for name, value in sizes),
            *(f"#define {capitals}_{name} {value}" for name, value in counts),
        )
    )


def _arrays(table: PlanTable, prefix: str) -> Iterator[str]:
    """The plan table's columns; of positions only those inside the messages, in units."""
    counts = [0, *(cut.fragments - 1 for cut in table.cuts)]
    yield (
        "/* Cuts: message sizes, where each one's positions begin (and the last one's end), and\n"
        "   the positions: where the fragments but the last end, in units of the alignment. */\n"
        + _array(f"{prefix}_cut_message", [cut.message_bytes for cut in table.cuts])
    )
    yield _array(f"{prefix}_cut_first", list(accumulate(counts)))
    yield _array(f"{prefix}_position", list(_positions(table)) or [0])
    yield (
        "/* Repeated sizes: message sizes, and each one's size; 0 where there is none. */\n"
        + _array(f"{prefix}_repeat_message", [repeat.message_bytes for repeat in table.repeats])
    )
    yield _array(f"{prefix}_repeat_size", [repeat.size_bytes for repeat in table.repeats])


def _positions(table: PlanTable) -> Iterator[int]:
    unit = table.limits.alignment_bytes
    for cut in table.cuts:
        yield from (end // unit for end in accumulate(cut.fragment_bytes[:-1]))


def _array(name: str, values: Sequence[int]) -> str:
    kind = "uint32_t" if max(values) < 2**32 else "uint64_t"
    return f"static const {kind} {name}[] = {{\n{_lines(values)}\n}};"


def _lines(values: Iterable[int]) -> str:
    lines: list[str] = []
    line = "   "
    for value in values:
        word = f" {value},"
        if len(line) + len(word) > _WIDTH:
            lines.append(line)
            line = "   "
        line += word
    return "\n".join((*lines, line))


TARGET = Target(
    name="c-header",
    title="C header with the plan table compiled in",
    takes=Takes.TABLE,
    render=render,
    suffix="h",
    grammar="ISO C11 and C++17",
    media_type="text/x-c; charset=utf-8",
    options=(
        TargetOption(
            "prefix",
            "",
            "what every name in it begins with; empty: sluice_ and the profile's name",
            pattern=_PREFIX,
        ),
    ),
    verified_by="gcc 12.2 and clang 14.0",
)
