"""Domain objects and records for tests of what is stored."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from domain.aggregate import Aggregate
from domain.fit import FitMethod, LineFit, SizeFit, StageFit, TraceFit, Verdict
from domain.measurement import TraceKind
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits
from domain.profile import Origin, Provenance
from domain.solution import Notice, Status, Strategy
from domain.verification import ModelVerdict, Verification, VerifiedSize
from models.identifiers import new_id
from models.records import AnswerRecord, ApiKeyRecord, JobRecord, KeyScope, TableRecord

GIVEN = Provenance(Origin.GIVEN, "typed in")
TIMESTAMP = datetime(2024, 2, 29, 23, 59, 59, 123457, tzinfo=UTC)


def a_pipeline(overhead_us: float = 0.1) -> Pipeline:
    """A pipeline whose numbers do not survive being printed with few digits."""
    ranges = (FitRange(1 / 3, 2e-9, 8192), FitRange(1e12, 0.0))
    return Pipeline(
        (
            Stage.of_line("copy \N{SNOWMAN}", overhead_us=overhead_us, ns_per_byte=7.03125),
            Stage("wire", ranges),
        ),
        delay_us=0.1 + 0.2,
    )


def an_aggregate(overhead_us: float = 0.1) -> Aggregate:
    """What is known of such a pipeline from outside."""
    ranges = (FitRange(overhead_us, 1 / 3, 8192), FitRange(1e12, 2e-9))
    return Aggregate(
        Stage("all \N{SNOWMAN}", ranges),
        Stage.of_line("slowest", overhead_us=overhead_us, ns_per_byte=2e-9),
        delay_us=0.1 + 0.2,
    )


def a_fit() -> TraceFit:
    """A fit with a clipped estimate and a notice."""
    line = LineFit(
        overhead_us=0.0,
        ns_per_byte=1 / 3,
        overhead_std_error_us=1e-300,
        ns_per_byte_std_error=0.1,
        correlation=-0.7,
        overhead_us_interval=(0.0, 0.1 + 0.2),
        ns_per_byte_interval=(0.3, 0.4),
        overhead_verdict=Verdict.UNSUPPORTED,
        ns_per_byte_verdict=Verdict.SUPPORTED,
        from_bytes=64,
        to_bytes=4096,
        up_to_bytes=None,
        num_samples=12,
        clipped=("overhead_us",),
    )
    stage = StageFit(
        name="copy",
        method=FitMethod.ROBUST,
        lines=(line,),
        sizes=(SizeFit(64, 12, 0.5, 0.6, 1 / 3, 0.01, 1),),
        num_samples=12,
        outliers=1,
        relative_residual_std=0.02,
        residual_std_us=2.5,
        r_squared=0.999,
        outlier_influence=1e-17,
    )
    return TraceFit(
        kind=TraceKind.DIRECT,
        method=FitMethod.ROBUST,
        understood=(("rows", "12"),),
        stages=(stage,),
        notices=(Notice("clipped", "set to 0"),),
    )


def an_answer(**changes: Any) -> AnswerRecord:
    """An answer under a new identifier; its body is no text in any encoding."""
    values: dict[str, Any] = {
        "id": new_id(),
        "created_at": TIMESTAMP,
        "question_digest": "0" * 64,
        "strategy": Strategy.EXACT,
        "message_bytes": 4096,
        "fragments": 6,
        "latency_us": 184.36000000000001,
        "lower_bound_us": 1 / 3,
        "relative_gap": 1.7976931348623157e308,
        "status": Status.OPTIMAL_BEFORE_ROUNDING,
        "name": "NIC ×2",
        "note": "the card of next year\nat twice the rate",
        "body": b'{"a": "\x00\xff\r\n"}',
    }
    return AnswerRecord(**{**values, **changes})


def a_job(**changes: Any) -> JobRecord:
    """A queued job under a new identifier."""
    values: dict[str, Any] = {"id": new_id(), "request": b'{"x": 1}', "created_at": TIMESTAMP}
    return JobRecord(**{**values, **changes})


def a_key(**changes: Any) -> ApiKeyRecord:
    """A valid key under a new identifier, of a secret that nobody knows."""
    identifier = new_id()
    values: dict[str, Any] = {
        "id": identifier,
        "owner": "local",
        "name": "a program",
        "digest": hashlib.sha256(identifier.encode()).hexdigest(),
        "scope": KeyScope.WRITE,
        "created_at": TIMESTAMP,
    }
    return ApiKeyRecord(**{**values, **changes})


def a_table(file: bytes = b"\x89SLT\r\n\x00", **changes: Any) -> TableRecord:
    """A compiled table of no profile, under the digest of its file."""
    values: dict[str, Any] = {
        "digest": hashlib.sha256(file).hexdigest(),
        "id": new_id(),
        "created_at": TIMESTAMP,
        "question_digest": "0" * 64,
        "profile_name": None,
        "profile_revision": None,
        "min_message_bytes": 1,
        "max_message_bytes": 2**48,
        "relative_gap": 0.1 + 0.2,
        "limits": FragmentLimits(2**48, None, 2**40, 7),
        "fragment_cap": 100_000,
        "worst_gap": 1 / 3,
        "file_bytes": len(file),
        "file": file,
        "document": b'{"a": "\x00\xff"}',
    }
    return TableRecord(**{**values, **changes})


def a_verification(verdict: ModelVerdict = ModelVerdict.HOLDS_OFFSET) -> Verification:
    """A verification whose numbers and names are odd ones."""
    sizes = tuple(
        VerifiedSize(size, 100 // size, size / 3, 1e300, 0.1, 1e301, 6) for size in (1, 50)
    )
    reason = Notice.of_stage("a\x00\ud800", "slower_in_company", "it", ratio=1 / 3, of="b")
    return Verification(verdict, 100, ("a\x00\ud800", "µ"), sizes, -0.1, (reason,))
