"""Real transfers over the stages of a model: what they need, what refuses them, what they say."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.console.files import check_target, write_whole
from app.console.measurable import check_store
from app.console.measure import PROBED, facts_of_machine, probe_options, shown
from app.questions.profiles import verification_by
from app.settings import Settings
from app.text.units import printable
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput, NotMeasurable
from domain.pipeline import Pipeline
from domain.profile import Revision
from domain.units import format_byte_range, format_bytes
from domain.verification import Verification
from measuring.feasibility import (
    MAX_DEPTH,
    MAX_FRAGMENTS,
    PAGE,
    Needs,
    check_count,
    check_fragments,
    check_processors,
    check_stages,
    check_whole_pages,
    is_direct,
    known_of,
)
from measuring.sweep import check_plan

if TYPE_CHECKING:
    from measuring.running import Probe

TRANSFERS_FILE = "transfers.csv"
_COUNTS = (1, 2, 4, 8, 16, 32, 64)  # fragments of the sweep
_MESSAGE_BYTES = 1 << 20
_MAX_MESSAGE_BYTES = 1 << 32  # which the stages have in memory, each for itself
_NOUN = "the transfers"


@dataclass(frozen=True, slots=True)
class Model:
    """What is verified: a pipeline, the revision that it is of, and the stages it was measured by.

    `stages` are the probe's names, empty where they are not known. No stage is known at fragments
    below `min_bytes`: the first line goes on there, and a size below is not recommended.
    """

    pipeline: Pipeline
    revision: Revision | None
    stages: tuple[str, ...]
    min_bytes: int = 1


@dataclass(frozen=True, slots=True)
class Verified:
    """A verification, and whether it was ended before its plan was; `contradicted` is what a later
    trace says against the revision that it is kept with.
    """

    verification: Verification
    recommended_bytes: int
    current_bytes: int | None
    is_interrupted: bool
    contradicted: str = ""


def transferred(model: Model, arguments: argparse.Namespace, output: Output) -> Verified:
    """Run the transfers, write every run into a file, and return what they say."""
    from measuring.transfers import TransferPlan, Transfers

    stages = tuple(arguments.stages or model.stages)
    _check_stages(model, stages)
    message_bytes = message_bytes_of(arguments)
    current_bytes = current_of(arguments.current, message_bytes)
    target = arguments.output or TRANSFERS_FILE
    check_target(target, field="output", noun=_NOUN, example="transfers.csv")
    if model.revision is not None:
        check_store(Settings.from_environment())
    check_transfers(stages, message_bytes, current_bytes, arguments)
    recommended = recommended_of(model, message_bytes, stages)
    sizes = _sizes(message_bytes, stages, (recommended, current_bytes))
    plan = TransferPlan(
        message_bytes, sizes, stages, arguments.tolerance, arguments.time_limit, arguments.seed
    )
    found, is_interrupted = Transfers(plan), False
    with started(stages, message_bytes, arguments) as one:
        facts = facts_of(one, arguments)
        try:
            with shown(output, "sizes", target, lambda: found.to_csv(facts)) as on_block:
                found.run(one.ask, on_block)
        except KeyboardInterrupt:
            is_interrupted = True
    text = found.to_csv(facts)
    write_whole(target, text.encode(), field="output", noun=_NOUN)
    output.note(f"every transfer is in {printable(target)}")
    verification = verdict_of(text, model.pipeline, is_interrupted=is_interrupted)
    return Verified(verification, recommended, current_bytes, is_interrupted)


def verdict_of(text: str, pipeline: Pipeline, *, is_interrupted: bool) -> Verification:
    """Return what a file of transfers says of a model. Raises KeyboardInterrupt where the transfers
    were interrupted before there was enough for a verdict, and else what `verification_by` raises.
    """
    from measuring.transfers import read_transfers

    try:
        return verification_by(pipeline, read_transfers(text))
    except (InvalidInput, NotMeasurable):
        if is_interrupted:
            raise KeyboardInterrupt from None
        raise


def facts_of(probe: Probe, arguments: argparse.Namespace) -> dict[str, str]:
    """Return what the first lines of a file of transfers say: the machine, the probe, the load."""
    facts = {**facts_of_machine(arguments), "depth": str(arguments.depth)}
    facts["processors"] = str(_processors(arguments.cpus))
    facts["load"] = f"{os.getloadavg()[0]:.2f} on {_processors(None)}"
    return facts | {name: probe.facts[name] for name in PROBED if name in probe.facts}


def started(stages: Sequence[str], message_bytes: int, arguments: argparse.Namespace) -> Probe:
    """Start a probe of transfers."""
    from measuring.probe import program
    from measuring.running import Probe

    options = [*probe_options(arguments, message_bytes), "--path", arguments.path]
    options += ["--depth", str(arguments.depth)]
    return Probe(program(), ["transfer", ",".join(stages), *options])


def check_transfers(
    stages: Sequence[str],
    message_bytes: int,
    current_bytes: int | None,
    arguments: argparse.Namespace,
) -> None:
    """Check, without a probe that is started, that these transfers can run. Raises InvalidInput,
    InconsistentInput and NotMeasurable.
    """
    from measuring.probe import program

    check_plan(arguments.tolerance, arguments.time_limit)
    check_count(arguments.depth, MAX_DEPTH, field="depth")
    if current_bytes is not None:
        check_fragments(message_bytes, current_bytes)
    if any(map(is_direct, stages)):
        check_whole_pages((message_bytes,), field="bytes")
        check_whole_pages((current_bytes or message_bytes,), field="current")
    check_processors(arguments.cpus)
    check_stages(stages, known_of(program()))
    Needs.of_transfers(stages, message_bytes).check(arguments.path)


def message_bytes_of(arguments: argparse.Namespace) -> int:
    """Return the message that is transferred. Raises InvalidInput."""
    given = _MESSAGE_BYTES if arguments.bytes is None else arguments.bytes
    if not 1 <= given <= _MAX_MESSAGE_BYTES:
        raise InvalidInput(
            f"expected a message of {format_byte_range(1, _MAX_MESSAGE_BYTES)}, got "
            f"{format_bytes(given)}",
            field="bytes",
        )
    return int(given)


def _check_stages(model: Model, stages: Sequence[str]) -> None:
    if not stages:
        raise InconsistentInput(
            "which stages were measured is not known of this source: name each with --stage, in "
            "their order, as sluice measure --list has them",
            field="stage",
        )
    if len(stages) < len(model.pipeline):
        raise InconsistentInput(
            f"the model has {len(model.pipeline)} stages, and {len(stages)} are named",
            field="stage",
        )


def current_of(given: dict[str, int] | str | None, message_bytes: int) -> int | None:
    """Return the size in use of --current, None without one."""
    if isinstance(given, dict):
        return min(given["repeat"], message_bytes)
    return message_bytes if given == "whole" else None


def _processors(cpus: tuple[int, ...] | None) -> int:
    """How many processors the stages have between them."""
    return len(set(cpus)) if cpus else len(os.sched_getaffinity(0))


def alignment_of(stages: Sequence[str]) -> int:
    """Return what sizes of these stages are multiples of, in bytes."""
    return PAGE if any(map(is_direct, stages)) else 1


def recommended_of(model: Model, message_bytes: int, stages: Sequence[str]) -> int:
    """Return the size to repeat, round as in answers, of those that the model knows of."""
    import solvers
    from analysis.size_curve import choose_size
    from domain.problem import FragmentLimits, problem_of
    from domain.solution import Strategy

    step = alignment_of(stages)
    known = min(message_bytes, max(-(-message_bytes // MAX_FRAGMENTS), model.min_bytes))
    limits = FragmentLimits(min_fragment_bytes=known // step * step or 1, alignment_bytes=step)
    problem = problem_of(model.pipeline, message_bytes, limits)
    if (choice := choose_size(problem, None, current_bytes=None)) is not None:
        return choice.recommended.size_bytes
    return max(solvers.solve(problem, Strategy.REPEAT).schedule.fragment_bytes)


def _sizes(
    message_bytes: int, stages: Sequence[str], further: Sequence[int | None]
) -> tuple[int, ...]:
    """Return the sizes of the sweep, and those that are asked for."""
    step = alignment_of(stages)
    swept = {-(-message_bytes // count) for count in _COUNTS}
    found = {-(-size // step) * step for size in swept} | {size for size in further if size}
    return tuple(sorted(size for size in found if size <= message_bytes))
