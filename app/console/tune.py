"""sluice tune: from nothing to a setting that was verified.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.console.argument_parts import PATHS
from app.console.commands import opened_store
from app.console.files import check_target, write_whole
from app.console.fit import fit_stages
from app.console.measurable import check_profile
from app.console.measure import INTERRUPTED, as_file_name, check_stage, measure_stage
from app.console.probe_race import Raced, race_probe
from app.console.transfers import (
    TRANSFERS_FILE,
    Model,
    Verified,
    alignment_of,
    check_transfers,
    current_of,
    message_bytes_of,
    started,
)
from app.console.verify import EXIT_CODES, STOPPED, kept_with, pipeline_of, verification_parts
from app.questions.profiles import smallest_measured
from app.settings import Settings
from app.text.units import printable
from app.ui.terminal import Output
from domain.errors import InconsistentInput, Infeasible, InvalidInput
from domain.profile import Revision
from domain.units import format_bytes

_MEASURING = 0.45  # of the time; the race has its own, and the rest is for fits and starts
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
    raced = race_probe(model, message_bytes, arguments, output)
    raced = _kept(raced, model.revision, settings)
    _show_tuned(raced, profile.current, output)
    output.note(f"{time.monotonic() - started_s:.0f} s in all")
    if raced.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    code = EXIT_CODES.get(raced.verification.verdict, 0)
    if arguments.target is not None and not code and raced.set_bytes is not None:
        write_configuration(arguments, message_bytes, raced.set_bytes, smallest, output)
    return code or (0 if raced.is_decided else STOPPED)


def _kept(raced: Raced, revision: Revision | None, settings: Settings) -> Raced:
    """Keep the verdict on the model with its revision, and return it with its date."""
    current = raced.decided.decision.current_bytes
    verified = Verified(raced.verification, raced.recommended_bytes, current, raced.is_interrupted)
    return replace(raced, verification=kept_with(revision, verified, settings).verification)


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
    from app.registry import VERBS
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
    VERBS["export"].module("command").scope_of(parse(_words_of_export(arguments)))


def write_configuration(
    arguments: argparse.Namespace, message_bytes: int, advised: int, smallest: int, output: Output
) -> None:
    """Print the size that was measured, or where the library takes none such, the model's choice
    with a note, in the library's words.
    """
    from app.console.arguments import parse
    from app.registry import VERBS

    export = VERBS["export"].module("command").run
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


def _show_tuned(raced: Raced, revision: Revision, output: Output) -> None:
    """Print what to set, and how the model is beside what was transferred."""
    from app.schemas.base import dump_json
    from app.schemas.transfers import transfers_out
    from app.schemas.verification import verification_out
    from contract.profile import ProfileRevisionOut
    from contract.tune import TunedOut

    verification = verification_out(raced.verification)
    if not output.wants_json:
        output.parts([raced.decided.decision.sentence(), "", *verification_parts(verification)])
        return
    transfers = transfers_out(raced.decided)
    tuned = TunedOut(
        set_bytes=transfers.set_this.size_bytes,
        is_of_model=transfers.set_this.size_bytes == raced.recommended_bytes,
        profile=ProfileRevisionOut(revision.profile, revision.number),
        transfers=transfers,
        verification=verification,
    )
    output.document(dump_json(tuned))
