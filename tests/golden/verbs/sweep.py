"""A user's own program, raced: its times are made up, and so is what it refuses.

Its document is that of own transfers; it has no page, since no service runs programs.
"""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, command
from tests.golden.stand_ins import ALONE, PATIENT

_BYTES = ("--bytes", "4MiB")
_MOVER = ("--", "move-it", "{bytes}", "4194304")
_CAREFUL = ("--", "move-it", "{bytes}", "1048576")


def _sweep(name: str, *words: str, **more: Any) -> Command:
    line = f"sweep-{name}" if name else "sweep"
    timed = ("--time", "last", *PATIENT)
    out = () if not name or "--continue" in words else ("--out", f"sweep-{name}.csv")
    return command(line, "sweep", *timed, *out, *words, **{"environment": ALONE, **more})


COMMANDS: tuple[Command, ...] = (
    _sweep("", *_BYTES, "--current", "16KiB", *_MOVER, leaves=("own.csv",)),
    _sweep("wide", *_BYTES, *_MOVER, environment={**ALONE, "COLUMNS": "120"}),
    _sweep("keep", *_BYTES, "--current", "128KiB", "--quiet", *_MOVER),
    _sweep("refused-size", *_BYTES, "--current", "16KiB", "--quiet", *_CAREFUL),
    _sweep("refused-current", *_BYTES, "--current", "whole", *_CAREFUL),
    _sweep("few", *_BYTES, "--current", "96KiB", "--max-runs", "6", *_MOVER),
    _sweep("continued", "--continue", "sweep-few.csv", *_MOVER),
    _sweep("other", "--continue", "sweep-few.csv", *_CAREFUL),
    _sweep("json", *_BYTES, "--current", "16KiB", "--quiet", "--json", *_MOVER, form=Form.JSON),
    _sweep("no-unit", *_BYTES, "--time", r"moved in (\d+)", *_MOVER),
    _sweep("no-such", *_BYTES, "--", "none-such", "{bytes}"),
    _sweep("no-such-json", *_BYTES, "--json", "--", "none-such", "{bytes}"),
)
