"""Which service of a messaging layer a function of a library belongs to, by its name."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from domain.messaging_layer import Service

_FUNCTIONS = Path(__file__).with_name("functions.toml")


def service_of(function: str) -> Service:
    """Return the service of a library's function ("library:function"), by its name alone."""
    return next((service for pattern, service in _table() if pattern.search(function)), _OTHER)


_OTHER = Service.OTHER


@cache
def _table() -> tuple[tuple[re.Pattern[str], Service], ...]:
    rows = tomllib.loads(_FUNCTIONS.read_text(encoding="utf-8"))["function"]
    return tuple((re.compile(row["pattern"]), Service(row["service"])) for row in rows)
