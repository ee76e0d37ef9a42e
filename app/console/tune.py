"""sluice tune: from nothing to a setting that was verified.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from app.console.argument_parts import PATHS
from app.console.commands import opened_store
from app.console.files import check_target, write_whole
from app.console.fit import fit_stages
from app.console.measurable import check_profile
from app.console.measure import INTERRUPTED, as_file_name, check_stage, measure_stage
from app.console.screen import Facts, Output
from app.console.transfers import (
    TRANSFERS_FILE,
    Model,
    Verified,
    alignment_of,
    check_transfers,
    current_of,
    message_bytes_of,
    started,
    transferred,
)
from app.console.verify import EXIT_CODES, kept_with, pipeline_of, verification_parts, with_times
from app.questions.profiles import smallest_measured
from app.settings import Settings
from app.text.numbers import format_percent
from app.text.units import printable
from domain.errors import InconsistentInput, Infeasible, InvalidInput, NotMeasurable
from domain.profile import Revision
from domain.units import format_bytes
from domain.verification import VerifiedSize

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
    settings, started_s = Settings.from_environment(), time.monotonic()
    stages = tuple(arguments.stages or PATHS[arguments.place])
    message_bytes = message_bytes_of(arguments)
    folder = Path(arguments.folder)
    names = [
        str(folder / f"{number}-{as_file_name(stage)}.csv")
        for number, stage in enumerate(stages, start=1)
    ]
    _check_tune(stages, message_bytes, names, arguments, settings)
    files = list[tuple[str, str]]()
    for number, (stage, file) in enumerate(zip(stages, names, strict=True), start=1):
        output.note(f"measuring {printable(stage)}, {number} of {len(stages)}")
        if not _measured(stage, file, message_bytes, stages, arguments, output):
            raise KeyboardInterrupt
        files.append((f"{number} {stage}" if stages.count(stage) > 1 else stage, file))
    profile = fit_stages(files, save_as=arguments.save_as, settings=settings, output=output)
    with opened_store(settings) as store, store.reading() as unit:
        smallest = smallest_measured(unit, profile.current)
    model = Model(pipeline_of(profile.current.model), profile.current, stages, smallest)
    output.note(f"saved as {profile.name}@{profile.current.number}; transferring")
    verify_with = argparse.Namespace(
        **{
            **vars(arguments),
            "bytes": message_bytes,
            "current": arguments.current or "whole",
            "time_limit": arguments.time_limit * _VERIFYING,
            "output": str(folder / TRANSFERS_FILE),
        }
    )
    found = transferred(model, verify_with, output)
    found = kept_with(model.revision, found, settings)
    advised_bytes = _show_tuned(found, profile.current, output)
    output.note(f"{time.monotonic() - started_s:.0f} s in all")
    if found.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    verdict = found.verification.verdict
    if arguments.target is not None and verdict not in EXIT_CODES and advised_bytes is not None:
        write_configuration(arguments, message_bytes, advised_bytes, smallest, output)
    return EXIT_CODES.get(verdict, 0)


def _check_tune(
    stages: Sequence[str],
    message_bytes: int,
    files: Sequence[str],
    arguments: argparse.Namespace,
    settings: Settings,
) -> None:
    """Check all that would be refused once stages were measured, and last that the transfers'
    probe starts. Raises InvalidInput, InconsistentInput, NotMeasurable, and what opening the
    database does.
    """
    _check_target(arguments)
    check_transfers(stages, message_bytes, current_of(arguments.current, message_bytes), arguments)
    for stage in stages:
        asked = _stage_of(stage, message_bytes, stages, arguments)
        if len(asked.bytes) < 2:
            raise InvalidInput(
                f"expected a longer message: {stage} is measured at its halves, and "
                f"{format_bytes(message_bytes)} has none",
                field="bytes",
            )
        check_stage(asked, asked.bytes)
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise InvalidInput("expected a folder that exists, for the measurements", field="folder")
    for file in (*files, str(folder / TRANSFERS_FILE)):
        check_target(file, field="folder", noun="the measurements", example="1-tcp.csv")
    check_profile(arguments.save_as, settings)
    with started(stages, message_bytes, arguments):
        pass


def _check_target(arguments: argparse.Namespace) -> None:
    """Check that what is tuned can be written for the target, whose options these are."""
    from app.console.arguments import parse
    from app.console.table import export_scope
    from exports.targets.registry import target_named
    from exports.targets.target import Takes

    if arguments.target is None:
        if arguments.option:
            raise InconsistentInput("expected the --target whose option it is", field="option")
        return
    target = target_named(arguments.target)
    if target.takes is Takes.TABLE:
        raise InconsistentInput(
            f"expected a target of sizes or costs: {target.name} takes a compiled table",
            field="target",
        )
    export_scope(parse(_words_of_export(arguments)))


def write_configuration(
    arguments: argparse.Namespace, message_bytes: int, advised: int, smallest: int, output: Output
) -> None:
    """Print the size that was measured, or where the library takes none such, the model's choice
    with a note, in the library's words.
    """
    from app.console.arguments import parse
    from app.console.table import export

    message, size = str(message_bytes), str(advised)
    words = _words_of_export(arguments)
    words += ["--min-message", message, "--max-message", message]
    alone = ["--alignment-bytes", size, "--max-fragment-bytes", size]  # no other multiple is in it
    try:
        export(parse([*words, *alone]), output)
    except (Infeasible, InconsistentInput):
        shown = format_bytes(advised)
        output.note(f"{arguments.target} takes no {shown}: this is what the model chooses for it")
        minimum = str(min(smallest, message_bytes))
        export(parse([*words, "--min-fragment-bytes", minimum]), output)


def _words_of_export(arguments: argparse.Namespace) -> list[str]:
    """The words by which `sluice export` writes what is stored for the target."""
    options = [word for option in arguments.option for word in ("--option", option)]
    return ["export", arguments.save_as, "--target", arguments.target, *options]


def _measured(
    stage: str,
    file: str,
    message_bytes: int,
    among: Sequence[str],
    arguments: argparse.Namespace,
    output: Output,
) -> bool:
    """Measure a stage of several into its file; false where Ctrl-C ended it."""
    from measuring.probe import program

    asked = _stage_of(stage, message_bytes, among, arguments)
    is_complete, text = measure_stage(program(), asked, file, output)
    write_whole(file, text.encode(), field="folder", noun="the measurements")
    return is_complete


def _stage_of(
    stage: str, message_bytes: int, among: Sequence[str], arguments: argparse.Namespace
) -> argparse.Namespace:
    """Return the options by which `sluice measure` measures a stage of several.

    A copy of what a GPU has written, or is going to read, finds nothing in the processor's caches.
    """
    step = alignment_of((stage,))
    sizes = {max(1, message_bytes >> power) for power in range(_HALVINGS + 1)}
    return argparse.Namespace(
        **{
            **vars(arguments),
            "name": stage,
            "bytes": sorted({-(-size // step) * step for size in sizes}),
            "time_limit": arguments.time_limit * _MEASURING / len(among),
            "cold": stage in _OF_MEMORY and not _OF_GPU.isdisjoint(among),
            "host": None,
        }
    )


def _best(found: Verified) -> tuple[VerifiedSize, bool]:
    """Return the model's best size where it was verified, else one measured as fast; and which."""
    recommended = found.verification.of_size(found.recommended_bytes)
    if recommended is not None and found.verification.verdict not in EXIT_CODES:
        return recommended, True
    return found.verification.roundest_of_fast(found.current_bytes), False


def _show_tuned(found: Verified, revision: Revision, output: Output) -> int | None:
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
    rows = (("before", with_times(before)), ("best", with_times(best)))
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
