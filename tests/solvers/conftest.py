"""Fixtures of the solvers' tests."""

from __future__ import annotations

import pytest

from solvers.kernels.native import Choice
from tests.support.compiler import require_native_kernels


@pytest.fixture(scope="session", params=["native", "numpy"])
def kernels(request: pytest.FixtureRequest) -> Choice:
    """Both implementations of the kernels in turn: what holds for one holds for the other."""
    choice: Choice = request.param
    if choice == "native":
        require_native_kernels()
    return choice
