"""sluice verify: real transfers over the stages of a model, beside what it predicts of them; and
sluice tune: from nothing to a setting that was verified.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.argument_parts import PATHS
from app.console.commands import fit_source, opened_store
from app.console.files import ProfileSource, TraceSource, check_target, read_source, write_whole
from app.console.fit import fit_stages
from app.console.measure import (
    INTERRUPTED,
    PROBED,
    as_file_name,
    facts_of_machine,
    measure_stage,
    probe_options,
    shown,
)
from app.console.screen import Column, Facts, Grid, Output, Part
from app.questions.profiles import (
    first_lines,
    smallest_measured,
    smallest_of,
    stages_measured,
    verification_by,
)
from app.settings import Settings
from app.text.notices import capitalised
from app.text.numbers import format_percent
from app.text.units import format_time, printable
from domain.errors import InconsistentInput, InvalidInput, NotMeasurable
from domain.pipeline import Pipeline
from domain.profile import ProfileReference, Revision
from domain.units import format_bytes
from domain.verification import ModelVerdict, Verification, VerifiedSize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.schemas.profiles import VerificationOut
    from domain.model import CostModel

STOPPED, DOES_NOT_HOLD = 6, 7  # exit codes, as in the table of app/console/arguments.py
_EXIT = {ModelVerdict.NOT_DECIDED: STOPPED, ModelVerdict.DOES_NOT_HOLD: DOES_NOT_HOLD}
_COUNTS = (1, 2, 4, 8, 16, 32, 64)  # fragments of the sweep
_MAX_FRAGMENTS = 65536  # of one transfer, as the probe has it
_MESSAGE_BYTES = 1 << 20
_MAX_MESSAGE_BYTES = 1 << 32  # which the stages have in memory, each for itself
_PAGE = 4096
_NOUN = "the transfers"


@dataclass(frozen=True, slots=True)
class _Model:
    """What is verified: a pipeline, the revision that it is of, and the stages it was measured by.

    `stages` are the probe's names, empty where they are not known. No stage is known at fragments
    below `min_bytes`: the first line goes on there, and a size below is not recommended.
    """

    pipeline: Pipeline
    revision: Revision | None
    stages: tuple[str, ...]
    min_bytes: int = 1


@dataclass(frozen=True, slots=True)
class _Verified:
    """A verification, and whether it was ended before its plan was."""

    verification: Verification
    recommended_bytes: int
    current_bytes: int | None
    is_interrupted: bool


# --- verify ---------------------------------------------------------------------------------------


def verify(arguments: argparse.Namespace, output: Output) -> int:
    """Transfer, compare, keep the verdict with the profile, and print it."""
    settings = Settings.from_environment()
    model = _model(arguments.source, settings, output)
    if arguments.recorded is not None:
        found = _recorded(model, arguments)
    else:
        found = _transferred(model, arguments, output)
    found = _kept(model.revision, found, settings)
    _show(found, output)
    if model.revision is not None:
        output.note(f"kept with {model.revision.profile}@{model.revision.number}")
    if found.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    return _EXIT.get(found.verification.verdict, 0)


def _model(name: str, settings: Settings, output: Output) -> _Model:
    """Return what a source names. Raises NotFound, InvalidInput, and what reading it does."""
    from app.schemas.base import dump_json, parse_json
    from app.schemas.profiles import SOURCES, RevisionIn

    source = read_source(name, settings)
    if isinstance(source, ProfileSource):
        with opened_store(settings) as store, store.reading() as unit:
            reference = ProfileReference.parse(source.reference)
            revision = unit.profiles.revision(reference.name, reference.revision)
            return _Model(
                _pipeline(revision.model),
                revision,
                stages_measured(unit, revision),
                smallest_measured(unit, revision),
            )
    if isinstance(source, TraceSource):
        stage = first_lines(source.content).get("stage")
        fitted = fit_source(source, settings, output.err).fit
        stages = (stage,) if stage else ()
        return _Model(_pipeline(fitted.to_model()), None, stages, smallest_of(fitted))
    given = {name: source.body.get(name) for name in SOURCES}
    return _Model(_pipeline(parse_json(RevisionIn, dump_json(given)).model()), None, ())


def _pipeline(model: CostModel) -> Pipeline:
    if isinstance(model, Pipeline):
        return model
    raise InvalidInput(
        "expected a pipeline: of an aggregate no stage is known that could be run", field="source"
    )


def _recorded(model: _Model, arguments: argparse.Namespace) -> _Verified:
    """Return the verification of transfers in a file. Raises InvalidInput and UnreadableTrace."""
    from measuring.transfers import read_transfers

    try:
        text = Path(arguments.recorded).read_text(encoding="utf-8", errors="replace")
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"the transfers' file: {reason}", field="recorded") from None
    recorded = read_transfers(text)
    if arguments.bytes is not None and arguments.bytes != recorded.message_bytes:
        raise InvalidInput(
            f"the transfers are of {recorded.message_bytes} bytes, not of {arguments.bytes}",
            field="bytes",
        )
    stages = arguments.stages or model.stages
    verification = verification_by(model.pipeline, recorded, stages=stages)
    recommended = _recommended(model, recorded.message_bytes, recorded.stages)
    current_bytes = _current(arguments.current, recorded.message_bytes)
    return _Verified(verification, recommended, current_bytes, False)


def _transferred(model: _Model, arguments: argparse.Namespace, output: Output) -> _Verified:
    """Run the transfers, write every run into a file, and return what they say."""
    from measuring.probe import program
    from measuring.running import Probe
    from measuring.transfers import TransferPlan, Transfers, read_transfers

    stages = tuple(arguments.stages or model.stages)
    _check_stages(model, stages)
    message_bytes = _message_bytes(arguments)
    current_bytes = _current(arguments.current, message_bytes)
    target = arguments.output or "transfers.csv"
    check_target(target, field="output", noun=_NOUN, example="transfers.csv")
    recommended = _recommended(model, message_bytes, stages)
    sizes = _sizes(message_bytes, stages, (recommended, current_bytes))
    plan = TransferPlan(
        message_bytes, sizes, stages, arguments.tolerance, arguments.time_limit, arguments.seed
    )
    options = [*probe_options(arguments, message_bytes), "--path", arguments.path]
    options += ["--depth", str(arguments.depth)]
    found, is_interrupted = Transfers(plan), False
    facts = {**facts_of_machine(arguments), "depth": str(arguments.depth)}
    facts["processors"] = str(_processors(arguments.cpus))
    facts["load"] = f"{os.getloadavg()[0]:.2f} on {_processors(None)}"
    with Probe(program(), ["transfer", ",".join(stages), *options]) as one:
        facts |= {name: one.facts[name] for name in PROBED if name in one.facts}
        try:
            with shown(output, "sizes", target, lambda: found.to_csv(facts)) as on_block:
                found.run(one.ask, on_block)
        except KeyboardInterrupt:
            is_interrupted = True
    text = found.to_csv(facts)
    write_whole(target, text.encode(), field="output", noun=_NOUN)
    output.note(f"every transfer is in {printable(target)}")
    try:
        verification = verification_by(model.pipeline, read_transfers(text))
    except (InvalidInput, NotMeasurable):
        if is_interrupted:  # before there was enough for a verdict
            raise KeyboardInterrupt from None
        raise
    return _Verified(verification, recommended, current_bytes, is_interrupted)


def _message_bytes(arguments: argparse.Namespace) -> int:
    given = _MESSAGE_BYTES if arguments.bytes is None else arguments.bytes
    if not 1 <= given <= _MAX_MESSAGE_BYTES:
        raise InvalidInput(
            f"expected a message of 1 to {_MAX_MESSAGE_BYTES} bytes, got {given}", field="bytes"
        )
    return int(given)


def _check_stages(model: _Model, stages: Sequence[str]) -> None:
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
    wrong = next((name for name in stages if "," in name or not name.strip()), None)
    if wrong is not None:
        raise InvalidInput("expected one name of a stage for each --stage", field="stage")


def _current(given: dict[str, int] | str | None, message_bytes: int) -> int | None:
    if isinstance(given, dict):
        return min(given["repeat"], message_bytes)
    return message_bytes if given == "whole" else None


def _processors(cpus: tuple[int, ...] | None) -> int:
    """How many processors the stages have between them."""
    return len(set(cpus)) if cpus else len(os.sched_getaffinity(0))


def _alignment(stages: Sequence[str]) -> int:
    return _PAGE if any(name.endswith("-direct") for name in stages) else 1


def _recommended(model: _Model, message_bytes: int, stages: Sequence[str]) -> int:
    """Return the size to repeat, round as in answers, of those that the model knows of."""
    import solvers
    from analysis.size_curve import choose_size
    from domain.problem import FragmentLimits, problem_of
    from domain.solution import Strategy

    step = _alignment(stages)
    known = min(message_bytes, max(-(-message_bytes // _MAX_FRAGMENTS), model.min_bytes))
    limits = FragmentLimits(min_fragment_bytes=known // step * step or 1, alignment_bytes=step)
    problem = problem_of(model.pipeline, message_bytes, limits)
    if (choice := choose_size(problem, None, current_bytes=None)) is not None:
        return choice.recommended.size_bytes
    return max(solvers.solve(problem, Strategy.REPEAT).schedule.fragment_bytes)


def _sizes(
    message_bytes: int, stages: Sequence[str], further: Sequence[int | None]
) -> tuple[int, ...]:
    """Return the sizes of the sweep, and those that are asked for. Raises InvalidInput."""
    step = _alignment(stages)
    swept = {-(-message_bytes // count) for count in _COUNTS}
    found = {-(-size // step) * step for size in swept} | {size for size in further if size}
    wrong = next((size for size in (message_bytes, *found) if size % step), None)
    if wrong is not None:
        raise InvalidInput(
            f"direct transfers are of multiples of {_PAGE} bytes, got {wrong}", field="bytes"
        )
    return tuple(sorted(size for size in found if size <= message_bytes))


def _kept(revision: Revision | None, found: _Verified, settings: Settings) -> _Verified:
    """Keep the verdict with the revision where there is one, and return it with its date."""
    if revision is None:
        return found
    with opened_store(settings) as store, store.unit_of_work() as unit:
        kept = unit.profiles.verify(revision.profile, revision.number, found.verification)
    return replace(found, verification=kept.verification or found.verification)


# --- tune -----------------------------------------------------------------------------------------

_MEASURING, _VERIFYING = 0.45, 0.4  # of the time; the rest is for fits and starts
_HALVINGS = 9  # of the message: the sizes that are measured
_OF_MEMORY, _OF_GPU = frozenset({"memcpy", "crc32"}), frozenset({"h2d", "d2h"})


def tune(arguments: argparse.Namespace, output: Output) -> int:
    """Measure, compose, fit, verify, and print what to set. Files are kept as they are measured."""
    try:
        return _tune(arguments, output)
    except KeyboardInterrupt:
        output.note(f"interrupted; what was measured is in {printable(arguments.folder)}")
        return INTERRUPTED


def _tune(arguments: argparse.Namespace, output: Output) -> int:
    from app.questions.question import check_save_as
    from exports.targets.registry import target_named

    settings, started_s = Settings.from_environment(), time.monotonic()
    stages = tuple(arguments.stages or PATHS[arguments.place])
    check_save_as(arguments.save_as)
    if arguments.target is not None:
        target_named(arguments.target)  # before anything is measured
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise InvalidInput("expected a folder that exists, for the measurements", field="folder")
    message_bytes = _message_bytes(arguments)
    files = list[tuple[str, str]]()
    for number, stage in enumerate(stages, start=1):
        output.note(f"measuring {printable(stage)}, {number} of {len(stages)}")
        file = str(folder / f"{number}-{as_file_name(stage)}.csv")
        if not _measured(stage, file, message_bytes, stages, arguments, output):
            raise KeyboardInterrupt
        files.append((f"{number} {stage}" if stages.count(stage) > 1 else stage, file))
    profile = fit_stages(files, save_as=arguments.save_as, settings=settings, output=output)
    with opened_store(settings) as store, store.reading() as unit:
        smallest = smallest_measured(unit, profile.current)
    model = _Model(_pipeline(profile.current.model), profile.current, stages, smallest)
    output.note(f"saved as {profile.name}@{profile.current.number}; transferring")
    verify_with = argparse.Namespace(
        **{
            **vars(arguments),
            "bytes": message_bytes,
            "current": arguments.current or "whole",
            "time_limit": arguments.time_limit * _VERIFYING,
            "output": str(folder / "transfers.csv"),
        }
    )
    found = _transferred(model, verify_with, output)
    found = _kept(model.revision, found, settings)
    advised_bytes = _show_tuned(found, profile.current, output)
    output.note(f"{time.monotonic() - started_s:.0f} s in all")
    if found.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    verdict = found.verification.verdict
    if arguments.target is not None and verdict not in _EXIT and advised_bytes is not None:
        from app.console.table import write_configuration

        write_configuration(arguments, message_bytes, advised_bytes, smallest, output)
    return _EXIT.get(verdict, 0)


def _measured(
    stage: str,
    file: str,
    message_bytes: int,
    among: Sequence[str],
    arguments: argparse.Namespace,
    output: Output,
) -> bool:
    """Measure a stage of several into its file; false where Ctrl-C ended it.

    A copy of what a GPU has written, or is going to read, finds nothing in the processor's caches.
    """
    from measuring.probe import program

    step = _alignment((stage,))
    sizes = {max(1, message_bytes >> power) for power in range(_HALVINGS + 1)}
    asked = argparse.Namespace(
        **{
            **vars(arguments),
            "name": stage,
            "bytes": sorted({-(-size // step) * step for size in sizes}),
            "time_limit": arguments.time_limit * _MEASURING / len(among),
            "cold": stage in _OF_MEMORY and not _OF_GPU.isdisjoint(among),
            "host": None,
        }
    )
    is_complete, text = measure_stage(program(), asked, file, output)
    write_whole(file, text.encode(), field="folder", noun="the measurements")
    return is_complete


def _best(found: _Verified) -> tuple[VerifiedSize, bool]:
    """Return the model's best size where it was verified, else one measured as fast; and which."""
    recommended = found.verification.of_size(found.recommended_bytes)
    if recommended is not None and found.verification.verdict not in _EXIT:
        return recommended, True
    return found.verification.roundest_of_fast(found.current_bytes), False


def _show_tuned(found: _Verified, revision: Revision, output: Output) -> int | None:
    """Print what to set and what it rests on; return the size to set, None where none is."""
    from app.schemas.base import ProfileRevisionOut, dump_json
    from app.schemas.profiles import TunedOut, VerificationOut, VerifiedSizeOut

    best, is_of_model = _best(found)
    before = found.verification.of_size(found.current_bytes)
    if before is None and found.is_interrupted:
        raise KeyboardInterrupt
    if before is None:
        raise NotMeasurable("the size in use was not transferred often enough: give more time")
    chosen = best if best.gain_over(before)[0] > 0.0 else before
    advised_bytes = None if chosen is before else chosen.fragment_bytes
    verification = VerificationOut.of(found.verification)
    if output.wants_json:
        tuned = TunedOut(
            set_bytes=chosen.fragment_bytes,
            is_of_model=is_of_model,
            profile=ProfileRevisionOut(revision.profile, revision.number),
            before=VerifiedSizeOut.of(before),
            after=VerifiedSizeOut.of(chosen),
            verification=verification,
        )
        output.document(dump_json(tuned))
        return advised_bytes
    rows = (("before", _with_times(before)), ("best", _with_times(best)))
    output.parts(
        [
            *verification_parts(verification),
            "",
            advice_of(before, best, is_of_model=is_of_model),
            "",
            Facts(rows),
        ]
    )
    return advised_bytes


def advice_of(before: VerifiedSize, best: VerifiedSize, *, is_of_model: bool) -> str:
    """Say what to set, or to keep where the intervals of the medians show no gain."""
    kept, size = format_bytes(before.fragment_bytes), format_bytes(best.fragment_bytes)
    if best.fragment_bytes == before.fragment_bytes:
        return f"Keep {kept}: no other size was measured faster."
    low, high = map(format_percent, best.gain_over(before))
    if best.gain_over(before)[0] <= 0.0:
        return (
            f"Keep {kept}: {size} is faster by between {low} and {high}, which is no certain gain."
        )
    why = "" if is_of_model else ", among the best of those that were transferred"
    return f"Set {size}{why}: faster by between {low} and {high}, as measured."


# --- what is printed ------------------------------------------------------------------------------


def _show(found: _Verified, output: Output) -> None:
    from app.schemas.base import dump_json
    from app.schemas.profiles import VerificationOut

    shown = VerificationOut.of(found.verification)
    if output.wants_json:
        output.document(dump_json(shown))
        return
    output.parts([*verification_parts(shown), "", Facts(tuple(_comparison(found)))])


def _comparison(found: _Verified) -> Iterator[tuple[str, str]]:
    """Yield the sizes that matter, with what was measured of each."""
    best = found.verification.best_measured
    named = (("recommended", found.recommended_bytes), ("current", found.current_bytes))
    for name, size in named:
        one = found.verification.of_size(size)
        if one is not None:
            more = one.measured_us / best.measured_us - 1.0
            yield name, f"{_with_times(one)}; {more:.1%} over the best measured"
    yield "best measured", _with_times(best)


def _with_times(size: VerifiedSize) -> str:
    predicted, measured = format_time(size.predicted_us), format_time(size.measured_us)
    return f"{format_bytes(size.fragment_bytes)}: measured {measured}, predicted {predicted}"


def verification_parts(found: VerificationOut) -> Iterator[Part]:
    """Yield a verdict, what it rests on, and the further reasons that the times speak for."""
    yield capitalised(printable(found.detail)) + "."
    yield ""
    names = ("fragments of", "predicted", "measured", "95 % interval", "ratio", "runs")
    rows = tuple(
        (
            f"{format_bytes(size.fragment_bytes)} ({size.fragments})",
            format_time(size.predicted_us),
            format_time(size.measured_us),
            " to ".join(map(format_time, size.measured_us_interval)),
            f"{size.ratio:.3f}",
            str(size.runs),
        )
        for size in found.sizes
    )
    yield Grid(tuple(map(Column, names)), rows)
    for reason in found.reasons[1:]:
        yield f"also: {printable(reason.detail)}"
