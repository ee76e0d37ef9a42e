"""What workers run in tests of jobs; it imports next to nothing, so that they start quickly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Last:
    """Takes so long and leaves the processor to others, and says how far it is."""

    number: int
    wall_s: float

    def run(self, report: Any) -> dict[str, Any]:
        """Return its number."""
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < self.wall_s:
            report.steps(int(passed_s * 1e3), int(self.wall_s * 1e3))
            time.sleep(0.005)
        return {"number": self.number, "latency_us": 2.0}
