"""The grammar of the commands that list and show stored answers."""

from __future__ import annotations

from app.console.argument_parts import (
    Root,
    add,
    add_above,
    add_count_and_owner,
    add_listed,
    add_owner,
    size,
)


def add_stored(commands: Root) -> None:
    """Add the commands that list and show stored answers."""
    verbs = add_listed(add_above(commands, "answers", "stored answers to optimize"))
    listing = add(verbs, "list", "list stored answers, the newest first")
    listing.add_argument("--profile", metavar="PROFILE", help="of name or name@revision alone")
    listing.add_argument("--bytes", type=size, metavar="SIZE", help="of this message alone")
    add_count_and_owner(listing)
    show = add(verbs, "show", "show a stored answer as it was given")
    naming = add(verbs, "name", "give a stored answer a name and a note")
    for parser in (show, naming):
        parser.add_argument("id", metavar="ID", help="of the answer")
        add_owner(parser)
    naming.add_argument("name", metavar="NAME", nargs="?", help='of one line; "" for none')
    naming.add_argument("--note", metavar="TEXT", help='about it; "" for none')
