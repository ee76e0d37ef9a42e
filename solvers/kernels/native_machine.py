"""The evaluator of machines in C: the same values as in Python, sooner.

Source    kernels/native/machine.c; domain/machine.py.
Notation  x: sizes in bytes; k: equal fragments of x; q full fragments of s, then the remainder r.
Cost      a cut O(lags k (nodes + windows)), some nanoseconds each; a few microseconds for a call.
Exact     the operations of `Machine.node_times` in its order: the same bits; equal fragments
          without processors by the formula, to rounding.
Traps     numbers travel as addresses: what they belong to must outlive the call.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_LAG
from domain.machine import Machine
from domain.pipeline import Pipeline
from solvers.kernels.native_recurrence import DrawnCosts, address_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class NativeNetwork(ctypes.Structure):
    """What a machine has beside its costs, in the layout of kernels/native/machine.h.

    Numbers go as addresses, and `keep` holds what these belong to.
    """

    _fields_ = [
        ("nodes", ctypes.c_int64),
        ("stage_of", ctypes.c_void_p),
        ("is_shared", ctypes.c_void_p),
        ("delay_us", ctypes.c_void_p),
        ("shared_ns_per_byte", ctypes.c_void_p),
        ("windows", ctypes.c_int64),
        ("bounds", ctypes.c_void_p),
        ("return_us", ctypes.c_void_p),
        ("processors", ctypes.c_int64),
        ("pairs", ctypes.c_void_p),
        ("max_lag", ctypes.c_int64),
    ]
    keep: tuple[array[int] | array[float], ...]


def native_network(machine: Machine) -> NativeNetwork:
    """Return what C takes of a machine, made once for each."""
    return machine.derived(_of_machine)


def _of_machine(machine: Machine) -> NativeNetwork:
    network = machine.network
    bounds = [
        number
        for one in network.windows
        for number in (one.first, one.last, one.fragments or 0, one.bytes or 0)
    ]
    shared = [machine.rules[j].shared_ns_per_byte for j in network.stage_of]
    nodes = (
        array("q", network.stage_of),
        array("q", network.is_shared),
        array("d", network.delay_us),
        array("d", shared),
    )
    windows = array("q", bounds), array("d", [one.return_us for one in network.windows])
    pairs = array("q", [node for pair in network.processors for node in pair])
    found = NativeNetwork(
        *(len(network), *(_address(one) for one in nodes)),
        *(len(network.windows), *(_address(one) for one in windows)),
        *(len(network.processors), _address(pairs)),
        MAX_LAG,
    )
    found.keep = (*nodes, *windows, pairs)
    return found


def _address(numbers: array[int] | array[float]) -> int:
    return numbers.buffer_info()[0]


def _costs_of(machine: Machine) -> DrawnCosts:
    """The costs as one draw, without the constant delay, made once for each pipeline."""
    return machine.pipeline.derived(_one_draw)


def _one_draw(pipeline: Pipeline) -> DrawnCosts:
    stages, most = len(pipeline), max(len(stage.ranges) for stage in pipeline.stages)
    lines, ends = np.zeros((2, stages, most, 1)), np.full((stages, most - 1, 1), np.inf)
    for j, stage in enumerate(pipeline.stages):
        for place, part in enumerate(stage.ranges):
            lines[:, j, place, 0] = part.overhead_us, part.ns_per_byte
            if part.up_to_bytes is not None:
                ends[j, place, 0] = part.up_to_bytes
    return DrawnCosts.of(lines[0], lines[1], ends, 0.0)


class NativeMachine:
    """Calls into one loaded library. Latencies are in µs at the best lags, infinite where a
    fragment does not fit a window; those of costs as they stand are without the constant delay.

    Raises MemoryError.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        number, address = ctypes.c_int64, ctypes.c_void_p
        asked: list[Any] = [ctypes.POINTER(NativeNetwork), ctypes.POINTER(DrawnCosts)]
        self._equal = library.sluice_machine_equal
        self._equal.argtypes = [*asked, number, *(address,) * 3]
        self._repeated = library.sluice_machine_repeated
        self._repeated.argtypes = [*asked, number, *(address,) * 4]
        self._slopes = library.sluice_machine_slopes
        self._slopes.argtypes = [*asked, number, address, number, *(address,) * 4]
        self._paths = library.sluice_machine_paths
        self._paths.argtypes = self._slopes.argtypes
        self._cut = library.sluice_machine_cut
        self._cut.argtypes = [*asked, number, *(address,) * 2]
        self._cut_at = library.sluice_machine_cut_at
        self._cut_at.argtypes = [*asked, number, *(address,) * 3]
        self._times = library.sluice_machine_times
        self._times.argtypes = [*asked, number, *(address,) * 4]
        self._repeated_in_draws = library.sluice_machine_repeated_in_draws
        self._repeated_in_draws.argtypes = [*asked, number, number, *(address,) * 2]
        self._cut_in_draws = library.sluice_machine_cut_in_draws
        self._cut_in_draws.argtypes = [*asked, number, *(address,) * 2]

    def equal_us(self, machine: Machine, x: Floats, k: Ints) -> Floats:
        """Return what k equal fragments of (real) sizes x take, arrays of one shape."""
        sizes, counts = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(k, np.int64)
        out: Floats = np.empty(sizes.shape)
        numbers = address_of(sizes), address_of(counts), address_of(out)
        _check(self._equal(native_network(machine), _costs_of(machine), out.size, *numbers))
        return out

    def repeated_us(self, machine: Machine, q: Ints, s: Ints, r: Ints) -> Floats:
        """Return what q fragments of s bytes and then a remainder of r take, arrays of one shape;
        0 is no remainder.
        """
        cuts = [np.ascontiguousarray(one, np.int64) for one in (q, s, r)]
        out: Floats = np.empty(cuts[0].shape)
        numbers = *(address_of(one) for one in cuts), address_of(out)
        _check(self._repeated(native_network(machine), _costs_of(machine), out.size, *numbers))
        return out

    def repeated_slopes(
        self, machine: Machine, q: Ints, s: Ints, total: int, lags: Ints
    ) -> tuple[Floats, Floats]:
        """Return what q fragments of s bytes and then the rest of the message take at these lags,
        µs, and a derivative of that by s for this q, µs per byte, arrays of one dimension; lags
        (cuts, processors).

        Infinite, and 0, where the lags deadlock or s does not fit.
        """
        return self._lines(self._slopes, machine, q, s, total, lags)

    def repeated_paths(
        self, machine: Machine, q: Ints, s: Ints, total: int, lags: Ints
    ) -> tuple[Floats, Floats]:
        """Return the same of a path that is no longer than the latency, sooner for many fragments:
        the longest of those that turn in one window, or two.
        """
        return self._lines(self._paths, machine, q, s, total, lags)

    def _lines(
        self, ask: Any, machine: Machine, q: Ints, s: Ints, total: int, lags: Ints
    ) -> tuple[Floats, Floats]:
        cuts = [np.ascontiguousarray(one, np.int64) for one in (q, s, lags)]
        out: Floats = np.empty((2, len(cuts[0])))
        full, size, order = (address_of(one) for one in cuts)
        found = address_of(out[0]), address_of(out[1])
        given = total, order, out.shape[1], full, size, *found
        _check(ask(native_network(machine), _costs_of(machine), *given))
        return out[0], out[1]

    def cut_us(self, machine: Machine, cut: Sequence[float]) -> float:
        """Return what this cut takes."""
        sizes, out = array("d", cut), array("d", (0.0,))
        numbers = len(sizes), _address(sizes), _address(out)
        _check(self._cut(native_network(machine), _costs_of(machine), *numbers))
        return out[0]

    def cut_at_us(self, machine: Machine, cut: Sequence[float], lags: Sequence[int]) -> float:
        """Return the same at these lags; infinite where they deadlock."""
        sizes, order, out = array("d", cut), array("q", lags), array("d", (0.0,))
        numbers = len(sizes), *(_address(one) for one in (sizes, order, out))
        _check(self._cut_at(native_network(machine), _costs_of(machine), *numbers))
        return out[0]

    def node_times_us(
        self, machine: Machine, cut: Sequence[float], lags: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return when each fragment is in each node at these lags: starts and ends, (fragments,
        nodes); infinite where the lags deadlock.
        """
        sizes, order = array("d", cut), array("q", lags)
        out: Floats = np.empty((2, len(sizes), len(machine.network)))
        given = len(sizes), _address(sizes), _address(order)
        found = address_of(out[0]), address_of(out[1])
        _check(self._times(native_network(machine), _costs_of(machine), *given, *found))
        return out[0], out[1]

    def repeated_in_draws_us(
        self, machine: Machine, costs: DrawnCosts, message_bytes: int, sizes: Ints
    ) -> Floats:
        """Return latencies of a message in repeated sizes with these costs in place of the
        machine's, their delay included, (sizes, draws).

        A size is 1 byte to the whole message. In a draw in which a stage costs less than what its
        lanes share, they share all of it.
        """
        asked = np.ascontiguousarray(sizes, dtype=np.int64)
        out: Floats = np.empty((len(asked), costs.draws))
        numbers = message_bytes, len(asked), address_of(asked), address_of(out)
        _check(self._repeated_in_draws(native_network(machine), costs, *numbers))
        return out

    def cut_in_draws_us(self, machine: Machine, costs: DrawnCosts, cut: Ints) -> Floats:
        """Return the same of one cut, (draws,)."""
        asked = np.ascontiguousarray(cut, dtype=np.float64)
        out: Floats = np.empty(costs.draws)
        numbers = len(asked), address_of(asked), address_of(out)
        _check(self._cut_in_draws(native_network(machine), costs, *numbers))
        return out


def _check(status: int) -> None:
    if status:
        raise MemoryError("no memory for the fragments that windows hold")
