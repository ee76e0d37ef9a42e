"""Either implementation of the kernels for a block of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

from solvers.kernels import active
from solvers.kernels.active import NativeKernels, load_kernels
from solvers.kernels.native import Choice


@contextmanager
def computed_by(choice: Choice) -> Iterator[None]:
    """Everything in this block is computed by these kernels."""
    with patch.object(active, "NATIVE", _loaded(choice)):
        yield


def native_kernels() -> NativeKernels:
    """Return the kernels as they are built; they must be."""
    found = _loaded("native")
    assert found is not None
    return found


@cache
def _loaded(choice: Choice) -> NativeKernels | None:
    return load_kernels(choice)
