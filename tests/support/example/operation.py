# app/operations/curves.py
"""Curves: the latency of messages of every power of two. Nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import solvers
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.questions.source import Stored
from app.schemas.base import Bytes, Input, dump_json, parse_json
from domain.problem import FragmentLimits, problem_of
from domain.profile import ProfileReference, Revision

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork

Curve = list[tuple[int, float]]  # bytes and µs


class CurveIn(Input):
    """Which profile, and up to which message."""

    profile: str
    max_message_bytes: Bytes


@dataclass(frozen=True, slots=True)
class ComputeCurve(OperationDefaults[Curve]):
    """One curve of one revision."""

    revision: Revision
    max_message_bytes: int

    @property
    def kind(self) -> OperationKind:
        return OperationKind.CURVE

    @property
    def noun(self) -> str:
        return "curve"

    @property
    def time_s(self) -> float:
        return 120.0

    @property
    def request(self) -> bytes:
        profile = f"{self.revision.profile}@{self.revision.number}"
        return dump_json({"profile": profile, "max_message_bytes": self.max_message_bytes})

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.request)

    @property
    def work(self) -> ComputeCurve:
        return self

    def run(self, report: Report) -> Curve:
        """Solve one size after the other. Raises what `solvers.solve` does."""
        curve: Curve = []
        sizes = [2**power for power in range(self.max_message_bytes.bit_length())]
        for done, message_bytes in enumerate(sizes, start=1):
            problem = problem_of(self.revision.model, message_bytes, FragmentLimits())
            solution = solvers.solve(problem)
            curve.append((message_bytes, solution.latency_us))
            report.steps(done, len(sizes))
        return curve

    def keep(self, unit: UnitOfWork, result: Curve) -> Outcome:
        return Outcome(dump_json({"latencies_us": result}))


def curve_operation(asked: CurveIn, unit: UnitOfWork, settings: Settings) -> ComputeCurve:
    """Find the revision that this is now. Raises NotFound."""
    revision = Stored.of_unit(unit).revision(ProfileReference.parse(asked.profile))
    return ComputeCurve(revision, asked.max_message_bytes)


def requested_curve(request: bytes, unit: UnitOfWork, settings: Settings) -> ComputeCurve:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return curve_operation(parse_json(CurveIn, request), unit, settings)
