"""The form of an export: of a profile targets, their options, and what is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.questions.settings import ExportScope
from app.schemas.export import workload_of_weights
from app.text.targets import TAKES_WORDS, format_size_rule
from app.text.units import parse_workload, weights_of
from app.ui.addresses import address, in_path
from app.ui.fields import FieldReader
from contract.declare import words_of
from contract.export import ExportIn
from domain.errors import NotFound, SluiceError
from domain.regret import Objective
from domain.workload import Workload
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

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
