"""What is swept, checked before a run; its file, kept run by run; and how far it is."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.files import check_target, write_whole
from app.console.racing import first_words
from app.console.running import erased_line
from app.console.transfers import current_of
from app.text.units import format_time, printable
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput, SluiceError, UnitMismatch
from domain.own_transfers import (
    MAX_SIZES,
    MAX_TRANSFERS,
    OwnTransfer,
    OwnTransfers,
)
from domain.units import format_bytes
from measuring.own_program import OwnProgram, ProgramRun, read_variable, read_words
from measuring.printed_times import TimeReader
from measuring.sweep import check_plan

if TYPE_CHECKING:
    from analysis.size_race import RacePlan, SizeRace

OWN_FILE = "own.csv"
_NOUN = "the transfers"
_COMMAND, _TIME, _CURRENT = "command", "time", "current"
_OPTIONS = {  # of what they are called elsewhere
    "message_bytes": "bytes",
    "current_bytes": "current",
    "smallest_bytes": "min_fragment_bytes",
    "transfers": "continue",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is raced, after everything that can be refused before a run was."""

    program: OwnProgram
    plan: RacePlan
    transfers: OwnTransfers | None  # of earlier runs
    target: str
    comments: tuple[str, ...]


# --- what is refused before a run -----------------------------------------------------------------


def asked_of(arguments: Arguments) -> Asked:
    """Read the options and the earlier runs. Raises InvalidInput, InconsistentInput, CannotRun."""
    from analysis.size_race import RacePlan

    check_plan(1.0, arguments.time_limit)
    target = arguments.out or arguments.continued or OWN_FILE
    check_target(target, field="out", noun=_NOUN, example=OWN_FILE)
    transfers, facts = _earlier(arguments)
    message_bytes = arguments.message_bytes
    if message_bytes is None and transfers is not None:
        message_bytes = transfers.message_bytes
    if message_bytes is None:
        raise InvalidInput("expected --bytes, the size of the message", field="bytes")
    current_bytes = _current(arguments, transfers, facts, message_bytes)
    with _fields_are_options():
        plan = RacePlan(
            message_bytes,
            current_bytes=current_bytes,
            max_runs=arguments.max_runs,
            smallest_bytes=arguments.min_fragment_bytes,
            seed=arguments.seed,
        )
    reader = TimeReader.of(arguments.time, unit=arguments.unit, is_rate=arguments.rate)
    before = read_words(arguments.before, field="before") if arguments.before else ()
    given = _variables(arguments.env)
    program = OwnProgram(tuple(arguments.program), message_bytes, given, before, reader)
    own = {_COMMAND: printable(program.line()), _TIME: printable(_time_words(arguments))}
    for name, words in own.items():
        if facts.get(name, words) != words:
            raise InconsistentInput(
                f"expected the {name} of the file, which is {facts[name]!r}", field="continue"
            )
    if transfers is not None:
        _check_room(transfers, plan)
    program.check()
    _check_kept(target, arguments.continued)
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    own |= {_CURRENT: format_bytes(plan.current_bytes)} if plan.current_bytes else {}
    own |= {"host": platform.node(), "load": f"{load:.2f} on {processors}"}
    comments = tuple(f"{name}: {words}" for name, words in {**facts, **own}.items())
    return Asked(program, plan, transfers, target, comments)


@contextmanager
def _fields_are_options() -> Iterator[None]:
    """Have what is refused inside named as the options are."""
    try:
        yield
    except SluiceError as refusal:
        refusal.field = _OPTIONS.get(refusal.field or "", refusal.field)
        raise


def _variables(words: Sequence[str]) -> dict[str, str]:
    """Every NAME=VALUE. Raises InvalidInput for one that is none, and for a name that is twice."""
    given = dict[str, str]()
    for name, value in map(read_variable, words):
        if name in given:
            raise InvalidInput(f"expected the value of {name} once", field="env")
        given[name] = value
    return given


def _check_kept(target: str, continued: str | None) -> None:
    """Raise InvalidInput for a file that has runs already, unless these are continued."""
    path = Path(target)
    if continued is not None and path.resolve() == Path(continued).resolve():
        return
    if path.is_file() and path.stat().st_size > 0:
        raise InvalidInput(
            f"{target} has something in it: --continue {target} goes on from its runs, and --out "
            "names another file",
            field="out",
        )


def _earlier(arguments: Arguments) -> tuple[OwnTransfers | None, dict[str, str]]:
    """The runs of --continue, and what the first lines of their file say."""
    from fitting.own_transfers import read_own_file

    if arguments.continued is None:
        return None, {}
    try:
        text = Path(arguments.continued).read_text(encoding="utf-8", errors="replace")
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"the file of {_NOUN}: {reason}", field="continue") from None
    with _fields_are_options():
        found = read_own_file(text)
    parts = (comment.partition(": ") for comment in found.comments)
    facts = {name: words for name, colon, words in parts if colon}
    if not {_COMMAND, _TIME} <= facts.keys() or found.unused:
        raise InvalidInput("expected a file that sluice sweep has written", field="continue")
    if arguments.message_bytes not in (None, found.transfers.message_bytes):
        raise InconsistentInput(
            f"expected the message of the file, {format_bytes(found.transfers.message_bytes)}, and "
            f"not {format_bytes(arguments.message_bytes)}",
            field="bytes",
        )
    return found.transfers, facts


def _current(
    arguments: Arguments,
    transfers: OwnTransfers | None,
    facts: dict[str, str],
    message_bytes: int,
) -> int | None:
    """The size in use, of the options or the file: of one beyond the message, the whole message.

    Raises InconsistentInput where they differ.
    """
    from domain.units import parse_bytes

    given = arguments.uncertainty_current
    current = current_of(given, message_bytes)
    if _CURRENT not in facts:
        return current
    try:
        before = parse_bytes(facts[_CURRENT])
    except UnitMismatch as refusal:
        raise InvalidInput(f"{_CURRENT}: {refusal.detail}", field="continue") from None
    if current not in (None, before):
        raise InconsistentInput(
            f"expected the size that the file compares with, {format_bytes(before)}",
            field="current",
        )
    return before


def _check_room(transfers: OwnTransfers, plan: RacePlan) -> None:
    sizes = {row.fragment_bytes for row in transfers.rows} | {*plan.candidates}
    if len(sizes) > MAX_SIZES or len(transfers.rows) + plan.max_runs > MAX_TRANSFERS:
        raise InvalidInput(
            f"expected at most {MAX_TRANSFERS} transfers of {MAX_SIZES} sizes with those to come",
            field="continue",
        )


def _time_words(arguments: Arguments) -> str:
    """The options by which a time is read, and what is run before it."""
    words = ["--time", arguments.time] if arguments.time != "wall" else ["wall"]
    words += ["--unit", arguments.unit] if arguments.unit else []
    words += ["--rate"] if arguments.rate else []
    words += ["--before", arguments.before] if arguments.before else []
    return shlex.join(words)


def end_of(rows: tuple[OwnTransfer, ...]) -> float:
    """When the last of earlier runs ended: pauses between sessions are left out."""
    ends = (row.began_s + (row.latency_us or 0.0) * 1e-6 for row in rows if row.began_s is not None)
    return max(ends, default=0.0)


# --- while it runs --------------------------------------------------------------------------------


class Kept:
    """The file, written after each run."""

    def __init__(self, asked: Asked, race: SizeRace) -> None:
        self._asked, self._race = asked, race
        self._conditions = asked.transfers.conditions if asked.transfers else ()

    def transfers(self) -> OwnTransfers:
        """Every run so far."""
        message_bytes = self._asked.plan.message_bytes
        return OwnTransfers(message_bytes, self._race.rows(), self._conditions)

    def write(self) -> None:
        """Write the file anew, in one step: a kill loses the run that is under way."""
        from fitting.own_transfers import own_transfers_text

        text = own_transfers_text(self.transfers(), self._asked.comments)
        write_whole(self._asked.target, text.encode(), field="out", noun=_NOUN)


class Progress:
    """Lines on standard error: one a run, and where a person looks the one that is under way."""

    def __init__(self, asked: Asked, output: Output, limit_s: float, *, is_quiet: bool) -> None:
        self._asked, self._output, self._limit_s = asked, output, limit_s
        self._is_quiet, self._count = is_quiet, 0

    @contextmanager
    def running(self, size: int) -> Iterator[None]:
        """Show that a size is run now, until the block ends."""
        if self._is_quiet:
            yield
            return
        with erased_line(self._output.err) as show:
            show(f"run {self._count + 1}: {format_bytes(size)} …")
            yield

    def after(self, size: int, run: ProgramRun) -> None:
        """Show what came of a run, and behind the first what is to be expected."""
        self._count += 1
        if self._is_quiet:
            return
        took = run.reason if run.latency_us is None else format_time(run.latency_us)
        self._output.note(f"run {self._count}: {format_bytes(size)}, {printable(took)}")
        if self._count == 1 and run.latency_us is not None:
            words = first_words(run.took_s, self._limit_s, self._asked.plan.max_runs)
            self._output.note(words)
