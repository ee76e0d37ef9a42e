"""Exports as pages offer them: of a profile targets, options and what is asked; and an answer's
size as each library takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from app.schemas.export import workload_of_weights
from app.schemas.fit_documents import given_fit
from app.schemas.stages import limits_of, stored_model
from app.text.numbers import format_gap, format_size
from app.text.regrets import format_advised_regret
from app.text.units import parse_workload, weights_of
from app.ui.addresses import address, in_path
from app.ui.fields import FieldReader
from contract.declare import words_of
from contract.export import ChosenOut, ExportIn
from domain.errors import NotFound, SluiceError
from domain.problem import FragmentLimits
from domain.profile import ProfileReference
from domain.regret import Objective, SizeRule
from domain.uncertain_answer import DecisionCode
from domain.units import format_byte_range, format_bytes
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

if TYPE_CHECKING:
    from app.settings import Settings
    from contract.optimize import OptimizeOut
    from domain.workload import Workload
    from models.session import Store

TAKES_WORDS = {
    Takes.ONE_SIZE: "one size for all messages",
    Takes.SIZE_STEPS: "a size for each range of messages",
    Takes.COSTS: "the costs of the stages",
    Takes.TABLE: "the compiled table",
}
_OBJECTIVES = next(word.choices for word in words_of(ExportIn, ("objective",)))
MAX_WORKLOAD_TEXT = 6_000  # characters: it stands in the page's address
_FINER = (Takes.SIZE_STEPS, Takes.TABLE)
_SIZES = ("min_message", "max_message", "min", "max", "align", "max_fragments")
_KEYS = {
    "min_message": "min_message_bytes",
    "max_message": "max_message_bytes",
    "min": "min_fragment_bytes",
    "max": "max_fragment_bytes",
    "align": "alignment_bytes",
    "max_fragments": "max_fragments",
}


@dataclass(frozen=True, slots=True)
class OfferedTarget:
    """A target in a list."""

    name: str
    title: str
    takes: str


@dataclass(frozen=True, slots=True)
class OptionField:
    """An option of a target as a field. Without `offers` any text may be given."""

    name: str
    meaning: str
    value: str
    default: str
    offers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ExportForm:
    """What is asked of a target, as typed. `mistakes` is by field, "" for what fits none."""

    target: Target
    texts: Mapping[str, str]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    scope: ExportScope | None = None

    @property
    def has_sizes(self) -> bool:
        """Whether sizes are chosen, and so a range and limits count."""
        return self.target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS)

    @property
    def objectives(self) -> tuple[tuple[str, str], ...]:
        """What sizes may be chosen for; the first of them unless another is."""
        return _OBJECTIVES

    @property
    def has_limits(self) -> bool:
        """Whether a limit was given, so that they are shown open."""
        return any(self.texts.get(name) for name in ("min", "max", "align", "max_fragments"))

    @property
    def takes_words(self) -> str:
        """What the target is given."""
        return TAKES_WORDS[self.target.takes]

    @property
    def rule_words(self) -> str:
        """The sizes that the target takes; "" where it takes any, or none."""
        return format_size_rule(self.target.sizes) if self.has_sizes else ""

    @property
    def finer(self) -> tuple[OfferedTarget, ...]:
        """Beside a target of one size: those that take a size for each range, or the table."""
        if self.target.takes is not Takes.ONE_SIZE:
            return ()
        return tuple(_offered(one) for one in _by_title() if one.takes in _FINER)

    @property
    def options(self) -> Iterator[OptionField]:
        """The target's options as fields."""
        for one in self.target.options:
            value = self.texts.get(f"option.{one.name}") or one.default
            offers = tuple((choice, choice) for choice in one.choices)
            yield OptionField(one.name, one.meaning, value, one.default or "empty", offers)

    def query(self) -> list[tuple[str, str]]:
        """Return the same as the query of the export's own address. Only where nothing is wrong."""
        assert self.scope is not None
        limits = self.scope.limits
        sizes = {
            "min_message_bytes": self.scope.min_message_bytes,
            "max_message_bytes": self.scope.max_message_bytes,
            **{name: getattr(limits, name) for name in _LIMITS if limits is not None},
        }
        given = parse_workload(self.texts.get("workload", ""))
        if given:
            del sizes["min_message_bytes"], sizes["max_message_bytes"]
        pairs = [(name, str(value)) for name, value in sizes.items() if value is not None]
        pairs += [("workload", weighted) for weighted in weights_of(given)]
        if self.scope.objective is not None:
            pairs.append(("objective", self.scope.objective.value))
        return pairs + [("option", f"{name}:{value}") for name, value in self.scope.options]

    def file_address(self, reference: str) -> str:
        """Return where the text is, for browsers and programs alike."""
        return address(f"/profiles/{in_path(reference)}/exports/{self.target.name}", self.query())


_LIMITS = ("min_fragment_bytes", "max_fragment_bytes", "alignment_bytes", "max_fragments")


def offered_targets() -> tuple[OfferedTarget, ...]:
    """Return every target, by name."""
    return tuple(map(_offered, _by_title()))


def _by_title() -> list[Target]:
    return sorted(TARGETS, key=lambda target: target.title)


def _offered(target: Target) -> OfferedTarget:
    return OfferedTarget(target.name, target.title, TAKES_WORDS[target.takes])


def format_size_rule(rule: SizeRule) -> str:
    """Return the sizes of a rule: 64 KiB to 16 MiB, multiples of 64 B; "" where it takes any."""
    if rule == SizeRule():
        return ""
    words = [format_byte_range(rule.min_bytes, rule.max_bytes)]
    if rule.multiple_of > 1:
        words.append(f"multiples of {format_bytes(rule.multiple_of)}")
    if rule.is_power_of_two:
        words.append("powers of two")
    return ", ".join(words)


def format_export_cost(chosen: ChosenOut, warnings: tuple[str, ...] = ()) -> str:
    """Return what the sizes of an export cost, after what has to be known before that."""
    warned = "".join(f"{one[0].upper()}{one[1:]}. " for one in warnings)
    return warned + _cost_words(chosen)


def _cost_words(chosen: ChosenOut) -> str:
    time, mean, worst = (
        format_advised_regret(at_least, at_most)
        for at_least, at_most in (
            (chosen.time_regret, chosen.time_at_most),
            (chosen.mean_regret, chosen.mean_at_most),
            (chosen.worst_regret, chosen.worst_at_most),
        )
    )
    total = "" if chosen.objective is None else f"{time} of the total time, "
    steps = chosen.steps
    ended = " Time ended: more of it may choose other sizes." if chosen.is_partial else ""
    if len(steps) > 1:
        each = "A size for each range of messages costs"
        return f"{each} {total}{mean} in the mean, {worst} at worst.{ended}"
    cut = steps[0].size_bytes
    name = (
        "Every message whole" if cut is None else f"One size, {format_bytes(cut)}, for all messages"
    )
    return f"{name} costs {total}{mean} in the mean, {worst} at worst.{ended}"


def export_form(name: str, given: Mapping[str, str]) -> ExportForm:
    """Return the form of a target as it was filled in. Raises NotFound."""
    target = next((one for one in TARGETS if one.name == name), None)
    if target is None:
        raise NotFound("there is no export target of this name")
    texts = {key: text.strip() for key, text in given.items()}
    reader = FieldReader(texts)
    min_message, max_message = reader.size("min_message"), reader.size("max_message")
    has_limits = any(texts.get(one) for one in ("min", "max", "align", "max_fragments"))
    limits = reader.limits() if has_limits else None
    objective = reader.read("objective", _objective)
    workload = reader.read("workload", _workload, longest=MAX_WORKLOAD_TEXT)
    if workload is not None and (min_message or max_message):
        reader.mistakes["workload"] = "expected a range of messages or a workload, not both"
    if reader.mistakes:
        return ExportForm(target, texts, reader.mistakes)
    if workload is not None:
        min_message = workload.sizes[0].message_bytes
        max_message = workload.sizes[-1].message_bytes
    try:
        scope = ExportScope(
            target=name,
            options=tuple(_options(target, texts)),
            min_message_bytes=min_message,
            max_message_bytes=max_message,
            workload=workload,
            objective=objective,
            limits=limits,
        )
    except SluiceError as refusal:
        return ExportForm(target, texts, {_field(target, refusal): refusal.detail})
    return ExportForm(target, texts, {}, scope)


def _options(target: Target, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the options that are not as by default."""
    for one in target.options:
        value = texts.get(f"option.{one.name}", "")
        if value and value != one.default:
            yield one.name, value


def _objective(text: str) -> Objective | None:
    return Objective(text) if text in [*Objective] else None


def _workload(text: str) -> Workload:
    return workload_of_weights(weights_of(parse_workload(text)))


def _field(target: Target, refusal: SluiceError) -> str:
    """Return the field that a refusal is about: of an option the one that its sentence names."""
    for one in target.options:
        if refusal.detail.startswith(f"expected {one.name} to "):
            return f"option.{one.name}"
    return {key: name for name, key in _KEYS.items()}.get(refusal.field or "", "")


# --- an answer's size as each library takes it ----------------------------------------------------

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
    known = {one.name: one for one in TARGETS}
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
            (one for one in TARGETS if _library(one) == library),
            key=lambda one: _ORDER.index(one.takes),
        )
        yield LibraryTab(of_it[0].name, library, library == _library(shown))


def _library_order(target: Target) -> tuple[int, str]:
    name = _library(target)
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _variants(shown: Target) -> Iterator[LibraryTab]:
    of_it = [one for one in TARGETS if _library(one) == _library(shown)]
    for one in of_it if len(of_it) > 1 else ():
        label = one.title.partition(":")[2].strip() or one.title
        yield LibraryTab(one.name, label, one is shown)


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
