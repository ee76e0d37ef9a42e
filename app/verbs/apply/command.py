"""sluice apply: what a setting does to the programs of the library that is installed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, text_of_file
from contract.declare import words_of
from contract.export import ExportIn
from domain.errors import InvalidInput, StrategyDeclined

if TYPE_CHECKING:
    from app.ui.terminal import Output
    from exports.targets.target import Effect, Target
    from measuring.trials import Installed, TrialPlan

NOT_KEPT = 7  # the exit code where the setting is not kept
WORDS = words_of(ExportIn, ("option", "min_message_bytes", "max_message_bytes"))
# What libraries read by themselves where it lies: a setting must not take effect by accident.
_TAKES_EFFECT = ("ucx.conf", "ucc.conf", "mca-params.conf", "openmpi-mca-params.conf", "nccl.conf")
_NOUN, _UCX = "the setting", "UCX"


def add_arguments(command: Command) -> None:
    """Add the words of an export that it takes, and those of a terminal alone."""
    from app.console.argument_parts import add_mpi, add_seed, names
    from app.text.units import parse_sizes, parse_whole
    from domain.units import parse_number

    command.argument("target", metavar="TARGET", help="the library, as export has it")
    command.argument("source", metavar="SOURCE", is_optional=True, help="file, - or profile")
    command.flag("--check", help="measure before and after: nothing is kept without")
    command.option(
        "--config", metavar="FILE", help="a configuration that is there, in place of a SOURCE"
    )
    add_words(command, WORDS)
    command.option(
        "--bytes",
        read=parse_sizes,
        metavar="SIZES",
        help="what is sent, as 1KiB..4MiB or 4KiB,1MiB (default 1 KiB to 4 MiB, each 4 times)",
    )
    command.option(
        "--programs",
        read=names,
        metavar="NAMES",
        help="separated by commas: ping-pong, bcast, reduce, allreduce, ibcast, ireduce, "
        "iallreduce; of UCX tag_lat, tag_bw",
    )
    add_mpi(command)
    command.option(
        "--ranks",
        read=parse_whole,
        metavar="COUNT",
        help="of an MPI (2), where its own settings say",
    )
    command.option(
        "--pairs", read=parse_whole, rest=30, metavar="COUNT", help="starts with and without (30)"
    )
    command.option(
        "--time-limit",
        read=parse_number,
        rest=300.0,
        metavar="SECONDS",
        help="of each of two trials (300)",
    )
    add_seed(command)
    command.option(
        "--output", metavar="FILE", help="for what is kept (sluice-TARGET, as its suffix is)"
    )


def run(arguments: Arguments, output: Output) -> int:
    """Try a setting over the installed library, and keep what is faster and not slower."""
    from app.console.running import ended_by_signals

    with ended_by_signals():
        return _run(arguments, output)


def _run(arguments: Arguments, output: Output) -> int:
    import os
    from pathlib import Path

    from app.console.files import check_target, write_whole
    from app.console.running import erased_line
    from app.schemas.base import dump_json
    from app.text.units import printable
    from app.verbs.apply.answer import trial_out
    from app.verbs.apply.show import parts, reason_of, with_verdict
    from contract.apply import AppliedOut
    from exports.targets.registry import target_named
    from measuring.running import own_folder
    from measuring.trials import check

    target = target_named(arguments.target)
    options = dict(option.partition(":")[::2] for option in arguments.option or ())
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
        output.parts(parts(over, found, reason))
    if found.text is None:
        return NOT_KEPT
    write_whole(name, with_verdict(found.text, over, reason), field="output", noun=_NOUN)
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


def _check_used(arguments: Arguments, effect: Effect) -> None:
    """Raise InvalidInput for what is given and would be passed over."""
    if arguments.config is not None:
        for name in ("option", "min_message_bytes", "max_message_bytes"):
            if getattr(arguments, name):
                raise InvalidInput("only a setting that is made of a SOURCE has it", field=name)
    if effect.library == _UCX and arguments.mpicc is None:
        for name in ("launcher", "allow_run_as_root", "ranks"):
            if getattr(arguments, name):
                raise InvalidInput("only an MPI has it, which --mpicc names", field=name)


def _setting_text(arguments: Arguments, output: Output) -> str:
    """Return the configuration that is there, or one that is made of the source."""
    from app.verbs.export.command import exported, scope_of

    if (arguments.source is None) == (arguments.config is None):
        raise InvalidInput("expected a SOURCE, or --config with what is there", field="source")
    if arguments.config is not None:
        return text_of_file(arguments.config, field="config")
    made = exported(arguments, scope_of(arguments, WORDS), output, {}).result
    for warning in made.warnings:
        output.note(warning)
    return made.content.decode()


@contextmanager
def _installed(arguments: Arguments, effect: Effect) -> Iterator[tuple[TrialPlan, Installed]]:
    """The trial that is asked for, and the programs that it runs. UCX is run through its own tool,
    or below the MPI that is named.
    """
    from measuring.mpi import Mpi
    from measuring.trials import (
        MPI_BLOCKING,
        SIZES,
        UCX_PROGRAMS,
        TrialPlan,
        mpi_programs,
        ucx_programs,
    )

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
