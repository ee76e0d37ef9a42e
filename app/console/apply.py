"""sluice apply: what a setting does to the programs of the library that is installed here."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.files import check_target, write_whole
from app.console.running import erased_line
from app.text.units import format_time, printable
from app.ui.options import text_of_file
from app.ui.parts import Column, Grid, Part
from app.ui.terminal import Output
from domain.errors import InvalidInput, StrategyDeclined
from domain.units import format_bytes
from measuring.mpi import Mpi
from measuring.running import own_folder
from measuring.trials import Checked, Compared, Installed, Outcome, Trial, TrialPlan, check

if TYPE_CHECKING:
    from exports.targets.target import Effect, Target

NOT_KEPT = 7  # the exit code where the setting is not kept
# What libraries read by themselves where it lies: a setting must not take effect by accident.
_TAKES_EFFECT = ("ucx.conf", "ucc.conf", "mca-params.conf", "openmpi-mca-params.conf", "nccl.conf")
_NOUN, _UCX = "the setting", "UCX"
# What an export says of a gain that only a measurement shows, and what is true once it did.
_UNKNOWN = "NOT KNOWN TO BE BETTER than the library's default:"
_BY_THE_MODEL = "by the model alone not known to be better than the library's default:"
_RULES_HEADER = "rule-file-version-2\n"  # of Open MPI: the very first line


def apply(arguments: argparse.Namespace, output: Output) -> int:
    """Try a setting over the installed library, and keep what is faster and not slower."""
    from app.schemas.apply import trial_out
    from app.schemas.base import dump_json
    from contract.apply import AppliedOut
    from exports.targets.registry import target_named

    target = target_named(arguments.target)
    options = dict(option.partition("=")[::2] for option in arguments.option)
    name = arguments.output or f"sluice-{target.name}.{target.suffix_for(options)}"
    if not arguments.check:
        raise InvalidInput(
            "a setting is applied only where it was measured: --check; sluice export writes one",
            field="check",
        )
    check_target(name, field="output", noun=_NOUN, example="sluice-ucx.conf")
    if {one.name.lstrip(".") for one in (Path(name), Path(name).resolve())} & {*_TAKES_EFFECT}:
        raise InvalidInput(
            "libraries read a file of this name by themselves: expected another, so that nothing "
            "takes effect by accident",
            field="output",
        )
    effect = _effect_of(target)
    _check_used(arguments, effect)
    text = _setting_text(arguments, output)
    with _installed(arguments, effect) as (plan, installed), erased_line(output.err) as show:
        _check_installed(installed, effect, text)
        with own_folder("sluice-apply-") as folder:

            def in_force(given: str) -> Mapping[str, str]:
                file = folder / "setting"
                file.write_text(given, encoding="utf-8")
                return effect.environment(given, str(file))

            own = frozenset(in_force(text))
            found = check(
                plan,
                installed.start,
                text,
                in_force,
                effect.without,
                lambda left, done: show(f"{done} pairs done, {left} to come"),
            )
    is_kept, reason, over = (
        found.text is not None,
        reason_of(found),
        installed.described(os.environ, own),
    )
    trials = tuple(map(trial_out, found.trials))
    if output.wants_json:
        applied = AppliedOut(target.name, over, is_kept, reason, found.text, trials)
        output.document(dump_json(applied))
    else:
        output.parts(_applied_parts(over, found, reason))
    if found.text is None:
        return NOT_KEPT
    write_whole(name, _with_verdict(found.text, over, reason), field="output", noun=_NOUN)
    output.note(f"kept in {printable(name)}, where it takes effect only as the target's page says")
    return 0


def _effect_of(target: Target) -> Effect:
    from exports.targets.registry import TARGETS

    if target.effect is None:
        names = ", ".join(one.name for one in TARGETS if one.effect is not None)
        raise StrategyDeclined(
            f"no program here shows what {target.name} does; those that can be checked: {names}",
            field="target",
        )
    return target.effect


def _check_used(arguments: argparse.Namespace, effect: Effect) -> None:
    """Raise InvalidInput for what is given and would be passed over."""
    if arguments.config is not None:
        for name in ("option", "min_message_bytes", "max_message_bytes"):
            if getattr(arguments, name):
                raise InvalidInput("only a setting that is made of a SOURCE has it", field=name)
    if effect.library == _UCX and arguments.mpicc is None:
        for name in ("launcher", "allow_run_as_root", "ranks"):
            if getattr(arguments, name):
                raise InvalidInput("only an MPI has it, which --mpicc names", field=name)


def _setting_text(arguments: argparse.Namespace, output: Output) -> str:
    """Return the configuration that is there, or one that is made of the source."""
    from app.console.export import export_scope, exported

    if (arguments.source is None) == (arguments.config is None):
        raise InvalidInput("expected a SOURCE, or --config with what is there", field="source")
    if arguments.config is not None:
        return text_of_file(arguments.config, field="config")
    made = exported(arguments, export_scope(arguments), output).result
    for warning in made.warnings:
        output.note(warning)
    return made.content.decode()


@contextmanager
def _installed(
    arguments: argparse.Namespace, effect: Effect
) -> Iterator[tuple[TrialPlan, Installed]]:
    """The trial that is asked for, and the programs that it runs. UCX is run through its own tool,
    or below the MPI that is named.
    """
    from measuring.trials import MPI_BLOCKING, SIZES, UCX_PROGRAMS, mpi_programs, ucx_programs

    is_below = effect.library == _UCX and arguments.mpicc is not None
    is_ucx = effect.library == _UCX and not is_below
    usual = UCX_PROGRAMS[:1] if is_ucx else MPI_BLOCKING if is_below else effect.programs
    plan = TrialPlan(
        tuple(dict.fromkeys(arguments.programs or usual)),
        tuple(sorted(set(arguments.bytes or SIZES))),
        arguments.pairs,
        arguments.time_limit,
        arguments.seed,
    )
    ranks = 2 if arguments.ranks is None else arguments.ranks
    mpi = Mpi(arguments.mpicc or "mpicc", arguments.launcher, arguments.allow_run_as_root, ranks)
    with ucx_programs(plan) if is_ucx else mpi_programs(mpi, plan) as installed:
        yield plan, installed


def _check_installed(installed: Installed, effect: Effect, text: str) -> None:
    """Raise InvalidInput unless the library is the target's, and reads the setting."""
    is_below = effect.library == _UCX  # of an MPI, which does not say so
    if not is_below and effect.library not in installed.library:
        raise InvalidInput(
            f"expected a wrapper of {effect.library}, this one is of {installed.library[:100]}",
            field="mpicc",
        )
    since = effect.since(text)
    is_known = bool(installed.version) and (not is_below or _UCX in installed.library)
    if is_known and installed.version < since:
        raise InvalidInput(
            f"{'.'.join(map(str, since))} and later read this setting, and here is "
            f"{installed.library[:100]}",
            field="target",
        )


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


def _applied_parts(library: str, found: Checked, reason: str) -> Iterator[Part]:
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


def _with_verdict(text: str, over: str, reason: str) -> bytes:
    """The setting, with what was found in its first lines, which are comments to each library."""
    said = textwrap.wrap(printable(f"Measured over {over}: {reason}"), 97)
    head = _RULES_HEADER if text.startswith(_RULES_HEADER) else ""
    rest = text.removeprefix("\ufeff").removeprefix(head).replace(_UNKNOWN, _BY_THE_MODEL, 1)
    return (head + "".join(f"# {line}\n" for line in said) + rest).encode()
