"""sluice verify: real transfers over the stages of a model, beside what it predicts of them.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add the model, and which transfers to compare it with."""
    from app.console.transfer_arguments import add_transfers
    from app.ui.options import add_words
    from contract.declare import words_of
    from contract.verification import VerificationIn

    command.argument("source", metavar="SOURCE", help="profile or file")
    add_transfers(command, 30.0)
    add_words(command, words_of(VerificationIn))
    command.option("--output", metavar="FILE", help="for every transfer (transfers.csv)")


def run(arguments: Arguments, output: Output) -> int:
    """Transfer, compare, keep the verdict with the profile, and print it."""
    from app.console.running import ended_by_signals

    with ended_by_signals():
        return _run(arguments, output)


def _run(arguments: Arguments, output: Output) -> int:
    from app.console.verdicts import EXIT_CODES, kept_with
    from app.errors import INTERRUPTED
    from app.schemas.base import dump_json
    from app.schemas.verification import verification_out
    from app.settings import Settings
    from app.verbs.verify.operation import model_of, recorded, transferred
    from app.verbs.verify.show import parts

    settings = Settings.from_environment()
    model = model_of(arguments.source, settings, output)
    if arguments.transfers is not None:
        found = recorded(model, arguments)
    else:
        found = transferred(model, arguments, output)
    verification, contradicted = kept_with(model.revision, found.verification, settings)
    if contradicted:
        output.note(contradicted)
    if output.wants_json:
        output.document(dump_json(verification_out(verification)))
    else:
        output.parts(parts(verification, found.recommended_bytes, found.current_bytes))
    if model.revision is not None:
        output.note(f"kept with {model.revision.profile}@{model.revision.number}")
    if found.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    return EXIT_CODES.get(verification.verdict, 0)
