"""Trials of a setting as parts, why it is kept or not, and the setting that says so."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from app.text.units import format_time, printable
from app.ui.parts import Column, Grid, Part
from domain.units import format_bytes
from measuring.trials import Checked, Compared, Outcome, Trial

# What an export says of a gain that only a measurement shows, and what is true once it did.
_UNKNOWN = "NOT KNOWN TO BE BETTER than the library's default:"
_BY_THE_MODEL = "by the model alone not known to be better than the library's default:"
_RULES_HEADER = "rule-file-version-2\n"  # of Open MPI: the very first line


def reason_of(found: Checked) -> str:
    """Return why a setting is kept or not, in one sentence."""
    last = found.trials[-1]
    if found.text is not None:
        undecided, first = len(last.of(Outcome.UNDECIDED)), found.trials[-2]
        return (
            f"kept: faster at {_most(last, Outcome.FASTER)}; none is seen to be slower, "
            f"{undecided} are undecided; confirmed, in trials of {first.pairs} and {last.pairs} "
            "pairs"
        )
    if last.failure:
        return f"not kept: with it the programs do not end as they should: {last.failure}"
    if wrong := last.of(Outcome.WRONG):
        at = f"{wrong[0].program} of {format_bytes(wrong[0].message_bytes)}"
        return f"not kept: with it {at} gives wrong data"
    if last.of(Outcome.SLOWER):
        return f"not kept: slower at {_most(last, Outcome.SLOWER)}"
    if not last.is_harmless:
        return f"not kept: it looks slower at {_most_of(last, last.looking_slower, max)}, undecided"
    if len(found.trials) > 1 and found.trials[-2].is_gain:
        return "not kept: a second trial is not faster where the first was"
    return "not kept: it is faster nowhere; it may not be in use by these programs"


def _most(trial: Trial, outcome: Outcome) -> str:
    """At how many programs and sizes it is so, and where most."""
    return _most_of(trial, trial.of(outcome), min if outcome is Outcome.FASTER else max)


def _most_of(trial: Trial, found: Sequence[Compared], most: Callable[..., Compared]) -> str:
    at = most(found, key=lambda one: one.ratio)
    span = f"{at.low:.3g} to {at.high:.3g}"
    return (
        f"{len(found)} of {len(trial.compared)} programs and sizes, most at {at.program} of "
        f"{format_bytes(at.message_bytes)}: {at.ratio:.3g} times as long ({span})"
    )


def parts(library: str, found: Checked, reason: str) -> Iterator[Part]:
    """Yield each trial as a table, and the reason."""
    columns = (
        Column("program", is_number=False),
        Column("message"),
        Column("before"),
        Column("after/before"),
        Column("interval", is_number=False),
        Column("", is_number=False),
    )
    yield printable(library)
    for number, trial in enumerate(found.trials, start=1):
        yield ""
        yield f"trial {number}, {trial.pairs} pairs:"
        yield Grid(columns, tuple(map(_compared_row, trial.compared)))
    yield ""
    yield printable(reason)


def _compared_row(one: Compared) -> tuple[str, ...]:
    if one.outcome is Outcome.WRONG:
        ratio, interval = "", ""
    else:
        ratio, interval = f"{one.ratio:.3f}", f"{one.low:.3f} to {one.high:.3f}"
    size, before = format_bytes(one.message_bytes), format_time(one.before_us)
    return one.program, size, before, ratio, interval, one.outcome


def with_verdict(text: str, over: str, reason: str) -> bytes:
    """Return the setting with what was found in its first lines: comments to each library."""
    said = textwrap.wrap(printable(f"Measured over {over}: {reason}"), 97)
    head = _RULES_HEADER if text.startswith(_RULES_HEADER) else ""
    rest = text.removeprefix("\ufeff").removeprefix(head).replace(_UNKNOWN, _BY_THE_MODEL, 1)
    return (head + "".join(f"# {line}\n" for line in said) + rest).encode()
