"""The form of an export: of a profile targets, their options, and what is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.errors import field_problems
from app.questions.settings import ExportScope
from app.schemas.base import dump_json, parse_json
from app.schemas.export import export_scope
from app.text.targets import TAKES_WORDS, format_size_rule
from app.ui.addresses import address, in_path
from app.ui.forms import RequestForm
from contract.export import ExportIn
from domain.errors import NotFound, SluiceError
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

FORM = RequestForm(ExportIn, "export")
MAX_WORKLOAD_TEXT = 6_000  # characters: it stands in the page's address
_OPTION = "option."  # before the name of an option in an address
_LIMITS = ("min", "max", "align", "max_fragments")
_FINER = (Takes.SIZE_STEPS, Takes.TABLE)


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
    asked: ExportIn | None = None
    scope: ExportScope | None = None

    @property
    def shown_texts(self) -> dict[str, str]:
        """All declared fields; those that nothing was typed in are empty."""
        return {word.name: self.texts.get(word.name, "") for word in FORM.words}

    @property
    def notice(self) -> str:
        """What is wrong with none of the fields that are shown; "" where nothing is."""
        shown = {f"{_OPTION}{option.name}" for option in self.target.options}
        if self.has_sizes:
            shown |= {word.name for word in FORM.words}
        said = (
            words if not name or name.startswith(_OPTION) else f"{name.replace('_', ' ')}: {words}"
            for name, words in self.mistakes.items()
            if name not in shown
        )
        return next(said, "")

    @property
    def has_sizes(self) -> bool:
        """Whether sizes are chosen, and so a range and limits count."""
        return self.target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS)

    @property
    def has_limits(self) -> bool:
        """Whether a limit was given, so that they are shown open."""
        return any(self.texts.get(name) for name in _LIMITS)

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
        return tuple(_offered(target) for target in _by_title() if target.takes in _FINER)

    @property
    def options(self) -> Iterator[OptionField]:
        """The target's options as fields."""
        for option in self.target.options:
            value = self.texts.get(f"{_OPTION}{option.name}") or option.default
            offers = tuple((choice, choice) for choice in option.choices)
            yield OptionField(option.name, option.meaning, value, option.default or "empty", offers)

    def query(self) -> Iterator[tuple[str, str]]:
        """Yield the query of the export's own address. Only where nothing is wrong."""
        assert self.asked is not None
        for name, value in self.asked.said().items():
            for part in value if isinstance(value, tuple) else (value,):
                yield name, str(part)

    def command(self, reference: str) -> str:
        """Return the command that writes the same."""
        given = (f"{name}={value}" for name, value in _options(self.target, self.texts))
        options = [word for option in given for word in ("--option", option)]
        return FORM.shell(self.texts, (reference, "--target", self.target.name, *options))

    def file_address(self, reference: str) -> str:
        """Return where the text is, for browsers and programs alike."""
        return address(f"/profiles/{in_path(reference)}/exports/{self.target.name}", self.query())


def offered_targets() -> tuple[OfferedTarget, ...]:
    """Return every target, by name."""
    return tuple(map(_offered, _by_title()))


def _by_title() -> list[Target]:
    return sorted(TARGETS, key=lambda target: target.title)


def _offered(target: Target) -> OfferedTarget:
    return OfferedTarget(target.name, target.title, TAKES_WORDS[target.takes])


def export_form(name: str, given: Mapping[str, str]) -> ExportForm:
    """Return the form of a target as it was filled in. Raises NotFound."""
    target = next((known for known in TARGETS if known.name == name), None)
    if target is None:
        raise NotFound("there is no export target of this name")
    texts = {key: text.strip() for key, text in given.items()}
    body, mistakes = FORM.document(texts)
    if len(texts.get("workload", "")) > MAX_WORKLOAD_TEXT:
        mistakes["workload"] = f"expected at most {MAX_WORKLOAD_TEXT} characters"
    if mistakes:
        return ExportForm(target, texts, mistakes)
    options = [f"{option}:{value}" for option, value in _options(target, texts)]
    try:
        asked = parse_json(ExportIn, dump_json({**body, "option": options}))
        scope = export_scope(asked, name)
    except SluiceError as refusal:
        return ExportForm(target, texts, _refused(target, options, refusal))
    return ExportForm(target, texts, {}, asked, scope)


def _options(target: Target, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the options that are not as by default, also those that the target has not."""
    usual = {option.name: option.default for option in target.options}
    for key, value in texts.items():
        name = key.removeprefix(_OPTION)
        if name != key and value and value != usual.get(name):
            yield name, value


def _refused(target: Target, options: Sequence[str], refusal: SluiceError) -> dict[str, str]:
    """Return what is wrong by field: of an option by the one that its sentence or place names."""
    for option in target.options:
        if refusal.detail.startswith(f"expected {option.name} to "):
            return {f"{_OPTION}{option.name}": refusal.detail}
    places = {f"/option/{at}": _OPTION + text.partition(":")[0] for at, text in enumerate(options)}
    found: dict[str, str] = {}
    for problem in field_problems(refusal):
        place = places.get(problem.pointer) or FORM.place(problem.pointer)
        found.setdefault(place, problem.detail)
    return found or {"": refusal.detail}
