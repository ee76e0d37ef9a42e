"""Which formats a file that nothing recognises comes near to, and what it lacks of them.

Every format names a few marks that all of its files have. Those that a file has some of are near
it, by the share that it has. Headers of simple tables (`size,time`) get the names that the
project's own CSV would give them. What is told of the file are line numbers, and names of columns
that are short and plain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.trace_formats import FormatMiss, HeaderHint
from fitting.contract import ReaderSpec

MOST_NEAR = 4
_MOST_LINES = 400
_MOST_COLUMNS = 12
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ .-]{0,39}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9.][0-9.eE+-]*", re.ASCII)
_UNIT = re.compile(
    r"(?:[\s_]+|\s*[(\[]\s*)(us|usec|µs|μs|ms|msec|ns|nsec|s|sec|seconds)\s*[)\]]?$", re.IGNORECASE
)
_MICROSECONDS = {"us", "usec", "µs", "μs"}
_SIZE = re.compile(
    r"(?:(?:message|msg|packet|block|buffer|transfer|data)[_ ]?)?"
    r"(?:bytes?|size|length|len)(?:[_ ]?[(\[]?(?:b|bytes?)[)\]]?)?",
    re.IGNORECASE,
)
_REPETITION = re.compile(r"#|i|n|no|rep\w*|iter\w*|run|trial|sample|count", re.IGNORECASE)
_OF_WHOLE_MESSAGES = re.compile(
    r"t|time|lat(?:ency)?|duration|elapsed|rtt|avg|mean|median|us|usec", re.IGNORECASE
)
_INTERARRIVAL = re.compile(r"inter[_ -]?arrival\w*|gap", re.IGNORECASE)


def nearest_formats(head: str, readers: Sequence[ReaderSpec]) -> tuple[FormatMiss, ...]:
    """What the file has some marks of, nearest first; none where it has none."""
    lines = _lines(head)
    found = [(*_miss(lines, reader), place) for place, reader in enumerate(readers)]
    near = sorted((-share, -count, place) for share, count, _, place in found if count)
    return tuple(found[place][2] for _, _, place in near[:MOST_NEAR])


def _lines(head: str) -> list[tuple[int, str]]:
    numbered = enumerate(head.splitlines()[:_MOST_LINES], 1)
    return [(number, line.strip()) for number, line in numbered if line.strip()]


def _miss(lines: list[tuple[int, str]], reader: ReaderSpec) -> tuple[float, int, FormatMiss]:
    """The share of its marks that the file has, how many these are, and what is missing."""
    has = {
        number: {mark for mark in reader.marks if mark.pattern.search(line)}
        for number, line in lines
    }
    known = set().union(*has.values())
    at = max(has, key=lambda number: (len(has[number]), -number), default=1)
    missing = tuple(mark.words for mark in reader.marks if mark not in known)
    share = len(known) / len(reader.marks)
    return share, len(known), FormatMiss(reader.format, at, missing)


def header_hint(head: str) -> HeaderHint | None:
    """How the header of a simple table would be written; None where there is none to be seen."""
    content = [line for _, line in _lines(head) if not line.startswith("#")]
    separator, names = _columns(content[0]) if content else (None, [])
    if not 2 <= len(names) <= _MOST_COLUMNS:
        return None
    if separator and all(_NUMBER.fullmatch(name) for name in names):
        return _hint([f"stage{at}_us" for at in range(1, len(names))])
    place = next((at for at, name in enumerate(names) if _SIZE.fullmatch(name)), None)
    if place is None or any(_NUMBER.fullmatch(name) for name in names):
        return None
    others = [name for at, name in enumerate(names) if at != place]
    times = [name for name in others if not _REPETITION.fullmatch(name)]
    if not times:
        return None
    columns = _whole(times) or [_stage_column(name, at) for at, name in enumerate(times, 1)]
    units = {found.group(1).lower() for name in times if (found := _UNIT.search(name))}
    needs = ["with commas between columns"] if separator != "," else []
    needs += ["with all times in µs"] if units - _MICROSECONDS else []
    return _hint(columns, needs)


def _columns(line: str) -> tuple[str | None, list[str]]:
    """What separates the columns, None for blanks, and their names."""
    separator = next((one for one in (",", ";", "\t", "|") if one in line), None)
    return separator, [name.strip().strip('"').strip() for name in line.split(separator)]


def _whole(times: list[str]) -> list[str] | None:
    """The column of whole messages, where a single one is named as theirs are."""
    if len(times) != 1:
        return None
    name = _UNIT.sub("", times[0]) or times[0]
    if _INTERARRIVAL.fullmatch(name):
        return ["interarrival_us"]
    return ["latency_us"] if _OF_WHOLE_MESSAGES.fullmatch(name) else None


def _stage_column(name: str, place: int) -> str:
    bare = _UNIT.sub("", name)
    plain = re.sub(r"\W+", "_", bare.strip()).strip("_")
    return f"{plain}_us" if plain and _PLAIN_NAME.fullmatch(bare) else f"stage{place}_us"


def _hint(columns: list[str], needs: Sequence[str] = ()) -> HeaderHint:
    row = ",".join(f"{12.5 + 4 * at:g}" for at in range(len(columns)))
    if columns == ["latency_us"]:
        about = (
            "a row is one message: its size in bytes, a number of the repetition, its one-way "
            "latency in µs. If the time is that of a stage, name the column for the stage, as in "
            "copy_us; if it is the time between back-to-back messages, interarrival_us"
        )
    elif columns == ["interarrival_us"]:
        about = (
            "a row is one message: its size in bytes, a number of the repetition, the time between "
            "back-to-back messages in µs"
        )
    else:
        about = (
            "a row is one message: its size in bytes, a number of the repetition, the time of each "
            "stage in µs"
        )
    about = f"{about}; {' and '.join(needs)}" if needs else about
    return HeaderHint(f"message_bytes,repetition,{','.join(columns)}", f"4096,0,{row}", about)
