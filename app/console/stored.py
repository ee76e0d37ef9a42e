"""What commands about stored things do alike: open an owner's store, and print what they found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.console.commands import opened_store
from app.settings import Settings
from app.ui.grammar import Arguments
from app.ui.parts import Part
from app.ui.terminal import Output
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from contract.declare import Output as Document
    from models.session import Store

MAX_LISTED = 1000


@contextmanager
def owned_store(arguments: Arguments) -> Iterator[Store]:
    """Return what is stored of the owner who is named."""
    from app.questions.keys import check_owner

    owner = check_owner(arguments.owner)
    with opened_store(Settings.from_environment()) as store:
        yield store.of(owner)


def limit_of(arguments: Arguments) -> int:
    """Return how many are listed. Raises InvalidInput unless it is 1 to 1000."""
    if not 1 <= arguments.limit <= MAX_LISTED:
        raise InvalidInput(f"expected 1 <= limit <= {MAX_LISTED}", field="limit")
    return int(arguments.limit)


def emit(found: Document, output: Output, parts: Iterable[Part]) -> None:
    """Print what was found as JSON if that is wanted, and else what a person reads."""
    from app.schemas.base import dump_json

    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts)


def say_rows(output: Output, counts: Mapping[str, int], done: str) -> int:
    """Print how many rows of each table were saved or restored."""
    if output.wants_json:
        output.document(json.dumps({"rows": counts}).encode())
    else:
        rows = ", ".join(f"{number} of {name}" for name, number in counts.items() if number)
        output.parts([f"{done} {sum(counts.values())} rows: {rows or 'none'}"])
    return 0
