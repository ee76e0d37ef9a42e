"""The messaging layers that a publication counted, as they are shipped with this package.

    layer = shipped_layers()["cmam-finite"]

Source    Karamcheti94, tables and text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from domain.layer_document import layer_of_document
from domain.messaging_layer import MessagingLayer

_FOLDER = Path(__file__).with_name("layers")
_DISAGREEMENTS = "disagreements.json"


@cache
def shipped_layers() -> Mapping[str, MessagingLayer]:
    """Return the published layers by name: CMAM on the CM-5 (Karamcheti94), each protocol."""
    names = sorted(path.name for path in _FOLDER.glob("*.json") if path.name != _DISAGREEMENTS)
    layers = [layer_of_document(_read(name)) for name in names]
    return MappingProxyType({layer.name: layer for layer in layers})


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where a publication's text and its own tables differ: what it says, in which section, and
    what its tables give.
    """

    layer: str
    section: str
    says: str
    stated: tuple[float, ...]
    computed: tuple[float, ...]
    how: str


@cache
def disagreements() -> tuple[Disagreement, ...]:
    """Return where the text of Karamcheti94 and its tables differ; neither is mended here."""
    rows: list[dict[str, Any]] = _read(_DISAGREEMENTS)["disagreements"]
    return tuple(
        Disagreement(
            row["layer"],
            row["section"],
            row["says"],
            tuple(row["stated"]),
            tuple(row["computed"]),
            row["how"],
        )
        for row in rows
    )


def _read(name: str) -> Any:
    return json.loads(_FOLDER.joinpath(name).read_text(encoding="utf-8"))
