"""An answer's size as each library takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.questions.settings import (
    Exported,
    ExportQuestion,
    ExportScope,
    export,
    export_question,
    profile_question,
)
from app.questions.source import Stored
from app.schemas.fit_documents import given_fit
from app.schemas.stages import limits_of, stored_model
from app.text.numbers import format_gap, format_size
from app.text.targets import TAKES_WORDS, format_size_rule
from app.ui.addresses import in_path
from domain.errors import SluiceError
from domain.problem import FragmentLimits
from domain.profile import ProfileReference
from domain.uncertain_answer import DecisionCode
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

if TYPE_CHECKING:
    from app.settings import Settings
    from contract.optimize import OptimizeOut
    from models.session import Store

DEFAULT_LIBRARY = "ucx"
LIBRARY_LIMIT_S = 1.0  # of the solves that price a size beside what else the target would take
MAX_LINES, MAX_LINE = 4, 120  # of a text that are shown above it
_FIRST = ("UCX", "NCCL", "Open MPI", "MPICH")
MAX_SHOWN = 20_000  # characters of a text
_WORTH_SAYING = 0.01  # of a latency: what a target's limits may cost without being a warning
_LIMITS_COST = "the target's limits cost"
_ORDER = (Takes.ONE_SIZE, Takes.SIZE_STEPS, Takes.COSTS, Takes.TABLE)


@dataclass(frozen=True, slots=True)
class LibraryTab:
    """A library, or one of its targets, by the name of the target that is shown."""

    name: str
    label: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class LibraryView:
    """What templates/answer_library.html is given: the tabs, and the text of the one shown.

    `aloud` is what makes it a bad idea; `declined` says why there is no text. `elsewhere` is where
    the target has all of its options, for a range of messages; "" without a profile. `tabs` are the
    libraries, `variants` the targets of the one shown where it has several; `lines` those of a
    short text that are no comment.
    """

    chosen: str
    title: str
    tabs: tuple[LibraryTab, ...]
    variants: tuple[LibraryTab, ...]
    message: str
    text: str = ""
    lines: tuple[str, ...] = ()
    is_cut: bool = False
    file_name: str = ""
    takes: str = ""
    aloud: tuple[str, ...] = ()
    declined: str = ""
    elsewhere: str = ""


def library_named(name: str) -> Target:
    """Return the target of this name, and for any other text the one that is shown first."""
    known = {target.name: target for target in TARGETS}
    return known.get(name, known[DEFAULT_LIBRARY])


def library_of(
    store: Store, settings: Settings, answer: OptimizeOut, size_bytes: int | None, target: Target
) -> LibraryView:
    """Return the target's exact text for this answer's message and the size to repeat, None where
    none can be repeated.
    """
    reference = answer.profile.reference if answer.profile else ""
    view = LibraryView(
        chosen=target.name,
        title=target.title,
        tabs=tuple(_tabs(target)),
        variants=tuple(_variants(target)),
        message=format_size(answer.message_bytes),
        takes=TAKES_WORDS[target.takes],
        elsewhere=f"/ui/profiles/{in_path(reference)}/exports/{target.name}" if reference else "",
    )
    if size_bytes is None and target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS):
        return replace(view, declined="no size can be repeated within the limits of this answer")
    try:
        question = _library_question(store, settings, answer, target)
        made = export(replace(question, given_bytes=size_bytes))
    except SluiceError as refusal:
        return replace(view, declined=refusal.detail)
    text = made.content.decode(errors="replace")
    return replace(
        view,
        text=text[:MAX_SHOWN],
        lines=_lines(text),
        is_cut=len(text) > MAX_SHOWN,
        file_name=made.file_name,
        aloud=(*_undecided(answer), *_aloud(made, target, size_bytes)),
    )


def _library(target: Target) -> str:
    """The library's name: what its title begins with."""
    return target.title.partition(":")[0].partition(" with ")[0]


def _tabs(shown: Target) -> Iterator[LibraryTab]:
    """Libraries in the order of the targets; each by its target that takes least to write."""
    for library in dict.fromkeys(map(_library, sorted(TARGETS, key=_library_order))):
        of_it = sorted(
            (target for target in TARGETS if _library(target) == library),
            key=lambda one: _ORDER.index(one.takes),
        )
        yield LibraryTab(of_it[0].name, library, library == _library(shown))


def _library_order(target: Target) -> tuple[int, str]:
    name = _library(target)
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _variants(shown: Target) -> Iterator[LibraryTab]:
    of_it = [target for target in TARGETS if _library(target) == _library(shown)]
    for target in of_it if len(of_it) > 1 else ():
        label = target.title.partition(":")[2].strip() or target.title
        yield LibraryTab(target.name, label, target is shown)


def _lines(text: str) -> tuple[str, ...]:
    """The lines that are no comment, where these are few."""
    found = [line for line in text.splitlines() if line and not line.startswith("#")]
    is_short = 1 <= len(found) <= MAX_LINES and all(len(line) <= MAX_LINE for line in found)
    return tuple(found) if is_short else ()


def _library_question(
    store: Store, settings: Settings, answer: OptimizeOut, target: Target
) -> ExportQuestion:
    limits = limits_of(answer.constraints)
    scope = ExportScope(
        target=target.name,
        min_message_bytes=answer.message_bytes,
        max_message_bytes=answer.message_bytes,
        limits=None if limits == FragmentLimits() else limits,
        time_limit_s=LIBRARY_LIMIT_S,
    )
    if answer.profile is not None:
        reference = ProfileReference.parse(answer.profile.reference)
        with store.reading() as unit:
            stored, cap = Stored.of_unit(unit), settings.max_fragments
            return profile_question(reference, scope, stored, fragment_cap=cap)
    model, cap = stored_model(answer.model), settings.max_fragments
    fit = None if answer.fit is None else given_fit(answer.fit, "fit").fit
    return export_question(model, None, scope, None, fragment_cap=cap, fit=fit)


def _undecided(answer: OptimizeOut) -> Iterator[str]:
    """Yield the decision where the size is to be set only after a measurement."""
    found = answer.uncertainty
    if found is not None and found.decision == DecisionCode.MEASURE_FIRST:
        yield found.sentence


def _aloud(made: Exported, target: Target, size_bytes: int | None) -> Iterator[str]:
    """Yield what a target's limits cost on this message, over the best size, and warnings."""
    chosen = made.chosen
    if chosen is not None and not chosen.is_given and size_bytes is not None:
        taken = chosen.setting.steps[0].size_bytes
        best = chosen.wanted.mean_regret if chosen.wanted else 0.0
        costs = (1.0 + chosen.mean_regret) / (1.0 + best) - 1.0
        instead = "the whole message" if taken is None else format_size(taken)
        if costs > _WORTH_SAYING:
            yield (
                f"{target.title} takes {format_size_rule(target.sizes)}: {instead} instead of "
                f"{format_size(size_bytes)} costs {format_gap(costs)} on this message. This is "
                "the wrong knob here."
            )
    for warning in made.warnings:
        if not warning.startswith(_LIMITS_COST):
            yield f"{warning[0].upper()}{warning[1:]}."
