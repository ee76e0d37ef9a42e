"""Every verb in one entry: its folder, its words, and what a job of it is called.

Names alone, on the lowest floor: who serves all verbs (command line, routes, jobs, documents) asks
here for the names, and has a module of a verb's folder imported when it needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Verb:
    """A folder of app/verbs: its one-line summary and example, its doors, and how a job of it is
    shown.

    `doing` is the word for a job that runs, "" where none is one; `counts` what its steps are, ""
    where a share is told; `section` the part of the page that it belongs to, `result` the address
    of a job's result, and `result_words` what is there.
    """

    name: str
    summary: str
    example: str
    doors: tuple[str, ...] = ("routes", "command", "page")
    doing: str = ""
    counts: str = ""
    section: str = "Models"
    result: str = "/jobs/{id}"
    result_words: str = "See the result as JSON"

    def module(self, name: str) -> Any:
        """Return a module of the verb's folder, imported now."""
        return import_module(f".verbs.{self.name}.{name}", __package__)


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "compare",
            summary="compare strategies on messages of several sizes",
            example="examples/kv-staging.json --bytes 1MiB 16MiB",
            doors=("routes", "command"),
            doing="Comparing",
            counts="cells",
            section="Workbench",
        ),
        Verb(
            "table",
            summary="compile a schedule for every message size of a range",
            example="examples/kv-staging.json --max-message 16MiB --output staging.slt",
            doors=("routes", "command"),
            doing="Compiling",
            section="Profiles",
        ),
        Verb(
            "fleet",
            summary="compile tables of stored profiles, all or those that are named",
            example="--max-message 16MiB --report fleet.json",
            doors=("command",),
        ),
        Verb(
            "export",
            summary="write a pipeline as a library's configuration",
            example="examples/kv-staging.json --target ucx --output sluice-ucx.conf",
            doors=("routes", "command"),
            doing="Choosing sizes",
            counts="messages",
            section="Profiles",
        ),
        Verb(
            "apply",
            summary="run a library's programs with a setting and without it, here",
            example="mpich path --check --option collective=bcast",
            doors=("command",),
        ),
        Verb(
            "audit",
            summary="say what an existing setting costs over the optimum of its model",
            example="examples/kv-staging.json --setting 512KiB --max-regret 12%",
            doing="Auditing",
            counts="messages",
            section="Audit",
            result="/ui/audits/{id}",
            result_words="See the audit",
        ),
        Verb(
            "layer",
            summary="say what a messaging layer's software costs, by service",
            example="cmam-finite --bytes 16 1KiB --tune",
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
            doors=("command",),
        ),
        Verb(
            "hide",
            summary="say what hiding a message behind a calculation gains",
            example="examples/kv-staging.json --calculation 600",
            doing="Solving",
        ),
        Verb(
            "thresholds",
            summary="price thresholds or pulse sizes over a grid",
            example="trapeze --bytes 1KiB..256KiB --rule eager",
            doing="Pricing",
            counts="evaluations",
        ),
    )
}


def with_door(door: str) -> Iterator[Verb]:
    """Yield the verbs that have this door, in their order."""
    return (verb for verb in VERBS.values() if door in verb.doors)


def modules(name: str) -> Iterator[Any]:
    """Yield the module of this name of every verb that has that door, in their order."""
    return (verb.module(name) for verb in with_door(name.partition(".")[0]))


def jobs() -> Iterator[Verb]:
    """Yield the verbs that a job may do, in their order."""
    return (verb for verb in VERBS.values() if verb.doing)
