"""Under which conditions the rows of a file were measured, and which of them a user takes.

A file may have several runs of a tool, rows of several numbers of connections, or the times of
several machines beside each other. `run=2` takes one run, `where` one value of a named condition:
`connections=1`, or several of them apart by commas; a value may have commas itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from contract.limits import MAX_RUN, MAX_TEST_LENGTH, MAX_WHERE_LENGTH
from domain.errors import InvalidInput

_EXAMPLE = "as in connections=1"


@dataclass(frozen=True, slots=True)
class Condition:
    """Under which a sample was taken.

    `run` is the place of its run in the file, from 1; `at_once` how many transfers were under way,
    and `named` what else tells it from others, by name: ("connections", "16"). What `is_spare` a
    tool measured beside single transfers: it counts where there is nothing else, or is chosen.
    """

    run: int = 1
    at_once: int = 1
    named: tuple[tuple[str, str], ...] = ()
    is_spare: bool = False

    def value(self, name: str) -> str | None:
        """Return its value of this name, whatever the case; None where it has none."""
        wanted = name.casefold()
        return next((value for one, value in self.named if one.casefold() == wanted), None)


@dataclass(frozen=True, slots=True)
class RowChoice:
    """What a user says of a file that it does not say itself, and which of its rows to take.

    `test` names the test of rows whose test the file does not name; of several files it may name
    one for each, apart by commas, in their order. Raises InvalidInput.
    """

    test: str | None = None
    run: int | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if self.run is not None and not 1 <= self.run <= MAX_RUN:
            raise InvalidInput(f"expected a run from 1 to {MAX_RUN}", field="run")
        if self.where is not None:
            parse_where(self.where)
        test = self.test
        if test is not None and not (test.strip() and test.isprintable()):
            raise InvalidInput("expected the name of a test, as sendrecv_perf", field="test")
        if test is not None and len(test) > MAX_TEST_LENGTH:
            raise InvalidInput(f"expected at most {MAX_TEST_LENGTH} characters", field="test")

    def of_file(self, place: int) -> RowChoice:
        """Return what is said of the file at this place, from 0."""
        if self.test is None or "," not in self.test:
            return self
        names = [name.strip() for name in self.test.split(",")]
        name = names[place] if place < len(names) else ""
        return replace(self, test=name or None)


NO_CHOICE = RowChoice()


def parse_where(
    text: str, has: Callable[[str, str], bool] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return names and values of `connections=1,threads=2`. Raises InvalidInput.

    What has no name of its own belongs to the value before, as in `cpus=0,1`; and so does what has
    one, where `has` says that the name has this whole value.
    """
    if len(text) > MAX_WHERE_LENGTH:
        raise InvalidInput(f"expected at most {MAX_WHERE_LENGTH} characters", field="where")
    parts = text.split(",")
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(parts):
        name, _, rest = parts[at].partition("=")
        end = at + 1
        while end < len(parts) and parts[end].strip() and "=" not in parts[end]:
            end += 1
        for longer in range(len(parts), at, -1) if has is not None else ():
            if has is not None and has(
                name.strip(), ",".join([rest, *parts[at + 1 : longer]]).strip()
            ):
                end = longer
                break
        name, value = name.strip(), ",".join([rest, *parts[at + 1 : end]]).strip()
        if not name or not value or not f"{name}{value}".isprintable():
            raise InvalidInput(f"expected a name and a value, {_EXAMPLE}", field="where")
        found.append((name, value))
        at = end
    return tuple(found)


# What files of one test are called after: those whose output may leave out which test it is of.
_TEST_IN_NAME = re.compile(
    r"(?<![a-z])((?:send_?recv|all_?reduce|all_?gather|all_?to_?all|broadcast|reduce_scatter|reduce"
    r"|gather|scatter|hypercube)_perf|ib_(?:send|write|read|atomic)_(?:lat|bw)"
    r"|osu_(?:latency_m[tp]|latency|bibw|bw|mbw_mr|multi_lat|(?:get_acc|put|get|acc)_(?:latency|bw)"
    r"|allgather|allreduce|alltoall|barrier|bcast|gather|reduce_scatter|reduce|scatter)"
    r"|imb[-_](?:(?:mpi1|p2p)[-_])?(?:pingpong|pingping|uniband|biband|sendrecv|exchange))"
    r"(?![a-z0-9])",
    re.IGNORECASE,
)
_FIO_LOG = re.compile(r"_(clat|slat|lat|bw|iops)(?:\.[0-9]{1,6})?\.log$", re.IGNORECASE)


def named_test(name: str) -> str | None:
    """Return the test that a file's name says, as sendrecv_perf.log does; of a log of fio what it
    holds, as fio_clat of run_clat.1.log. None for none.
    """
    if found := _TEST_IN_NAME.search(name[-200:]):
        return found[1].lower()
    of_fio = _FIO_LOG.search(name[-200:])
    return None if of_fio is None else f"fio_{of_fio[1].lower()}"
