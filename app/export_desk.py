"""Exports in the running service: where they are made, and the last of them, kept."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from app.export_apart import ExportApart
from app.flows import export_setting as flow
from domain.profile import ProfileReference

if TYPE_CHECKING:
    from app.service import Gone, Service

KEPT = 256
KEPT_BYTES = 2**18  # longer ones are not kept


class ExportDesk:
    """One per service, for the event loop's thread.

    Sizes are chosen in a process of its own, which counts as a long fit does. The last exports are
    kept by the digest of their question: whoever polls, with If-None-Match, costs one look-up.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept: OrderedDict[str, flow.Exported] = OrderedDict()

    async def export(
        self,
        reference: ProfileReference,
        scope: flow.ExportScope,
        gone: Gone,
        *,
        table: str | None,
    ) -> flow.Exported:
        """A profile as a library's configuration, by the table of this digest or the active one.

        Raises NotFound, Conflict, StrategyDeclined, InvalidInput, Infeasible, Overloaded,
        Cancelled, LimitReached and SolverFailed.
        """
        question = await self._service.call(
            lambda: flow.find_question(
                self._service.context,
                reference,
                scope,
                lambda unit, of: flow.stored_table(unit, of, table),
            )
        )
        if not question.takes_long:
            return await self._service.call(lambda: flow.export(question))
        digest = question.digest()
        found = self._kept.pop(digest, None)
        if found is None:
            memory_bytes = self._service.context.settings.worker_memory_bytes
            found = await self._service.apart(
                ExportApart(question, memory_bytes=memory_bytes), gone
            )
        self._keep(digest, found)
        return found

    def _keep(self, digest: str, made: flow.Exported) -> None:
        """Keep it as the youngest, and let the oldest go."""
        if len(made.content) <= KEPT_BYTES:
            self._kept[digest] = made
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
