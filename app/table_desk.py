"""Compiled tables in the running service: found where they are stored, or compiled and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.flows import build_table as flow
from app.flows.context import Context
from app.flows.solve_message import stored_revision
from app.schemas.tables import render_table
from app.table_apart import TableApart
from domain.profile import ProfileReference, ProfileRevision
from models.records import TableRecord

if TYPE_CHECKING:
    from app.service import Gone, Service


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """A compiled table, and whether it was compiled now."""

    record: TableRecord
    is_new: bool


class TableDesk:
    """One per service, for the event loop's thread."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def compile(
        self,
        reference: ProfileReference,
        scope: flow.TableScope,
        gone: Gone,
        *,
        activate: bool | None,
    ) -> TableOutcome:
        """The plan table of a profile: a stored one, or one that is compiled and stored now.

        It is compiled in a process of its own, and counts as a long fit does; `activate` is as
        for `choose_table`. Raises NotFound, StrategyDeclined, Infeasible, Overloaded, Cancelled,
        LimitReached and SolverFailed.
        """
        service, context = self._service, self._service.context
        question = await service.call(lambda: ask(context, reference, scope))
        stored = await service.call(lambda: find(context, question, activate=activate))
        if stored is not None:
            return TableOutcome(stored, is_new=False)
        child = TableApart(question, memory_bytes=context.settings.worker_memory_bytes)
        compiled = await service.apart(child, gone)
        record = await service.call(lambda: _keep(context, compiled, activate=activate))
        return TableOutcome(record, is_new=True)


def ask(
    context: Context, reference: ProfileReference, scope: flow.TableScope
) -> flow.TableQuestion:
    """What to compile, of the revision that this is now. Raises NotFound and StrategyDeclined."""
    with context.store.reading() as unit:
        revision = stored_revision(unit)(reference)
    return flow.table_question(
        revision.model,
        ProfileRevision(revision.profile, revision.number),
        scope,
        fragment_cap=context.settings.max_fragments,
    )


def find(
    context: Context, question: flow.TableQuestion, *, activate: bool | None
) -> TableRecord | None:
    """A stored table of this question, which look-ups answer from where that is wanted."""
    with context.store.reading() as unit:
        stored = flow.find_table(unit, question)
        if stored is None:
            return None
        is_to_choose = flow.needs_choosing(unit, stored, activate=activate)
    if is_to_choose:
        with context.store.unit_of_work() as unit:
            flow.choose_table(unit, stored, activate=activate)
    return stored


def _keep(context: Context, compiled: flow.CompiledTable, *, activate: bool | None) -> TableRecord:
    with context.store.unit_of_work() as unit:
        return flow.keep_table(unit, compiled, render_table, activate=activate)
