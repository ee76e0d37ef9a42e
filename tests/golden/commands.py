"""The golden commands of the command line, in their order."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form
from tests.golden.models import AGGREGATE, RANGED, TWO


def _command(name: str, *words: str, **more: Any) -> Command:
    return Command(f"cli/{name}", words, **more)


def _commands() -> list[Command]:
    myrinet, direct = "examples/myrinet-gam.json", "examples/local-path-direct.csv"
    patient = ("--time-limit", "60")
    two, some = "<folder>/two.json", ("--min-message", "1KiB", "--max-message", "4KiB")
    return [
        _command("optimize", "optimize", myrinet),
        _command("optimize-wide", "optimize", myrinet, environment={"COLUMNS": "120"}),
        _command("optimize-json", "optimize", myrinet, "--json", form=Form.JSON),
        _command("optimize-fixed", "optimize", myrinet, "--bytes", "64KiB", "--strategy", "fixed"),
        _command("optimize-aggregate", "optimize", "<folder>/aggregate.json", "--bytes", "4KiB"),
        _command("optimize-ranged", "optimize", "<folder>/ranged.json", "--bytes", "20000"),
        _command(
            "optimize-nested",
            *("optimize", two, "--bytes", "6000", "--allow-refragmentation", *patient),
        ),
        _command(
            "optimize-limits",
            *("optimize", myrinet, "--max-fragment-bytes", "1KiB", "--alignment-bytes", "64"),
        ),
        _command("optimize-measured", "optimize", direct, "--bytes", "32KiB"),
        _command("optimize-infeasible", "optimize", myrinet, "--max-fragment-bytes", "0"),
        _command("optimize-none", "optimize", "none-such", "--bytes", "4KiB"),
        _command(
            "optimize-timeline",
            *("optimize", myrinet, "--timeline", "<folder>/timeline.svg"),
            writes="timeline.svg",
            form=Form.PAGE,
        ),
        _command("compare", "compare", myrinet, "--bytes", "1KiB", "4KiB", *patient),
        _command("compare-measured", "compare", direct, "--bytes", "64KiB", *patient),
        _command("fit", "fit", direct, "--save-as", "local-path"),
        _command("fit-several", "fit", "examples/osu-latency.txt", "examples/osu-bw.txt"),
        _command("fit-logp", "fit", "<folder>/logp.csv"),
        _command("fit-json", "fit", direct, "--json", "--shape", "line", form=Form.JSON),
        _command("fit-unknown", "fit", "examples/README.md"),
        _command("table", "table", myrinet, *("--max-message", "4KiB", "--gap", "5%")),
        _command(
            "table-file",
            *("table", two, "--to", "9KiB", "--gap", "2%"),
            *("--output", "<folder>/two.slt"),
            writes="two.slt",
            form=Form.DIGEST,
        ),
        _command(
            "table-profile", "table", "local-path", "--to", "8KiB", "--gap", "5%", "--activate"
        ),
        _command("export", "export", two, "--target", "ucx", *patient, *some),
        _command("export-costs", "export", two, "--target", "simgrid"),
        _command("export-list", "export", "--list"),
        _command("audit", "audit", two, "--setting", "2KiB", *patient, *some),
        _command(
            "audit-steps",
            *(
                "audit",
                two,
                "--setting",
                "1:whole,2KiB:1KiB",
                "--max-regret",
                "2%",
                *patient,
                *some,
            ),
        ),
        _command("profiles-list", "profiles", "list"),
        _command("profiles-show", "profiles", "show", "local-path"),
        _command("profiles-save", "profiles", "save", "mine", "<folder>/ranged.json"),
        _command("profiles-revisions", "profiles", "revisions", "mine"),
        _command("profiles-tables", "profiles", "tables", "local-path"),
        _command("profiles-json", "profiles", "show", "mine", "--json", form=Form.JSON),
        _command("profiles-delete", "profiles", "delete", "mine", "--yes"),
        _command("mistaken", "optimize", myrinet, "--strategy", "quickest"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
FILES: dict[str, Any] = {
    "aggregate.json": {"aggregate": AGGREGATE},
    "ranged.json": RANGED,
    "two.json": TWO,
}
