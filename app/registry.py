"""Every verb in one entry: its folder, its words, and what a job of it is called.

Names alone, on the lowest floor: who serves all verbs (command line, routes, jobs, documents) asks
here for the names, and has a module of a verb's folder imported when it needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Verb:
    """A folder of app/verbs: its one-line summary and example, its doors, and how a job of it is
    shown. A name of two words has a folder with `_` between them.

    Without an example its command only has verbs below it, as `sluice keys list`.
    `section` is that of the command line, one of SECTIONS; `doing` is the word for a job that runs,
    "" where none is one; `counts` what its steps are, "" where a share is told; `part` the part of
    the page that it belongs to, `result` the address of a job's result, "" where its page's
    `result` says it by what was asked, and `result_words` what is there.
    """

    name: str
    summary: str
    example: str = ""
    section: str = "Ask"
    doors: tuple[str, ...] = ("routes", "command", "page")
    doing: str = ""
    counts: str = ""
    part: str = "Models"
    result: str = "/jobs/{id}"
    result_words: str = "See the result as JSON"

    def module(self, name: str) -> Any:
        """Return a module of the verb's folder, imported now."""
        return import_module(f".verbs.{self.name.replace(' ', '_')}.{name}", __package__)


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "optimize",
            summary="find the best cut of one message",
            example="examples/kv-staging.json --current 512KiB",
            doing="Solving",
            part="Workbench",
            result_words="See the answer",
        ),
        Verb(
            "compare",
            summary="compare strategies on messages of several sizes",
            example="examples/kv-staging.json --bytes 1MiB 16MiB",
            doors=("routes", "command"),
            doing="Comparing",
            counts="cells",
            part="Workbench",
        ),
        Verb(
            "measure",
            summary="measure a stage, or the signature of a transport, here",
            example="memcpy --bytes 4KiB..1MiB --save-as copy",
            section="Measure",
            doors=("command",),
        ),
        Verb(
            "sweep",
            summary="run your own program at sizes that win, and say which to set",
            example="--bytes 64MiB --current 4MiB -- ./upload --part {bytes}",
            section="Measure",
            doors=("command",),
        ),
        Verb(
            "fit",
            summary="estimate each stage's overhead and per-byte cost from a trace",
            example="examples/local-path-direct.csv --save-as local-path",
            section="Measure",
        ),
        Verb(
            "compose",
            summary="make a pipeline of stages that were measured each by itself",
            example="--stage copy=copy.csv --stage wire=wire.csv --save-as path",
            section="Measure",
        ),
        Verb(
            "plan",
            summary="say which message sizes to measure next, from outside",
            example="osu-latency.txt --min-message 64 --max-message 1MiB",
            section="Measure",
            doors=("routes", "command"),
        ),
        Verb(
            "table",
            summary="compile a schedule for every message size of a range",
            example="examples/kv-staging.json --max-message 16MiB --output staging.slt",
            section="Use",
            doing="Compiling",
            part="Profiles",
            result="",
            result_words="See the table",
        ),
        Verb(
            "fleet",
            summary="compile tables of stored profiles, all or those that are named",
            example="--max-message 16MiB --report fleet.json",
            section="admin",
            doors=("command",),
        ),
        Verb(
            "export",
            summary="write a pipeline as a library's configuration",
            example="examples/kv-staging.json --target ucx --output sluice-ucx.conf",
            section="Use",
            doing="Choosing sizes",
            counts="messages",
            part="Profiles",
            result="",
            result_words="See the text",
        ),
        Verb(
            "apply",
            summary="run a library's programs with a setting and without it, here",
            example="mpich path --check --option collective=bcast",
            section="Use",
            doors=("command",),
        ),
        Verb(
            "audit",
            summary="say what an existing setting costs over the optimum of its model",
            example="examples/kv-staging.json --setting 512KiB --max-regret 12%",
            doing="Auditing",
            counts="messages",
            part="Audit",
            result="/ui/audits/{id}",
            result_words="See the audit",
        ),
        Verb(
            "layer",
            summary="say what a messaging layer's software costs, by service",
            example="cmam-finite --bytes 16 1KiB --tune",
            section="model",
            doing="Tuning",
            counts="solves",
        ),
        Verb(
            "simulate",
            summary="say what a given cut takes, and where its time goes",
            example="examples/kv-staging.json --bytes 16MiB --repeat 512KiB",
            doors=("routes", "command"),
        ),
        Verb(
            "deliver",
            summary="say when what arrives, by a rule for each stage",
            example="trapeze --bytes 8KiB --rules eager,eager=512,eager=512,eager",
            section="model",
            doors=("command",),
        ),
        Verb(
            "hide",
            summary="say what hiding a message behind a calculation gains",
            example="examples/kv-staging.json --calculation 600",
            section="model",
            doing="Solving",
        ),
        Verb(
            "thresholds",
            summary="price thresholds or pulse sizes over a grid",
            example="trapeze --bytes 1KiB..256KiB --rule eager",
            section="model",
            doing="Pricing",
            counts="evaluations",
        ),
        Verb(
            "crossover",
            summary="say from which size on one path overtakes another",
            example="eager.out rendezvous.out --current 256KiB",
        ),
        Verb(
            "answers",
            summary="stored answers to optimize",
            section="Stored",
            part="Answers",
        ),
        Verb(
            "verify",
            summary="compare a model with real transfers over its stages, here",
            example="path --stage memcpy --stage crc32 --bytes 1MiB --current 64KiB",
            section="Measure",
            doors=("command",),
        ),
        Verb(
            "tune",
            summary="measure, compose, fit and verify, and say what to set",
            example="--stage memcpy --stage crc32 --current 64KiB --target ucx",
            section="Measure",
            doors=("command",),
        ),
        Verb(
            "layer count",
            summary="count an installed MPI's instructions under callgrind",
            example="--mpicc mpicc.mpich --output layer.json",
            section="model",
            doors=("command",),
        ),
        Verb(
            "layer check",
            summary="count again, and say what takes more instructions now",
            example="layer.json --max-more 1%",
            section="model",
            doors=("command",),
        ),
        Verb(
            "mover",
            summary="measure by the reference mover: stages, hiding, heat",
            example="exchange --bytes 800KB --calculation 5000 --fragment 32KiB",
            section="model",
            doors=("command",),
        ),
        Verb(
            "reproduce",
            summary="the numbers of a paper, published beside computed",
            example="wang98 --output papers-report",
            section="model",
            doors=("command",),
        ),
        Verb(
            "open",
            summary="open the page, or that of a profile, an answer, a job or a fit",
            example="myrinet-gam",
            section="Use",
            doors=("command",),
        ),
        Verb(
            "profiles",
            summary="hardware profiles in the database",
            section="Stored",
        ),
        Verb(
            "jobs",
            summary="durable jobs of the service on this database",
            section="Serve",
        ),
        Verb(
            "keys",
            summary="keys by which programs and browsers say who they are",
            section="Serve",
            doors=("routes", "command"),
        ),
        Verb(
            "changes",
            summary="show who changed what, the newest first",
            example="staging --limit 20",
            section="Serve",
            doors=("routes", "command"),
        ),
        Verb(
            "work",
            summary="run durable jobs of the same database, without HTTP",
            example="--workers 2",
            section="admin",
            doors=("command",),
        ),
        Verb(
            "engine",
            summary="the parts of a cluster, which runs work on machines",
            section="admin",
            doors=("command",),
        ),
        Verb(
            "collect",
            summary="delete what is kept no longer, as SLUICE_RETENTION says",
            example="--keep jobs=30d,answers=90d --dry-run",
            section="admin",
            doors=("command",),
        ),
        Verb(
            "backup",
            summary="write everything that is stored into one file",
            example="monday.sluice",
            section="admin",
            doors=("command",),
        ),
        Verb(
            "restore",
            summary="put a backup into an empty database",
            example="monday.sluice",
            section="admin",
            doors=("command",),
        ),
        Verb(
            "completion",
            summary="print what a shell completes sluice's words by",
            example="bash",
            section="admin",
            doors=("command",),
        ),
    )
}


# The command line's sections, and in each the commands that have no folder yet.
SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Ask": (),
        "Measure": (),
        "Use": (),
        "Stored": (),
        "Serve": ("serve", "demo"),
        "model": (),
        "admin": (),
    }
)
# Sections whose commands stand below a word of their own, as `sluice model hide`: what most people
# never need.
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "model": "hiding, thresholds, deliveries, layers, and what papers print",
        "admin": "workers, clusters, fleets, backups, and what shells complete",
    }
)


def commands_of(section: str) -> tuple[str, ...]:
    """Return the names of a section's commands, in the order in which they are shown."""
    own = tuple(verb.name for verb in with_door("command") if verb.section == section)
    return SECTIONS[section] + own


def command_words(command: str) -> str:
    """Return what is typed for a command behind `sluice`, as `model hide`."""
    below = (group for group in GROUPS if command in commands_of(group))
    return " ".join((*below, command))


def stands_at_the_top(command: str) -> bool:
    """Return whether a command of this name is typed directly behind `sluice`."""
    return any(command in commands_of(section) for section in SECTIONS if section not in GROUPS)


def with_door(door: str) -> Iterator[Verb]:
    """Yield the verbs that have this door, in their order."""
    return (verb for verb in VERBS.values() if door in verb.doors)


def modules(name: str) -> Iterator[Any]:
    """Yield the module of this name of every verb that has that door, in their order."""
    return (verb.module(name) for verb in with_door(name.partition(".")[0]))


def jobs() -> Iterator[Verb]:
    """Yield the verbs that a job may do, in their order."""
    return (verb for verb in VERBS.values() if verb.doing)
