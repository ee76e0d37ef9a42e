"""What contract/verification.py declares, made of a verification."""

from __future__ import annotations

from app.schemas.base import notices_out, timestamp
from contract.verification import VerificationOut, VerifiedSizeOut
from domain.verification import Verification, VerifiedSize


def verification_out(found: Verification) -> VerificationOut:
    """Return a verification as it is sent."""
    return VerificationOut(
        verdict=found.verdict.value,
        detail=found.notice().detail,
        offset_us=found.offset_us,
        message_bytes=found.message_bytes,
        stages=found.stages,
        sizes=tuple(map(_size, found.sizes)),
        reasons=notices_out(found.reasons),
        verified_at=timestamp(found.verified_at) if found.verified_at else None,
    )


def _size(size: VerifiedSize) -> VerifiedSizeOut:
    return VerifiedSizeOut(
        fragment_bytes=size.fragment_bytes,
        fragments=size.fragments,
        predicted_us=size.predicted_us,
        measured_us=size.measured_us,
        measured_us_interval=(size.low_us, size.high_us),
        ratio=size.ratio,
        runs=size.runs,
    )
