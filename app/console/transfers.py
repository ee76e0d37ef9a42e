"""Real transfers over the stages of a model: what they need, what refuses them, what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.console.probe_runs import PROBED, facts_of_machine, probe_options
from app.questions.profiles import verification_by
from app.ui.grammar import Arguments
from domain.errors import InvalidInput, NotMeasurable
from domain.machine import check_plain
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
    from domain.model import CostModel
    from measuring.running import Probe

TRANSFERS_FILE = "transfers.csv"
_MESSAGE_BYTES = 1 << 20
_MAX_MESSAGE_BYTES = 1 << 32  # which the stages have in memory, each for itself


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


def pipeline_of(model: CostModel) -> Pipeline:
    """Return a model's stages. Raises InvalidInput for an aggregate, and NeedsPlainStages."""
    check_plain(model, "source")
    if isinstance(model, Pipeline):
        return model
    raise InvalidInput(
        "expected a pipeline: of an aggregate no stage is known that could be run", field="source"
    )


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


def facts_of(probe: Probe, arguments: Arguments) -> dict[str, str]:
    """Return what the first lines of a file of transfers say: the machine, the probe, the load."""
    facts = {**facts_of_machine(arguments), "depth": str(arguments.depth)}
    facts["processors"] = str(_processors(arguments.cpus))
    facts["load"] = f"{os.getloadavg()[0]:.2f} on {_processors(None)}"
    return facts | {name: probe.facts[name] for name in PROBED if name in probe.facts}


def started(stages: Sequence[str], message_bytes: int, arguments: Arguments) -> Probe:
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
    arguments: Arguments,
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


def message_bytes_of(arguments: Arguments) -> int:
    """Return the message that is transferred. Raises InvalidInput."""
    given = _MESSAGE_BYTES if arguments.message_bytes is None else arguments.message_bytes
    if not 1 <= given <= _MAX_MESSAGE_BYTES:
        raise InvalidInput(
            f"expected a message of {format_byte_range(1, _MAX_MESSAGE_BYTES)}, got "
            f"{format_bytes(given)}",
            field="bytes",
        )
    return int(given)


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
