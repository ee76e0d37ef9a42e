"""What measure, verify and tune refuse before they start a probe: what could not be kept."""

from __future__ import annotations

from pathlib import Path

from app.console.commands import opened_store
from app.console.files import check_plot_file, check_target
from app.settings import Settings
from app.ui.grammar import Arguments
from domain.errors import InconsistentInput


def check_results(arguments: Arguments, target: str | None, *, example: str) -> None:
    """Check that the measurements, the plot and the profile can be written where they are asked
    for. Raises InvalidInput, and what opening the database does.
    """
    if target is not None:
        check_target(target, field="output", noun="measurements", example=example)
    if arguments.plot is not None:
        check_plot_file(arguments.plot)
        if target is not None and Path(target).resolve() == Path(arguments.plot).resolve():
            raise InconsistentInput("expected another file than that of --output", field="plot")
    if arguments.save_as is not None:
        check_profile(arguments.save_as, Settings.from_environment())


def check_profile(name: str, settings: Settings) -> None:
    """Check that a profile may have this name, and that the database can be written. Raises
    InvalidInput, and what opening the database does.
    """
    from app.questions.question import check_save_as

    check_save_as(name)
    check_store(settings)


def check_store(settings: Settings) -> None:
    """Check that the database can be written. Raises StoreUnavailable and Conflict."""
    with opened_store(settings) as store, store.unit_of_work():
        pass
