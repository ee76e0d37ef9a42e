"""Questions of verbs, a module a verb; later ones may rest on what earlier ones have stored."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Http
from tests.golden.verbs import (
    crossover,
    deliver,
    hide,
    items,
    layer,
    machine,
    measure,
    sweep,
    thresholds,
    tune,
    verify,
)

HTTP_OF_VERBS: tuple[Http, ...] = (
    *hide.HTTP,
    *thresholds.HTTP,
    *crossover.HTTP,
    *deliver.HTTP,
    *layer.HTTP,
    *measure.HTTP,
    *verify.HTTP,
    *machine.HTTP,
    *items.HTTP,
)
COMMANDS_OF_VERBS: tuple[Command, ...] = (
    *hide.COMMANDS,
    *thresholds.COMMANDS,
    *crossover.COMMANDS,
    *deliver.COMMANDS,
    *layer.COMMANDS,
    *measure.COMMANDS,
    *verify.COMMANDS,
    *tune.COMMANDS,
    *sweep.COMMANDS,
    *machine.COMMANDS,
    *items.COMMANDS,
)
FILES_OF_VERBS: dict[str, Any] = {
    **layer.FILES,
    **verify.FILES,
    **crossover.FILES,
    **machine.FILES,
    **items.FILES,
}
