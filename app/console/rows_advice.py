"""What a command without the options of a file's rows says where a file needs one of them."""

from __future__ import annotations

import re

from app.registry import command_words
from app.ui.grammar import Arguments
from domain.errors import SluiceError

# An option with its value, as a reader of files advises it: of a command that has this option.
# A shell's quotes belong to the value, whatever is in them.
_ADVISED = re.compile(
    r"(--(run|where|test|columns) (?:'[^']*'|.+?))(?= \(| or --|[,;.:]? |[,;.:]?$)"
)
_TAKES_FILES_ALONE = ("plan", "tune")


def advise(refusal: SluiceError, arguments: Arguments) -> None:
    """Have a refusal that advises an option which this command has not say what works in its place:
    a fit with that option, stored under a name, which this command takes.
    """
    found = _ADVISED.search(refusal.detail)
    if found is None or _has(arguments, found[2]):
        return
    typed = f"sluice {command_words(arguments.command)}"
    if verb := getattr(arguments, "verb", None):
        typed += f" {verb}"
    if arguments.command in _TAKES_FILES_ALONE:
        what = "give it a file of these rows alone"
    else:
        what = f"make a fit first: sluice fit FILE {found[1]} --save-as NAME"
    refusal.detail += f"; {typed} has no --{found[2]}: {what}"


def _has(arguments: Arguments, option: str) -> bool:
    """Whether the command has this option, of its own or of the words of its request."""
    return any(name in (option, f"fit_options_{option}") for name in vars(arguments))
