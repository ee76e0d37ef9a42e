"""Lines and switches by Sluice and by others, called the way that their documentation shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from bench.fits.truth import Data
from domain.fit import FitMethod, FitOptions, FitShape
from fitting.stage import fit_stage


@dataclass(frozen=True, slots=True)
class Found:
    """What a peer estimates: (overhead in µs, ns per byte) of each range, and where ranges end."""

    lines: tuple[tuple[float, float], ...]
    ends_bytes: tuple[int, ...] = ()


Peer = Callable[[Data], Found]


def line_peers() -> dict[str, Peer]:
    """Who fits one line."""
    ours: dict[str, Peer] = {
        f"sluice {method}": partial(_ours, FitOptions(method, FitShape.LINE))
        for method in FitMethod
    }
    return ours | {
        "numpy.polyfit": _polyfit,
        "numpy.polyfit, weights 1/time": _weighted_polyfit,
        "scipy siegelslopes": _siegel,
    }


def range_peers() -> dict[str, Peer]:
    """Who finds switches; pycewise takes part where it is installed."""
    peers: dict[str, Peer] = {"sluice ranges": partial(_ours, FitOptions())}
    if find_spec("pycewise") is not None:
        for mode in ("log", "weighted"):
            peers[f"pycewise, mode {mode}"] = partial(_pycewise, mode)
    return peers


def _ours(options: FitOptions, data: Data) -> Found:
    stage, _ = fit_stage("stage", data.message_bytes.tolist(), data.times_us.tolist(), options)
    ends = tuple(line.up_to_bytes for line in stage.lines if line.up_to_bytes is not None)
    return Found(tuple((line.overhead_us, line.ns_per_byte) for line in stage.lines), ends)


def _polyfit(data: Data) -> Found:
    slope, intercept = np.polyfit(data.message_bytes, data.times_us, 1)
    return Found(((float(intercept), 1000.0 * float(slope)),))


def _weighted_polyfit(data: Data) -> Found:
    slope, intercept = np.polyfit(data.message_bytes, data.times_us, 1, w=1.0 / data.times_us)
    return Found(((float(intercept), 1000.0 * float(slope)),))


def _siegel(data: Data) -> Found:
    found = stats.siegelslopes(data.times_us, data.message_bytes)
    return Found(((float(found.intercept), 1000.0 * float(found.slope)),))


def _pycewise(mode: str, data: Data) -> Found:
    pycewise: Any = import_module("pycewise")
    tree = pycewise.compute_regression(
        data.message_bytes.tolist(), data.times_us.tolist(), mode=mode
    )
    flat = tree.flatify().auto_simplify()
    ends = [int(end) for end in flat.breakpoints]
    lines = []
    for first, last in pairwise([0, *ends, 2 * int(data.message_bytes.max())]):
        left, right = first + 1, max(first + 2, last)
        at_left, at_right = float(flat.predict(left)), float(flat.predict(right))
        cost = (at_right - at_left) / (right - left)
        lines.append((at_left - cost * left, 1000.0 * cost))
    return Found(tuple(lines), tuple(ends))
