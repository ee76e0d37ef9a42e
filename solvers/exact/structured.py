"""The optimum for k fragments, certified on both sides: the production path for stages of lines.

Source    results sec. 1; theory sec. 6; docs/theory.md sec. 14.
Notation  k fragments, n stages; x: (k,) sizes in bytes; p: (k-1, n), the reduced dual; d: a stage
          behind which fragments may wait.
Cost      some twenty iterations of O(k n) each where no fragment waits, of O(k n q^2 + k q^3) where
          fragments wait behind q stages. Where the ends of the cut settle quickly to one size, only
          the ends are iterated on, and the cost is that of two passes over the k n cells.
Exact     what is returned is certified here and not taken from the method: `upper_us` is the
          latency of the sizes, `lower_us` the value of the repaired dual. Where the two stay apart,
          a general solver is tried, and the true distance is returned.
Traps     the no-wait chain is solved first; only stages whose order it violates are let wait, and
          of neighbours with the same violation only the first: the others follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_STAGES
from domain.sensitivity import Slope
from solvers.contract import Deadline
from solvers.exact.chain import LONG, Chain, ChainMethod, ChainOptions, Iterate
from solvers.exact.chain_ends import ends_to_try
from solvers.exact.dual import (
    capped_value_us,
    drift,
    marginal_us,
    projected,
    repaired,
    restored,
    value_us,
)
from solvers.exact.lp.lines import CountResult, equal_sizes, single_fragment, spread_shares
from solvers.exact.lp.lines import solve_count as solve_by_glop
from solvers.exact.lp.never_idle import never_idle
from solvers.kernels import active
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Waits = NDArray[np.bool_]  # (k - 2, n - 1), as in Chain

CLOSE = 1e-9  # relative distance of the two bounds at which a solve is finished
AIM = 5e-10  # where the method stops: what rounding adds must fit between
_CHECK_ORDER_AT = 1e-3
_DISORDER = 1e-9  # violations below this are the method's own
_FINAL = 1e-8  # complementarity from which on what is out of order is so at the optimum
_ALIKE = 0.2  # violations that differ by less, relative, are one
_MINOR = 0.1  # of the greatest violation: lesser ones of long chains wait for the next round
_MAX_ROUNDS, _LAST_ROUNDS = 20, 8  # in all, and those left where all fragments may wait at last
_LOCATES = 1e-4  # complementarity from which on an iterate shows where waits are missing,
_BESIDE = 8  # up to so many fragments away,
_ROUGH_BESIDE = 10.0  # and this share of all times its root;
_UNSETTLED = 0.25  # of the root of the complementarity: what p may move beside the repeated step
_MIN_SHORTENED = 40  # no chain is, below: its ends take two dozen
_TINY_CELLS = 200  # k n up to which NumPy's overhead exceeds a general solver's
_ONE_CALL_CELLS = 20_000  # k n of a solve whose every step is in C
_CONVERGED = 1e-9  # complementarity from which on only the digits of p are missing
_NEAR = 1e-8  # bounds this close lack no waits, whatever is out of order
_ROUNDED = 1e-6  # bounds farther apart lack more than digits: waits, or longer ends
_CUTS = (1e-7, 1e-6, 1e-8)  # weights of cells below which they are nothing
_MAX_CELLS = 50_000_000  # of one array of blocks and cells: 1 GB in all
_STEPS_A_SECOND = 4e8  # of elimination and of the cells, cautiously
_ITERATIONS = 20
_GENERAL_CELLS = 10_000  # k n up to which a general solver is tried


def default_method() -> ChainMethod:
    """Return the native method where its library was built, else the one in NumPy."""
    if active.NATIVE is not None:
        from solvers.exact.interior_native import NativeMethod

        return NativeMethod(active.NATIVE.library)
    from solvers.exact.interior_point import iterate

    return iterate


def solve_count(
    lines: LineProblem,
    k: int,
    deadline: Deadline,
    *,
    close: float = CLOSE,
    aim: float = AIM,
    method: ChainMethod | None = None,
    whole: bool = False,
) -> CountResult:
    """Solve for exactly k fragments; never raises for a method's failure, only widens the gap.

    A result is good enough where its bounds are `close`; the method goes on to the `aim`, as far as
    its arithmetic carries it: what follows for other counts is the sharper. `whole`: no fragments
    are of one size for the method's ease; of many optimal sizes those in the middle are returned.
    """
    if k == 1:
        return single_fragment(lines)
    if method is None and active.NATIVE is not None and k * lines.n <= _ONE_CALL_CELLS:
        quick = _in_one_call(lines, k, deadline, whole=whole, close=close, aim=aim)
        if quick is not None:
            return quick
    busy = _never_idle(lines, k) if method is None and not whole else None
    for known in (busy, _in_one_line(lines, k)):
        if known is not None and _is_close(known, aim):
            return known
    attempts: list[tuple[int, int] | None] = [None]
    if k >= _MIN_SHORTENED and not whole:
        attempts = ends_to_try(lines, k)
    if lines.n == 1 or _is_given(lines, k) or not (lines.g.any() or lines.G.any()):
        return equal_sizes(lines, k)
    if method is None and k * lines.n <= _TINY_CELLS and active.NATIVE is None:
        simplex = solve_by_glop(lines, k, deadline, close=close)
        if _is_close(simplex, close):
            return simplex
    best = _Search(lines, k, (close, aim), method or default_method(), attempts).run(deadline)
    if best is not None and _is_close(best, close):
        return best
    equal = equal_sizes(lines, k)
    best = equal if best is None else closer(best, equal)
    if _is_close(best, close) or deadline.passed or k * lines.n > _GENERAL_CELLS:
        return best
    return closer(best, solve_by_glop(lines, k, deadline, close=close))


def _in_one_call(
    lines: LineProblem, k: int, deadline: Deadline, *, whole: bool, close: float, aim: float
) -> CountResult | None:
    """The same for few cells, in C; None where not close."""
    assert active.NATIVE is not None
    for every in (False, True)[whole or k < _MIN_SHORTENED :]:
        found = active.NATIVE.dual.solve(
            lines.native, k, whole=every, close=close, aim=aim, time_limit_s=deadline.remaining_s
        )
        if found is None:
            return None
        result = CountResult(k, *found)
        if not _is_close(result, close):
            result = _with_digits(lines, result, result.p, close)
        if _is_close(result, close):
            return result
    return None


def _never_idle(lines: LineProblem, k: int) -> CountResult | None:
    return never_idle(lines, k) if k >= _MIN_SHORTENED and lines.n > 1 else None


def _in_one_line(lines: LineProblem, k: int) -> CountResult | None:
    """Equal sizes, proven by the drift; only where the first and the last stage are the slowest."""
    if k < _MIN_SHORTENED or not lines.ends_are_slowest(k):
        return None
    p = drift(lines.n, k)
    x = np.full(k, lines.B / k)
    return CountResult(k, value_us(lines, p), lines.latency_us(x), x, p)


def _is_given(lines: LineProblem, k: int) -> bool:
    """Whether the limits leave one cut of real sizes: all at the least, or all at the greatest."""
    free = lines.free_bytes(k)
    return free <= 0.0 or k * (lines.M - lines.m) <= free


def _is_close(result: CountResult, close: float) -> bool:
    return result.upper_us - result.lower_us <= close * result.upper_us


def closer(one: CountResult, other: CountResult) -> CountResult:
    """Return the better of each side."""
    low = one if one.lower_us >= other.lower_us else other
    high = one if one.upper_us <= other.upper_us else other
    return CountResult(one.k, low.lower_us, high.upper_us, high.x, low.p)


class _Search:
    """Chains of one problem, each with more stages that fragments may wait behind."""

    def __init__(
        self,
        lines: LineProblem,
        k: int,
        stop: tuple[float, float],
        method: ChainMethod,
        attempts: list[tuple[int, int] | None],
    ) -> None:
        self._lines, self._k, self._method = lines, k, method
        self._close, self._aim = stop
        self._attempts = attempts
        self._ends = self._attempts.pop(0)

    def run(self, deadline: Deadline) -> CountResult | None:
        """Let more fragments wait until the bounds are close or no more can.

        An iterate that was stopped because waits are missing is certified only where nothing
        comes after it.
        """
        waits = self._nowhere()
        best: CountResult | None = None
        rough: tuple[Chain, Iterate] | None = None
        for left in range(_MAX_ROUNDS, 0, -1):
            found = self._iterate(waits, deadline)
            if found is None:
                break
            grown = _grown(found[1], waits, is_short=self._ends is not None)
            added = bool((grown & ~waits).any())
            rough = found
            if deadline.passed or not added or found[1].apart <= _NEAR:
                best, rough = self._better(best, found), None
                if _is_close(best, self._close) or deadline.passed:
                    return best
            guess = self._ends is not None and self._ends[0] == self._ends[1]
            if self._attempts and (not added or (guess and _is_unsettled(*found))):
                self._ends = self._attempts.pop(0)
                grown = self._nowhere()
            elif not added:
                if waits.all():
                    break
                grown = np.ones_like(waits)
            elif left == _LAST_ROUNDS and self._affordable(np.ones_like(waits), deadline):
                grown = np.ones_like(waits)
            if not self._affordable(grown, deadline):
                break
            waits = grown
        return best if rough is None else self._better(best, rough)

    def _nowhere(self) -> Waits:
        """No fragment of the chain may wait behind any boundary."""
        return np.zeros((sum(self._ends or (self._k, 0)) - 2, self._lines.n - 1), dtype=np.bool_)

    def _better(self, best: CountResult | None, found: tuple[Chain, Iterate]) -> CountResult:
        here = self._certified(*found)
        return here if best is None else closer(best, here)

    def _affordable(self, waits: Waits, deadline: Deadline) -> bool:
        """Whether the blocks of so many waits fit the memory and the time that is left."""
        size = 1 + int(waits.any(axis=0).sum())
        cells = len(waits) * (size * size + 6 * self._lines.n)
        wide = int(waits.any(axis=1).sum())
        steps = wide * size * (size * size + 20 * self._lines.n) + len(waits) * 21 * self._lines.n
        return cells <= _MAX_CELLS and steps * _ITERATIONS <= _STEPS_A_SECOND * deadline.remaining_s

    def _iterate(self, waits: Waits, deadline: Deadline) -> tuple[Chain, Iterate] | None:
        lines, k = self._lines, self._k
        first, last = self._ends or (k, 0)
        chain = Chain(
            overhead=lines.g + lines.m * lines.G,
            G=lines.G,
            free_bytes=lines.free_bytes(k),
            spread_bytes=lines.M - lines.m,
            k=first + last,
            repeat_step=first - 1 if self._ends else 0,
            repeats=k - first - last + 1,
            waits=waits,
        )
        options = ChainOptions(
            close=self._aim,
            time_limit_s=deadline.remaining_s,
            check_order_at=0.0 if waits.all() else _CHECK_ORDER_AT,
        )
        iterate = self._method(chain, options)
        return None if iterate is None else (chain, iterate)

    def _certified(self, chain: Chain, iterate: Iterate) -> CountResult:
        lines, k = self._lines, self._k
        shares = np.nan_to_num(np.maximum(iterate.all_y(chain), 0.0))
        x = lines.m + spread_shares(shares, lines.free_bytes(k), np.full(k, lines.M - lines.m))
        kept = chain.all_steps(repaired(iterate.p))
        found = CountResult(k, value_us(lines, kept), lines.latency_us(x), x, kept)
        cuts = (max(iterate.complementarity, 0.0) ** 0.5, 0.0)
        for cut in cuts if iterate.apart <= _ROUNDED else ():
            if _is_close(found, self._aim):
                return found
            p = chain.all_steps(restored(lines, iterate.p, k, cut))
            found = closer(found, _capped(lines, found, p))
        if iterate.complementarity > _CONVERGED:
            return found
        return _with_digits(lines, found, chain.all_steps(iterate.p), self._close)


def _with_digits(lines: LineProblem, found: CountResult, p: Floats, close: float) -> CountResult:
    """Bring back the digits of the dual that bounds nearly close lack (docs/theory.md sec. 14)."""
    if _is_close(found, close) or not _is_close(found, _ROUNDED):
        return found
    found = closer(found, _capped(lines, found, found.p))
    for cut in _CUTS:  # a wrong guess of what is tight worsens it: the better one is kept
        if _is_close(found, close):
            break
        found = closer(found, _capped(lines, found, repaired(projected(lines, p, cut))))
    return found


def _capped(lines: LineProblem, found: CountResult, p: Floats) -> CountResult:
    """The result with this dual, priced for cuts that are better than the one found."""
    lower = capped_value_us(lines, p, found.upper_us)
    return CountResult(found.k, lower, found.upper_us, found.x, p)


def _is_unsettled(chain: Chain, iterate: Iterate) -> bool:
    """Whether p still moves beside the repeated step, by more than the iterate is rough."""
    near = iterate.p[max(chain.repeat_step - 1, 0) : chain.repeat_step + 2]
    moved = float(np.abs(np.diff(near, axis=0)).max(initial=0.0))
    return moved > _UNSETTLED * float(max(iterate.complementarity, 0.0) ** 0.5)


def _grown(iterate: Iterate, waits: Waits, *, is_short: bool) -> Waits:
    """Where fragments may wait, and must next: at each step out of order behind the boundary that
    is so by the most.

    Of boundaries alike only the first is. The first time only fragments near such a step may wait
    there, where the iterate tells: then all, for these are not independent of each other. Of short
    ends all may, whose errors count as often as their repeated step.
    """
    rough, count = max(iterate.complementarity, 0.0), len(iterate.y)
    minimum = max(_DISORDER, 3.0 * rough**0.5) if rough > _FINAL else _DISORDER
    if count > LONG:
        minimum = max(minimum, _MINOR * float(iterate.violation.max(initial=0.0)))
    is_located = not is_short and _FINAL < rough <= _LOCATES and count <= LONG
    reach = _BESIDE + int(_ROUGH_BESIDE * count * rough**0.5)
    rises = np.diff(np.cumsum(iterate.p[:, :-1], axis=1), axis=0)
    most = rises.max(axis=1, initial=0.0)
    steps = np.flatnonzero(most > minimum)
    boundaries = (rises[steps] >= (1.0 - _ALIKE) * most[steps, None]).argmax(axis=1)
    grown = waits.copy()
    for t, d in zip(steps.tolist(), boundaries.tolist(), strict=True):
        if not is_located or waits[:, d].any():
            grown[:, d] = True
        else:
            grown[max(t - reach, 0) : t + reach + 1, d] = True
    return grown


# --- how the optimum moves (docs/theory.md sec. 21) ----------------------------------------------

_KINK_CELLS = 250  # of one whose kinks are
_AGREE = 1e-9  # of primal and dual, relative
_AIM = 1e-13
_STEPS = (3e-5, 3e-6)  # relative: beside a kink, the second where another is nearer than the first
_TILT = _STEPS[0] * (1.0 + 0.5 * np.cos(np.arange(2 * MAX_STAGES + 1, dtype=float) ** 2))
_FOLLOWS = 1e-5  # of the latency, times the step: what it may differ by from its derivative
_KINK = 1e-3  # relative: what the derivatives beside a point differ by at a kink
_ONE = 1e-6  # relative: derivatives that differ by less are one
_NO_DEADLINE = Deadline(float("inf"))

Slopes: TypeAlias = tuple[list[Slope], list[Slope], Slope]


@dataclass(frozen=True, slots=True)
class Gradient:
    """dT*/dg and dT*/dG (n,), dT*/dB, and the dual and primal that they are of."""

    g: Floats
    G: Floats
    B: float
    found: CountResult


def gradient_of(lines: LineProblem, k: int) -> Gradient | None:
    """Return dT*/dg, dT*/dG and dT*/dB of k fragments; None where primal and dual differ."""
    if not k * lines.m <= lines.B <= k * lines.M:
        return None
    found = solve_count(lines, k, _NO_DEADLINE, close=_AGREE / 10.0, aim=_AIM)
    if found.upper_us - found.lower_us > _AGREE * found.upper_us:
        return None
    p, n = found.p, lines.n
    if k == 1:  # one path: all stages, with all bytes
        return Gradient(np.ones(n), np.full(n, lines.B), float(lines.G.sum()), found)
    if active.NATIVE is not None:
        return Gradient(*active.NATIVE.dual.gradient(lines.native, p, found.x), found)
    # A fragment is in the stages from where its path came to where it goes on to the next: of the
    # step before it those at and behind the stage, of the step behind it those at and before.
    by_byte = found.x[0] + np.diff(found.x) @ np.cumsum(p, axis=1) + found.x[:-1] @ p
    return Gradient(g=1.0 + p.sum(axis=0), G=by_byte, B=marginal_us(lines, p), found=found)


def slopes_of(lines: LineProblem, here: Gradient) -> Slopes | None:
    """Return both derivatives by each g, each G and B; None where a kink's sides cannot be had."""
    k = here.found.k
    beside = None if k == 1 else _tilted(lines, k)  # one fragment has one path, and no kinks
    if k == 1 or (beside is not None and _is_smooth(here, beside)):
        return (
            [*map(_slope, here.g.tolist(), lines.g.tolist())],
            [*map(_slope, here.G.tolist(), lines.G.tolist())],
            Slope(here.B, here.B),
        )
    if k * lines.n > _KINK_CELLS:
        return None
    return _sides(lines, here)


def _tilted(lines: LineProblem, k: int) -> Gradient | None:
    """The derivatives a step beside a point, in no direction of its own."""
    return gradient_of(_moved(lines, k, _TILT[: 2 * lines.n + 1]), k)


def _slope(value: float, cost: float) -> Slope:
    return Slope(value if cost > 0.0 else None, value)


def _is_smooth(here: Gradient, beside: Gradient) -> bool:
    """Whether the derivatives beside a point are those in it, but for their own change.

    At a kink those in it are of the centre of the optimal duals, away from those on each side.
    """
    return bool(
        abs(beside.B - here.B) <= _KINK * here.B
        and (abs(beside.g - here.g) <= _KINK * (1.0 + here.g)).all()
        and (abs(beside.G - here.G) <= _KINK * float(here.found.x.sum())).all()
    )


def _moved(lines: LineProblem, k: int, by: Floats) -> LineProblem:
    """The problem with g, G and B moved: G and B by shares of themselves, g by its own scale.

    A cost of 0 stays where it would fall. Of limits that are the message's own size, they follow.
    """
    n = lines.n
    mean = lines.B / k
    scale = 0.0  # of costs of 0, where there are any
    if not (lines.g.all() and lines.G.all()):
        scale = lines.latency_us(np.full(k, mean)) / (n + k - 1)
    overheads = lines.g + by[:n] * np.where(lines.g > 0.0, lines.g, scale)
    costs = lines.G + by[n:-1] * np.where(lines.G > 0.0, lines.G, scale / mean)
    size = lines.B * (1.0 + by[-1])
    return LineProblem(
        g=np.maximum(overheads, 0.0),
        G=np.maximum(costs, 0.0),
        B=size,
        m=lines.m,
        M=size if lines.M == lines.B else lines.M,
        k_min=lines.k_min,
        k_max=lines.k_max,
    )


def _sides(lines: LineProblem, here: Gradient) -> Slopes | None:
    """Both derivatives by each parameter, solved beside the point; None where one is not found."""
    n = lines.n
    values = np.concatenate([lines.g, lines.G, [lines.B]])
    centre = np.concatenate([here.g, here.G, [here.B]])

    def side(at: int, sign: float) -> float | None:
        by = sign * np.eye(1, 2 * n + 1, at)[0]
        found = (_beside(lines, here, at, by * step) for step in _STEPS)
        return next((one for one in found if one is not None), None)

    def both(at: int) -> Slope:
        falling = side(at, -1.0) if values[at] > 0.0 else None
        rising = side(at, 1.0)
        # The centre of the optimal duals is that of one side only where the two are one.
        known = [one for one in (falling, rising) if one is not None]
        value = float(centre[at])
        has_sides = at < 2 * n and values[at] > 0.0
        if has_sides and len(known) == 1 and abs(known[0] - value) <= _ONE * abs(value):
            return Slope(value, value)
        return Slope(falling, rising)

    slopes = [both(at) for at in range(2 * n + 1)]
    costs = zip(values[:-1], slopes[:-1], strict=True)
    if any(one.rising is None or (cost and one.falling is None) for cost, one in costs):
        return None
    return slopes[:n], slopes[n:-1], slopes[-1]


def _beside(lines: LineProblem, here: Gradient, at: int, by: Floats) -> float | None:
    """The derivative beside the point, extrapolated to it from two steps and one.

    None where the latency does not follow it: there is another kink within the step.
    """
    values, found = [], []
    for steps in (0.0, 1.0, 2.0):
        moved = _moved(lines, here.found.k, steps * by)
        values.append(float(np.concatenate([moved.g, moved.G, [moved.B]])[at]))
        gradient = gradient_of(moved, here.found.k) if steps else here
        if gradient is None:
            return None
        found.append(gradient)
    near = [float(np.concatenate([one.g, one.G, [one.B]])[at]) for one in found[1:]]
    derivative = 2.0 * near[0] - near[1]
    risen_us = found[1].found.upper_us - here.found.upper_us
    followed_us = 0.5 * (derivative + near[0]) * (values[1] - values[0])
    allowed_us = _FOLLOWS * float(np.abs(by).max()) * here.found.upper_us
    return derivative if abs(risen_us - followed_us) <= allowed_us else None
