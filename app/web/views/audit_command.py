"""An audit of the page as a command, for a CI job to guard a setting with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from app.web.views.audit_form import AuditForm

CONFIGURATION, MIX = "library.conf", "mix.txt"
_OPTIONS = (
    ("least", "--least"),
    ("greatest", "--greatest"),
    ("objective", "--objective"),
    ("max_regret", "--max-regret"),
    ("over", "--over"),
    ("time_limit", "--time-limit"),
)
_SIZED = frozenset({"least", "greatest", "max_regret"})


@dataclass(frozen=True, slots=True)
class AuditCommand:
    """The command, and what stands in the files that it reads."""

    text: str
    files: str

    @classmethod
    def of(cls, form: AuditForm) -> AuditCommand | None:
        """None without a limit, which is what a CI job is for, and without a stored profile."""
        if not (form.text("max_regret") and form.text("profile")):
            return None
        return cls(shlex.join(["sluice", "audit", *_words(form)]), "; ".join(_files(form)))


def _words(form: AuditForm) -> Iterator[str]:
    yield form.text("profile")
    if form.text("configuration"):
        yield from ("--config", CONFIGURATION, "--target", form.text("target"))
    else:
        yield from ("--setting", _narrow(form.text("setting")))
    if form.text("mix"):
        yield from ("--mix", MIX)
    for name, option in _OPTIONS:
        text = form.texts.get(name, "")
        if text and not form.is_usual(name):
            yield from (option, _narrow(text) if name in _SIZED else text.removesuffix("s").strip())


def _files(form: AuditForm) -> Iterator[str]:
    if form.text("configuration"):
        yield f"{CONFIGURATION} is the configuration that the form has"
    if form.text("mix"):
        yield f"{MIX} is the mix that the form has"


def _narrow(text: str) -> str:
    """A single size or share without its space: 512KiB, 5%."""
    words = text.split(" ")
    is_one = len(words) == 2 and words[0].replace(".", "", 1).isdigit()
    return "".join(words) if is_one else text
