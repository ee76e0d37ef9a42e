"""In front of the framework: look-ups that memory answers, and nothing else.

The front answers what it understands in every byte, with what the framework's own routes would
say; whatever is odd about a request, or not in memory, it leaves to them. For the event loop's
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

from app.lookup.answers import Served
from app.lookup.forms import TableFormat, accepted, active_form, immutable_form
from app.lookup.rendered import Key, Rendered
from app.lookup.shelf import Shelf
from models.records import ActiveTable

Scope: TypeAlias = MutableMapping[str, Any]

_TABLES = "/tables/"
_BYTES = b"bytes="
_AFTER_TABLES, _AFTER_BYTES = len(_TABLES), len(_BYTES)
_MOST_DIGITS = 19  # what the framework's rule for numbers takes as well


class Choices:
    """Which table each reference answers from; its mapping never changes.

    `schedules` and `tables` are the same by path; `rendered` is what was answered from them.
    """

    def __init__(self, active: Iterable[ActiveTable] = ()) -> None:
        self.digests: Mapping[str, str] = _by_reference(active)
        self.rendered = Rendered()
        self.schedules = {
            f"/profiles/{reference}/schedule": digest for reference, digest in self.digests.items()
        }
        self.tables = {
            f"/profiles/{reference}/table": digest for reference, digest in self.digests.items()
        }

    def since(self, earlier: Choices) -> list[str]:
        """The digests that were not chosen earlier, those of current revisions first."""
        known = set(earlier.digests.values())
        ordered = (self.digests[one] for one in sorted(self.digests, key=lambda one: "@" in one))
        return [digest for digest in dict.fromkeys(ordered) if digest not in known]


def _by_reference(active: Iterable[ActiveTable]) -> dict[str, str]:
    """By "name", where the current revision has a table, and by "name@revision"."""
    digests: dict[str, str] = {}
    for one in active:
        digests[f"{one.profile_name}@{one.revision}"] = one.digest
        if one.revision == one.current_revision:
            digests[one.profile_name] = one.digest
    return digests


class Front:
    """Answers from `choices`, which are exchanged as a whole, and from the tables on `shelf`."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.choices = Choices()

    def answer(self, scope: Scope) -> Served | None:
        """The answer to this request, or None where the framework is to give it."""
        if scope["method"] != "GET":
            return None
        choices, path = self.choices, scope["path"]
        key = path, scope["query_string"]
        served = choices.rendered.young.get(key)
        if served is not None and not _if_none_match(scope):
            return served
        digest = choices.schedules.get(path)
        if digest is not None:
            return self._schedule(scope, key, choices.rendered, digest)
        digest = choices.tables.get(path)
        if digest is not None:
            return self._active(scope, digest)
        return self._stored(scope, path) if path.startswith(_TABLES) else None

    def _schedule(self, scope: Scope, key: Key, rendered: Rendered, digest: str) -> Served | None:
        query = key[1]
        digits = query[_AFTER_BYTES:]
        if not (query.startswith(_BYTES) and digits.isdigit() and len(digits) <= _MOST_DIGITS):
            return None
        wanted = _if_none_match(scope)
        if not wanted and (served := rendered.older(key)) is not None:
            return served
        table = self.shelf.get(digest)
        message_bytes = int(digits)
        if table is None or not table.least_bytes <= message_bytes <= table.greatest_bytes:
            return None
        if wanted:
            ready = table.short_schedule(wanted, message_bytes)
            return None if ready is None else ready.served()
        served = table.short_served(message_bytes)
        if served is not None:
            rendered.see(key, served)
        return served

    def _active(self, scope: Scope, digest: str) -> Served | None:
        table = self.shelf.get(digest) if _wants_file(scope) else None
        if table is None:
            return None
        ready = active_form(_if_none_match(scope), digest, TableFormat.SLT, table.file)
        return ready.served()

    def _stored(self, scope: Scope, path: str) -> Served | None:
        digest = path[_AFTER_TABLES:]
        table = self.shelf.get(digest) if _wants_file(scope) else None
        if table is None:
            return None
        ready = immutable_form(_if_none_match(scope), digest, TableFormat.SLT, table.file)
        return ready.served()


def _if_none_match(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"if-none-match":  # the first, as the framework takes it
            text: str = value.decode("latin-1")
            return text
    return ""


def _wants_file(scope: Scope) -> bool:
    query = scope["query_string"]
    if query:
        return bool(query == b"format=slt")
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
    return bool(values) and accepted(values) is TableFormat.SLT
