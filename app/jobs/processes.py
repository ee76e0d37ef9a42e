"""Which process of which machine a runner is, so that its neighbours see at once that it is gone.

Elsewhere it takes a while until its beats are missed.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def this_process() -> str:
    """Return this process by its machine, namespace of processes, number and start; else ''."""
    try:
        started = psutil.Process().create_time()
    except psutil.Error:
        return ""
    return f"{_machine()} {os.getpid()} {started:.2f}" if _machine() else ""


def is_gone(process: str) -> bool:
    """Return whether this process was on this machine and has ended; False where unknown."""
    machine, _, rest = process.partition(" ")
    number, _, started = rest.partition(" ")
    if not started or machine != _machine():
        return False
    try:
        found = psutil.Process(int(number))
        return f"{found.create_time():.2f}" != started or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


def _machine() -> str:
    """Return the boot and the namespace in which numbers of processes mean something."""
    try:
        return f"{_BOOT.read_text().strip()}/{_NAMESPACE.stat().st_ino}"
    except OSError:
        return ""
