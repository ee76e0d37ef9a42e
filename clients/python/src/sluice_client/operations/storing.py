"""What is stored under names: profiles, their revisions, compiled tables, jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_client.answers import Job, Page
from sluice_client.calls import Answer, Call, get, reads, reads_page, segment, send
from sluice_client.fit_answers import Fit
from sluice_client.operations.as_job import as_job
from sluice_client.operations.sources import fit_json
from sluice_client.profile_answers import (
    CompiledTable,
    Profile,
    Revision,
    Revisions,
    TableSummary,
)
from sluice_client.shapes import Aggregate, Constraints, Pipeline

_COMPILE_LIMIT_S = 120.0  # the service's own
_EVENT_SILENCE_S = 15.0  # a stream says something this often, if only that it is still there


# --- profiles -------------------------------------------------------------------------------------


def profiles(*, cursor: str | None = None, limit: int | None = None) -> Call[Page[Profile]]:
    """Return a page of profiles by name, each at its current revision."""
    return get("/profiles", reads_page(Profile), cursor=cursor, limit=limit)


def profile(name: str) -> Call[Profile]:
    """Return a profile at its current revision."""
    return get(_at(name), reads(Profile))


def create_profile(
    name: str,
    *,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    detail: str | None = None,
) -> Call[Profile]:
    """Create a profile with revision 1: a pipeline, an aggregate, or a fit, as a document or by the
    identifier of a stored one.
    """
    document = {"name": name, **_revision(pipeline, aggregate, fit, fit_id, detail)}
    return send("POST", "/profiles", reads(Profile), document, may_repeat=False)


def revise_profile(
    name: str,
    *,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    detail: str | None = None,
) -> Call[Profile]:
    """Add a revision, which becomes the current one. Sent twice it would add two."""
    document = _revision(pipeline, aggregate, fit, fit_id, detail)
    return send("PUT", _at(name), reads(Profile), document, may_repeat=False)


def delete_profile(name: str) -> Call[None]:
    """Delete a profile with its revisions; answers that name it stay."""
    return Call("DELETE", _at(name), _nothing)


def revisions(name: str) -> Call[Revisions]:
    """Return every revision, and where its stages came from."""
    return get(_at(name, "revisions"), reads(Revisions))


def set_current(name: str, revision: int) -> Call[Profile]:
    """Roll back or forward to a revision that exists; its active table comes with it."""
    return send(
        "POST", _at(name, "current"), reads(Profile), {"revision": revision}, may_repeat=True
    )


def verify(name: str, transfers: str) -> Call[Revision]:
    """Compare recorded transfers with a profile's model, and keep the verdict with its revision.

    `transfers` is the text of the file that `sluice verify` writes; `name@2` pins a revision.
    """
    document = {"transfers": transfers}
    return send("POST", _at(name, "verification"), reads(Revision), document, may_repeat=True)


# --- compiled tables ------------------------------------------------------------------------------


def compile_table(
    name: str,
    *,
    min_message_bytes: int | None = None,
    max_message_bytes: int | None = None,
    relative_gap: float | None = None,
    constraints: Constraints | None = None,
    time_limit_s: float | None = None,
    activate: bool | None = None,
) -> Call[CompiledTable]:
    """Compile a table for a range of message sizes; the stored one where it was compiled before.

    From `time_limit_s` on the gaps are those reached, and a warning says so.
    Lookups answer from it with `activate` true, and, where that is None, if their revision has
    no active table yet.
    """
    document = {
        "min_message_bytes": min_message_bytes,
        "max_message_bytes": max_message_bytes,
        "relative_gap": relative_gap,
        "constraints": constraints and constraints.as_json(),
        "time_limit_s": time_limit_s,
        "activate": activate,
    }
    return send(
        "POST",
        _at(name, "tables"),
        reads(CompiledTable),
        document,
        may_repeat=True,
        takes_s=_COMPILE_LIMIT_S,
    )


start_compile_table = as_job(compile_table, may_repeat=True)  # a second one joins the first


def tables(
    name: str, *, cursor: str | None = None, limit: int | None = None
) -> Call[Page[TableSummary]]:
    """Return a page of a profile's compiled tables, newest first; `name@2` for those of a
    revision.
    """
    return get(_at(name, "tables"), reads_page(TableSummary), cursor=cursor, limit=limit)


def table(digest: str) -> Call[CompiledTable]:
    """Return the description of a compiled table."""
    return get(_by(digest), reads(CompiledTable), remembers=True, format="summary")


def table_file(digest: str) -> Call[bytes]:
    """Return the table file, for `Table.from_bytes`."""
    return get(_by(digest), _body, remembers=True, format="slt")


def table_twin(digest: str) -> Call[Any]:
    """Return the JSON twin of a table file, as it is."""
    return get(_by(digest), Answer.json, remembers=True, format="json")


def active_table(name: str) -> Call[CompiledTable]:
    """Return the description of the table that lookups of this profile are answered from."""
    return get(_at(name, "table"), reads(CompiledTable), remembers=True, format="summary")


def active_table_file(name: str) -> Call[bytes]:
    """Return the file of the active table; `fetch_table` keeps one on disk fresh."""
    return get(_at(name, "table"), _body, remembers=True, format="slt")


def activate_table(name: str, digest: str) -> Call[CompiledTable]:
    """Make a compiled table of the profile its active one; the way back is the same."""
    return send(
        "POST", _at(name, "table"), reads(CompiledTable), {"digest": digest}, may_repeat=True
    )


# --- jobs -----------------------------------------------------------------------------------------


def job(id: str) -> Call[Job]:
    """Return where a job stands."""
    return get(f"/jobs/{segment(id)}", reads(Job))


def cancel_job(id: str) -> Call[Job]:
    """Stop a job; its best answer so far is kept. It may still be stopping."""
    return Call("DELETE", f"/jobs/{segment(id)}", reads(Job), may_repeat=True)


def job_events(id: str) -> Call[Answer]:
    """Return the changes of a job as server-sent events; a client reads them as they come."""
    path = f"/jobs/{segment(id)}/events"
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    return Call(
        "GET",
        path,
        lambda answer: answer,
        headers=headers,
        may_repeat=True,
        takes_s=_EVENT_SILENCE_S,
    )


def _at(name: str, below: str = "") -> str:
    return f"/profiles/{segment(name)}" + (f"/{below}" if below else "")


def _by(digest: str) -> str:
    return f"/tables/{segment(digest)}"


def _revision(
    pipeline: Pipeline | None,
    aggregate: Aggregate | None,
    fit: Fit | Mapping[str, Any] | None,
    fit_id: str | None,
    detail: str | None,
) -> dict[str, Any]:
    return {
        "pipeline": pipeline and pipeline.as_json(),
        "aggregate": aggregate and aggregate.as_json(),
        "fit": fit_json(fit),
        "fit_id": fit_id,
        "detail": detail,
    }


def _body(answer: Answer) -> bytes:
    return answer.body


def _nothing(answer: Answer) -> None:
    return None
