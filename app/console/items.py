"""Items of a file, and how a program fills fragments, as options say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.settings import Settings


def items_of(
    arguments: Arguments, settings: Settings, *, with_errors: bool = False
) -> dict[str, Any]:
    """Return what --items, --fill and --first-bytes say, as a request has it; nothing where they
    say nothing; `with_errors` how much several calculations in the file differ. Raises NotFound,
    and InvalidInput for a file that holds no items.
    """
    from app.console.files import read_trace
    from domain.item_table import read_item_table

    found: dict[str, Any] = {}
    if arguments.items is not None:
        raw = read_trace(arguments.items, settings)
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInput("expected a table as text in UTF-8", field="items") from None
        table = read_item_table(text)
        found["items"] = table.items
        if with_errors and table.ready_relative is not None:
            found["uncertainty"] = {"ready_relative": table.ready_relative}
    fill = {"rule": arguments.fill, "first_bytes": arguments.first_bytes}
    said = {name: value for name, value in fill.items() if value is not None}
    if said:
        found["fill"] = {"rule": "until", **said}
    return found


def with_items(body: dict[str, Any], arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return a request with the items of options, in the place of the message of a file. Raises as
    `items_of` does.
    """
    found = items_of(arguments, settings)
    if "items" in found and arguments.message_bytes is None:
        body = {name: value for name, value in body.items() if name != "message_bytes"}
    return body | found
