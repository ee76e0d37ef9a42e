"""Rules by which stages cut what arrives, as people write them."""

from __future__ import annotations

from typing import Any

from domain.errors import InvalidInput
from domain.units import parse_bytes


def parse_rules(text: str) -> list[dict[str, Any]]:
    """Return a rule a stage as requests have them, as eager,eager=512..64KiB,static=1280.

    Raises InvalidInput.
    """
    found: list[dict[str, Any]] = []
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name == "eager" and equals:
            threshold, dots, most = value.partition("..")
            rule = {"rule": name, "threshold_bytes": parse_bytes(threshold)}
            found.append({**rule, "max_pulse_bytes": parse_bytes(most)} if dots else rule)
        elif name == "static" and equals:
            found.append({"rule": name, "pulse_bytes": parse_bytes(value)})
        elif name == "planned" and equals:
            planned = [parse_bytes(size) for size in value.split("+")]
            found.append({"rule": name, "planned_bytes": planned})
        elif name in ("eager", "store_and_forward", "same", "flow") and not equals:
            found.append({"rule": name})
        else:
            raise InvalidInput(
                "expected eager, eager=512, eager=512..64KiB, static=1280, planned=512+512, "
                f"store_and_forward, same or flow for each stage, got {part.strip()!r}"
            )
    return found
