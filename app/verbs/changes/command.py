"""sluice changes: who changed what, in the database itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.console.argument_parts import add_owner
from app.text.units import parse_whole
from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add whose changes are shown, of what, and how many."""
    command.argument(
        "subject",
        metavar="SUBJECT",
        is_optional=True,
        help="a profile, or the identifier of what changed",
    )
    command.option("--limit", read=parse_whole, metavar="COUNT", rest=50, help="so many (50)")
    add_owner(command)


def run(arguments: Arguments, output: Output) -> int:
    """Show who changed what."""
    from app.console.stored import emit, limit_of, owned_store
    from app.questions.changes import list_changes
    from app.verbs.changes.answer import changes_out
    from app.verbs.changes.show import parts

    limit = limit_of(arguments)
    with owned_store(arguments) as store:
        found = changes_out(list_changes(store, subject=arguments.subject, limit=limit))
    emit(found, output, parts(found))
    return 0
