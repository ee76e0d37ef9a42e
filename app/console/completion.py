"""What a shell completes words by: a script, and the offers for which it asks at each TAB."""

from __future__ import annotations

import os
import re

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from app.console.arguments import COMPLETE, PROGRAM, grammar
from app.text.choices import expected_one_of
from app.ui.grammar import CONTEXT
from domain.errors import InvalidInput


class _WithNames(ShellComplete):
    """Offers `--strategy=exact` where `--strategy=` is begun, as the shell takes the whole word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return what is offered for the word that is begun."""
        name, equals, _ = incomplete.partition("=")
        found = super().get_completions(args, incomplete)
        if not (equals and name.startswith("--")):
            return found
        return [
            CompletionItem(f"{name}={offer.value}", help=offer.help)
            if offer.type == "plain"
            else offer
            for offer in found
        ]


class _Bash(_WithNames, BashComplete):
    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the last, and it; bash makes three of `--strategy=exact`."""
        words, begun = super().get_completion_args()
        return [word for word in words if word != "="], begun


class _Zsh(_WithNames, ZshComplete):
    pass


class _Fish(_WithNames, FishComplete):
    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return an offer in a line, which the script cuts at each comma."""
        text = None if item.help is None else item.help.replace(",", ";")
        return super().format_completion(CompletionItem(item.value, item.type, text))


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def print_script(shell: str) -> None:
    """Print the script of a shell."""
    click.echo(_asked_by(shell).source().encode(), nl=False)


def complete(asked: str) -> int:
    """Print what the script of a shell asks for, by the words in its environment. Raises
    InvalidInput where no script asks so.
    """
    known = {f"{shell}_complete": shell for shell in _SHELLS}
    if asked not in known:
        raise InvalidInput(expected_one_of(known, asked), field=COMPLETE)
    shell = known[asked]
    words, place = os.environ.get("COMP_WORDS"), os.environ.get("COMP_CWORD")
    is_place = place is not None and (shell == "fish" or re.fullmatch("[0-9]{1,9}", place))
    if words is None or not is_place:
        raise InvalidInput(
            "expected COMP_WORDS and COMP_CWORD, as a shell has them", field=COMPLETE
        )
    offers = _asked_by(shell).complete()
    click.echo(offers.encode(errors="surrogateescape"))  # a word may be no text
    return 0


def _asked_by(shell: str) -> ShellComplete:
    return _SHELLS[shell](grammar(), dict(CONTEXT), PROGRAM, COMPLETE)
