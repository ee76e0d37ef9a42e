"""Questions about where one path overtakes another: of profiles, files of latencies, and stages."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.models import AGGREGATE, TWO

_EAGER = {"stages": [{"name": "eager", "overhead_us": 0.82, "ns_per_byte": 2.66}]}
_RENDEZVOUS = {"stages": [{"name": "rendezvous", "overhead_us": 12.84, "ns_per_byte": 0.0346}]}
_SIZES = [2**power for power in range(4, 21)]


def _latencies(overhead_us: float, ns_per_byte: float) -> str:
    """An OSU file, whose times differ from their line by turns."""
    rows = (
        f"{size} {(overhead_us + ns_per_byte * size / 1000) * (1.02 if place % 2 else 0.98):.3f}"
        for place, size in enumerate(_SIZES)
    )
    return "\n".join(("# OSU MPI Latency Test v5.8", "# Size          Latency (us)", *rows, ""))


_BELOW, _ABOVE = _latencies(0.82, 2.66), _latencies(12.84, 0.0346)
FILES: dict[str, Any] = {"eager.out": _BELOW, "rendezvous.out": _ABOVE}


def _crossover(name: str, a: dict[str, Any], b: dict[str, Any], **more: Any) -> Http:
    return post(f"crossover/{name}", "/crossover", {"a": a, "b": b, **more})


HTTP: tuple[Http, ...] = (
    _crossover("one", {"pipeline": _EAGER}, {"pipeline": _RENDEZVOUS}, current_bytes=262144),
    _crossover(
        "measured",
        {"measurements": {"content": _BELOW}},
        {"measurements": {"content": _ABOVE}},
        a_name="eager",
        b_name="rendezvous",
        target="ucx-rndv-thresh",
    ),
    _crossover("aggregate", {"aggregate": AGGREGATE}, {"pipeline": TWO}),
    _crossover("none", {"profile": "none-such"}, {"pipeline": TWO}),
    _crossover("mistaken", {"pipeline": TWO}, {}, current_bytes=0, target="ucx"),
    page("crossover", "/ui/crossover"),
    page("crossover-asked", "/ui/crossover?a=myrinet-gam&b=trapeze&current=4+KiB"),
    page("crossover-setting", "/ui/crossover?a=myrinet-gam&b=trapeze&target=ucx-rndv-thresh"),
    page("crossover-mistaken", "/ui/crossover?a=myrinet-gam&b=&current=4+QiB"),
    page("crossover-none", "/ui/crossover?a=none-such&b=trapeze"),
)


def _commands() -> list[Command]:
    files = ("crossover", "<folder>/eager.out", "<folder>/rendezvous.out")
    return [
        command("crossover", *files, "--current", "256KiB"),
        command("crossover-json", *files, "--json", form=Form.JSON),
        command("crossover-setting", *files, "--target", "openmpi-eager-limit"),
        command("crossover-profiles", "crossover", "myrinet-gam", "trapeze"),
        command("crossover-wide", *files, environment={"COLUMNS": "120"}),
        command("crossover-refused", *files, "--target", "ucx-rndv-thresh", "--form", "xml"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
