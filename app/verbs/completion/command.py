"""sluice admin completion: what a shell completes words by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output

SHELLS = ("bash", "zsh", "fish")


def add_arguments(command: Command) -> None:
    """Add the shell."""
    command.argument("shell", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: Arguments, output: Output) -> int:
    """Print the script of a shell."""
    from app.console.completion import print_script

    print_script(arguments.shell)
    return 0
