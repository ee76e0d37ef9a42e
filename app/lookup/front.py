"""In front of the framework: look-ups that memory answers, and nothing else.

The front answers what it understands in every byte, with what the framework's own routes would
say; whatever is odd about a request, or not in memory, it leaves to them. For the event loop's
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from app.lookup.answers import Ready
from app.lookup.forms import TableFormat, accepted, active_form, immutable_form
from app.lookup.held import HeldTable
from app.lookup.shelf import Shelf
from models.records import ActiveTable

Scope: TypeAlias = MutableMapping[str, Any]
_Key: TypeAlias = tuple[str, bytes]  # path and query

_PROFILES, _TABLES, _SCHEDULE, _ACTIVE = "/profiles/", "/tables/", "/schedule", "/table"
_BYTES = b"bytes="
_AFTER_PROFILES, _AFTER_BYTES = len(_PROFILES), len(_BYTES)
_MOST_DIGITS = 19  # what the framework's rule for numbers takes as well
_GENERATION = 2048  # rendered answers in each of two generations
_MOST_KEPT_BYTES = 4096  # of an answer that is kept


class Rendered:
    """Answers that were rendered already: the last few thousand, of those asked for again.

    Two generations: when the young one is full it becomes the old one, and the old one goes.
    """

    def __init__(self) -> None:
        self._young: dict[_Key, Ready] = {}
        self._old: dict[_Key, Ready] = {}

    def get(self, key: _Key) -> Ready | None:
        """The answer under this path and query."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, served: Ready) -> None:
        """Keep an answer that is not long."""
        if len(served.body) > _MOST_KEPT_BYTES:
            return
        if len(self._young) >= _GENERATION:
            self._old, self._young = self._young, {}
        self._young[key] = served


@dataclass(frozen=True, slots=True)
class Choices:
    """Which table each reference answers from; its mapping never changes."""

    digests: Mapping[str, str] = field(default_factory=dict)
    rendered: Rendered = field(default_factory=Rendered, compare=False)

    @classmethod
    def of(cls, active: Iterable[ActiveTable]) -> Choices:
        """The digests by "name", where the current revision has one, and by "name@revision"."""
        digests: dict[str, str] = {}
        for one in active:
            digests[f"{one.profile_name}@{one.revision}"] = one.digest
            if one.revision == one.current_revision:
                digests[one.profile_name] = one.digest
        return cls(digests)

    def since(self, earlier: Choices) -> list[str]:
        """The digests that were not chosen earlier, those of current revisions first."""
        known, names = set(earlier.digests.values()), sorted(self.digests, key=_is_pinned)
        return [
            one for one in dict.fromkeys(self.digests[name] for name in names) if one not in known
        ]


class Front:
    """Answers from `choices`, which are exchanged as a whole, and from the tables on `shelf`."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.choices = Choices()

    def answer(self, scope: Scope) -> Ready | None:
        """The answer to this request, or None where the framework is to give it."""
        if scope["method"] != "GET":
            return None
        path: str = scope["path"]
        if path.startswith(_PROFILES):
            return self._of_profile(scope, path)
        if path.startswith(_TABLES):
            return self._stored(scope, path[len(_TABLES) :])
        return None

    def _of_profile(self, scope: Scope, path: str) -> Ready | None:
        choices, query = self.choices, scope["query_string"]
        wanted = ""
        for name, value in scope["headers"]:
            if name == b"if-none-match":  # the first, as the framework takes it
                wanted = value.decode("latin-1")
                break
        if path.endswith(_SCHEDULE):
            key = path, query
            served = None if wanted else choices.rendered.get(key)
            if served is None:
                served = self._schedule(choices, path, query, wanted)
                if served is not None and served.status == 200:
                    choices.rendered.put(key, served)
            return served
        if path.endswith(_ACTIVE) and _wants_file(scope):
            table = self._chosen(choices, path[_AFTER_PROFILES : -len(_ACTIVE)])
            if table is not None:
                return active_form(wanted, table.digest, TableFormat.SLT, table.file)
        return None

    def _schedule(self, choices: Choices, path: str, query: bytes, wanted: str) -> Ready | None:
        digits = query[_AFTER_BYTES:]
        if not (query.startswith(_BYTES) and digits.isdigit() and len(digits) <= _MOST_DIGITS):
            return None
        table = self._chosen(choices, path[_AFTER_PROFILES : -len(_SCHEDULE)])
        message_bytes = int(digits)
        if table is None or not table.least_bytes <= message_bytes <= table.greatest_bytes:
            return None
        return table.short_schedule(wanted, message_bytes)

    def _chosen(self, choices: Choices, reference: str) -> HeldTable | None:
        digest = choices.digests.get(reference)
        return None if digest is None else self.shelf.get(digest)

    def _stored(self, scope: Scope, digest: str) -> Ready | None:
        if not _wants_file(scope):
            return None
        table = self.shelf.get(digest)
        if table is None:
            return None
        wanted = _if_none_match(scope)
        return immutable_form(wanted, digest, TableFormat.SLT, table.file)


def _is_pinned(reference: str) -> bool:
    return "@" in reference


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
