"""The times of a runner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """Seconds. A runner beats each `beat_s`; others hold it for dead after `lease_s` without one.

    One that could not beat for `fence_s` ends its own tasks: by `lease_s` others may have them.
    Each `poll_s` it looks for jobs and cancels that nobody told it of; `show_s` lies between two
    writes of how far a job is. A job whose worker crashed waits for `crash_wait_s`, four times as
    long after the second crash.
    """

    lease_s: float = 15.0
    beat_s: float = 3.0
    fence_s: float = 12.0
    poll_s: float = 1.0
    show_s: float = 0.5
    retry_s: float = 1.0
    crash_wait_s: float = 1.0

    @classmethod
    def of_lease(cls, lease_s: float) -> RunnerOptions:
        """Return the options of a lease: five beats in it, four until a runner fences itself."""
        return cls(lease_s=lease_s, beat_s=lease_s / 5, fence_s=lease_s * 0.8)
