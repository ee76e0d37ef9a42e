"""sluice changes: who changed what, in the database itself."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from app.console.argument_parts import Parser, add_owner, whole

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(parser: Parser) -> None:
    """Add whose changes are shown, of what, and how many."""
    parser.add_argument(
        "subject", metavar="SUBJECT", nargs="?", help="a profile, or the identifier of what changed"
    )
    parser.add_argument("--limit", type=whole, metavar="COUNT", default=50, help="so many (50)")
    add_owner(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
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
