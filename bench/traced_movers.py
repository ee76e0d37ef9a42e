"""Simulated movers of twelve kinds whose begins are traced: what of their stages overlaps is known.

They are what `analysis.structure` is tried on. A mover has stages with a cost a fragment and a byte
and one thing that bounds its begins, by which a message takes 10 % longer at least than in a chain.
Begins follow from ends by recurrence, fragment by fragment; where stages take turns or share
processors, by events. Each mover is drawn anew from its seed.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.structure.events import TracedMessage
from domain.structure import PlaceEffect, Structure, StructureKind

KINDS = (
    "serial",
    "chain",
    "places",
    "window",
    "stop and wait",
    "lanes",
    "turns",
    "core",
    "pool",
    "bucket",
    "dear first",
    "barrier",
)
COUNTS_TRACED = (1, 2, 4, 8, 16, 32, 64)
NEVER_PIPELINED = ("serial", "stop and wait", "barrier")
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of fragments, over which advice is tried

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A stage's token bucket: bytes that go at once, and bytes per µs that it is refilled by."""

    stage: int
    bytes_at_once: float
    bytes_per_us: float


@dataclass(frozen=True, slots=True)
class DearFirst:
    """The first fragments of a stage cost a factor more."""

    stage: int
    factor: float
    fragments: int


@dataclass(frozen=True, slots=True)
class TracedMover:
    """Stages with costs in µs and µs per byte, and what bounds their begins.

    `windows` are (from, to, fragments, return in µs); of `turns` one stage works at a time; those
    of `shared` compute on so many `processors`. `computes` is the share of a stage's time that is
    processor time.
    """

    kind: str
    overhead_us: tuple[float, ...]
    us_per_byte: tuple[float, ...]
    hand_us: float
    lanes: tuple[int, ...]
    computes: tuple[float, ...]
    windows: tuple[tuple[int, int, int, float], ...] = ()
    turns: tuple[int, ...] = ()
    shared: tuple[int, ...] = ()
    processors: int = 1
    is_barrier: bool = False
    bucket: Bucket | None = None
    dear_first: DearFirst | None = None

    @property
    def stages(self) -> int:
        """How many there are."""
        return len(self.overhead_us)

    @property
    def chain(self) -> TracedMover:
        """The same stages with nothing but the chain to bound them."""
        return TracedMover(
            "chain",
            self.overhead_us,
            self.us_per_byte,
            self.hand_us,
            (1,) * self.stages,
            self.computes,
        )

    def true_us(self, message_bytes: int, fragments: int) -> float:
        """The time of a message in so many equal fragments, without noise."""
        return self.takes_us(np.full(fragments, message_bytes / fragments))

    def takes_us(self, sizes: Floats) -> float:
        """The time of a message in fragments of these sizes, without noise."""
        _, end_us = self.transfer(self.work_us(sizes), sizes)
        return float(end_us.max())

    def work_us(self, sizes: Floats) -> Floats:
        """What each stage costs on each fragment, (fragments, stages)."""
        work = np.array(self.overhead_us) + np.array(self.us_per_byte) * sizes[:, None]
        if self.dear_first is not None:
            work[: self.dear_first.fragments, self.dear_first.stage] *= self.dear_first.factor
        return work

    def transfer(
        self, work_us: Floats, sizes: Floats, hands_us: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Begins and ends of fragments of these sizes that cost so much, (fragments, stages)."""
        hands = np.full(work_us.shape, self.hand_us) if hands_us is None else hands_us
        if self.turns or self.shared:
            return _by_events(self, work_us, hands)
        if self.is_barrier:
            return _stage_by_stage(work_us, hands)
        return _by_recurrence(self, work_us, hands, sizes)


def _stage_by_stage(work_us: Floats, hands_us: Floats) -> tuple[Floats, Floats]:
    begin_us, at_us = np.zeros(work_us.shape), 0.0
    for stage in range(work_us.shape[1]):
        at_us += hands_us[0, stage] if stage else 0.0
        begin_us[:, stage] = at_us + np.concatenate([[0.0], np.cumsum(work_us[:-1, stage])])
        at_us = float(begin_us[-1, stage] + work_us[-1, stage])
    return begin_us, begin_us + work_us


def _by_recurrence(
    mover: TracedMover, work_us: Floats, hands_us: Floats, sizes: Floats
) -> tuple[Floats, Floats]:
    """Fragments begin in order in each stage, on whichever of its lanes is free first."""
    count, stages = work_us.shape
    begin_us, end_us = np.zeros(work_us.shape), np.zeros(work_us.shape)
    ends: list[list[float]] = [[] for _ in range(stages)]
    tokens, filled_us = (mover.bucket.bytes_at_once if mover.bucket else 0.0), 0.0
    for fragment in range(count):
        for stage in range(stages):
            at_us = end_us[fragment, stage - 1] + hands_us[fragment, stage] if stage else 0.0
            if fragment:
                at_us = max(at_us, begin_us[fragment - 1, stage])
            lanes = mover.lanes[stage]
            if fragment >= lanes:
                at_us = max(at_us, ends[stage][fragment - lanes])
            for first, last, places, return_us in mover.windows:
                if first == stage and fragment >= places:
                    at_us = max(at_us, ends[last][fragment - places] + return_us)
            lasts_us = work_us[fragment, stage]
            bucket = mover.bucket
            if bucket is not None and bucket.stage == stage:
                tokens = min(
                    bucket.bytes_at_once, tokens + (at_us - filled_us) * bucket.bytes_per_us
                )
                lacking = max(0.0, float(sizes[fragment]) - tokens)
                lasts_us = max(lasts_us, lacking / bucket.bytes_per_us)
                tokens, filled_us = tokens - float(sizes[fragment]), at_us
            begin_us[fragment, stage], end_us[fragment, stage] = at_us, at_us + lasts_us
            insort(ends[stage], at_us + lasts_us)
    return begin_us, end_us


def _by_events(mover: TracedMover, work_us: Floats, hands_us: Floats) -> tuple[Floats, Floats]:
    """Later stages begin first where they take turns; shared processors are divided evenly."""
    count, stages = work_us.shape
    begin_us, end_us = np.full(work_us.shape, np.nan), np.full(work_us.shape, np.nan)
    left_us = np.zeros(stages)  # of each stage's fragment; one at a time
    at_work = [-1] * stages
    following = [0] * stages
    now_us = 0.0
    while following[-1] < count or at_work[-1] >= 0:
        waits_us = np.inf
        for stage in reversed(range(stages)):
            fragment = following[stage]
            is_there = fragment < count and at_work[stage] < 0
            if not is_there or (stage and np.isnan(end_us[fragment, stage - 1])):
                continue
            if stage in mover.turns and any(at_work[other] >= 0 for other in mover.turns):
                continue
            ready_us = end_us[fragment, stage - 1] + hands_us[fragment, stage] if stage else 0.0
            if ready_us > now_us + 1e-9:
                waits_us = min(waits_us, ready_us - now_us)
                continue
            at_work[stage], left_us[stage] = fragment, work_us[fragment, stage]
            begin_us[fragment, stage] = now_us
            following[stage] += 1
        computing = sum(at_work[stage] >= 0 for stage in mover.shared)
        share = min(1.0, mover.processors / computing) if computing else 1.0
        speed = np.array([share if stage in mover.shared else 1.0 for stage in range(stages)])
        busy = [stage for stage in range(stages) if at_work[stage] >= 0]
        step_us = min([left_us[stage] / speed[stage] for stage in busy] + [waits_us])
        now_us += step_us
        for stage in busy:
            left_us[stage] -= speed[stage] * step_us
            if left_us[stage] <= 1e-9:
                end_us[at_work[stage], stage] = now_us
                at_work[stage] = -1
    return begin_us, end_us


@dataclass(frozen=True, slots=True)
class Traced:
    """A mover and what it was traced to do."""

    mover: TracedMover
    message_bytes: int
    fragments: int
    messages: tuple[TracedMessage, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of its stages."""
        return tuple(f"stage {place + 1}" for place in range(self.mover.stages))


def traced(
    kind: str,
    seed: int,
    messages: int,
    *,
    noise: float | None = None,
    outliers: float | None = None,
    has_busy_time: bool = True,
) -> Traced:
    """Draw a mover of a kind and trace so many messages, a third of them of half the size.

    `noise` is the spread of the logarithm of a time, `outliers` the share of those that take 3 to
    15 times as long.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind), messages])
    mover, size, fragments = drawn(kind, rng)
    noise = float(rng.uniform(0.02, 0.15)) if noise is None else noise
    outliers = float(rng.choice([0.0, 0.005, 0.02])) if outliers is None else outliers
    found, at_us = list[TracedMessage](), 0.0
    for _ in range(messages):
        own = size // 2 if rng.random() < 1 / 3 else size
        sizes = np.full(fragments, float(own))
        work = mover.work_us(sizes)
        work = work * np.exp(rng.normal(0.0, noise, work.shape))
        is_off = rng.random(work.shape) < outliers
        work = np.where(is_off, work * rng.uniform(3.0, 15.0, work.shape), work)
        hands = mover.hand_us * np.exp(rng.normal(0.0, 0.3, work.shape))
        begin, end = (at_us + one for one in mover.transfer(work, sizes, hands))
        begin, end = begin.round(3), end.round(3)
        busy = work * np.array(mover.computes) * np.exp(rng.normal(0.0, 0.01, work.shape))
        busy = np.minimum(busy.round(3), end - begin)
        known = busy if has_busy_time else np.full(busy.shape, np.nan)
        found.append(TracedMessage(own, begin, end, known))
        at_us = float(end.max()) + float(rng.uniform(50.0, 500.0))
    return Traced(mover, size * fragments, fragments, tuple(found))


def drawn(kind: str, rng: np.random.Generator) -> tuple[TracedMover, int, int]:
    """Return a mover of a kind, a size and a count of fragments at which what is its own binds."""
    while True:
        size, count = int(2 ** rng.uniform(13.0, 17.0)), int(rng.integers(8, 25))
        mover = _of_kind(kind, size, rng)
        chain_us = mover.chain.true_us(size * count, count)
        took_us = mover.true_us(size * count, count)
        if kind in ("chain", "dear first"):
            return mover, size, count
        if kind == "lanes":
            more = tuple(lanes + 1 if lanes > 1 else 1 for lanes in mover.lanes)
            by_more_us = replace(mover, lanes=more).true_us(size * count, count)
            if took_us <= 0.9 * chain_us and by_more_us <= 0.95 * took_us:
                return mover, size, count
        elif took_us >= 1.1 * chain_us:
            return mover, size, count


def _of_kind(kind: str, size: int, rng: np.random.Generator) -> TracedMover:
    stages = 4 if kind == "pool" else int(rng.integers(2, 5))
    if kind in ("places", "turns", "core", "window"):
        stages = max(stages, 3)
    overhead = np.exp(rng.uniform(np.log(2.0), np.log(40.0), stages))
    per_byte = np.exp(rng.uniform(np.log(0.2e-3), np.log(4e-3), stages))
    one = int(rng.integers(0, stages))
    first = int(rng.integers(0, stages - 1))
    pair = tuple(sorted(rng.choice(stages, 2, replace=False).tolist()))
    lanes = [1] * stages
    if kind == "lanes":
        lanes[one] = int(rng.integers(2, 7))
        overhead[one] *= lanes[one]
        per_byte[one] *= 1.5 * lanes[one]
    shared = pair if kind == "core" else tuple(range(4)) if kind == "pool" else ()
    computes = [
        1.0 if place in shared or rng.random() < 0.5 else float(rng.uniform(0.05, 0.9))
        for place in range(stages)
    ]
    windows = {
        "serial": (0, stages - 1, 1, 0.0),
        "places": (first, first + 1, int(rng.integers(1, 3)), float(rng.choice([0.0, 30.0]))),
        "window": (
            first,
            int(rng.integers(first + 1, stages)),
            int(rng.integers(2, 7)),
            float(np.exp(rng.uniform(np.log(20.0), np.log(2000.0)))),
        ),
        "stop and wait": (
            0,
            stages - 1,
            1,
            float(np.exp(rng.uniform(np.log(60.0), np.log(2000.0)))),
        ),
    }
    bucket = None
    if kind == "bucket":
        computes[one] = 0.3
        rate = 1.0 / (per_byte[one] * rng.uniform(3.0, 10.0))
        bucket = Bucket(one, size * int(rng.integers(2, 5)), float(rate))
    dear = DearFirst(one, float(rng.uniform(1.6, 4.0)), int(rng.integers(1, 3)))
    return TracedMover(
        kind,
        tuple(overhead.tolist()),
        tuple(per_byte.tolist()),
        float(rng.uniform(0.5, 6.0)),
        tuple(lanes),
        tuple(computes),
        windows=(windows[kind],) if kind in windows else (),
        turns=pair if kind == "turns" else (),
        shared=shared,
        processors=2 if kind == "pool" else 1,
        is_barrier=kind == "barrier",
        bucket=bucket,
        dear_first=dear if kind == "dear first" else None,
    )


def is_right(mover: TracedMover, found: Structure) -> bool:
    """Return whether structure, stages and number are the mover's own.

    Of two stages, a fragment at a time between them is a serial mover; between neighbours it is
    taking turns.
    """
    names, kind = found.stages, found.kind
    by_kind = {
        "serial": StructureKind.SERIAL,
        "chain": StructureKind.CHAIN,
        "stop and wait": StructureKind.STOP_AND_WAIT,
        "barrier": StructureKind.BARRIER,
    }
    if mover.kind in by_kind:
        return kind is by_kind[mover.kind]
    if mover.kind in ("places", "window"):
        first, last, places, return_us = mover.windows[0]
        if (
            mover.stages == 2
            and places == 1
            and kind
            in (
                StructureKind.SERIAL,
                StructureKind.STOP_AND_WAIT,
            )
        ):
            return True
        is_turn = places == 1 and last == first + 1 and return_us <= 3.0 * mover.hand_us
        if is_turn and (names[first], names[last]) in found.turns:
            return True
        said = [(one.first, one.last, one.fragments) for one in found.windows]
        return kind is StructureKind.WINDOW and (names[first], names[last], places) in said
    if mover.kind == "lanes":
        return kind is StructureKind.LANES and found.lanes == mover.lanes
    if mover.kind == "turns":
        pair = tuple(names[one] for one in mover.turns)
        of_one = [(one.first, one.last) for one in found.windows if one.fragments == 1]
        return pair in found.turns or pair in of_one
    if mover.kind in ("core", "pool"):
        shared = found.shared
        return (
            kind is StructureKind.SHARED_PROCESSORS
            and shared is not None
            and shared.stages == tuple(names[one] for one in mover.shared)
            and shared.processors == mover.processors
        )
    effects = {(one.stage, one.effect) for one in found.places}
    if mover.bucket is not None:
        expected = (names[mover.bucket.stage], PlaceEffect.ONLY_IN_BURSTS)
    else:
        assert mover.dear_first is not None
        expected = (names[mover.dear_first.stage], PlaceEffect.FIRST_DEARER)
    return kind is StructureKind.CHAIN and expected in effects


def lost_by_advice(drawn: Traced, found: Structure) -> float | None:
    """Return what the advised count of fragments takes over the best one, less 1; None: nothing is
    advised.

    Stages' costs are the mover's own, so that only the structure is tried.
    """
    if not found.is_priced:
        return None
    mover, total = drawn.mover, drawn.message_bytes
    true_us = {count: mover.true_us(total, count) for count in COUNTS}
    if found.is_priced_as_a_sum:
        waits_us = found.return_us if found.kind is not StructureKind.BARRIER else 0.0
        priced_us = {
            count: float(mover.work_us(np.full(count, total / count)).sum())
            + waits_us * (count - 1)
            for count in COUNTS
        }
    else:
        priced_us = {count: mover.chain.true_us(total, count) for count in COUNTS}
    advised = min(COUNTS, key=priced_us.__getitem__)
    return true_us[advised] / min(true_us.values()) - 1.0


def bare_rows(mover: TracedMover, message_bytes: int, seed: int) -> str:
    """Return a file of stage times, without begins, of a message in COUNTS_TRACED fragments.

    At most 40 rows a size, of three messages with 5 % noise.
    """
    rng = np.random.default_rng([seed, message_bytes])
    columns = ",".join(f"stage_{place + 1}_us" for place in range(mover.stages))
    rows = [f"message_bytes,repetition,{columns}"]
    for count in COUNTS_TRACED:
        size = message_bytes // count
        sizes, found = np.full(count, float(size)), list[str]()
        for _ in range(max(3, 12 // count)):
            work = mover.work_us(sizes) * np.exp(rng.normal(0.0, 0.05, (count, mover.stages)))
            begin, end = mover.transfer(work, sizes)
            found += (",".join(f"{us:.3f}" for us in row) for row in (end - begin).tolist())
        rows += (f"{size},{place},{row}" for place, row in enumerate(found[:40]))
    return "\n".join(rows) + "\n"


def cut_sizes(message_bytes: int, size: int) -> Floats:
    """Return the fragments of a message in repeated sizes, the remainder last."""
    full, rest = divmod(message_bytes, min(size, message_bytes))
    return np.array([min(size, message_bytes)] * full + [rest] * (rest > 0), dtype=np.float64)
