"""What has to be right before a service, a runner or the database's upkeep begins."""

from __future__ import annotations

from dataclasses import replace

from app.settings import Settings
from app.ui.grammar import Arguments
from domain.errors import InvalidInput


def checked_settings() -> Settings:
    """Return the settings. Raises InvalidInput, which names all that break a rule.

    Also what only others read: SLUICE_KERNELS, and the form of the database's address.
    """
    from models.engines import parse_url
    from solvers.kernels.native import asked

    def check_engine(settings: Settings) -> None:
        if settings.engine != "local":
            from app.operations.tasks import cluster_options

            cluster_options(settings)

    checks = (
        lambda settings: parse_url(settings.database_url),
        lambda _: asked(),
        check_engine,
    )
    return Settings.from_environment(also=checks)


def check_kernels() -> None:
    """Load what solves: a wrong SLUICE_KERNELS ends the start. Raises InvalidInput."""
    from solvers.kernels.native import asked, load_library

    load_library(asked())


def with_workers(settings: Settings, arguments: Arguments) -> Settings:
    """Return the settings with as many workers as a command says. Raises InvalidInput."""
    if arguments.workers is None:
        return settings
    if not 0 <= arguments.workers <= 1024:
        rule = "expected 0 <= workers <= 1024 (0: one fewer than cores)"
        raise InvalidInput(rule, field="workers")
    return replace(settings, workers=arguments.workers)
