"""In front of the framework: lookups that tables in memory answer, and nothing else.

The fast path answers what it understands in every byte, with what the framework's own routes would
send; whatever is odd about a request, or not in memory, it leaves to them. For the event loop's
thread.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from starlette.types import Scope

from app.http.fastpath.responses import (
    ACTIVE,
    BODIES,
    FEWER_BODIES,
    JSON_HEADER,
    NO_CACHE,
    SCHEDULE,
    SECURITY,
    STORED,
    AsgiResponse,
    CachedResponse,
    Kind,
    RenderedBodies,
    accepted,
    holds,
    table_form,
)
from app.schemas.queries import TableFormat
from app.schemas.schedule import FORM, ScheduleRenderer
from domain.solution import Notice
from domain.verification import said_of
from exports.table.lookup import TableReader, answer_by
from exports.table.lookup_native import open_reader
from models.records import OWNER, ActiveTable
from solvers import evaluator_of

BOOK_BYTES = 2**17  # what is held beside file and reader, about: buffers, the evaluator's numbers
_TAG_DIGITS = 16  # of the digest: 64 bits, and short, because servers look at every byte


class LoadedTable:
    """A table file by its digest, its reader and what its answers share. For one thread."""

    def __init__(self, digest: str, file: bytes, reader: TableReader) -> None:
        head = reader.head
        self.digest = digest
        self.file = file
        self.head = head
        self.min_message_bytes, self.max_message_bytes = (
            head.min_message_bytes,
            head.max_message_bytes,
        )
        self.memory_bytes = len(file) + reader.memory_bytes + BOOK_BYTES
        self._reader = reader
        self._evaluator = evaluator_of(head.pipeline)
        self._answer = reader.answerer(self._evaluator)
        self._renderer = ScheduleRenderer(
            digest,
            (head.profile, head.revision),
            head.limits,
            relative_gap=head.relative_gap,
            stages=len(head.pipeline),
        )

    @classmethod
    def of(cls, digest: str, file: bytes) -> LoadedTable:
        """Return a table out of its file. Raises InvalidTable."""
        return cls(digest, file, open_reader(file))

    def sibling(self) -> LoadedTable:
        """Return the same table for another thread."""
        return LoadedTable(self.digest, self.file, self._reader.sibling())

    def short_body(self, message_bytes: int, verified: Notice | None = None) -> bytes | None:
        """Return the JSON about a message in the range; None where it takes the event loop too
        long. `verified` is what transfers said of the model.
        """
        answer = self._answer(message_bytes)
        return None if answer is None else self._renderer.body(message_bytes, answer, verified)

    def schedule(
        self, wanted: str, message_bytes: int, verified: Notice | None = None
    ) -> CachedResponse:
        """Return the response to a lookup in the range; `wanted` is If-None-Match, `verified` what
        transfers said of the model.
        """
        tag = tag_of(self.digest, verified) % message_bytes
        if wanted and holds(wanted, tag.decode()):
            return unchanged(tag)
        body = self.short_body(message_bytes, verified)
        if body is None:
            answer = answer_by(self._reader, self._evaluator, message_bytes)
            assert answer is not None  # without a limit there is always one
            body = self._renderer.body(message_bytes, answer, verified)
        return found(tag, body)


def tag_of(digest: str, verified: Notice | None = None) -> bytes:
    """Return the ETag of a table's answers, with a place for the message.

    The digest says which file, the message which answer, the form how it is written; and where
    transfers said something of the model, a digest of that.
    """
    said = ""
    if verified is not None:
        said = "-" + hashlib.sha256(repr(verified).encode()).hexdigest()[:_TAG_DIGITS]
    return f'"{digest[:_TAG_DIGITS]}-%d-{FORM}{said}"'.encode()


def unchanged(tag: bytes) -> CachedResponse:
    """Return 304: the client holds the answer of this tag."""
    return CachedResponse(304, [(b"etag", tag), NO_CACHE], b"", SCHEDULE)


def found(tag: bytes, body: bytes) -> CachedResponse:
    """Return 200 with the answer of this tag."""
    length = b"content-length", b"%d" % len(body)
    return CachedResponse(200, [(b"etag", tag), NO_CACHE, length, JSON_HEADER], body, SCHEDULE)


# --- the cache: at most so many bytes, the least recently used table goes first -------------------


class TableCache:
    """Tables by owner and digest, the least recently used one first.

    Only `peek` is for any thread.
    """

    def __init__(self, room_bytes: int) -> None:
        self._room_bytes = room_bytes
        self._tables: OrderedDict[tuple[str, str], LoadedTable] = OrderedDict()
        self.loaded_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Room that no table takes."""
        return self._room_bytes - self.loaded_bytes

    def __len__(self) -> int:
        return len(self._tables)

    def peek(self, digest: str, owner: str = OWNER) -> LoadedTable | None:
        """Return the owner's table of this digest, without using it."""
        return self._tables.get((owner, digest))

    def get(self, digest: str, owner: str = OWNER) -> LoadedTable | None:
        """Return the owner's table of this digest, which is then the most recently used one."""
        found = self._tables.get((owner, digest))
        if found is not None:
            self._tables.move_to_end((owner, digest))
        return found

    def put(self, table: LoadedTable, owner: str = OWNER) -> None:
        """Hold a table, in the place of others; one that is larger than all space is not held."""
        if (owner, table.digest) in self._tables or table.memory_bytes > self._room_bytes:
            return
        while table.memory_bytes > self.free_bytes:
            _, dropped = self._tables.popitem(last=False)
            self.loaded_bytes -= dropped.memory_bytes
        self._tables[owner, table.digest] = table
        self.loaded_bytes += table.memory_bytes


_FOUND: Kind = (SCHEDULE, 200)
_TABLES = "/tables/"
_BYTES = b"bytes="
_AFTER_TABLES, _AFTER_BYTES = len(_TABLES), len(_BYTES)
_MAX_DIGITS = 19  # what the framework's rule for numbers takes as well


class CachedRoute:
    """A path whose lookups one table answers: its digest, what transfers said of its model, and the
    ETag around the message.
    """

    __slots__ = ("after", "before", "digest", "verified")

    def __init__(self, digest: str, verified: Notice | None) -> None:
        self.digest = digest
        self.verified = verified
        self.before, self.after = tag_of(digest, verified).split(b"%d")


class ActiveTables:
    """Which table each reference of an owner answers from; its mapping never changes.

    `schedules` and `tables` are the same by path.
    """

    def __init__(self, active: Iterable[ActiveTable] = ()) -> None:
        by_reference = _by_reference(active)
        self.digests: Mapping[str, str] = {
            reference: chosen.digest for reference, chosen in by_reference.items()
        }
        self.schedules = {
            f"/profiles/{reference}/schedule": CachedRoute(
                chosen.digest, said_of(chosen.verification)
            )
            for reference, chosen in by_reference.items()
        }
        self.tables = {
            f"/profiles/{reference}/table": digest for reference, digest in self.digests.items()
        }

    def since(self, earlier: ActiveTables) -> list[str]:
        """Return the digests that were not active earlier, those of current revisions first."""
        known = set(earlier.digests.values())
        ordered = (self.digests[one] for one in sorted(self.digests, key=lambda one: "@" in one))
        return [digest for digest in dict.fromkeys(ordered) if digest not in known]


def _by_reference(active: Iterable[ActiveTable]) -> dict[str, ActiveTable]:
    """Return choices by "name", where the current revision has a table, and by "name@revision"."""
    found: dict[str, ActiveTable] = {}
    for one in active:
        found[f"{one.profile_name}@{one.revision}"] = one
        if one.revision == one.current_revision:
            found[one.profile_name] = one
    return found


_NOTHING = ActiveTables()


class FastPath:
    """Answers an owner from `active`, which is exchanged as a whole, and the tables in `cache`.

    That of the first owner has those of the others, who share nothing but the room for tables.
    """

    def __init__(self, cache: TableCache, owner: str = OWNER, *, bodies: int = BODIES) -> None:
        self.cache = cache
        self.owner = owner
        self.active = ActiveTables()
        self.rendered = RenderedBodies(bodies)
        self._others: Mapping[str, FastPath] = {}

    def of(self, owner: str) -> FastPath | None:
        """Return the fast path of an owner; None where nothing of his is active."""
        return self if owner == self.owner else self._others.get(owner)

    def exchange(self, found: Mapping[str, ActiveTables]) -> None:
        """Answer from these tables of these owners from now on."""
        self.active = found.get(self.owner, _NOTHING)
        others = {
            owner: self._others.get(owner) or FastPath(self.cache, owner, bodies=FEWER_BODIES)
            for owner in found
            if owner != self.owner
        }
        for owner, path in others.items():
            path.active = found[owner]
        self._others = others

    def forget(self) -> None:
        """Answer nothing until the active tables are exchanged; for any thread."""
        self.active = _NOTHING
        for path in self._others.values():
            path.active = _NOTHING

    def answer(self, scope: Scope) -> AsgiResponse | None:
        """Return the answer to this request, or None where the framework is to give it."""
        if scope["method"] != "GET":
            return None
        active, path = self.active, scope["path"]
        route = active.schedules.get(path)
        if route is not None:
            return self._schedule(scope, route)
        digest = active.tables.get(path)
        if digest is not None:
            return self._file(scope, digest, ACTIVE)
        if not path.startswith(_TABLES):
            return None
        return self._file(scope, path[_AFTER_TABLES:], STORED)

    def _schedule(self, scope: Scope, route: CachedRoute) -> AsgiResponse | None:
        query: bytes = scope["query_string"]
        if not query.startswith(_BYTES):
            return None
        digits, wanted = query[_AFTER_BYTES:], _if_none_match(scope)
        tag = route.before + digits + route.after
        body = self.rendered.young.get(tag)
        if body is not None and not wanted:
            return _asgi_response(tag, body)
        if not (digits.isdigit() and len(digits) <= _MAX_DIGITS):
            return None
        return self._by_table(route, int(digits), wanted)

    def _by_table(self, route: CachedRoute, message_bytes: int, wanted: str) -> AsgiResponse | None:
        tag = route.before + b"%d" % message_bytes + route.after  # without zeros in front
        if not wanted and (body := self.rendered.older(tag)) is not None:
            return _asgi_response(tag, body)
        table = self.cache.get(route.digest, self.owner)
        if table is None or not table.min_message_bytes <= message_bytes <= table.max_message_bytes:
            return None
        if wanted and holds(wanted, tag.decode()):
            return unchanged(tag).as_asgi()
        body = table.short_body(message_bytes, route.verified)
        if body is None:
            return None
        self.rendered.see(tag, body)
        return _asgi_response(tag, body)

    def _file(self, scope: Scope, digest: str, route: str) -> AsgiResponse | None:
        table = self.cache.get(digest, self.owner) if _wants_file(scope) else None
        if table is None:
            return None
        wanted = _if_none_match(scope)
        return table_form(wanted, digest, TableFormat.SLT, table.file, route=route).as_asgi()


def _asgi_response(tag: bytes, body: bytes) -> AsgiResponse:
    """Return what `table_cache.found` does, for a server, in as few steps as possible."""
    headers = (
        (b"etag", tag),
        NO_CACHE,
        (b"content-length", b"%d" % len(body)),
        JSON_HEADER,
        SECURITY,
    )
    return AsgiResponse(
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": body},
        _FOUND,
    )


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
