"""A program of its own that checks a table file: it reads the bytes, prices every message, and
compares with optima that it finds itself. Nothing of the compiler, the reader or the evaluator is
used; docs/format.md is all that it knows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLOSE = 1e-8  # relative: what the linear programs are solved to
_ROUNDING = 1e-11  # relative, of sums of numbers
_MAX_PROGRAMS = 20_000


@dataclass(frozen=True)
class File:
    """What a table file says."""

    min_bytes: int
    max_bytes: int
    smallest: int
    largest: int
    unit: int
    max_count: int
    cuts: list[tuple[int, Ints, float, float]]  # message, ends of fragments, latency, gap
    repeats: list[tuple[int, int, float, float]]  # message, size, latency, gap
    delay_us: float
    stages: list[tuple[Floats, Floats, Floats]]  # ends of ranges, overheads, ns a byte

    @classmethod
    def of(cls, data: bytes) -> File:
        """Read the bytes."""
        low, high, _, smallest, largest, unit, most, cap = struct.unpack_from("<QQdQQQQQ", data, 32)
        cut_count, repeat_count, _, width = struct.unpack_from("<QQQQ", data, 96)
        cuts_at, repeats_at, positions_at, pipeline_at = struct.unpack_from("<QQQQ", data, 128)
        cuts = []
        for i in range(cut_count):
            message, first, count, _, latency, gap = struct.unpack_from(
                "<QQIIdd", data, cuts_at + 40 * i
            )
            form = f"<{count - 1}{'I' if width == 4 else 'Q'}"
            inner = struct.unpack_from(form, data, positions_at + width * first)
            cuts.append((message, np.array(inner, dtype=np.int64), latency, gap))
        repeats = [
            struct.unpack_from("<QQdd", data, repeats_at + 32 * i) for i in range(repeat_count)
        ]
        delay_us, stage_count = struct.unpack_from("<dI", data, pipeline_at)
        stages, at = [], pipeline_at + 16
        for _ in range(stage_count):
            name_bytes, ranges = struct.unpack_from("<II", data, at)
            rows = [struct.unpack_from("<Qdd", data, at + 8 + 24 * r) for r in range(ranges)]
            end, overhead, cost = (
                np.array(column, dtype=float) for column in zip(*rows, strict=True)
            )
            end[-1] = np.inf
            stages.append((end, overhead, cost))
            at += 8 + 24 * ranges + -(-name_bytes // 8) * 8
        count = min(most or cap, cap)
        return cls(
            low, high, smallest, largest or high, unit, count, cuts, repeats, delay_us, stages
        )

    @property
    def has_lines(self) -> bool:
        """Whether no stage has more than one range."""
        return all(len(end) == 1 for end, _, _ in self.stages)

    def latencies_us(self, sizes: Ints) -> Floats:
        """The recurrence, for (m, k) sizes."""
        done = [np.zeros(len(sizes)) for _ in self.stages]
        for x in sizes.T:
            ready = np.zeros(len(sizes))
            for j, (end, overhead, cost) in enumerate(self.stages):
                part = np.searchsorted(end, x)
                ready = np.maximum(done[j], ready) + overhead[part] + cost[part] * x / 1000.0
                done[j] = ready
        return done[-1] + self.delay_us

    def admitted(self, sizes: Ints) -> NDArray[np.bool_]:
        """Whether the limits admit each of these cuts, (m, k)."""
        k = sizes.shape[1]
        kept = (sizes > 0).all(axis=1) & (sizes <= self.largest).all(axis=1)
        kept &= (sizes[:, :-1] % self.unit == 0).all(axis=1)
        if k > 1:
            kept &= (sizes >= self.smallest).all(axis=1)
        return kept if k <= self.max_count else np.zeros(len(sizes), dtype=bool)

    # ---- what a reader computes ------------------------------------------------------------------

    def read_cuts(self) -> Iterator[tuple[Ints, Ints, float]]:
        """Messages (m,), cuts (m, k) and the gap stated, from each entry to before the next."""
        for (first, one, _, gap), after in zip(self.cuts, [*self.cuts[1:], None], strict=True):
            if after is None or after[0] - first == 1:
                messages, ends = np.array([first]), self.unit * one[None, :]
            else:
                messages = np.arange(first, after[0])
                share = ((messages - first) << 32) // (after[0] - first)
                moved = (after[1] - one)[None, :] * share[:, None] + (1 << 31) >> 32
                ends = self.unit * (one[None, :] + moved)
            zeros = np.zeros((len(messages), 1), dtype=np.int64)
            yield messages, np.diff(np.hstack([zeros, ends, messages[:, None]]), axis=1), gap

    def read_repeats(self) -> Iterator[tuple[int, int, float]]:
        """A message, its size (0: none) and the gap that is stated."""
        for (first, size, _, gap), after in zip(
            self.repeats, [*self.repeats[1:], None], strict=True
        ):
            last = first + 1 if after is None else after[0]
            for message in range(first, last):
                found = size
                if after is None or message == first or 0 in (size, after[1]):
                    yield message, found, gap
                    continue
                if -(-first // size) == -(-after[0] // after[1]):
                    share = -((-(message - first) << 32) // (after[0] - first))
                    units = (after[1] - size) // self.unit
                    found += self.unit * -(-(units * share) >> 32)
                yield message, found, gap


def messages_within_gaps(data: bytes) -> int:
    """Check every message of a table's cuts and repeated sizes; return how many there are.

    Raises AssertionError where a cut is not admitted, or further from the optimum than is stated.
    """
    file = File.of(data)
    latency, gap = [], []
    expected = file.min_bytes
    for messages, cuts, stated in file.read_cuts():
        assert messages[0] == expected
        expected = int(messages[-1]) + 1
        assert file.admitted(cuts).all(), (messages[0], cuts[0])
        latency.append(file.latencies_us(cuts))
        gap.append(np.full(len(messages), stated))
    assert expected == file.max_bytes + 1
    needed = np.concatenate(latency) / (1.0 + np.concatenate(gap))
    assert np.isfinite(np.concatenate(gap)).all()
    if file.has_lines:
        _Lines(file).check(needed)
    else:
        _check_all_cuts(file, needed)
    _check_entries(file)
    _check_repeats(file)
    return len(needed)


def _check_entries(file: File) -> None:
    for message, ends, latency, _ in file.cuts:
        cut = np.diff(np.concatenate([[0], file.unit * ends, [message]]))[None, :]
        assert abs(file.latencies_us(cut)[0] - latency) <= _ROUNDING * latency


# ---- optima --------------------------------------------------------------------------------------


def _check_all_cuts(file: File, needed: Floats) -> None:
    """Against every cut that there is."""
    for message, least in zip(range(file.min_bytes, file.max_bytes + 1), needed, strict=True):
        best = min(float(file.latencies_us(cuts).min()) for cuts in _all_cuts(file, message))
        assert least <= best * (1.0 + _ROUNDING), (message, least, best)


def _all_cuts(file: File, message: int) -> Iterator[Ints]:
    """All admitted cuts, (m, k) for each count."""
    places = range(file.unit, message, file.unit)
    for k in range(1, min(file.max_count, len(places) + 1) + 1):
        chosen = list(combinations(places, k - 1))
        inner = np.array(chosen, dtype=np.int64).reshape(len(chosen), k - 1)
        ends = np.zeros((len(inner), 1), dtype=np.int64)
        at = np.hstack([ends, inner, ends + message])
        cuts = at[:, 1:] - at[:, :-1]
        cuts = cuts[file.admitted(cuts)]
        if len(cuts):
            yield cuts


class _Lines:
    """Lower bounds over all cuts in real sizes: for each count lines in the message, each the
    optimum and the marginal of one linear program, solved where they do not suffice.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        self._programs = 0
        self._g = np.array([overhead[0] for _, overhead, _ in file.stages])
        self._cost = np.array([cost[0] for _, _, cost in file.stages]) / 1000.0
        self._messages = np.arange(file.min_bytes, file.max_bytes + 1)

    def check(self, needed: Floats) -> None:
        """That at no message a cut takes less than this."""
        needed = (needed - self._file.delay_us) * (1.0 - CLOSE) - CLOSE * self._file.delay_us
        for k in range(1, self._file.max_count + 1):
            self._check_count(k, needed)

    def _check_count(self, k: int, needed: Floats) -> None:
        """Line by line, at the message that is furthest from what is needed."""
        B = self._messages
        can = self._is_admitted(k)
        below = self._g.sum() + self._cost.sum() * B if k == 1 else np.zeros(len(B))
        while True:
            short = np.where(can, needed - below, -np.inf)
            at = int(np.argmax(short))
            if short[at] <= 0.0:
                return
            assert k > 1, (int(B[at]), needed[at], below[at])
            value, slope = self._optimum(k, int(B[at]))
            assert value >= needed[at], f"{B[at]} bytes, {k} fragments: {needed[at]}, {value} us"
            below = np.maximum(below, value + slope * (B - B[at]))
            below[at] = np.inf  # this message is done, whatever the last digit of a line

    def _is_admitted(self, k: int) -> NDArray[np.bool_]:
        """Whether some cut of each message has this count: whole units, then what is left."""
        B, file = self._messages, self._file
        if k == 1:
            return file.largest >= B
        low = -(-file.smallest // file.unit) * file.unit
        high = np.minimum(file.largest, B) // file.unit * file.unit
        rest = np.maximum(file.smallest, B - (k - 1) * high)
        rest += (B - rest) % file.unit
        kept: NDArray[np.bool_] = rest <= np.minimum(file.largest, B - (k - 1) * low)
        return kept & (low <= high)

    def _optimum(self, k: int, message: int) -> tuple[float, float]:
        """The least latency in real sizes, µs without delay, and what a further byte adds."""
        self._programs += 1
        assert self._programs < _MAX_PROGRAMS
        n, file = len(self._g), self._file
        unit = float(self._g.sum() + self._cost.sum() * message) or 1.0
        tau = k + np.arange(k * n).reshape(k, n)
        rows, columns, values, right = list[int](), list[int](), list[float](), list[float]()
        for i in range(k):
            for j in range(n):
                # An exit waits for the fragment before it, and for the stage before it.
                for before in ([tau[i - 1, j]] if i else []) + ([tau[i, j - 1]] if j else [-1]):
                    row = len(right)
                    entries = [(int(tau[i, j]), -1.0), (i, self._cost[j] * message / unit)]
                    entries += [(int(before), 1.0)] if before >= 0 else []
                    rows += [row] * len(entries)
                    columns += [column for column, _ in entries]
                    values += [value for _, value in entries]
                    right.append(-self._g[j] / unit)
        matrix = sparse.csr_matrix((values, (rows, columns)), (len(right), k + k * n))
        total = sparse.csr_matrix(np.concatenate([np.ones(k), np.zeros(k * n)])[None, :])
        objective = np.zeros(k + k * n)
        objective[-1] = 1.0
        limits = [(file.smallest / message, min(file.largest, message) / message)] * k
        found = linprog(
            objective,
            A_ub=cast(Any, matrix),
            b_ub=right,
            A_eq=cast(Any, total),
            b_eq=[1.0],
            bounds=cast(Any, [*limits, *[(0.0, None)] * (k * n)]),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert found.fun is not None, found.message
        return found.fun * unit, float(found.eqlin.marginals[0]) * unit / message


def _check_repeats(file: File) -> None:
    """Against every size that there is, message by message."""
    expected = file.min_bytes
    for message, size, gap in file.read_repeats():
        assert message == expected
        expected += 1
        best = _best_repeat_us(file, message)
        if not size:
            assert not np.isfinite(best), (message, best)
            continue
        full, rest = divmod(message, size)
        cut = np.array([[size] * full + [rest] * (rest > 0)])
        assert file.admitted(cut)[0], (message, size)
        own = float(file.latencies_us(cut)[0])
        assert own <= (1.0 + gap) * best * (1.0 + _ROUNDING), (message, size, own, best, gap)
    assert expected == file.max_bytes + 1


def _best_repeat_us(file: File, message: int) -> float:
    """Of every admitted size; infinite where there is none."""
    best = np.inf
    for k in range(1, min(file.max_count, message) + 1):
        first, last = -(-message // k), (message - 1) // (k - 1) if k > 1 else message
        s = np.arange(first, last + 1)
        cuts = np.repeat(s[:, None], k, axis=1)
        cuts[:, -1] = message - (k - 1) * s
        cuts = cuts[file.admitted(cuts)]
        if len(cuts):
            best = min(best, float(file.latencies_us(cuts).min()))
    return best
