"""What ways to cut a message cost in each draw of the costs, all on the same draws, and regrets.

A repeated size is priced in closed form (docs/theory.md, "The regret of a setting"), other cuts by
the evaluator's recurrence; both equal `domain.nested` and `domain.aggregate` on whole bytes but for
rounding. Those of a machine are `domain.machine`'s (analysis/machine_draws.py). Arrays have the
sizes, or fragments, first and the draws last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from analysis.draws import Draws
from analysis.machine_draws import latencies_us, node_times_us, repeated_bounds_us
from domain.aggregate import Aggregate
from domain.errors import InvalidInput
from domain.machine import Machine
from domain.pipeline import Pipeline
from domain.uncertainty import NamedCut
from solvers.kernels import active
from solvers.kernels.native_machine import NativeMachine
from solvers.kernels.native_recurrence import DrawnCosts, NativeRecurrence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CHUNK_CELLS = 2**17  # fragments times draws that are priced together
_CACHED_CELLS = 2**15  # sizes times draws whose arrays stay in a processor's cache


@dataclass(frozen=True, eq=False)  # no slots: what follows is kept beside the fields
class PricedSizes:
    """Admitted sizes in bytes, ascending, (sizes,), and their latencies in µs, (sizes, draws).

    Where `between` is given, no cut but from the one to the other is among them.
    """

    sizes: Ints
    latency_us: Floats
    between: tuple[int, int] | None = None

    @cached_property
    def _summary(self) -> tuple[Floats, Floats, Floats]:
        if active.NATIVE is not None:
            return active.NATIVE.recurrence.summary(self.latency_us)
        best_us: Floats = self.latency_us.min(axis=0)
        mean_regret = regrets_over(self.latency_us, best_us).mean(axis=1)
        return best_us, self.latency_us.mean(axis=1), mean_regret

    @property
    def best_us(self) -> Floats:
        """The latency of the best size of each draw, (draws,)."""
        return self._summary[0]

    @property
    def mean_us(self) -> Floats:
        """The mean latency of each size, (sizes,)."""
        return self._summary[1]

    @property
    def mean_regret(self) -> Floats:
        """The mean of T/min T - 1 of each size, (sizes,); 0 where the best takes no time and so
        does T.
        """
        return self._summary[2]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Their places, by ascending mean latency."""
        return self.mean_us.argsort(kind="stable")

    def capped(self, size: int, most_us: float | Floats) -> PricedSizes:
        """Return the same where this size, if it is among these, takes no more than that, in µs or
        (draws,).
        """
        at_most = np.where(self.sizes[:, None] == size, most_us, np.inf)
        return replace(self, latency_us=np.minimum(self.latency_us, at_most))

    def row(self, size: int) -> Floats | None:
        """Return the latencies in µs of a size, (draws,); None where it is not among these."""
        at = self._places.get(size)
        return None if at is None else self.latency_us[at]

    @cached_property
    def _places(self) -> dict[int, int]:
        return dict(zip(self.sizes.tolist(), range(len(self.sizes)), strict=True))


def regrets_over(latency_us: Floats, best_us: Floats) -> Floats:
    """Return T/T* - 1, the two broadcast; 0 or infinite where the best takes no time."""
    if np.minimum.reduce(best_us) > 0.0:
        over: Floats = latency_us / best_us
        over -= 1.0
        return over
    with np.errstate(divide="ignore", invalid="ignore"):
        share = latency_us / best_us - 1.0
    regret: Floats = np.where(best_us > 0.0, share, np.where(latency_us > 0.0, np.inf, 0.0))
    return regret


def quantile(values: Floats, share: float) -> float:
    """Return the quantile of values over the draws, (draws,), linear between two of them."""
    return quantiles_of(values, (share,))[0]


def quantiles_of(values: Floats, shares: tuple[float, ...]) -> list[float]:
    """Return several of them.

    `numpy.quantile` gives the same for finite values, and takes ten times as long for so few.
    """
    return quantiles_of_rows(values[None], shares)[0]


def quantiles_of_rows(values: Floats, shares: tuple[float, ...]) -> list[list[float]]:
    """Return the same of rows of values over the draws, (rows, draws)."""
    places, parts = _places_of(values.shape[1], shares)
    ordered = values.copy()
    ordered.sort()
    rows = ordered.take(places, axis=1).tolist()
    return [
        [
            low + part * (high - low) if -inf < low < high < inf else low
            for low, high, part in zip(row[::2], row[1::2], parts, strict=True)
        ]
        for row in rows
    ]


@lru_cache(64)
def _places_of(count: int, shares: tuple[float, ...]) -> tuple[list[int], list[float]]:
    """The places on both sides of each quantile, and which part of the way it is to the second."""
    places = [share * (count - 1) for share in shares]
    both = [side for place in places for side in (int(place), ceil(place))]
    return both, [place - int(place) for place in places]


def mean_of(values: Floats) -> float:
    """Return the mean of values over the draws, (draws,), in half the time of the array's own."""
    return float(np.add.reduce(values)) / len(values)


def repeated_us(draws: Draws, message_bytes: int, sizes: Ints) -> Floats:
    """Return latencies in µs, delay included, of the message in repeated sizes: (sizes, draws).

    A size is in bytes, >= 1; the message itself or more sends it whole. O(n) passes over the
    result, whatever the number of fragments; of a machine O(fragments x nodes). Infinite where a
    size does not fit a machine's window.
    """
    if draws.machine is not None:
        return _repeated_by_machine(draws, draws.machine, message_bytes, sizes)
    native = native_of(draws)
    if native is not None:
        whole = np.minimum(sizes, message_bytes)
        return native.repeated_in_draws_us(costs_of(draws), message_bytes, whole)
    price = _repeated_outside if draws.kind == Aggregate.kind else _repeated_stages
    found = np.empty((len(sizes), draws.count))
    length = max(1, _CACHED_CELLS // draws.count)
    order = np.argsort(sizes, kind="stable")
    for at in range(0, len(sizes), length):
        rows = order[at : at + length]
        whole = np.minimum(sizes[rows], message_bytes)
        full = message_bytes // whole
        rest = message_bytes - full * whole
        found[rows] = price(draws, full[:, None].astype(float), whole, rest)
    found += draws.delay_us
    return found


def native_of(draws: Draws) -> NativeRecurrence | None:
    """Return the kernels that price cuts in such draws, None where NumPy does."""
    if active.NATIVE is None or draws.kind != Pipeline.kind:
        return None
    return active.NATIVE.recurrence


def _native_machine() -> NativeMachine | None:
    return None if active.NATIVE is None else active.NATIVE.machine


def costs_of(draws: Draws) -> DrawnCosts:
    """Return the costs as these kernels take them."""
    return draws.derived(_costs)


def _costs(draws: Draws) -> DrawnCosts:
    costs = draws.overhead_us, draws.ns_per_byte, draws.ends_bytes
    return DrawnCosts.of(*costs, draws.delay_us)


def means_over_medians(draws: Draws, message_bytes: int) -> Floats | float:
    """Return by which factor the draws' time of a message in one piece is above that by medians,
    (draws,); 1 where they are of medians.
    """
    if draws.mean_factors is None:
        return 1.0
    alone = draws.stages if draws.kind != Aggregate.kind else 1  # the total
    size = np.array([message_bytes], dtype=np.int64)
    times_us = np.stack([stage_times_us(draws, j, size)[0] for j in range(alone)])
    medians_us = (times_us / draws.mean_factors[:alone]).sum(axis=0)
    means_us = times_us.sum(axis=0)
    factors: Floats = np.divide(
        means_us, medians_us, out=np.ones_like(means_us), where=medians_us > 0.0
    )
    return factors


def cut_us(draws: Draws, message_bytes: int, cut: NamedCut) -> Floats:
    """Return the latencies in µs, delay included, of one cut: (draws,).

    Raises InvalidInput where its fragments are not those of the message, or where it has neither
    one cut for all stages nor one a stage.
    """
    if cut.size_bytes is not None:
        repeated: Floats = repeated_us(draws, message_bytes, np.array([cut.size_bytes]))[0]
        return repeated
    assert cut.schedule is not None
    if cut.schedule.message_bytes != message_bytes:
        raise InvalidInput(f"expected fragments of {message_bytes} bytes in all", field=cut.name)
    levels = [np.array(one, dtype=np.int64) for one in cut.schedule.stage_bytes]
    outside, machine = draws.kind == Aggregate.kind, draws.machine
    if len(levels) not in ({1, draws.stages} if draws.kind == Pipeline.kind else {1}):
        raise InvalidInput("expected one cut for all stages, or one a stage", field=cut.name)
    if machine is not None:
        return _cut_by_machine(draws, machine, levels[0])
    if outside:
        return _outside_us(draws, levels[0]) + draws.delay_us
    native = native_of(draws)
    if native is not None and len(levels) == 1:
        return native.cut_in_draws_us(costs_of(draws), levels[0])
    length = max(1, _CHUNK_CELLS // max(map(len, levels)))
    parts = [draws.part(at, at + length) for at in range(0, draws.count, length)]
    grouped = [_Level.of(cut) for cut in levels]
    shared = grouped * draws.stages if len(levels) == 1 else grouped
    return np.concatenate([_recurrence_us(part, shared) for part in parts]) + draws.delay_us


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The fragments of a stage: where each ends in the message, their sizes, ascending and once
    each, and which of these each has.
    """

    ends: Ints
    sizes: Ints
    places: NDArray[np.intp]

    @classmethod
    def of(cls, cut: Ints) -> _Level:
        sizes, places = np.unique(cut, return_inverse=True)
        return cls(np.cumsum(cut), sizes, places)


def stage_times_us(draws: Draws, stage: int, sizes: Ints) -> Floats:
    """Return the times in µs that fragments occupy one stage, (sizes, draws); sizes ascend."""
    ends = draws.ends_bytes[stage]
    sure, maybe = (np.searchsorted(sizes, one, side="right") for one in (ends.max(1), ends.min(1)))
    x = sizes.astype(float)[:, None]
    times = np.empty((len(sizes), draws.count))
    edges = [0, *sure.tolist(), len(sizes)]
    for place, rows in enumerate(map(slice, edges[:-1], edges[1:])):
        _put_line(draws, stage, place, x[rows], times[rows])
    # Sizes between the least and the greatest end of a range: in the next one in some draws.
    for place, rows in enumerate(map(slice, maybe.tolist(), sure.tolist())):
        after = np.empty_like(times[rows])
        _put_line(draws, stage, place + 1, x[rows], after)
        np.copyto(times[rows], after, where=x[rows] > ends[place])
    return times


def _put_line(draws: Draws, stage: int, place: int, x: Floats, out: Floats) -> None:
    if len(x):
        np.multiply(x / 1000.0, draws.ns_per_byte[stage, place], out=out)
        out += draws.overhead_us[stage, place]


def _repeated_stages(draws: Draws, full: Floats, size: Ints, rest: Ints) -> Floats:
    """The equal fragments have left stage j at sum_{i<=j} t_i + (q-1) max_{i<=j} t_i; the
    remainder queues behind them.
    """
    first = np.zeros((len(size), draws.count))
    slowest, left = first.copy(), first.copy()
    with_rest = _ascending(rest)
    last = first[with_rest]
    for j in range(draws.stages):
        time = stage_times_us(draws, j, size)
        first += time
        np.maximum(slowest, time, out=slowest)
        np.multiply(full - 1.0, slowest, out=left)
        left += first
        np.maximum(last, left[with_rest], out=last)
        last += stage_times_us(draws, j, rest[with_rest])
    left[with_rest] = last
    return left


def _repeated_outside(draws: Draws, full: Floats, size: Ints, rest: Ints) -> Floats:
    """The bound of `domain.aggregate`: S(s) + (q-1) b(s), then b(r) and the drops, at most S(r)."""
    total, bottleneck = _outside_times_us(draws, size)
    found = total + (full - 1.0) * bottleneck
    with_rest = _ascending(rest)
    behind_total, behind = _outside_times_us(draws, rest[with_rest])
    behind += _drops_us(draws, rest[with_rest], size[with_rest])
    found[with_rest] += np.minimum(behind, behind_total)
    return found


def _repeated_by_machine(draws: Draws, machine: Machine, message_bytes: int, sizes: Ints) -> Floats:
    whole = np.minimum(sizes, message_bytes)
    native = _native_machine()
    if native is not None:
        return native.repeated_in_draws_us(machine, costs_of(draws), message_bytes, whole)
    found = np.empty((len(sizes), draws.count))
    for at, size in enumerate(whole.tolist()):
        full, rest = divmod(message_bytes, size)
        cut = np.array([size] * full + ([rest] if rest else []), dtype=np.int64)
        found[at] = _cut_by_machine(draws, machine, cut)
    return found


def _cut_by_machine(draws: Draws, machine: Machine, cut: Ints) -> Floats:
    native = _native_machine()
    if native is not None:
        return native.cut_in_draws_us(machine, costs_of(draws), cut)
    sizes, places = np.unique(cut, return_inverse=True)
    length, found = max(1, _CHUNK_CELLS // len(cut)), list[Floats]()
    for at in range(0, draws.count, length):
        times = np.stack(_node_times_us(draws.part(at, at + length), machine, sizes), axis=1)
        found.append(latencies_us(machine, cut, places, times))
    return np.concatenate(found) + draws.delay_us


def _node_times_us(draws: Draws, machine: Machine, sizes: Ints) -> list[Floats]:
    """The times in µs of fragments of sizes, which ascend, in each node: (sizes, draws) each."""
    stages = [stage_times_us(draws, j, sizes) for j in range(draws.stages)]
    return node_times_us(machine, sizes, stages)


def at_least_us(draws: Draws, message_bytes: int, sizes: Ints) -> Floats | None:
    """Return bounds in µs of the message in repeated sizes, which ascend, delay included, (sizes,
    draws); None where the latencies themselves are as cheap.

    A machine's take time for every fragment, and of most sizes the bound is enough to know that
    they are far from the best.
    """
    machine = draws.machine
    if machine is None:
        return None
    times = _node_times_us(draws, machine, sizes)
    bounds_us = repeated_bounds_us(machine, message_bytes // sizes, sizes, times)
    bounds_us += draws.delay_us
    return bounds_us


def _ascending(rest: Ints) -> Ints:
    """Where there is a remainder, the small ones first."""
    order = np.argsort(rest, kind="stable")
    return order[rest[order] > 0]


def _recurrence_us(draws: Draws, levels: Sequence[_Level]) -> Floats:
    """A fragment enters a stage when the last byte of it has left the stage before and the fragment
    before it this stage: exit_i = max_{h<=i} (entry_h + sum of t from h to i).
    """
    before, exits = levels[0], np.zeros((len(levels[0].ends), draws.count))
    for j, level in enumerate(levels):
        entry = exits
        if level is not before:
            entry = exits[np.searchsorted(before.ends, level.ends, side="left")]
        time = stage_times_us(draws, j, level.sizes)[level.places]
        ended = np.cumsum(time, axis=0)
        time -= ended  # what follows is entry - (ended - time), in place
        time += entry
        np.maximum.accumulate(time, axis=0, out=time)
        time += ended
        before, exits = level, time
    last: Floats = exits[-1]
    return last


def _outside_us(draws: Draws, cut: Ints) -> Floats:
    """The bound of `domain.aggregate` on a cut that all stages share."""
    sizes, counts = np.unique(cut, return_counts=True)
    total, bottleneck = _outside_times_us(draws, sizes)
    queued = (counts[:, None] * bottleneck).sum(axis=0) - bottleneck[-1]
    drops = _drops_us(draws, sizes[:1], sizes[-1:])[0]
    changes = np.flatnonzero(np.diff(cut)) + 1  # the runs of equal fragments one by one
    starts = np.concatenate([[0], changes])
    lengths = np.diff(np.concatenate([starts, [len(cut)]]))[:, None]
    places = np.searchsorted(sizes, cut[starts])
    alone = (total[places] + (lengths - 1) * bottleneck[places]).sum(axis=0)
    together = total[-1] + queued + drops
    found: Floats = np.where(drops > 0.0, np.minimum(together, alone), together)
    return found


def _outside_times_us(draws: Draws, sizes: Ints) -> tuple[Floats, Floats]:
    """Total and bottleneck; the larger of the two counts as the total."""
    bottleneck = stage_times_us(draws, 1, sizes)
    return np.maximum(stage_times_us(draws, 0, sizes), bottleneck), bottleneck


def _drops_us(draws: Draws, low: Ints, high: Ints) -> Floats:
    """By how much the costs drop between these sizes, as `Aggregate.falls`: (sizes, draws)."""
    ends = np.concatenate([draws.ends_bytes[0], draws.ends_bytes[1]])
    found = np.zeros((len(low), draws.count))
    lowest, highest = (low.min(), high.max()) if len(low) else (1, 1)
    for place, end in enumerate(ends):
        if not ((lowest <= end) & (end < highest)).any():
            continue
        counted = np.isfinite(end) & ~(end == ends[:place]).any(axis=0)  # each end once a draw
        at = np.where(counted, end, 1.0)
        bottleneck, behind = _times_of_draws_us(draws, 1, at), _times_of_draws_us(draws, 1, at + 1)
        total = np.maximum(_times_of_draws_us(draws, 0, at), bottleneck)
        total_behind = np.maximum(_times_of_draws_us(draws, 0, at + 1), behind)
        drop = np.maximum(0.0, np.maximum(total - total_behind, bottleneck - behind))
        between = (low[:, None] <= at) & (at < high[:, None])
        found += np.where(counted & between, drop, 0.0)
    return found


def _times_of_draws_us(draws: Draws, stage: int, sizes: Floats) -> Floats:
    """The time of a fragment whose size differs from draw to draw, (draws,)."""
    place = (sizes > draws.ends_bytes[stage]).sum(axis=0)
    every = np.arange(draws.count)
    per_byte = draws.ns_per_byte[stage, place, every]
    found: Floats = draws.overhead_us[stage, place, every] + per_byte * sizes / 1000.0
    return found
