"""A plan table with the name that it goes by outside."""

from __future__ import annotations

import re
from dataclasses import dataclass

from contract.limits import PROFILE_NAME_RULE
from domain.errors import InvalidInput
from domain.plan_table import PlanTable

MAX_REVISION = 2**31 - 1
_NAME = re.compile(PROFILE_NAME_RULE, re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A plan table and the revision of a hardware profile that it was compiled for.

    `profile` is empty, and `revision` 0, where its pipeline has no name. Raises InvalidInput.
    """

    profile: str
    revision: int
    table: PlanTable

    def __post_init__(self) -> None:
        if self.profile and _NAME.fullmatch(self.profile) is None:
            raise InvalidInput("expected a profile's name or none", field="profile")
        minimum, maximum = (1, MAX_REVISION) if self.profile else (0, 0)
        if not minimum <= self.revision <= maximum:
            raise InvalidInput("expected a revision, 0 where there is no name", field="revision")
