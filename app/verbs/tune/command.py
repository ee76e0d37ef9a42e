"""sluice tune: from nothing to a setting that was verified.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words
from contract.compose import ComposeIn
from contract.declare import words_of
from contract.export import ExportIn
from domain.errors import InconsistentInput, Infeasible
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.console.probe_race import Raced
    from app.settings import Settings
    from app.ui.terminal import Output
    from domain.profile import Revision

# Ways that are known by name: stages, as the probe has them. TCP over a link into a synced file.
PATHS = {"tcp-to-file": ("tcp", "write-sync")}
WRITTEN = words_of(ExportIn, ("option",))
STORED = tuple(
    replace(word, help="store the stages (tuned)") for word in words_of(ComposeIn, ("save_as",))
)


def add_arguments(command: Command) -> None:
    """Add the way that is tuned, how it is measured, and what is written."""
    from app.console.transfer_arguments import add_transfers

    command.argument(
        "place",
        is_optional=True,
        choices=list(PATHS),
        rest="tcp-to-file",
        metavar="PATH",
        help="tcp-to-file (default): TCP over a link into a synced file; or name each --stage",
    )
    add_transfers(command, 80.0)
    command.option("--target", metavar="NAME", help="print it for this library, as export has")
    add_words(command, (*WRITTEN, *STORED), rests={"--save-as": "tuned"})
    command.option(
        "--folder", rest=".", metavar="FOLDER", help="of the measurements (default here)"
    )


def run(arguments: Arguments, output: Output) -> int:
    """Measure, compose, fit, verify, and print what to set. Files are kept as they are measured."""
    from app.console.running import ended_by_signals
    from app.errors import INTERRUPTED
    from app.text.units import printable

    with ended_by_signals():
        try:
            return _run(arguments, output)
        except KeyboardInterrupt:
            output.note(f"interrupted; what was measured is in {printable(arguments.folder)}")
            return INTERRUPTED


def _run(arguments: Arguments, output: Output) -> int:
    import time
    from pathlib import Path

    from app.console.commands import opened_store
    from app.console.fit import fit_stages
    from app.console.probe_race import race_probe
    from app.console.stage_samples import as_file_name
    from app.console.transfers import Model, message_bytes_of, pipeline_of
    from app.console.verdicts import EXIT_CODES, STOPPED
    from app.errors import INTERRUPTED
    from app.questions.profiles import smallest_measured
    from app.settings import Settings
    from app.text.units import printable
    from app.verbs.tune import operation

    settings, started_s = Settings.from_environment(), time.monotonic()
    stages = tuple(arguments.stages or PATHS[arguments.place])
    message_bytes = message_bytes_of(arguments)
    folder = Path(arguments.folder)
    names = [
        str(folder / f"{number}-{as_file_name(stage)}.csv")
        for number, stage in enumerate(stages, start=1)
    ]
    _check_target(arguments)
    operation.check_tune(stages, message_bytes, names, arguments, settings)
    files = list[tuple[str, str]]()
    for number, (stage, file) in enumerate(zip(stages, names, strict=True), start=1):
        output.note(f"measuring {printable(stage)}, {number} of {len(stages)}")
        if not operation.measured(stage, file, message_bytes, stages, arguments, output):
            raise KeyboardInterrupt
        files.append((f"{number} {stage}" if stages.count(stage) > 1 else stage, file))
    profile = fit_stages(files, save_as=arguments.save_as, settings=settings, output=output)
    with opened_store(settings) as store, store.reading() as unit:
        smallest = smallest_measured(unit, profile.current)
    model = Model(pipeline_of(profile.current.model), profile.current, stages, smallest)
    output.note(f"saved as {profile.name}@{profile.current.number}; transferring")
    raced = race_probe(model, message_bytes, arguments, output)
    raced = _kept(raced, profile.current, settings)
    _show(raced, profile.current, output)
    output.note(f"{time.monotonic() - started_s:.0f} s in all")
    if raced.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    code = EXIT_CODES.get(raced.verification.verdict, 0)
    if arguments.target is not None and not code and raced.set_bytes is not None:
        write_configuration(arguments, message_bytes, raced.set_bytes, smallest, output)
    return code or (0 if raced.is_decided else STOPPED)


def _kept(raced: Raced, revision: Revision, settings: Settings) -> Raced:
    """Keep the verdict on the model with its revision, and return it with its date."""
    from app.console.verdicts import kept_with

    verification, _ = kept_with(revision, raced.verification, settings)
    return replace(raced, verification=verification)


def _show(raced: Raced, revision: Revision, output: Output) -> None:
    from app.schemas.base import dump_json
    from app.verbs.tune.answer import tuned_out
    from app.verbs.tune.show import parts

    found = tuned_out(raced, revision)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found))


def _check_target(arguments: Arguments) -> None:
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
    arguments: Arguments, message_bytes: int, advised: int, smallest: int, output: Output
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


def _words_of_export(arguments: Arguments) -> list[str]:
    """The words by which `sluice export` writes what is stored for the target."""
    given = (option.partition(":") for option in arguments.option or ())
    options = [word for name, _, value in given for word in ("--option", f"{name}={value}")]
    return ["export", arguments.save_as, "--target", arguments.target, *options]
