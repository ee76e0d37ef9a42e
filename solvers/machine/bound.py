"""Lower bounds on what every cut of a message through a machine takes, for each count.

Source    docs/theory.md, "Machines".
Notation  k fragments; m, M: least and greatest size; phi_j: the greatest convex function below the
          cost of node j; B: message; (a, z, b, r): windows; d: delays.
Cost      O(nodes + windows) NumPy passes over the counts.
Exact     each is below every cut of k fragments, in whatever order lanes and processors serve.
Traps     a window of bytes holds B' / m fragments of the least size, and not those of the mean.

Rows i, i+b, i+2b, ... of a window are a path; there are q = min(b, k) of them, and none is longer
than the latency. Their mean is sum_i sum_j phi_j(x_i) / q inside the window, by Jensen at least
k phi_j(B/k) / q, and k - q ways back; before it and behind it at least the least phi_j.

Memory: a fragment holds its x_i bytes of a window of W for C(x_i) = sum_j t_j + d + r at least, and
never are more than W held. So sum_i x_i C(x_i) <= W times the time from the first start in the
window to the last place that is back, which is T + r less what is before and behind. x phi(x) is
convex where phi rises, so that the sum is at least B C(B/k).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.machine import places_of
from domain.problem import MachineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAFETY = 1.0 - 1e-12  # sums of some hundred terms are rounded by less


def count_bounds_us(problem: MachineProblem, k: Ints) -> Floats:
    """Return a bound in µs for each count, (counts,), the constant delay included."""
    machine, network = problem.machine, problem.machine.network
    minimum, most = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    mean = np.clip(problem.message_bytes / k, minimum, most)
    of_nodes = [_minorant(problem, node, mean, minimum, most) for node in range(len(network))]
    fewest = np.array([low for low, _, _ in of_nodes])  # of one fragment of any size
    total = np.array([each for _, each, _ in of_nodes]) * k  # (nodes, counts)
    rises = np.array([has_risen for _, _, has_risen in of_nodes])
    delay = np.array(network.delay_us)
    best = np.zeros(len(k))
    for one in network.windows:
        a, z = one.first, one.last
        held = np.minimum(places_of(one.fragments, one.bytes, minimum), k)
        inside_us = total[a : z + 1].sum(axis=0) + k * delay[a:z].sum() + (k - held) * one.return_us
        outside_us = fewest[:a].sum() + fewest[z + 1 :].sum() + delay[:a].sum() + delay[z:].sum()
        best = np.maximum(best, outside_us + inside_us / held)
        if one.bytes is not None:
            held_us = (total[a : z + 1] * rises[a : z + 1, None]).sum(axis=0)
            held_us += k * (delay[a:z].sum() + one.return_us)
            best = np.maximum(best, outside_us + mean / one.bytes * held_us - one.return_us)
    for j, z in network.processors:
        outside_us = fewest[:j].sum() + fewest[z + 1 :].sum() + delay[:j].sum() + delay[z:].sum()
        best = np.maximum(best, outside_us + total[j] + total[z])
    bounds: Floats = best * _SAFETY + machine.delay_us
    return bounds


def _minorant(
    problem: MachineProblem, node: int, mean: Floats, minimum: int, most: int
) -> tuple[float, Floats, bool]:
    """The least value of the convex minorant of a node's cost, that at the mean sizes, µs, and
    whether it never falls.
    """
    machine, network = problem.machine, problem.machine.network
    stage = network.stage_of[node]
    shared = machine.rules[stage].shared_ns_per_byte / 1000.0
    if network.is_shared[node]:
        return shared * minimum, shared * mean, True
    sizes, costs_us = np.array(machine.stages[stage].minorant_points(minimum, most)).T
    own_us = np.interp(mean, sizes, costs_us) - shared * mean
    at_ends_us = costs_us - shared * sizes
    has_risen = bool((np.diff(at_ends_us) >= 0.0).all())
    return max(0.0, float(at_ends_us.min())), np.maximum(0.0, own_us), has_risen
