# app/verbs/curve/operation.py
"""Curve: prepared from a request and the store, run anywhere, nothing kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analysis.curve import Curve, CurveQuestion, curve
from app.operations.call import Call
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.questions.source import Stored
from app.schemas.base import dump_json, parse_json
from app.verbs.curve.answer import sent
from app.verbs.curve.request import question_of
from contract.curve import CurveIn
from domain.profile import ProfileReference

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork


@dataclass(frozen=True, slots=True)
class ComputeCurve(OperationDefaults[Curve]):
    """One curve of one revision; `request` is a CurveIn as JSON."""

    question: CurveQuestion
    request: bytes

    kind: ClassVar = OperationKind.CURVE
    noun: ClassVar = "curve"
    time_s: ClassVar = 120.0

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.request)

    @property
    def work(self) -> Call[Curve]:
        return Call(curve, self.question, ("steps",))

    def run(self, report: Report) -> Curve:
        """Solve. Raises SluiceError."""
        return self.work.run(report)

    def keep(self, unit: UnitOfWork, result: Curve) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(sent(result)))


def operation(asked: CurveIn, stored: Stored, settings: Settings) -> ComputeCurve:
    """Find the revision that this is now. Raises NotFound."""
    revision = stored.revision(ProfileReference.parse(asked.profile))
    profile = f"{revision.profile}@{revision.number}"
    pinned = CurveIn(profile=profile, max_message_bytes=asked.max_message_bytes)
    return ComputeCurve(question_of(asked, revision), dump_json(pinned))


def requested(request: bytes, stored: Stored, settings: Settings) -> ComputeCurve:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return operation(parse_json(CurveIn, request), stored, settings)
