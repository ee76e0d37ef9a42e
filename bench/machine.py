"""What was measured on, and with what: no names of machines or people, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# Rewritten by the benchmarks themselves: a change there changes no figure.
_OWN_OUTPUT = ("bench/results/", "docs/benchmarks.md", "docs/plots/")


def machine() -> dict[str, object]:
    """Processor, cores, memory, operating system and Python."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def libraries() -> dict[str, str]:
    """Versions of the service's own dependencies as they are installed."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    names = sorted(_bare(requirement) for requirement in project["dependencies"])
    return {name: metadata.version(name) for name in names}


def commit() -> dict[str, object]:
    """The commit that was measured, and which of its files had been changed."""
    changed = [
        line[3:]
        for line in _git("status", "--porcelain", "--untracked-files=no").splitlines()
        if not line[3:].startswith(_OWN_OUTPUT)
    ]
    return {"id": _git("rev-parse", "HEAD").strip(), "changed_files": changed}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    return done.stdout


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _bare(requirement: str) -> str:
    """psycopg of psycopg[binary]>=3.3,<4."""
    end = next((i for i, letter in enumerate(requirement) if letter in "[<>=! ;"), None)
    return requirement[:end]
