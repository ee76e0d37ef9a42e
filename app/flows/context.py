"""What flows that store or wait are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.settings import Settings

if TYPE_CHECKING:
    from app.pool.protocol import Engine
    from models.session import Store


@dataclass(frozen=True, slots=True)
class Context:
    """The store, the engine and the settings of a running service."""

    store: Store
    engine: Engine
    settings: Settings
