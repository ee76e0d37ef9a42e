"""sluice jobs: those of the services on the database, and where one stands."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from app.console.argument_parts import Parser, add, add_count_and_owner, add_listed, add_owner

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(parser: Parser) -> None:
    """Add the verbs."""
    verbs = add_listed(parser)
    listing = add(verbs, "list", "list jobs, the newest first", "--state running")
    listing.add_argument(
        "--state",
        choices=["queued", "running", "done", "failed", "cancelled"],
        metavar="STATE",
        help="queued, running, done, failed or cancelled ones alone",
    )
    add_count_and_owner(listing)
    show = add(
        verbs,
        "show",
        "show where a job stands, and where its result is",
        "0123456789abcdef0123456789abcdef",
    )
    show.add_argument("id", metavar="ID", help="of the job")
    add_owner(show)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """List durable jobs, or show where one stands."""
    from app.console.stored import emit, limit_of, owned_store
    from app.jobs.ledger import list_jobs, shown_job
    from app.schemas.jobs import job_out
    from app.verbs.jobs.show import listing, parts
    from contract.jobs import JobsOut
    from models.records import JobState

    with owned_store(arguments) as store:
        if arguments.verb == "show":
            shown = job_out(shown_job(store, arguments.id))
            emit(shown, output, parts(shown))
            return 0
        state = getattr(arguments, "state", None)
        found = list_jobs(store, state and JobState(state), limit=limit_of(arguments))
    listed = JobsOut(tuple(map(job_out, found)))
    emit(listed, output, listing(listed))
    return 0
