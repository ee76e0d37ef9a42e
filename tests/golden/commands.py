"""The golden commands of the command line, in their order."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, command
from tests.golden.mistakes import FILES as FILES_OF_MISTAKES
from tests.golden.models import AGGREGATE, RANGED, TWO, logp_csv
from tests.golden.verbs import COMMANDS_OF_VERBS, FILES_OF_VERBS


def _commands() -> list[Command]:
    myrinet, direct = "examples/myrinet-gam.json", "examples/local-path-direct.csv"
    connections = "examples/s3-connections.json"
    own, patient = "examples/own-transfers.csv", ("--time-limit", "60")
    beside = ("--strategy", "repeat", "--current", "64KiB", "--transfers", own)
    two, some = "<folder>/two.json", ("--min-message", "1KiB", "--max-message", "4KiB")
    return [
        command("optimize", "optimize", myrinet),
        command("optimize-wide", "optimize", myrinet, environment={"COLUMNS": "120"}),
        command("optimize-json", "optimize", myrinet, "--json", form=Form.JSON),
        command("optimize-fixed", "optimize", myrinet, "--bytes", "64KiB", "--strategy", "fixed"),
        command("optimize-aggregate", "optimize", "<folder>/aggregate.json", "--bytes", "4KiB"),
        command("optimize-ranged", "optimize", "<folder>/ranged.json", "--bytes", "20000"),
        command(
            "optimize-nested",
            *("optimize", two, "--bytes", "6000", "--allow-refragmentation", *patient),
        ),
        command(
            "optimize-limits",
            *("optimize", myrinet, "--max-fragment-bytes", "1KiB", "--alignment-bytes", "64"),
        ),
        command(
            "optimize-machine",
            *("optimize", connections, "--strategy", "repeat", "--current", "8MiB"),
        ),
        command(
            "optimize-machine-json",
            *("optimize", connections, "--strategy", "repeat", "--json"),
            form=Form.JSON,
        ),
        command("optimize-memory-of-a-profile", "optimize", "myrinet-gam", "--memory", "8MB"),
        command("optimize-measured", "optimize", direct, "--bytes", "32KiB"),
        command("optimize-infeasible", "optimize", myrinet, "--max-fragment-bytes", "0"),
        command("optimize-none", "optimize", "none-such", "--bytes", "4KiB"),
        command(
            "optimize-timeline",
            *("optimize", myrinet, "--timeline", "<folder>/timeline.svg"),
            writes="timeline.svg",
            form=Form.PAGE,
        ),
        command("optimize-transfers", "optimize", own, "--bytes", "64MiB", "--current", "16KiB"),
        command("optimize-transfers-json", "optimize", own, "--json", form=Form.JSON),
        command("optimize-beside-transfers", "optimize", two, "--bytes", "64MiB", *beside),
        command("compare", "compare", myrinet, "--bytes", "1KiB", "4KiB", *patient),
        command("compare-measured", "compare", direct, "--bytes", "64KiB", *patient),
        command("fit", "fit", direct, "--save-as", "local-path"),
        command("fit-several", "fit", "examples/osu-latency.txt", "examples/osu-bw.txt"),
        command("fit-logp", "fit", "<folder>/logp.csv"),
        command("fit-json", "fit", direct, "--json", "--shape", "line", form=Form.JSON),
        command("fit-unknown", "fit", "examples/README.md"),
        command("table", "table", myrinet, *("--max-message", "4KiB", "--gap", "5%")),
        command(
            "table-file",
            *("table", two, "--to", "9KiB", "--gap", "2%"),
            *("--output", "<folder>/two.slt"),
            writes="two.slt",
            form=Form.DIGEST,
        ),
        command(
            "table-profile", "table", "local-path", "--to", "8KiB", "--gap", "5%", "--activate"
        ),
        command("export", "export", two, "--target", "ucx", *patient, *some),
        command("export-costs", "export", two, "--target", "simgrid"),
        command("export-list", "export", "--list"),
        command("audit", "audit", two, "--setting", "2KiB", *patient, *some),
        command(
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
        command("profiles-list", "profiles", "list"),
        command("profiles-show", "profiles", "show", "local-path"),
        command("profiles-save", "profiles", "save", "mine", "<folder>/ranged.json"),
        command("profiles-revisions", "profiles", "revisions", "mine"),
        command("profiles-tables", "profiles", "tables", "local-path"),
        command("profiles-json", "profiles", "show", "mine", "--json", form=Form.JSON),
        command("profiles-delete", "profiles", "delete", "mine", "--yes"),
        command("mistaken", "optimize", myrinet, "--strategy", "quickest"),
    ]


COMMANDS: tuple[Command, ...] = (*_commands(), *COMMANDS_OF_VERBS)
# Documents, and texts of other forms.
FILES: dict[str, Any] = {
    "aggregate.json": {"aggregate": AGGREGATE},
    "ranged.json": RANGED,
    "two.json": TWO,
    "logp.csv": logp_csv(),
    **FILES_OF_VERBS,
    **FILES_OF_MISTAKES,
}
