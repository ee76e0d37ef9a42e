"""The reduced dual by a primal-dual interior point, in NumPy: the path without a compiler.

Source    Mehrotra's predictor-corrector; Gondzio's centrality corrector where steps are short;
          own elimination of the multipliers, docs/theory.md sec. 14.
Notation  as in chain.py, sizes in units of B'/fragments and times in units of the slowest stage:
          y (k,), w (k,): sizes and slack of their byte rows; v, u (k,): room below the cap and its
          multiplier; r, o (k, q): waits and slack of their order rows, block t holding the pair of
          steps (t-1, t); s, p (k-1, n): slack and weight of a cell; Y, W, V, U: the same as y, w,
          v, u for the repeated fragments together; E (n, f): per stage Q, Q- and, for each
          boundary d, whether c <= d; mu: the mean product.
Cost      O(k n q^2 + k q^3) an iteration, mostly NumPy passes and one banded Cholesky.
Exact     an iterate, not a proof: what is proven of it is computed in structured.py.
Traps     cells whose p/s outweighs the others by more digits than a double has: covariances are
          centred twice. Near the optimum the Newton system is singular but for the sum of the
          sizes: its diagonal gets a share of 1e-12.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from solvers.exact.chain import LONG, Chain, ChainOptions, Iterate
from solvers.exact.chain_bounds import bound_distance

Floats = NDArray[np.float64]

_START_MU = 0.03
_ARCH = 1.0  # of the waits at the start
_BACK_OFF = 0.995
_SHORT = 0.5  # steps below this ask for a centrality corrector
_REGULAR = 1e-12
_CERTIFY, _LONG_CERTIFY = 2.0, 2.5  # times the distance asked for, of short chains and long ones
_DISORDERED, _LONG_DISORDERED = 10.0, 1000.0  # times the root of the complementarity: out of order
_MAX_STALLS = 12  # iterations in which the complementarity is not halved


@dataclass(slots=True)
class _Point:
    """The iterate, or a step from it: every pair of a variable and its multiplier."""

    s: Floats
    p: Floats
    y: Floats
    w: Floats
    v: Floats
    u: Floats
    r: Floats
    o: Floats
    Y: Floats
    W: Floats
    V: Floats
    U: Floats
    price: float  # lambda

    def primal(self) -> tuple[Floats, ...]:
        return self.s, self.y, self.v, self.r, self.Y, self.V

    def dual(self) -> tuple[Floats, ...]:
        return self.p, self.w, self.u, self.o, self.W, self.U


class _Scaled:
    """The chain in scaled units."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.size = chain.free_bytes / chain.fragments
        self.unit = float((chain.overhead + chain.G * self.size).max())
        self.g = chain.overhead / self.unit
        self.G = chain.G * (self.size / self.unit)
        self.Q = np.cumsum(self.G)
        self.Q_minus = np.concatenate([[0.0], self.Q[:-1]])
        bounds = np.flatnonzero(chain.may_wait.any(axis=0))
        self.waits = np.pad(chain.may_wait[:, bounds], ((1, 1), (0, 0)))
        stages = np.arange(len(self.G))
        self.below = (stages[:, None] <= bounds[None, :]).astype(float)
        self.E = np.column_stack([self.Q, self.Q_minus, self.below])
        self.cap = chain.spread_bytes / self.size
        self.capped = chain.is_capped
        self.k, self.q = chain.k, len(bounds)
        self.inner = float(chain.repeats - 1)
        self.at = chain.repeat_step

    def rows(self, p: Floats) -> tuple[Floats, Floats]:
        """E'p: byte rows (k,) without lambda, and order rows (k, q)."""
        w = np.concatenate([p @ self.Q, self.Q[-1:]])
        w[1:] -= p @ self.Q_minus
        o = np.zeros((self.k, self.q))
        if self.q:
            o[1:-1] = -np.diff(p @ self.below, axis=0)
        return w, np.where(self.waits, o, 0.0)


def iterate(chain: Chain, options: ChainOptions) -> Iterate:
    """Iterate until the two bounds are close, nothing more is gained, or time is up."""
    z = _Scaled(chain)
    point = _start(z)
    end, best, stalls, closest = time.monotonic() + options.time_limit_s, np.inf, 0, np.inf
    apart, turn = 1.0, 0
    is_long = chain.k > LONG
    certify = _LONG_CERTIFY if is_long else _CERTIFY
    disordered = _LONG_DISORDERED if is_long else _DISORDERED
    while True:
        total = _complementarity(point)
        share = total / (_dual_objective(z, point) + total)
        stalls += 1
        if share < 0.5 * best:
            best, stalls = share, 0
        if share <= certify * options.close:
            apart = bound_distance(chain, _iterate_of(z, point, float(share)), options.close)
            done = share < 1e-14 or (share < 1e-3 * options.close and apart > 0.5 * closest)
            if apart <= options.close or done:
                break
            closest = min(closest, apart)
        late = turn >= options.max_iterations or time.monotonic() > end
        if late or stalls > _MAX_STALLS or not np.isfinite(share):
            break
        if share < options.check_order_at and _violation(point.p).max() > disordered * share**0.5:
            break
        try:
            point = _advanced(z, point, total)
        except (LinAlgError, FloatingPointError):
            break
        turn += 1
    return _iterate_of(z, point, float(share), apart, turn)


def _iterate_of(
    z: _Scaled, point: _Point, share: float, apart: float = 1.0, turn: int = 0
) -> Iterate:
    repeated = float(point.Y[0]) / z.inner * z.size if z.inner else 0.0
    violation = _violation(point.p)
    return Iterate(point.y * z.size, repeated, point.p, violation, share, apart, turn)


def _violation(p: Floats) -> Floats:
    running = np.cumsum(p, axis=1)[:, :-1]
    if len(running) < 2:
        return np.zeros(running.shape[1])
    out: Floats = np.maximum(np.diff(running, axis=0).max(axis=0), 0.0)
    return out


def _start(z: _Scaled) -> _Point:
    """Equal sizes, waits in an arch, every step on its central path; residuals are allowed."""
    k, some = z.k, 1 if z.inner else 0
    r = _arches(z.waits)
    cost = z.g + z.G + np.diff(r, axis=0) @ z.below.T
    if some:
        cost[z.at] += z.inner * (z.g + z.G)
    s, p = _central(cost)
    w, o = z.rows(p)
    inner = np.maximum(r, 1e-300)
    o = np.where(r > 0.0, np.maximum(o, _START_MU / inner), 0.0)
    cap = z.cap - 1.0 if z.capped else 1.0
    v, V = np.full(k if z.capped else 0, cap), np.full(some * z.capped, z.inner * cap)
    u, U = _START_MU / v, _START_MU / V
    Y = np.full(some, z.inner)
    W = np.full(some, float(p[z.at] @ z.G)) + (U if z.capped else 0.0)
    w = w + (u if z.capped else 0.0)
    price = float(min(w.min(), W.min(initial=np.inf))) - _START_MU
    return _Point(s, p, np.ones(k), w - price, v, u, r, o, Y, W - price, V, U, price)


def _arches(waits: NDArray[np.bool_]) -> Floats:
    """Over each run of fragments that may wait an arch, 0 elsewhere."""
    r = np.zeros(waits.shape)
    for d, column in enumerate(waits.T):
        before = np.flatnonzero(np.diff(column.astype(np.int8)) > 0)
        behind = np.flatnonzero(np.diff(column.astype(np.int8)) < 0) + 1
        for start, end in zip(before, behind, strict=True):
            t = np.arange(start + 1, end)
            r[t, d] = _ARCH * (t - start) * (end - t) / (end - start)
    return r


def _central(cost: Floats) -> tuple[Floats, Floats]:
    """Slacks s and weights p with p s equal in a row and sum p = 1."""
    level = cost.max(axis=1, keepdims=True) + _START_MU
    for _ in range(12):
        x = 1.0 / (level - cost)
        value = _START_MU * x.sum(axis=1, keepdims=True) - 1.0
        level = level + value / (_START_MU * (x * x).sum(axis=1, keepdims=True))
    s = level - cost
    p = 1.0 / s
    return s, p / p.sum(axis=1, keepdims=True)


def _complementarity(point: _Point) -> float:
    pairs = zip(point.primal(), point.dual(), strict=True)
    return float(sum(np.vdot(x, m) for x, m in pairs))


def _dual_objective(z: _Scaled, point: _Point) -> float:
    weight = point.p.sum(axis=0) + z.inner * point.p[z.at]
    value = point.price * (z.k + z.inner) + z.g.sum() + float(z.g @ weight)
    if z.capped:
        value -= z.cap * (float(point.u.sum()) + z.inner * float(point.U.sum()))
    return float(value)


class _System:
    """Eliminates the cells' multipliers; solves for sizes, waits, the repeated Y and lambda."""

    def __init__(self, z: _Scaled, at: _Point) -> None:
        self.z, self.at = z, at
        self.D = at.p / at.s
        self.sum = self.D.sum(axis=1)
        functions = np.column_stack([z.E, z.G])
        mean = (self.D @ functions) / self.sum[:, None]
        centred = functions[None, :, :] - mean[:, None, :]
        mean = (self.D[:, None, :] @ centred)[:, 0, :] / self.sum[:, None]
        self.centred = centred - mean[:, None, :]
        self.factor = cholesky_banded(self._banded())
        w, o = z.rows(at.p)
        self.rest_w = w + (at.u if z.capped else 0.0) - at.price - at.w
        self.rest_o = o - at.o
        ones = np.zeros((z.k, 1 + z.q))
        ones[:, 0] = 1.0
        self.ones = self._solve(ones)
        if z.inner:
            self._add_border()

    def _banded(self) -> Floats:
        z, k, m = self.z, self.z.k, 1 + self.z.q
        inner = self.centred[:, :, :-1]
        cov = np.swapaxes(inner, 1, 2) @ (self.D[:, :, None] * inner)
        here, across = np.zeros((k, m, m)), np.zeros((k - 1, m, m))
        first = np.array([0, *range(2, m + 1)])  # Q and the boundaries
        second = np.array([1, *range(2, m + 1)])  # Q- and the boundaries
        sign = np.where(np.arange(m) == 0, 1.0, -1.0)
        flip = sign[:, None] * sign[None, :]
        here[:-1] += cov[:, first[:, None], first[None, :]] * flip
        here[1:] += cov[:, second[:, None], second[None, :]] * flip
        across -= cov[:, first[:, None], second[None, :]] * flip
        t, d = np.nonzero(~z.waits)
        here[t, 1 + d, :] = here[t, :, 1 + d] = 0.0
        here[t, 1 + d, 1 + d] = 1.0
        across[:, 1:, :][~z.waits[:-1]] = np.swapaxes(across, 1, 2)[:, 1:, :][~z.waits[1:]] = 0.0
        here[:, 0, 0] += self.at.w / self.at.y
        if z.capped:
            here[:, 0, 0] += self.at.u / self.at.v
        t, d = np.nonzero(z.waits)
        here[t, 1 + d, 1 + d] += self.at.o[t, d] / self.at.r[t, d]
        return _bands(here, across)

    def _add_border(self) -> None:
        z, at, m = self.z, self.at, 1 + self.z.q
        weighted = self.D[z.at] * self.centred[z.at, :, -1]
        cov = weighted @ self.centred[z.at]
        border = np.zeros((z.k, m))
        border[z.at] += np.concatenate([cov[:1], -cov[2:-1]])
        border[z.at + 1] += np.concatenate([-cov[1:2], cov[2:-1]])
        border[:, 1:][~z.waits] = 0.0
        self.border, self.bordered = border, self._solve(border)
        self.corner = float(cov[-1]) + float(at.W[0] / at.Y[0])
        self.rest_W = float(at.p[z.at] @ z.G) - at.price - float(at.W[0])
        if z.capped:
            self.corner += float(at.U[0] / at.V[0])
            self.rest_W += float(at.U[0])

    def _solve(self, side: Floats) -> Floats:
        out: Floats = cho_solve_banded((self.factor, False), side.ravel()).reshape(side.shape)
        return out

    def step(self, goal: _Goals) -> _Point:
        """The step towards these products."""
        z, at = self.z, self.at
        tp = goal.s / at.s - at.p
        # The weights of a step sum to 1, whatever rounding has made of them.
        total = (goal.s / at.s).sum(axis=1) - 1.0
        sums = (tp[:, None, :] @ self.centred)[:, 0, :]
        side = np.zeros((z.k, 1 + z.q))
        side[:-1, 0] -= sums[:, 0]
        side[1:, 0] += sums[:, 1]
        side[:, 0] += goal.y / at.y - at.w - self.rest_w
        if z.capped:
            side[:, 0] -= goal.v / at.v - at.u
        if z.q:
            side[:-1, 1:] += sums[:, 2:-1]
            side[1:, 1:] -= sums[:, 2:-1]
            side[:, 1:] += goal.r / np.where(z.waits, at.r, 1.0) - at.o - self.rest_o
            side[:, 1:][~z.waits] = 0.0
        block = self._solve(side)
        missing = float(block[:, 0].sum() - (1.0 - at.y).sum())
        against = float(self.ones[:, 0].sum())
        dY, price = 0.0, -missing / against
        if z.inner:
            dY, price = self._border_step(goal, block, missing, against, float(sums[z.at, -1]))
            block = block - dY * self.bordered
        block = block + price * self.ones
        return self._full(goal, tp, total, block, dY, price)

    def _border_step(
        self, goal: _Goals, block: Floats, missing: float, against: float, total: float
    ) -> tuple[float, float]:
        z, at = self.z, self.at
        corner = self.corner - float(np.vdot(self.border, self.bordered))
        corner = max(corner, 1e-15 * self.corner)
        across = float(np.vdot(self.border, self.ones)) - 1.0
        side = float(goal.Y[0] / at.Y[0] - at.W[0]) - self.rest_W - total
        if z.capped:
            side -= float(goal.V[0] / at.V[0] - at.U[0])
        side -= float(np.vdot(self.border, block))
        missing -= z.inner - float(at.Y[0])
        scale = corner * against + across * across
        return (side * against + missing * across) / scale, (
            across * side - corner * missing
        ) / scale

    def _full(
        self, goal: _Goals, tp: Floats, total: Floats, block: Floats, dY: float, price: float
    ) -> _Point:
        z, at = self.z, self.at
        dy, dr = block[:, 0], block[:, 1:].copy()
        dr[~z.waits] = 0.0
        change = (self.centred[:, :, 0] * dy[:-1, None]) - self.centred[:, :, 1] * dy[1:, None]
        if z.q:
            change += (self.centred[:, :, 2:-1] @ np.diff(dr, axis=0)[:, :, None])[:, :, 0]
        if z.inner:
            change[z.at] += self.centred[z.at, :, -1] * dY
        ds = (total / self.sum)[:, None] - change
        dp = tp - self.D * ds
        step_Y = np.full(len(at.Y), dY)
        dv, dV = (-dy if z.capped else at.v), -step_Y[: len(at.V)]
        inner = np.maximum(at.r, 1e-300)
        do = np.where(at.r > 0.0, (goal.r - at.o * dr) / inner - at.o, 0.0)
        return _Point(
            ds,
            dp,
            dy,
            _multiplier(goal.y, at.y, dy, at.w),
            dv,
            _multiplier(goal.v, at.v, dv, at.u),
            dr,
            do,
            step_Y,
            _multiplier(goal.Y, at.Y, step_Y, at.W),
            dV,
            _multiplier(goal.V, at.V, dV, at.U),
            price,
        )


@dataclass(slots=True)
class _Goals:
    """The product wanted of each pair."""

    s: Floats
    y: Floats
    v: Floats
    r: Floats
    Y: Floats
    V: Floats


def _multiplier(goal: Floats, x: Floats, dx: Floats, m: Floats) -> Floats:
    out: Floats = (goal - m * dx) / x - m
    return out


def _bands(here: Floats, across: Floats) -> Floats:
    """Upper banded storage of a block tridiagonal matrix."""
    k, m, _ = here.shape
    width = 2 * m - 1
    out = np.zeros((width + 1, k * m))
    for i in range(m):
        for j in range(i, m):
            out[width - (j - i), j::m] = here[:, i, j]
        for j in range(m):
            out[width - (m + j - i), m + j :: m] = across[:, i, j]
    out[width] *= 1.0 + _REGULAR
    return out


def _advanced(z: _Scaled, at: _Point, total: float) -> _Point:
    system = _System(z, at)
    affine = system.step(_Goals(*(np.zeros(x.shape) for x in at.primal())))
    primal, dual = _lengths(at, affine)
    pairs = list(zip(at.primal(), at.dual(), affine.primal(), affine.dual(), strict=True))
    after = sum(float(np.vdot(x + primal * dx, m + dual * dm)) for x, m, dx, dm in pairs)
    count = sum(x.size for x in at.primal()) - int((~z.waits).sum())
    centre = (max(after, 0.0) / total) ** 3 * total / count
    goals = _Goals(*(centre - dx * dm for _, _, dx, dm in pairs))
    step = system.step(goals)
    primal, dual = _lengths(at, step)
    if min(primal, dual) < _SHORT:
        goals = _corrected(at, step, goals, primal, dual, centre)
        other = system.step(goals)
        lengths = _lengths(at, other)
        if sum(lengths) > primal + dual:
            step, (primal, dual) = other, lengths
    primal, dual = min(1.0, _BACK_OFF * primal), min(1.0, _BACK_OFF * dual)
    return _moved(at, step, primal, dual)


def _corrected(
    at: _Point, step: _Point, goals: _Goals, primal: float, dual: float, centre: float
) -> _Goals:
    """Gondzio's corrector: products after a longer step are brought back to near the centre."""
    primal, dual = min(1.0, 1.3 * primal + 0.2), min(1.0, 1.3 * dual + 0.2)
    low, high = 0.1 * centre, 10.0 * centre
    out = []
    wanted = (goals.s, goals.y, goals.v, goals.r, goals.Y, goals.V)
    pairs = zip(at.primal(), at.dual(), step.primal(), step.dual(), wanted, strict=True)
    for x, m, dx, dm, goal in pairs:
        product = (x + primal * dx) * (m + dual * dm)
        out.append(goal + np.maximum(np.clip(product, low, high) - product, -high))
    return _Goals(*out)


def _lengths(at: _Point, step: _Point) -> tuple[float, float]:
    """The longest admitted steps, primal and dual, at most 1 / _BACK_OFF or so."""
    return _longest(at.primal(), step.primal()), _longest(at.dual(), step.dual())


def _longest(values: tuple[Floats, ...], steps: tuple[Floats, ...]) -> float:
    worst = 1.0
    for x, dx in zip(values, steps, strict=True):
        shrinking = dx < 0.0
        if shrinking.any():
            worst = max(worst, float((-dx[shrinking] / x[shrinking]).max()))
    return 1.0 / worst


def _moved(at: _Point, step: _Point, primal: float, dual: float) -> _Point:
    s, y, v, r, Y, V = (x + primal * dx for x, dx in zip(at.primal(), step.primal(), strict=True))
    p, w, u, o, W, U = (m + dual * dm for m, dm in zip(at.dual(), step.dual(), strict=True))
    return _Point(s, p, y, w, v, u, r, o, Y, W, V, U, at.price + dual * step.price)
