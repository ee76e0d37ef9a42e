"""Times and names as a reader meets them, and settings as they are typed; one rule for all.

Four significant digits in the unit that suits, zeros included: 184.4 µs, 1.000 ms. A latency beside
its proven bound has as many more as show the gap between the two, in one unit; the bound is rounded
down, so that it never claims more than is proven. Scripts follow the same rules
(app/ui/assets/numbers.js).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from math import floor, inf, log10
from typing import Any, TypeAlias

from app.text.numbers import (
    DIGITS,
    MIN_SHARE,
    format_gap,
    format_percent,
    format_size,
    format_step_size,
    without_zeros,
)
from contract.setting import AnySettingIn, ConfiguredIn, StaticIn, WholeIn
from contract.workload import WorkloadSizeIn
from domain.default_sizes import CURRENT
from domain.errors import InvalidInput
from domain.solution import relative_excess
from domain.uncertain_answer import DecisionCode
from domain.units import format_bytes, parse_bytes, parse_number

SizeWords: TypeAlias = Callable[[int], str]

MAX_DIGITS = 12
GIVEN_DIGITS = 9  # of times that somebody typed, and of axes
_UNITS = (("s", 6), ("ms", 3), ("µs", 0), ("ns", -3))
_PLAIN_US = (1e-9, 1e21)  # beyond, times have an exponent
_TELLING_US = (1e-9, 1e15)  # beyond, DIGITS do
_READ_OFF = 0.05  # relative, of a gap


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """One unit and so many decimals for times that are read beside each other.

    `power` is the unit in µs, as a power of ten. `decimals` None is an exponent.
    """

    name: str
    power: int
    decimals: int | None

    @classmethod
    def of(cls, time_us: float, bound_us: float | None = None, *, digits: int = DIGITS) -> TimeUnit:
        """Return the unit that suits this time; with a bound, with digits that show their gap."""
        if bound_us is not None:
            digits = agreeing_digits(time_us, bound_us, minimum=digits)
        size = abs(time_us)
        if not size:
            return cls("µs", 0, 0)
        if not _PLAIN_US[0] <= size < _PLAIN_US[1]:
            return cls("s", 6, None) if size > 1.0 else cls("ns", -3, None)
        context = Context(prec=digits, rounding=ROUND_HALF_UP)
        magnitude = context.create_decimal(Decimal(size)).adjusted()
        name, power = next((one for one in _UNITS if magnitude >= one[1]), _UNITS[-1])
        return cls(name, power, max(0, digits - 1 - (magnitude - power)))

    @property
    def us(self) -> float:
        """Return the unit in µs."""
        return 10.0**self.power

    @property
    def step_us(self) -> float:
        """Return what the last decimal counts, in µs; 0 for an exponent."""
        return 0.0 if self.decimals is None else 10.0 ** (self.power - self.decimals)

    def text(self, time_us: float) -> str:
        """Return a time in this unit, without its name."""
        return self._text(Decimal(time_us), ROUND_HALF_UP)

    def named(self, time_us: float) -> str:
        """Return a time in this unit."""
        return f"{self.text(time_us)} {self.name}"

    def bound(self, bound_us: float, latency_us: float | None) -> str:
        """Return a lower bound on this latency in this unit, rounded down unless it is reached."""
        if bound_us == latency_us:
            return self.named(bound_us)
        return f"{self._text(Decimal(repr(bound_us)), ROUND_FLOOR)} {self.name}"

    def _text(self, time_us: Decimal, rounding: str) -> str:
        if not time_us.is_finite():
            return "–"
        value = time_us.scaleb(-self.power)
        if self.decimals is None or abs(value) >= Decimal(_PLAIN_US[1]):
            near = Context(prec=DIGITS, rounding=rounding).create_decimal(value)
            mantissa, _, exponent = f"{near:.{DIGITS - 1}e}".partition("e")
            return f"{mantissa}e{int(exponent):+d}"
        last = Decimal(1).scaleb(-self.decimals)
        return f"{value.quantize(last, rounding, Context(prec=400)):f}"


def format_time(time_us: float, digits: int = DIGITS) -> str:
    """Return a time in the unit that suits it: 184.4 µs, 1.000 ms."""
    return TimeUnit.of(time_us, digits=digits).named(time_us)


def format_given_time(time_us: float, digits: int = GIVEN_DIGITS) -> str:
    """Return a time that somebody gave, or of an axis, without zeros at its end: 5 µs."""
    unit = TimeUnit.of(time_us, digits=digits)
    return f"{without_zeros(unit.text(time_us))} {unit.name}"


def format_proven(latency_us: float, bound_us: float) -> tuple[str, str]:
    """Return a latency and its proven bound in one unit, as far apart as their gap says."""
    unit = TimeUnit.of(latency_us, bound_us)
    return unit.named(latency_us), unit.bound(bound_us, latency_us)


def agreeing_digits(latency_us: float, bound_us: float, *, minimum: int = DIGITS) -> int:
    """Return the digits of a latency with which its bound is as far below it as the gap says.

    The latency is rounded to them, the bound to the same place, down. Gaps as read off are within a
    twentieth of the gap itself, or below the smallest gap that is shown.
    """
    gap = relative_excess(latency_us, bound_us, bound_us)
    if not (0.0 < gap < 1.0 and _TELLING_US[0] < latency_us < _TELLING_US[1]):
        return minimum
    magnitude = floor(log10(latency_us)) + 1
    for digits in range(minimum, MAX_DIGITS):
        scale = 10.0 ** (digits - magnitude)
        shown_bound = floor(bound_us * scale)
        shown = floor(latency_us * scale + 0.5) / shown_bound - 1.0 if shown_bound else inf
        if abs(shown - gap) <= _READ_OFF * gap or max(shown, gap) < MIN_SHARE:
            return digits
    return MAX_DIGITS


Document = Mapping[str, Any]
OF_MODEL = "of this model"  # what every proof is of: never of the machine that was measured
PROVEN_BOUND = f"proven bound {OF_MODEL}"
NOT_OF_MACHINE = "of the model, not of the machine: its costs are fitted"
MAX_QUOTED = 200


def printable(text: str) -> str:
    """Return the text without characters that could steer a terminal."""
    if text.isprintable():  # nearly every text
        return text
    return "".join(character if character.isprintable() else "?" for character in text)


def quoted(name: str) -> str:
    """Return a name in quotes, in ASCII and not too long, as messages show it."""
    text = ascii(name)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 3] + "..."


def width_of(text: str) -> int:
    """Return the columns that a text takes: East Asian wide characters two, combining ones none."""
    from rich.cells import cell_len  # not before it is needed: the command line starts at once

    return cell_len(printable(text))


def fit_to(text: str, columns: int, *, cut_off: str = "…") -> str:
    """Return the text in exactly so many columns: padded, or cut with a mark."""
    text = printable(text)
    if width_of(text) > columns:
        while text and width_of(text) > columns - 1:
            text = text[:-1]
        text += cut_off
    return text + " " * (columns - width_of(text))


_WHOLE = "whole"
_UNCUT = frozenset({_WHOLE, "never cut", "not cut", "uncut"})
_RULE = "expected a size as 512 KiB, or whole, or steps as whole, from 64 KiB: 16 KiB"
_FILLER = re.compile(r"\b(always|(for )?(every|all) messages?)\b")


def parse_setting(text: str) -> dict[str, Any]:
    """Return the setting of 512KiB, whole, or 1:whole,64KiB:512KiB. Raises InvalidInput.

    So are "always 512K", with the powers of 1024 that libraries' own settings mean by bare letters;
    "never cut"; and "whole, from 64 KiB: 16 KiB" or "16 KiB from 64 KiB". Below a first step that
    says "from", messages are whole.
    """
    plain = " ".join(_FILLER.sub(" ", text.lower()).split())
    words = [word.strip() for word in re.split(r"[,;]", plain)]
    if len(words) == 1 and not _is_step(words[0]):
        size = _step_size(words[0])
        return {_WHOLE: True} if size is None else {"static_bytes": size}
    return {"steps": list(_steps(words))}


def format_setting_text(setting: AnySettingIn) -> str:
    """Return a given setting as it is typed; "" of a library's configuration."""
    if isinstance(setting, ConfiguredIn):
        return ""
    if isinstance(setting, StaticIn):
        return format_bytes(setting.static_bytes)
    if isinstance(setting, WholeIn):
        return format_step_size(None)
    steps = setting.steps
    if len(steps) == 1 and steps[0].from_bytes == 1:
        return format_step_size(steps[0].size_bytes)
    return ", ".join(
        f"{format_bytes(step.from_bytes)}: {format_step_size(step.size_bytes)}" for step in steps
    )


def format_setting_name(name: str) -> str:
    """Return what another setting is called: the system that comes with it, or whose it is."""
    return "your setting" if name == CURRENT else name


def format_repeated(
    fragment_bytes: int,
    default_bytes: int | None = None,
    *,
    written: SizeWords = format_bytes,
) -> str:
    """Return a size that is repeated, and which default was rounded up to it."""
    each = f"{written(fragment_bytes)} each"
    if default_bytes in (None, fragment_bytes):
        return each
    return f"{each} ({format_bytes(default_bytes or 0)} rounded up)"


def _steps(words: Sequence[str]) -> Iterator[dict[str, Any]]:
    for number, word in enumerate(words):
        begin, size = _parted(word) if number or _is_step(word) else ("1", word)
        from_bytes = _size(begin)
        if number == 0 and from_bytes > 1 and "from" in word:
            yield {"from_bytes": 1, "size_bytes": None}
        yield {"from_bytes": from_bytes, "size_bytes": _step_size(size)}


def _is_step(word: str) -> bool:
    return ":" in word or "from " in word


def _parted(word: str) -> tuple[str, str]:
    """Return where a step begins and its size, of "64KiB:16KiB" or "16 KiB from 64 KiB"."""
    if ":" in word:
        begin, _, size = word.removeprefix("from ").partition(":")
        return begin, size
    size, _, begin = word.partition("from ")
    return begin, size


def _step_size(text: str) -> int | None:
    return None if text.strip() in _UNCUT else _size(text)


def _size(text: str) -> int:
    try:
        size = parse_bytes(text)
    except InvalidInput:
        raise InvalidInput(_RULE, field="setting") from None
    if size == 0:
        raise InvalidInput("expected a size of at least 1 byte", field="setting")
    return size


def parse_workload(text: str) -> list[dict[str, Any]]:
    """Return lines SIZE or SIZE WEIGHT; # begins a comment. Raises InvalidInput with the line."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.split(r"[\s,;]+", line.partition("#")[0].strip(" \t,;"))
        if words == [""]:
            continue
        try:
            found.append(_workload_size(words))
        except (InvalidInput, ValueError):
            raise InvalidInput(
                f"line {number}: expected a size and a weight, as 64KiB 3", field="workload"
            ) from None
    return found


def workload_lines(workload: Iterable[WorkloadSizeIn]) -> Iterator[str]:
    """Yield a workload as it is typed: a size and a weight a line."""
    for one in workload:
        size = format_bytes(one.message_bytes).replace(" ", "")
        yield f"{size} {one.weight:.12g}"


def weights_of(sizes: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the sizes and weights of a request as the query of an export has them."""
    return tuple(f"{size['message_bytes']}:{size['weight']!r}" for size in sizes)


def _workload_size(words: list[str]) -> dict[str, Any]:
    size, *weights = words
    if len(weights) > 1:
        raise ValueError
    return {"message_bytes": parse_bytes(size), "weight": float(weights[0]) if weights else 1.0}


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return sizes in bytes, as 4KiB,1MiB, or 64..4MiB: both and the powers of two between.

    Raises InvalidInput.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        low = parse_bytes(first)
        high = parse_bytes(last) if dots else low
        if not 1 <= low <= high:
            raise InvalidInput(f"expected sizes as 64..4MiB, got {text!r}")
        between = (2**power for power in range(low.bit_length(), high.bit_length()))
        found += [low, *(one for one in between if low < one < high), high]
    return tuple(sorted(set(found)))


def parse_prices(text: str) -> dict[str, float]:
    """Return numbers by name, as reg=1,mem=1,dev=5. Raises InvalidInput."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise InvalidInput("expected cycles by class, as reg=1,mem=1,dev=5")
    return {name.strip(): parse_number(value.strip()) for name, _, value in pairs}


def parse_size_or_whole(text: str) -> dict[str, int] | str:
    """Return a size that is repeated, or `whole`, as requests have them. Raises UnitMismatch."""
    return text if text == "whole" else {"repeat": parse_bytes(text)}


def parse_whole(text: str) -> int:
    """Return a whole number of at most 15 digits, as 4 or -1: what all that reads them can hold.

    Raises InvalidInput.
    """
    if re.fullmatch(r"-?[0-9]{1,15}", text, re.ASCII) is None:
        raise InvalidInput(f"expected a whole number of at most 15 digits, got {text!r}")
    return int(text)


def parse_counts(text: str) -> list[int]:
    """Return whole numbers, as 4,16,64, or as 4..128, each twice the one before.

    Raises InvalidInput.
    """
    first, dots, last = text.partition("..")
    numbers = [first, last] if dots else text.split(",")
    if not all(re.fullmatch(r"[0-9]{1,9}", one.strip(), re.ASCII) for one in numbers):
        raise InvalidInput("expected whole numbers, as 4,16,64 or 4..128")
    if not dots:
        return [int(one) for one in numbers]
    found, end = [max(1, int(first))], int(last)
    while 2 * found[-1] <= end:
        found.append(2 * found[-1])
    return found


# --- what to set ----------------------------------------------------------------------------------

SAME = 1e-9  # relative: latencies that differ by less are equal


def format_set_this(
    size_bytes: int,
    message_bytes: int,
    *,
    is_kept: bool,
    decision: str = "",
    is_uneven: bool = False,
    at_once: str = "",
    written: SizeWords = format_size,
) -> str:
    """Return what to set: a size to repeat, today's where `is_kept`; `decision` is that of an
    answer whose costs have errors, whose cut may be uneven. `at_once` says on how many lanes;
    `written` is how sizes are.
    """
    is_whole = size_bytes >= message_bytes
    size = "the whole message" if is_whole else f"{written(size_bytes)}{at_once}"
    if is_kept:
        first = "Keep sending it whole" if is_whole else f"Keep your {size}"
    elif decision == DecisionCode.MEASURE_FIRST:
        return f"Measure first: {size} may be faster"
    elif is_uneven and not is_whole:
        return f"Send uneven fragments, or repeat {size}"
    else:
        first = "Do not cut: send it whole" if is_whole else f"Repeat {size}"
    return f"{first}, or uneven fragments" if is_uneven else first


def format_against(latency_us: float, other_us: float, name: str) -> str:
    """Return how much faster it is than something else, in words."""
    if abs(latency_us - other_us) <= SAME * max(other_us, latency_us):
        return f"as fast as {name}"
    if latency_us > other_us:
        return f"{format_percent(latency_us / other_us - 1.0)} slower than {name}"
    return f"{format_percent(1.0 - latency_us / other_us)} faster than {name}"


def format_current(
    current_bytes: int, message_bytes: int, *, written: SizeWords = format_size
) -> str:
    """Return the size that is repeated today, after "faster than"."""
    is_whole = current_bytes >= message_bytes
    return "sending it whole, your setting" if is_whole else f"your {written(current_bytes)}"


def format_until_then(size_bytes: int, message_bytes: int, *, is_yours: bool) -> str:
    """Return what stays until something else is measured."""
    if size_bytes >= message_bytes:
        return "send it whole until then"
    return f"{'keep your' if is_yours else 'repeat'} {format_size(size_bytes)} until then"


def format_not_worth(size_bytes: int, gain: float, *, written: SizeWords = format_size) -> str:
    """Return what a size gains over today's, which stays; "" for nothing."""
    is_gain = gain > SAME
    return f"{written(size_bytes)} gains {format_gap(gain)}, not worth a change" if is_gain else ""
