"""Every command of the command line, made."""

from __future__ import annotations

from collections.abc import Iterator

import click

from app.console.arguments import grammar
from app.ui.grammar import Group


def commands(
    group: Group | None = None, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and verb by its words, those of a group behind it."""
    for name, entry in (group or grammar()).entries.items():
        made = entry.make()
        yield (*words, name), made
        if isinstance(made, Group):
            yield from commands(made, (*words, name))


def option_names(command: click.Command) -> set[str]:
    """Return all names of all options of a command but those of its help."""
    return {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
