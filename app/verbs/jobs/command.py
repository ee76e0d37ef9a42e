"""sluice jobs: those of the services on the database, and where one stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.console.argument_parts import add_count_and_owner, add_owner
from app.ui.grammar import Arguments, Group

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_verbs(command: Group) -> None:
    """Add the verbs."""
    listing = command.add("list", "list jobs, the newest first", "--state running", is_default=True)
    listing.option(
        "--state",
        choices=["queued", "running", "done", "failed", "cancelled"],
        metavar="STATE",
        help="queued, running, done, failed or cancelled ones alone",
    )
    add_count_and_owner(listing)
    show = command.add(
        "show",
        "show where a job stands, and where its result is",
        "0123456789abcdef0123456789abcdef",
    )
    show.argument("id", metavar="ID", help="of the job")
    add_owner(show)


def run(arguments: Arguments, output: Output) -> int:
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
        state = None if arguments.state is None else JobState(arguments.state)
        found = list_jobs(store, state, limit=limit_of(arguments))
    listed = JobsOut(tuple(map(job_out, found)))
    emit(listed, output, listing(listed))
    return 0
