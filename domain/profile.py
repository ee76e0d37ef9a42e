"""Hardware profiles: named, revised, each revision saying where its stages came from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from contract.limits import PROFILE_NAME_RULE
from domain.errors import InvalidInput
from domain.model import CostModel
from domain.verification import Verification

PROFILE_NAME_WORDS = (
    "a profile's name: small letters, digits, . _ -, at most 64 of them, a letter or digit first; "
    "such as my-box-1"
)


class Origin(StrEnum):
    """Where the stages of a revision came from."""

    GIVEN = "given"  # typed in by a user
    FIT = "fit"  # fitted from a stored trace
    PAPER = "paper"  # published numbers
    LAYER = "layer"  # counted instructions of a messaging layer


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the stages came from: its kind, a sentence, and the fit where there is one."""

    origin: Origin
    detail: str = ""
    fit_id: str | None = None


@dataclass(frozen=True, slots=True)
class ProfileRevision:
    """The profile and revision that an answer speaks of."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class Revision:
    """One immutable revision of a hardware profile; numbers count from 1.

    `model` is what messages cross: a pipeline, or all that is known of one from outside.
    `verification` is the latest, None where there was none.
    """

    profile: str
    number: int
    model: CostModel
    provenance: Provenance
    created_at: datetime
    verification: Verification | None = None


@dataclass(frozen=True, slots=True)
class HardwareProfile:
    """A profile and its current revision; `latest` is the highest revision number."""

    name: str
    current: Revision
    latest: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ProfileReference:
    """A profile by name, at its current revision or at a pinned one ("name@2")."""

    name: str
    revision: int | None = None

    @classmethod
    def parse(cls, text: str) -> ProfileReference:
        """Read "name" or "name@revision". Raises InvalidInput."""
        name, at, number = text.partition("@")
        check_profile_name(name)
        if not at:
            return cls(name)
        if not re.fullmatch(r"[1-9][0-9]{0,8}", number, re.ASCII):
            raise InvalidInput(
                "expected a profile as name or name@revision, the revision a whole number from 1",
                field="profile",
            )
        return cls(name, int(number))


def check_profile_name(name: str) -> None:
    """Raise InvalidInput unless this is a legal profile name."""
    if not re.fullmatch(PROFILE_NAME_RULE, name, re.ASCII):
        raise InvalidInput(
            f"expected {PROFILE_NAME_WORDS}",
            field="name",
        )
