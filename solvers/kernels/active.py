"""The kernels that this process computes with, chosen once, when this module is imported.

`NATIVE` is None where SLUICE_KERNELS asks for NumPy or nothing was compiled: the methods in NumPy
compute the same, later. They are the reference that tests hold the C code to.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from solvers.kernels.native import Choice, asked, load_library
from solvers.kernels.native_dual import NativeDual, NativeSearches
from solvers.kernels.native_items import NativeItems
from solvers.kernels.native_machine import NativeMachine
from solvers.kernels.native_recurrence import NativeRecurrence
from solvers.kernels.native_whole import NativeWhole


@dataclass(frozen=True, slots=True)
class NativeKernels:
    """Calls into one loaded library, by subject."""

    library: ctypes.CDLL
    recurrence: NativeRecurrence
    dual: NativeDual
    whole: NativeWhole
    searches: NativeSearches
    machine: NativeMachine
    items: NativeItems


def load_kernels(choice: Choice) -> NativeKernels | None:
    """Return the kernels of this choice, None for NumPy.

    Raises InvalidInput for "native" without a build.
    """
    found = load_library(choice)
    if found is None:
        return None
    return NativeKernels(
        found,
        NativeRecurrence(found),
        NativeDual(found),
        NativeWhole(found),
        NativeSearches(found),
        NativeMachine(found),
        NativeItems(found),
    )


NATIVE = load_kernels(asked())
