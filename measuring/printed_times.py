"""The time of a run: its own, the last number that a program prints, or one that a pattern finds.

from measuring.printed_times import TimeReader
TimeReader.of("last", unit="ms").time_ns(b"sent in 12.5", b"", wall_ns=2e7, size=1 << 20)  # 1.25e7

A number has its unit beside it, as 12.5 ms, 1.2 s or 3.1 GB/s, or that of the reader. A pattern of
the user's looks for its match in a process of its own, which the kernel ends when time is up: some
patterns take longer than anybody waits.
"""

from __future__ import annotations

import marshal
import re
import subprocess
import sys
from dataclasses import dataclass
from math import ceil

from domain.errors import InvalidInput, NotMeasurable, UnitMismatch
from domain.units import CostUnit, OverheadUnit, unit_named

MAX_NS = 1e15  # eleven days
WALL, LAST = "wall", "last"
MAX_PATTERN = 200  # characters
MATCH_S = 5.0  # for a pattern
_SHOWN = 40
# Reads (pattern, texts, seconds), writes the group of the last match of the first text with one.
_MATCHER = """
import marshal, re, signal, sys
source, texts, seconds = marshal.load(sys.stdin.buffer)
signal.alarm(seconds)
found = None
for text in texts:
    for found in re.finditer(source, text, re.MULTILINE):
        pass
    if found is not None:
        break
marshal.dump(None if found is None else found[1] or "", sys.stdout.buffer)
"""
_NUMBER = re.compile(r"[-+]?([0-9]{1,15}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?")
# What stands beside it: blanks, then letters, µ, % and a slash.
# A number even with commas, so that no part of 1,234.5 is taken for one.
_DIGITS = r"[-+]?\.?[0-9][0-9.,]*(?:[eE][-+]?[0-9]{1,3})?"
_LAST = re.compile(rf"(?<![\w.,])({_DIGITS})[ \t]{{0,4}}([A-Za-zµμ%][A-Za-zµμ%/]{{0,15}})?")
_WHOLE = re.compile(rf"\s*({_DIGITS})\s*(\S.*)?", re.DOTALL)
# Rates that stand for a cost a byte in `domain.units` begin at MB/s; programs print these too.
_SMALL_RATES = {"b/s": 1.0, "kb/s": 1e3, "kib/s": 1024.0, "k/s": 1024.0}


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Where the time of a run is read, and in which unit: `source` is WALL, LAST or a pattern.

    `unit` is that of a number that has none beside it: of a time, or of a rate where `is_rate`.
    Make one by `of`.
    """

    source: str
    pattern: re.Pattern[str] | None = None
    unit: OverheadUnit | float | None = None
    is_rate: bool = False

    @classmethod
    def of(
        cls, source: str = WALL, *, unit: str | None = None, is_rate: bool = False
    ) -> TimeReader:
        """Return the reader for these words of the user.

        Raises InvalidInput for a pattern that is none, or has not one group, and for a unit that is
        not known or goes with nothing.
        """
        if source == WALL and (unit is not None or is_rate):
            raise InvalidInput(
                f"{'unit' if unit is not None else 'rate'}: it goes with --time last or a pattern",
                field="unit" if unit is not None else "rate",
            )
        pattern = _pattern(source) if source not in (WALL, LAST) else None
        known = None if unit is None else _unit(unit, is_rate=is_rate)
        if unit is not None and known is None:
            example = "MB/s or GiB/s" if is_rate else "ns, us, ms or s"
            raise InvalidInput(f"expected a unit, as {example}", field="unit")
        return cls(source, pattern, known, is_rate)

    @property
    def is_wall(self) -> bool:
        """Whether nothing that is printed is read."""
        return self.source == WALL

    def time_ns(
        self,
        printed: bytes,
        errors: bytes,
        *,
        wall_ns: float,
        size: int,
        limit_s: float = MATCH_S,
    ) -> float:
        """Return the time of a run in ns: above 0, unless 0 is printed.

        `printed` is what it wrote to standard output, `errors` to standard error, where a pattern
        looks too. A rate is of `size` bytes. Raises NotMeasurable where there is no time, also
        where its pattern finds none within `limit_s`, InvalidInput where that takes longer than
        MATCH_S, and UnitMismatch where a number has no unit.
        """
        if self.is_wall:
            return wall_ns
        text = printed.decode(errors="replace")
        if self.pattern is not None:
            found = _last_group(self.source, (text, errors.decode(errors="replace")), limit_s)
            if found is None:
                raise NotMeasurable("nothing that it printed matches --time")
            number, unit = _parts(found)
        else:
            last = _last_match(_LAST, text)
            if last is None:
                raise NotMeasurable(_expected(text, is_rate=self.is_rate))
            number, unit = last[1], (last[2] or "")
        return self._ns(number, unit, size, text)

    def _ns(self, number: str, beside: str, size: int, text: str) -> float:
        number = number.rstrip(".,")
        unit = _unit(beside, is_rate=self.is_rate) if beside else self.unit
        if _NUMBER.fullmatch(number) is None or (beside and unit is None):
            raise NotMeasurable(_expected(text, is_rate=self.is_rate))
        if unit is None:
            example = "as 3.1 GB/s" if self.is_rate else "as 12.5 ms"
            raise UnitMismatch(
                f"expected a unit beside the {number} that it printed, {example}, or --unit",
                field="unit",
            )
        value = float(number)
        if isinstance(unit, OverheadUnit):
            time_ns = unit.to_us(value) * 1e3
        else:
            time_ns = size / (value * unit) * 1e9 if value > 0.0 else -1.0
        if not 0.0 <= time_ns <= MAX_NS:
            raise NotMeasurable(_expected(text, is_rate=self.is_rate))
        return time_ns


def _pattern(source: str) -> re.Pattern[str]:
    if len(source) > MAX_PATTERN:
        raise InvalidInput(f"expected at most {MAX_PATTERN} characters", field="time")
    try:
        pattern = re.compile(source, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as refusal:
        raise InvalidInput(
            f"expected wall, last or a regular expression: {refusal}", field="time"
        ) from None
    if pattern.groups != 1:
        raise InvalidInput(
            r"expected wall, last or a regular expression with one group, as 'copied, ([\d.]+) s'",
            field="time",
        )
    return pattern


def _unit(text: str, *, is_rate: bool) -> OverheadUnit | float | None:
    """A unit of times, or of rates in bytes a second; None for what is none."""
    if not is_rate:
        return unit_named(text.rstrip("."), OverheadUnit)
    plain = text.strip().rstrip(".")
    small = _SMALL_RATES.get(plain.lower()) if plain[:1] != "b" else None
    if small is not None:
        return small
    found = unit_named(plain, CostUnit)
    if found is None or not found.is_bandwidth:
        return None
    try:
        return 1e9 / found.to_ns_per_byte(1.0)
    except UnitMismatch:
        return None


def _parts(text: str) -> tuple[str, str]:
    """The number and the unit of what a group matched."""
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise NotMeasurable(f"expected a number in the group of --time, got {text[:_SHOWN]!r}")
    return found[1], (found[2] or "").strip()


def _last_group(source: str, texts: tuple[str, str], limit_s: float) -> str | None:
    """The group of a pattern's last match, in the first of these texts that has one."""
    limit_s = max(0.0, min(limit_s, MATCH_S))
    # The alarm is for where nobody is left to end it.
    asked = marshal.dumps((source, texts, ceil(limit_s) + 1))
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MATCHER],
            input=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit_s,
            check=True,
        )
    except subprocess.TimeoutExpired:
        if limit_s >= MATCH_S:
            raise InvalidInput(
                f"no match after {MATCH_S:g} s; expected a pattern without repetitions in "
                "repetitions",
                field="time",
            ) from None
        raise NotMeasurable("no time was left to look for what --time matches") from None
    except (OSError, subprocess.CalledProcessError):
        raise NotMeasurable("what --time matches could not be looked for") from None
    found: str | None = marshal.loads(answer.stdout)
    return found


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for last in pattern.finditer(text):  # noqa: B007
        pass
    return last


def _expected(text: str, *, is_rate: bool) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = lines[-1][:_SHOWN] if lines else ""
    what = (
        "a rate in its last line, as 3.1 GB/s"
        if is_rate
        else ("a time in its last line, as 12.5 (µs) or 0.0012 s")
    )
    return f"expected {what}, got {shown!r}"
