"""A revision of a hardware profile, as answers name it."""

from __future__ import annotations

from .declare import Output, output, sent
from .rules import Whole


@output
class ProfileRevisionOut(Output):
    """A hardware profile's revision by name and number."""

    name: str = sent("the name of the profile")
    revision: Whole = sent("number of the revision, from 1")

    @property
    def reference(self) -> str:
        """As a request names it: `myrinet@2`."""
        return f"{self.name}@{self.revision}"
