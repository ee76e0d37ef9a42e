"""What a job of a table or an export keeps of its request: all that another start needs for it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.flows.build_table import TableQuestion, TableScope
from app.flows.export_setting import ExportQuestion, ExportScope
from app.schemas.base import Bytes, Input, dump_json
from app.schemas.optimize import ProfileAt
from app.schemas.stages import ConstraintsIn, ConstraintsOut
from app.schemas.tables import TableIn
from domain.profile import ProfileReference, ProfileRevision
from domain.regret import Objective


class TableJobIn(TableIn):
    """A table for a revision of a profile."""

    profile: ProfileAt

    @property
    def reference(self) -> ProfileReference:
        """The revision."""
        return ProfileReference.parse(self.profile)


class ExportJobIn(Input):
    """An export of a revision of a profile. `table` None: without a compiled table."""

    profile: ProfileAt
    target: str
    options: dict[str, str]
    least_bytes: Bytes | None = None
    greatest_bytes: Bytes | None = None
    objective: Objective = Objective.MEAN
    constraints: ConstraintsIn | None = None
    table: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None

    @property
    def reference(self) -> ProfileReference:
        """The revision."""
        return ProfileReference.parse(self.profile)

    def to_domain(self) -> ExportScope:
        """What is asked for. Raises InvalidInput."""
        return ExportScope(
            target=self.target,
            options=tuple(self.options.items()),
            least_bytes=self.least_bytes,
            greatest_bytes=self.greatest_bytes,
            objective=self.objective,
            limits=self.constraints.to_domain() if self.constraints else None,
        )


def table_request(question: TableQuestion, *, activate: bool | None) -> bytes:
    """A TableJobIn as JSON; the question has a profile."""
    return dump_json({**_scope(question.scope), **_of(question.profile), "activate": activate})


def export_request(question: ExportQuestion) -> bytes:
    """An ExportJobIn as JSON; the question has a profile."""
    scope = question.scope
    return dump_json(
        {
            **_of(question.profile),
            "target": scope.target,
            "options": dict(scope.options),
            "least_bytes": scope.least_bytes,
            "greatest_bytes": scope.greatest_bytes,
            "objective": scope.objective,
            "constraints": ConstraintsOut.of(scope.limits) if scope.limits else None,
            "table": question.table.digest if question.table else None,
        }
    )


def _of(profile: ProfileRevision | None) -> dict[str, Any]:
    assert profile is not None
    return {"profile": f"{profile.name}@{profile.revision}"}


def _scope(scope: TableScope) -> dict[str, Any]:
    return {
        "least_bytes": scope.least_bytes,
        "greatest_bytes": scope.greatest_bytes,
        "relative_gap": scope.relative_gap,
        "constraints": ConstraintsOut.of(scope.limits),
    }
