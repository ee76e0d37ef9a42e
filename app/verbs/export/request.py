"""What contract/jobs.py keeps of an export, as the domain has it, and back."""

from __future__ import annotations

from app.questions.settings import ExportQuestion, ExportScope
from app.schemas.base import dump_json, read_request
from app.schemas.settings import workload_of
from app.schemas.stages import constraints_out, limits_of
from contract.jobs import ExportJobIn
from domain.regret import Objective


def title(request: bytes) -> str:
    """Return what a job of this request is called."""
    asked = read_request(ExportJobIn, request)
    return f"Exporting {asked.profile} to {asked.target}"


def scope_of(asked: ExportJobIn) -> ExportScope:
    """Return what is asked for. Raises InvalidInput."""
    return ExportScope(
        target=asked.target,
        options=tuple(asked.options.items()),
        min_message_bytes=asked.min_message_bytes,
        max_message_bytes=asked.max_message_bytes,
        workload=workload_of(asked.workload) if asked.workload else None,
        objective=None if asked.objective is None else Objective(asked.objective),
        limits=limits_of(asked.constraints) if asked.constraints else None,
        time_limit_s=asked.time_limit_s,
    )


def request_of(question: ExportQuestion) -> bytes:
    """Return an ExportJobIn as JSON; the question has a profile."""
    scope, profile = question.scope, question.profile
    assert profile is not None
    return dump_json(
        {
            "profile": f"{profile.name}@{profile.revision}",
            "target": scope.target,
            "options": dict(scope.options),
            "min_message_bytes": scope.min_message_bytes,
            "max_message_bytes": scope.max_message_bytes,
            "workload": [
                {"message_bytes": size.message_bytes, "weight": size.share}
                for size in scope.workload.sizes
            ]
            if scope.workload
            else None,
            "objective": scope.objective,
            "constraints": constraints_out(scope.limits) if scope.limits else None,
            "time_limit_s": scope.time_limit_s,
            "table": question.table.digest if question.table else None,
        }
    )
