"""The version of this program, and its settings out of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InvalidInput
from domain.problem import DEFAULT_FRAGMENT_CAP

VERSION = "0.1.0"


# --- the environment, read once into frozen settings ----------------------------------------------


CHECKOUT = Path(__file__).resolve().parent.parent
# The distribution has every package below one, sluice: then a user's own folder holds the data.
IS_INSTALLED = "." in str(__package__)
MIB = 2**20


def data_folder() -> Path:
    """Return where the database is by default: `var` in a checkout, else the user's data folder."""
    if not IS_INSTALLED:
        return CHECKOUT / "var"
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "sluice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator may set; sizes in bytes, times in seconds.

    `workers` 0 means one fewer than the cores. `lease_s` is how long after its last sign of life
    others take over the jobs of a process, `drain_s` how long `sluice work` lets jobs go on when it
    has to stop.
    """

    database_url: str = f"sqlite:///{data_folder() / 'sluice.db'}"
    host: str = "127.0.0.1"
    port: int = 8080
    max_fragments: int = DEFAULT_FRAGMENT_CAP
    max_body_bytes: int = 4 * MIB
    max_trace_bytes: int = 256 * MIB
    workers: int = 0
    worker_memory_bytes: int = 2048 * MIB
    lookup_memory_bytes: int = 64 * MIB
    lookup_refresh_s: int = 1
    run_jobs: bool = True
    lease_s: int = 15
    drain_s: int = 120

    @property
    def worker_count(self) -> int:
        """How many child processes solve: `workers`, or one fewer than the cores, at least one."""
        return self.workers or max(1, available_cores() - 1)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return settings from SLUICE_* variables; an empty one counts as not set."""
        given = _Variables(os.environ if environment is None else environment)
        defaults = cls()
        return cls(
            database_url=given.text("SLUICE_DATABASE_URL", defaults.database_url),
            host=given.text("SLUICE_HOST", defaults.host),
            port=given.number("SLUICE_PORT", defaults.port, minimum=0, maximum=65_535),
            max_fragments=given.number("SLUICE_MAX_FRAGMENTS", defaults.max_fragments),
            max_body_bytes=given.number("SLUICE_MAX_BODY_BYTES", defaults.max_body_bytes),
            max_trace_bytes=given.number("SLUICE_MAX_TRACE_BYTES", defaults.max_trace_bytes),
            workers=given.number("SLUICE_WORKERS", defaults.workers, minimum=0, maximum=1024),
            worker_memory_bytes=given.number(
                "SLUICE_WORKER_MEMORY_BYTES", defaults.worker_memory_bytes, minimum=256 * MIB
            ),
            lookup_memory_bytes=given.number(
                "SLUICE_LOOKUP_MEMORY_BYTES", defaults.lookup_memory_bytes, minimum=0
            ),
            lookup_refresh_s=given.number(
                "SLUICE_LOOKUP_REFRESH_S", defaults.lookup_refresh_s, minimum=0, maximum=3600
            ),
            run_jobs=bool(
                given.number("SLUICE_RUN_JOBS", int(defaults.run_jobs), minimum=0, maximum=1)
            ),
            lease_s=given.number("SLUICE_LEASE_S", defaults.lease_s, maximum=3600),
            drain_s=given.number("SLUICE_DRAIN_S", defaults.drain_s, minimum=0, maximum=86_400),
        )


def available_cores() -> int:
    """Return the cores that this process may use, in a container fewer than the machine's."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every Unix
        return os.cpu_count() or 1


class _Variables:
    """The variables that were given."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str) -> str:
        return self._environment.get(name, "").strip() or default

    def number(self, name: str, default: int, *, minimum: int = 1, maximum: int = 2**40) -> int:
        raw = self._environment.get(name, "").strip()
        if not raw:
            return default
        if not (raw.isascii() and raw.isdigit() and len(raw) <= 15):
            raise InvalidInput(f"expected {name} to be a whole number", field=name)
        if not minimum <= int(raw) <= maximum:
            raise InvalidInput(f"expected {minimum} <= {name} <= {maximum}", field=name)
        return int(raw)
