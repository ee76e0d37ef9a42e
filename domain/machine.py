"""Machines: stages with lanes, delays and processors, and windows of fragments under way.

Source    docs/theory.md, "Machines". A plain stage handles one fragment at a time and hands it on
          at once, and nothing bounds how many fragments are between two stages. Real movers have
          connections side by side, buffers that run out, credits that take time to come back, and
          one engine for two copies.
Notation  (i, j): fragment i in node j; s, e: its start and end; t: its time; x: fragment sizes;
          d_j: delay behind node j; (a, z, b, r): a window of b places from node a to node z whose
          places come back after r; L: lag of a processor; o_j: offset of a node.

A stage is one node, or two where its lanes share a part of the cost: what a lane does alone, with
as many lanes, then what all of them share, with one, and a window of the lanes over both. Rules:

    route       s(i, j+1) >= e(i, j) + d_j
    window      s(i, a) >= e(i-b, z) + r       lanes in turn are the window (j, j, lanes, 0)
    processor   s(i-L, l) >= e(i, j) and s(i, j) >= e(i-1-L, l), of nodes j < l
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple

from contract.limits import (
    MAX_LAG,
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_PLACES,
    MAX_PROCESSORS,
    MAX_WINDOW_FRAGMENTS,
    MAX_WINDOWS,
)
from domain.derived import Derived
from domain.errors import Infeasible, InvalidStage, NeedsPlainStages, WouldDeadlock
from domain.model import CostModel
from domain.pipeline import Pipeline, Stage, check_cost

Lags = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StageRules:
    """How a stage handles fragments, beside what they cost.

    `lanes` fragments are handled at once, in turn; `shared_ns_per_byte` of the stage's cost all
    lanes share. `delay_us` passes until the next stage has the fragment, and occupies nothing.
    Stages whose `processor` has one name take turns. Raises InvalidStage.
    """

    lanes: int = 1
    shared_ns_per_byte: float = 0.0
    delay_us: float = 0.0
    processor: str | None = None

    def __post_init__(self) -> None:
        _check_whole("lanes", self.lanes, MAX_PLACES)
        check_cost("shared_ns_per_byte", self.shared_ns_per_byte, MAX_NS_PER_BYTE)
        check_cost("delay_us", self.delay_us, MAX_OVERHEAD_US)
        object.__setattr__(self, "shared_ns_per_byte", float(self.shared_ns_per_byte) + 0.0)
        object.__setattr__(self, "delay_us", float(self.delay_us) + 0.0)
        name = self.processor
        if name is not None and not 1 <= len(name) <= MAX_NAME_LENGTH:
            raise InvalidStage(
                f"expected a name of 1 to {MAX_NAME_LENGTH} characters", field="processor"
            )
        if self.shared_ns_per_byte and self.lanes == 1:
            raise InvalidStage(
                "expected lanes >= 2 beside shared_ns_per_byte: it is what lanes share",
                field="shared_ns_per_byte",
            )
        if name is not None and self.lanes > 1:
            raise InvalidStage(
                "expected no lanes beside a processor: its stages handle one fragment at a time",
                field="processor",
            )

    @property
    def is_plain(self) -> bool:
        """Whether none of the words is set."""
        return self == StageRules()


@dataclass(frozen=True, slots=True)
class Window:
    """At most so many fragments, or bytes, between the start of one stage and the end of another.

    `first` and `last` are stages counted from 0, `first` <= `last`. A place is free again
    `return_us` after that end. Bytes are counted in fragments of the cut's greatest size. At least
    one of `fragments` and `bytes` is given, and of two the tighter one counts. Raises InvalidStage.
    """

    first: int
    last: int
    fragments: int | None = None
    bytes: int | None = None
    return_us: float = 0.0

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InvalidStage("expected a stage that is not before from", field="to")
        if self.fragments is None and self.bytes is None:
            raise InvalidStage("expected fragments, bytes or both", field="fragments")
        if self.fragments is not None:
            _check_whole("fragments", self.fragments, MAX_WINDOW_FRAGMENTS)
        if self.bytes is not None:
            _check_whole("bytes", self.bytes, MAX_MESSAGE_BYTES)
        check_cost("return_us", self.return_us, MAX_OVERHEAD_US)
        object.__setattr__(self, "return_us", float(self.return_us) + 0.0)

    def places(self, fragment_bytes: float) -> int:
        """Return how many fragments of this size it holds; 0 for a size above its bytes."""
        return places_of(self.fragments, self.bytes, fragment_bytes)


def places_of(fragments: int | None, window_bytes: int | None, fragment_bytes: float) -> int:
    """Return how many fragments of a size (bytes, real) a window of these limits holds."""
    if window_bytes is None:
        assert fragments is not None, "a window has a size"
        return fragments
    held = int(window_bytes // fragment_bytes)
    return held if fragments is None else min(fragments, held)


class NodeWindow(NamedTuple):
    """A window between nodes. `window` is its place among those given, None for a stage's lanes."""

    first: int
    last: int
    fragments: int | None
    bytes: int | None
    return_us: float
    window: int | None


@dataclass(frozen=True, slots=True)
class Network:
    """The nodes of a machine: what the evaluator goes through.

    `stage_of` has each node's stage, `is_shared` whether it is the part that lanes share;
    `delay_us` what passes behind it. `windows` holds every node's own lanes first, in order.
    `processors` are pairs of nodes.
    """

    stage_of: tuple[int, ...]
    is_shared: tuple[bool, ...]
    delay_us: tuple[float, ...]
    windows: tuple[NodeWindow, ...]
    processors: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.stage_of)


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """When each fragment is in each node, (k, nodes), µs, and the lags of the processors.

    `latency_us` has the delay behind the last node, and not the constant one of the pipeline.
    """

    start_us: list[list[float]]
    end_us: list[list[float]]
    latency_us: float
    lags: Lags


class PathStep(NamedTuple):
    """A node on a critical path, (fragment, node), and what its start waited for.

    `window` is the place of the network's window that it waited for, None for the route, a
    processor, or nothing.
    """

    fragment: int
    node: int
    window: int | None


@dataclass(frozen=True)
class Machine(Derived):
    """Stages with their costs, how each handles fragments, and windows over them.

    The costs are those of a plain pipeline, without handoffs. Stages of one processor take turns,
    in the order of the lag (0 to MAX_LAG) that takes least for the cut; no more than MAX_PROCESSORS
    processors, of two stages each, that do not interleave. Raises InvalidStage, whose field is
    relative to the pipeline.
    """

    kind: ClassVar = "machine"
    premise: ClassVar = ""

    pipeline: Pipeline
    rules: tuple[StageRules, ...]
    windows: tuple[Window, ...] = ()

    def __post_init__(self) -> None:
        stages = self.pipeline.stages
        if len(self.rules) != len(stages):
            raise InvalidStage("expected rules for each stage", field="stages")
        if len(self.windows) > MAX_WINDOWS:
            raise InvalidStage(f"expected at most {MAX_WINDOWS} windows", field="windows")
        for j, (stage, rules) in enumerate(zip(stages, self.rules, strict=True)):
            _check_stage(j, stage, rules)
        for w, window in enumerate(self.windows):
            if window.last >= len(stages) or window.first < 0:
                raise InvalidStage("expected stages of this pipeline", field=f"windows.{w}.to")
        _ = self.processors

    @cached_property
    def processors(self) -> dict[str, tuple[int, int]]:
        """The stages of each processor, counted from 0, by its name. Raises InvalidStage."""
        stages: dict[str, list[int]] = {}
        for j, rules in enumerate(self.rules):
            if rules.processor is not None:
                stages.setdefault(rules.processor, []).append(j)
        for of_name in stages.values():
            if len(of_name) != 2:
                number = "one" if len(of_name) == 1 else str(len(of_name))
                raise InvalidStage(
                    f"expected two stages of a processor, not {number}",
                    field=f"stages.{of_name[-1]}.processor",
                )
        found = {name: (pair[0], pair[1]) for name, pair in stages.items()}
        if len(found) > MAX_PROCESSORS:
            raise InvalidStage(
                f"expected at most {MAX_PROCESSORS} processors",
                field=f"stages.{max(first for first, _ in found.values())}.processor",
            )
        for first, last in found.values():
            for other, beyond in found.values():
                if first < other < last < beyond:
                    raise InvalidStage(
                        "expected processors that do not interleave: of two, both stages of one "
                        "are between, before or behind those of the other",
                        field=f"stages.{other}.processor",
                    )
        return found

    def __len__(self) -> int:
        return len(self.pipeline)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in order."""
        return self.pipeline.stages

    @property
    def delay_us(self) -> float:
        """The constant delay of the whole, µs."""
        return self.pipeline.delay_us

    @property
    def range_ends(self) -> tuple[int, ...]:
        """Sizes in bytes at which some stage passes to its next range, ascending."""
        return self.pipeline.range_ends

    def costs(self) -> Mapping[str, tuple[Stage, ...]]:
        """Return the stages."""
        return self.pipeline.costs()

    def words(self) -> dict[str, object]:
        """Return the rules of the stages and the windows as plain values, those that are set."""
        rules = [_set(rules, StageRules()) for rules in self.rules]
        windows = [
            {name: value for name, value in _set(window, None).items() if value is not None}
            for window in self.windows
        ]
        return {"rules": rules, **({"windows": windows} if windows else {})}

    def first_word(self) -> tuple[str, int | None]:
        """Return the first word that is set, and the place of its stage, None for `windows`."""
        for j, rules in enumerate(self.rules):
            for name in _set(rules, StageRules()):
                return name, j
        return "windows", None

    def check_windows_alone(self) -> None:
        """Raise NeedsPlainStages, whose field is relative to the pipeline, for the first word of a
        stage that is set: messages that are cut between items cross plain stages and windows.
        """
        for j, rules in enumerate(self.rules):
            for word in _set(rules, StageRules()):
                raise NeedsPlainStages(
                    f"stage {j + 1}: {word} is set, and items cross plain stages and windows "
                    "alone: each stage handles one fragment at a time and hands it on at once",
                    field=f"stages.{j}.{word}",
                )

    def with_rules(
        self, *, lanes: Mapping[int, int] | None = None, places: Mapping[int, int] | None = None
    ) -> Machine:
        """Return the same with other lanes of stages, and other places (fragments) of windows.

        A stage that is left with one lane shares nothing any more.
        """
        rules = list(self.rules)
        for j, count in (lanes or {}).items():
            old = rules[j]
            shared = old.shared_ns_per_byte if count > 1 else 0.0
            rules[j] = StageRules(count, shared, old.delay_us, old.processor)
        windows = list(self.windows)
        for w, count in (places or {}).items():
            window = windows[w]
            windows[w] = Window(window.first, window.last, count, window.bytes, window.return_us)
        return Machine(self.pipeline, tuple(rules), tuple(windows))

    # --- what the evaluator goes through ----------------------------------------------------------

    @cached_property
    def network(self) -> Network:
        """The nodes, with their delays, windows and processors."""
        first, last = [], []
        stage_of, is_shared, delay_us = list[int](), list[bool](), list[float]()
        for j, rules in enumerate(self.rules):
            first.append(len(stage_of))
            for part in (False, True) if rules.shared_ns_per_byte else (False,):
                stage_of.append(j)
                is_shared.append(part)
                delay_us.append(0.0)
            last.append(len(stage_of) - 1)
            delay_us[-1] = rules.delay_us
        windows = [
            NodeWindow(v, v, 1 if is_shared[v] else self.rules[j].lanes, None, 0.0, None)
            for v, j in enumerate(stage_of)
        ]
        windows += [
            NodeWindow(first[j], last[j], self.rules[j].lanes, None, 0.0, None)
            for j in range(len(self.rules))
            if first[j] != last[j]
        ]
        windows += [
            NodeWindow(
                first[window.first],
                last[window.last],
                window.fragments,
                window.bytes,
                window.return_us,
                w,
            )
            for w, window in enumerate(self.windows)
        ]
        return Network(
            tuple(stage_of),
            tuple(is_shared),
            tuple(delay_us),
            tuple(windows),
            tuple(
                (first[stage], first[last_stage]) for stage, last_stage in self.processors.values()
            ),
        )

    def node_times_us(self, fragment_bytes: float) -> list[float]:
        """Return the time in µs of one fragment of this size in each node."""
        found, times = list[float](), self.pipeline.times_us(fragment_bytes)
        for j, is_shared in zip(self.network.stage_of, self.network.is_shared, strict=True):
            shared = self.rules[j].shared_ns_per_byte * fragment_bytes / 1000.0
            # Of two parts of one cost neither is below 0 by rounding.
            found.append(shared if is_shared else max(0.0, times[j] - shared))
        return found

    def places(self, fragment_bytes: float) -> list[int]:
        """Return the places of each of the network's windows for cuts of this greatest size.

        Raises Infeasible for a size that does not fit a window.
        """
        found = []
        for window in self.network.windows:
            places = places_of(window.fragments, window.bytes, fragment_bytes)
            if places < 1:
                raise Infeasible(
                    f"a fragment of {fragment_bytes:.0f} bytes does not fit the window of "
                    f"{window.bytes} bytes",
                    field=f"pipeline.windows.{window.window}.bytes",
                )
            found.append(places)
        return found

    @cached_property
    def max_fragment_bytes(self) -> int | None:
        """The greatest fragment that every window holds, bytes; None where none bounds it."""
        return min(
            (window.bytes for window in self.windows if window.bytes is not None), default=None
        )

    def offsets(self, places: Sequence[int], lags: Lags) -> list[int] | None:
        """Return an offset for each node, by which an order of evaluation follows: at step q node j
        handles fragment q - o_j. None where these lags would deadlock, and where only an order of
        another kind would not: with windows of one place over parts of a processor's way.

        Least solution of o_{j+1} >= o_j, o_l = o_j + L and o_z - o_a < b, by Bellman-Ford: without
        a processor all are 0. Derivation: each rule then points to an earlier step, or to an
        earlier node of the same one.
        """
        nodes, network = len(self.network), self.network
        found = [0] * nodes
        if not any(lags):
            return found
        bounds = [(j + 1, j, 0) for j in range(nodes - 1)]  # o_first >= o_second + third
        for (first, second), lag in zip(network.processors, lags, strict=True):
            bounds += [(second, first, lag), (first, second, -lag)]
        bounds += [
            (window.first, window.last, 1 - b)
            for window, b in zip(network.windows, places, strict=True)
        ]
        for _ in range(nodes + 1):
            has_changed = False
            for node, other, by in bounds:
                if found[node] < found[other] + by:
                    found[node], has_changed = found[other] + by, True
            if not has_changed:
                return found
        return None

    def check_live(self, fragment_bytes: float, lags: Lags) -> None:
        """Raise WouldDeadlock where processors of these lags and windows wait for each other, for
        cuts of this greatest size; Infeasible where it does not fit a window.
        """
        places = self.places(fragment_bytes)
        if self.offsets(places, lags) is not None:
            return
        names = {pair: name for name, pair in self.processors.items()}
        for (first, second), lag in zip(self.network.processors, lags, strict=True):
            stages = self.network.stage_of[first], self.network.stage_of[second]
            for window, b in zip(self.network.windows, places, strict=True):
                if window.first <= first and second <= window.last and b <= lag:
                    raise WouldDeadlock(
                        f"processor {names[stages]!r} handles fragment i + {lag} of "
                        f"{self.stages[stages[0]].name!r} before fragment i of "
                        f"{self.stages[stages[1]].name!r}, and the window over both holds {b}: it "
                        f"needs at least {lag + 1}",
                        field=f"pipeline.windows.{window.window}",
                    )
        raise WouldDeadlock(
            f"processors of lags {', '.join(map(str, lags))} wait for each other",
            field="pipeline.stages",
        )

    def lag_choices(self, places: Sequence[int]) -> Iterator[tuple[Lags, list[int]]]:
        """Yield lags of the processors that do not deadlock, with their offsets, the least first.

        Lags of 0 never do: each processor then goes fragment by fragment.
        """
        for lags in product(range(MAX_LAG + 1), repeat=len(self.network.processors)):
            offsets = self.offsets(places, lags)
            if offsets is not None:
                yield lags, offsets

    # --- the evaluator ----------------------------------------------------------------------------

    def latency_us(self, fragment_bytes: Sequence[float]) -> float:
        """Return the latency in µs of this cut, delays included, at the best lags.

        Lanes are taken in turn. O(lags * k * (nodes + windows)). Raises Infeasible for a fragment
        that does not fit a window.
        """
        return self.node_times(fragment_bytes).latency_us + self.delay_us

    def node_times(self, fragment_bytes: Sequence[float], lags: Lags | None = None) -> NodeTimes:
        """Return when each fragment is in each node, at these lags, or at the best ones; of equal
        lags the least. Raises Infeasible, and WouldDeadlock for lags that do.
        """
        places = self.places(max(fragment_bytes))
        if lags is not None:
            self.check_live(max(fragment_bytes), lags)
            return self._run(fragment_bytes, places, lags, self.offsets(places, lags) or [])
        best: NodeTimes | None = None
        for choice, offsets in self.lag_choices(places):
            found = self._run(fragment_bytes, places, choice, offsets)
            if best is None or found.latency_us < best.latency_us:
                best = found
        assert best is not None, "lags of 0 never deadlock"
        return best

    def _run(
        self,
        fragment_bytes: Sequence[float],
        places: Sequence[int],
        lags: Lags,
        offsets: Sequence[int],
    ) -> NodeTimes:
        """Each node's starts and ends, step by step, by the rules of the module's header."""
        network, count, nodes = self.network, len(fragment_bytes), len(self.network)
        known: dict[float, list[float]] = {}
        for size in fragment_bytes:
            if size not in known:
                known[size] = self.node_times_us(size)
        times = [known[size] for size in fragment_bytes]
        windows: list[list[tuple[int, int, float]]] = [[] for _ in range(nodes)]
        for window, b in zip(network.windows, places, strict=True):
            windows[window.first].append((b, window.last, window.return_us))
        ahead, behind = dict[int, tuple[int, int]](), dict[int, tuple[int, int]]()
        for (first, second), lag in zip(network.processors, lags, strict=True):
            ahead[second], behind[first] = (first, lag), (second, lag)
        delay = network.delay_us
        starts = [[0.0] * nodes for _ in range(count)]
        ends = [[0.0] * nodes for _ in range(count)]
        for step in range(count + max(offsets)):
            for j in range(nodes):
                i = step - offsets[j]
                if not 0 <= i < count:
                    continue
                start = ends[i][j - 1] + delay[j - 1] if j else 0.0
                for b, last, return_us in windows[j]:
                    if i >= b:
                        start = max(start, ends[i - b][last] + return_us)
                if j in ahead:
                    first, lag = ahead[j]
                    start = max(start, ends[min(i + lag, count - 1)][first])
                if j in behind:
                    second, lag = behind[j]
                    if i > lag:
                        start = max(start, ends[i - 1 - lag][second])
                starts[i][j] = start
                ends[i][j] = start + times[i][j]
        return NodeTimes(starts, ends, max(row[-1] for row in ends) + delay[-1], lags)

    def critical_path(self, times: NodeTimes, max_fragment_bytes: float) -> tuple[PathStep, ...]:
        """Return a longest path of these times, in order: each step starts when what it waited for
        is over. Of several, a window is taken before a processor and that before the route: it
        shows the queue. O(its length * windows).
        """
        network, delay, ends = self.network, self.network.delay_us, times.end_us
        places, last_us = self.places(max_fragment_bytes), max(row[-1] for row in ends)
        i = next(at for at, row in enumerate(ends) if row[-1] == last_us)
        j, path = len(network) - 1, list[PathStep]()
        while True:
            start = times.start_us[i][j]
            before, waited = (i, j), None
            if j and ends[i][j - 1] + delay[j - 1] == start:
                before = i, j - 1
            for (first, second), lag in zip(network.processors, times.lags, strict=True):
                ahead = min(i + lag, len(ends) - 1)
                if j == second and ends[ahead][first] == start:
                    before = ahead, first
                if j == first and i > lag and ends[i - 1 - lag][second] == start:
                    before = i - 1 - lag, second
            for w, (window, b) in enumerate(zip(network.windows, places, strict=True)):
                if (
                    window.first == j
                    and i >= b
                    and ends[i - b][window.last] + window.return_us == start
                ):
                    before, waited = (i - b, window.last), w
                    break
            path.append(PathStep(i, j, waited))
            if before == (i, j) or start == 0.0:
                return tuple(reversed(path))
            i, j = before

    # --- equal fragments --------------------------------------------------------------------------

    def equal_us(self, fragment_bytes: float, count: int) -> float:
        """Return the latency in µs of `count` fragments of this (real) size, without the constant
        delay.

        Without processors by the formula of `round_trips`, else by the evaluator. Raises Infeasible
        for a size that does not fit a window.
        """
        if self.network.processors:
            return self.node_times((fragment_bytes,) * count).latency_us
        times = self.node_times_us(fragment_bytes)
        through_us = sum(times) + sum(self.network.delay_us)
        return through_us + waited_us(self.round_trips(fragment_bytes), count)

    def round_trips(self, fragment_bytes: float) -> list[tuple[float, int]]:
        """Return (C_w, b_w) of each of the network's windows for fragments of this size: the time
        in µs from a place's use until it can be used again, and the places. Raises Infeasible.
        """
        times, delay = self.node_times_us(fragment_bytes), self.network.delay_us
        return [
            (
                sum(times[window.first : window.last + 1])
                + sum(delay[window.first : window.last])
                + window.return_us,
                b,
            )
            for window, b in zip(self.network.windows, self.places(fragment_bytes), strict=True)
        ]

    def period_us(self, fragment_bytes: float, lags: Lags | None = None) -> float:
        """Return the time in µs between two fragments of this size of a message without end: the
        greatest of C_w / b_w and, of each processor, of t_j + t_l and of what its lag lets through.
        Raises Infeasible.
        """
        times, delay = self.node_times_us(fragment_bytes), self.network.delay_us
        paces = [trip_us / b for trip_us, b in self.round_trips(fragment_bytes)]
        for at, (first, second) in enumerate(self.network.processors):
            paces.append(times[first] + times[second])
            if lags is not None:
                through_us = sum(times[first : second + 1]) + sum(delay[first:second])
                paces.append(through_us / (1 + lags[at]))
        return max(paces)


def check_plain(model: CostModel, field: str = "pipeline") -> None:
    """Raise NeedsPlainStages for a machine, which names the first of its words that is set.

    `field` is the one of the request that the model is of.
    """
    if not isinstance(model, Machine):
        return
    word, stage = model.first_word()
    place = word if stage is None else f"stages.{stage}.{word}"
    is_typed = field == "pipeline" or field.endswith(".pipeline")
    raise needs_plain(word, stage, f"{field}.{place}" if is_typed else field)


def check_plain_stage(rules: StageRules, stage: int, field: str) -> None:
    """Raise NeedsPlainStages where a word of a stage, counted from 0, is set; `field` names it."""
    for word in _set(rules, StageRules()):
        raise needs_plain(word, stage, f"{field}.{word}")


def needs_plain(word: str, stage: int | None, field: str) -> NeedsPlainStages:
    """Return the refusal of a word that is set, of a stage counted from 0, or of the windows."""
    what = "windows are" if stage is None else f"stage {stage + 1}: {word} is"
    return NeedsPlainStages(
        f"{what} set, and this needs plain stages: each handles one fragment at a time and hands "
        "it on at once; optimize, compare, audit and simulate take others, too",
        field=field,
    )


def waited_us(round_trips: Sequence[tuple[float, int]], count: int) -> float:
    """Return max sum_w m_w C_w over whole m_w >= 0 with sum_w m_w b_w <= count - 1, in µs: what the
    last of `count` equal fragments waits for those before it.

    With * the window of greatest C/b it is max_q f(q) + floor((count-1-q)/b*) C*, f(q) the best sum
    of the others with sum m b <= q: q need not pass (b* - 1) max b, for among b* uses of others are
    some whose places sum to a multiple of b*. O(b* max(b) windows), or O(count windows).
    """
    left = count - 1
    usable = [(trip_us, b) for trip_us, b in round_trips if b <= left and trip_us > 0.0]
    if not usable:
        return 0.0
    best_us, best_b = max(usable, key=lambda trip: (trip[0] / trip[1], -trip[1]))
    most_of: dict[int, float] = {}
    for trip_us, b in usable:
        most_of[b] = max(trip_us, most_of.get(b, 0.0))
    others = [(b, trip_us) for b, trip_us in most_of.items() if b != best_b]
    reach = min(left, (best_b - 1) * max((b for b, _ in others), default=0))
    sums = [0.0] * (reach + 1)
    found = (left // best_b) * best_us
    for q in range(1, reach + 1):
        sum_us = sums[q - 1]
        for b, trip_us in others:
            if b <= q and sums[q - b] + trip_us > sum_us:
                sum_us = sums[q - b] + trip_us
        sums[q] = sum_us
        found = max(found, sum_us + ((left - q) // best_b) * best_us)
    return found


def _set(words: StageRules | Window, unset: StageRules | None) -> dict[str, object]:
    """The fields by name, without those that are as in `unset`."""
    return {
        name: getattr(words, name)
        for name in words.__slots__
        if unset is None or getattr(words, name) != getattr(unset, name)
    }


def _check_stage(number: int, stage: Stage, rules: StageRules) -> None:
    if stage.handoff_bytes is not None:
        raise InvalidStage(
            "expected no handoff_bytes beside lanes, delay_us, processor or windows",
            field=f"stages.{number}.handoff_bytes",
        )
    minimum = min(part.ns_per_byte for part in stage.ranges)
    if rules.shared_ns_per_byte > minimum:
        raise InvalidStage(
            f"expected shared_ns_per_byte <= {minimum:g}, the stage's cost: it is a part of it",
            field=f"stages.{number}.shared_ns_per_byte",
        )


def _check_whole(field: str, value: object, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidStage(f"expected {field} to be a whole number", field=field)
    if not 1 <= value <= maximum:
        raise InvalidStage(f"expected 1 <= {field} <= {maximum}, got {value}", field=field)
