"""What templates call filters: the formatters of app/text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.text.numbers import format_count, format_figure, format_percent, format_signed_percent
from app.text.sentences import capitalised, sentence
from app.text.units import format_time
from domain.units import format_bytes

FILTERS: Mapping[str, Callable[..., Any]] = {
    "time_us": format_time,
    "share": format_percent,
    "signed_share": format_signed_percent,
    "capitalised": capitalised,
    "figure": format_figure,
    "grouped": format_count,
    "size": format_bytes,
    "sentence": sentence,
}
