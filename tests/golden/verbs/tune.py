"""From nothing to a setting, on a machine whose times are made up.

What it stores is a composed profile and its verdict, whose documents and page verify has.
"""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, command
from tests.golden.stand_ins import ALONE, PATIENT

_BOTH = ("--stage", "memcpy", "--stage", "crc32")


def _tune(name: str, *words: str, **more: Any) -> Command:
    line = f"tune-{name}" if name else "tune"
    return command(line, "tune", *words, *PATIENT, **{"environment": ALONE, **more})


COMMANDS: tuple[Command, ...] = (
    _tune("", *_BOTH, "--bytes", "64KiB", leaves=("1-memcpy.csv", "transfers.csv")),
    _tune("wide", *_BOTH, "--bytes", "64KiB", environment={**ALONE, "COLUMNS": "120"}),
    _tune("path", "tcp-to-file", "--bytes", "1MiB", "--target", "mooncake", "--save-as", "path"),
    _tune(
        "json", "--stage", "pipe", "--bytes", "16KiB", "--current", "4KiB", "--json", form=Form.JSON
    ),
    _tune("fails", *_BOTH, "--bytes", "64KiB", environment={**ALONE, "TRANSFERS_TAKE": "1.5"}),
    _tune("keep", *_BOTH, "--bytes", "64KiB", "--current", "16KiB"),
    _tune(
        "uncertain",
        *(*_BOTH, "--bytes", "64KiB", "--tolerance", "100%"),
        environment={**ALONE, "TRANSFERS_DEVIATE": "60"},
    ),
    command("tune-profile", "profiles", "show", "path"),
    _tune("gpu-none", "--stage", "memcpy", "--stage", "d2h", "--bytes", "16KiB"),
    _tune("no-folder", "--folder", "nowhere"),
    _tune("no-target", "--target", "none-such"),
    _tune("no-target-json", "--target", "none-such", "--json"),
)
