"""A pipeline as C takes it: the layout that kernels/native/recurrence.h declares, written once."""

from __future__ import annotations

import ctypes

NS_PER_US = 1000.0


class NativePipeline(ctypes.Structure):
    """Counts of ranges by stage, and the ranges one behind the other; numbers go as addresses.

    `end_bytes`, `overhead_us` and `cost` have one double for each range; a cost is divided by
    `divisor`, which is 1000 for ns a byte. Whoever fills it in keeps what the addresses belong to.
    """

    _fields_ = [
        ("stages", ctypes.c_int64),
        ("ranges", ctypes.c_void_p),
        ("end_bytes", ctypes.c_void_p),
        ("overhead_us", ctypes.c_void_p),
        ("cost", ctypes.c_void_p),
        ("divisor", ctypes.c_double),
    ]
