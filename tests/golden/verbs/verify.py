"""Verdicts on models: of transfers that were recorded, and of those of a machine that is made up.

The profile `copies` is what the questions of measure have stored.
"""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.models import ROOT, example
from tests.golden.stand_ins import ALONE, PATIENT

_TRANSFERS = ROOT / "tests" / "data" / "transfers"
_COPIES = "examples/h100-copies"
# As they were fitted to measurements of each stage by itself.
LINKS = {
    "stages": [
        {"name": "link 1", "overhead_us": 0.0, "ns_per_byte": 53.39655},
        {"name": "link 2", "overhead_us": 0.0, "ns_per_byte": 52.37342},
        {"name": "file", "overhead_us": 3860.933, "ns_per_byte": 0.0060001},
    ]
}
CHECKSUMS = {
    "stages": [{"name": name, "overhead_us": 0.0, "ns_per_byte": 0.44635} for name in ("a", "b")]
}


def _recorded(name: str) -> str:
    return (_TRANSFERS / f"{name}.csv").read_text()


def _few(name: str) -> str:
    """The transfers with four runs each, of which no median has an interval."""
    lines = _recorded(name).splitlines(keepends=True)
    return "".join(line for line in lines if line[0] in "#m" or int(line.split(",")[2]) < 4)


def _verify(name: str, profile: str, transfers: str) -> Http:
    return post(f"verify/{name}", f"/profiles/{profile}/verification", {"transfers": transfers})


def _sent(name: str, profile: str, transfers: str, **more: Any) -> Http:
    fields = (("transfers", transfers),)
    return page(
        f"verify-{name}", f"/ui/profiles/{profile}/verification", "POST", fields=fields, **more
    )


HTTP: tuple[Http, ...] = (
    post("verify/links", "/profiles", {"name": "links", "pipeline": LINKS}),
    post("verify/checksums", "/profiles", {"name": "checksums", "pipeline": CHECKSUMS}),
    page("verify", "/ui/profiles/copies"),
    _verify("holds", "links", _recorded("two-links")),
    _verify("fails", "checksums", _recorded("one-processor")),
    _verify("copies", "copies", example("h100-copies/transfers-16MiB.csv")),
    _verify("few", "links", _few("two-links")),
    _verify("others", "copies", _recorded("one-processor")),
    _verify("mistaken", "links", "what is this?\n"),
    _verify("none", "none-such", _recorded("two-links")),
    _verify("aggregate", "sums", _recorded("two-links")),
    Http("verify/profile", "GET", "/profiles/copies"),
    post(
        "verify/optimized",
        "/optimize",
        {"profile": "copies", "message_bytes": 1 << 24, "strategy": "repeat", "time_limit_s": 600},
    ),
    page("verify-failed", "/ui/profiles/copies"),
    page("verify-holds", "/ui/profiles/links"),
    page("verify-shared", "/ui/profiles/checksums"),
    _sent("few", "links", _few("two-links")),
    _sent("mistaken", "copies", "stage,time\n1,2\n"),
    _sent("sent", "copies", example("h100-copies/transfers-1MiB.csv"), kept=False),
    page("verify-again", "/ui/profiles/copies"),
    page("verify-answer", "/ui/answers/<verify/optimized>"),
)


def _commands() -> list[Command]:
    links = ("verify", "links.json", "--recorded", "transfers/two-links.csv")
    copies = ("verify", "copies", "--recorded")
    both, small = ("verify", "both", *PATIENT), ("--bytes", "64KiB")
    slow = {**ALONE, "TRANSFERS_TAKE": "1.5"}
    late = {**ALONE, "TRANSFERS_WAIT_NS": "9000"}
    noisy = {**ALONE, "TRANSFERS_DEVIATE": "60"}
    return [
        command("verify", *links),
        command("verify-wide", *links, "--current", "whole", environment={"COLUMNS": "120"}),
        command(
            "verify-fails", "verify", "checksums.json", "--recorded", "transfers/one-processor.csv"
        ),
        command(
            "verify-composed",
            *("compose", "--stage", f"d2h={_COPIES}/d2h.csv", "--stage", f"h2d={_COPIES}/h2d.csv"),
            *("--save-as", "copies"),
        ),
        command("verify-copies", *copies, f"{_COPIES}/transfers-16MiB.csv", "--current", "4MiB"),
        command("verify-profile", "profiles", "show", "copies"),
        command(
            "verify-optimized",
            *("optimize", "copies", "--bytes", "16MiB", "--strategy", "repeat"),
            *PATIENT,
        ),
        command("verify-json", *copies, f"{_COPIES}/transfers-1MiB.csv", "--json", form=Form.JSON),
        command("verify-few", "verify", "links.json", "--recorded", "few.csv"),
        command("verify-other-size", *copies, f"{_COPIES}/transfers-1MiB.csv", "--bytes", "3KiB"),
        command("verify-other-stages", *copies, "transfers/one-processor.csv"),
        command("verify-no-stages", "verify", "links.json", *small, environment=ALONE),
        command(
            "verify-measured",
            *("compose", "--stage", "copy=memcpy-stage.csv", "--stage", "sum=crc32-stage.csv"),
            *("--save-as", "both"),
        ),
        command(
            "verify-now",
            *both,
            *small,
            "--current",
            "3000",
            leaves=("transfers.csv",),
            environment=ALONE,
        ),
        command("verify-now-fails", *both, *small, "--output", "slow.csv", environment=slow),
        command("verify-now-undecided", *both, *small, "--tolerance", "100%", environment=noisy),
        command("verify-now-late", *both, *small, environment=late),
        command(
            "verify-now-json",
            *(*both, "--bytes", "16KiB", "--stage", "memcpy", "--stage", "crc32", "--json"),
            form=Form.JSON,
            environment=ALONE,
        ),
        command("verify-refused-json", *both, "--bytes", "0", "--json", environment=ALONE),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
FILES: dict[str, Any] = {
    "links.json": {"pipeline": LINKS},
    "checksums.json": {"pipeline": CHECKSUMS},
    "few.csv": _few("two-links"),
}
