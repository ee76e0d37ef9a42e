# app/console/curve.py
"""sluice curve: the latency of messages of every power of two."""

from __future__ import annotations

import argparse

from app.console.commands import opened_store
from app.console.running import counting_line, run_operation
from app.console.screen import Output
from app.settings import Settings


def curve(arguments: argparse.Namespace, output: Output) -> int:
    """Compute and print."""
    from app.operations.curves import CurveIn, curve_operation

    settings = Settings.from_environment()
    asked = CurveIn(profile=arguments.profile, max_message_bytes=arguments.max_bytes)
    with opened_store(settings) as store, store.reading() as unit:
        operation = curve_operation(asked, unit, settings)
    with counting_line(output.err) as show:
        found = run_operation(operation, settings, show).result
    output.parts([f"{message_bytes:>12,} B {us:>12.4g} µs" for message_bytes, us in found])
    return 0
