"""A probe whose samples count whoever else is on the processors, and short signatures.

Samples during which an end was preempted are dropped; on a busy machine, or on one processor, in
which each message wakes the other end, that is all of them. Tests of what becomes of samples are
not about that.
"""

from __future__ import annotations

import pytest

from measuring import signature
from measuring.running import Probe

_SAMPLES = ("burst", "trip", "receive")


def as_if_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every answer of a probe say that neither end was preempted, and few bursts suffice."""
    ask = Probe.ask

    def asked(self: Probe, line: str) -> str:
        answer = ask(self, line)
        is_sample = line.split()[0] in _SAMPLES or line.isdigit()
        return f"{answer.rpartition(' ')[0]} 0" if is_sample else answer

    monkeypatch.setattr(Probe, "ask", asked)
    monkeypatch.setattr(signature, "WARM_UP", 5)
    monkeypatch.setattr(signature, "MAX_MESSAGES", 8)
    monkeypatch.setattr(signature, "_FARTHEST", 1)
