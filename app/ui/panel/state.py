"""What the input panel holds: raw texts as they were typed, and what is wrong with which of them.

A row continues the stage of the row above where that one says how far it reaches (`up_to`): so a
stage with several fit ranges is several rows, of which the first has its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from app.schemas.answers import current_of
from app.schemas.base import dump_json, read_part
from app.schemas.stages import limits_of, stored_stages
from app.ui.panel.choices import OFFERS, Offers, ShownUnits, example_named, read_example_table
from contract.constraints import ConstraintsOut
from contract.fit import FitOut
from contract.limits import MAX_RANGES, MAX_STAGES
from contract.optimize import ItemsOptimizeOut, OptimizeOut
from contract.pipeline import PipelineOut
from domain.item_table import item_table
from domain.machine import Machine
from domain.pipeline import Pipeline, Stage, unique_names
from domain.problem import FragmentLimits
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from domain.units import CostUnit, OverheadUnit, format_bytes, format_number
from models.records import AnswerRecord

MAX_ROWS = MAX_STAGES * MAX_RANGES
MAX_SHOWN_ITEMS = 10_000  # of an answer, beside it
_EMPTY_ROWS = 3
STAGE_FIELDS = ("name", "overhead", "cost", "up_to")
UNIT_FIELDS = ("overhead_unit", "cost_unit", "delay")
_NO_LIMITS = FragmentLimits()

Choice = TypeVar("Choice", bound=StrEnum)


class InputSource(StrEnum):
    """Where the costs come from."""

    TABLE = "table"
    PROFILE = "profile"
    FIT = "fit"
    TRACE = "trace"

    @property
    def words(self) -> str:
        """Its name on a page."""
        return {
            "table": "Stages",
            "profile": "Stored profile",
            "fit": "Fit",
            "trace": "Trace",
        }[self.value]


@dataclass(frozen=True, slots=True)
class StageRow:
    """One row of the stage table, as typed."""

    name: str = ""
    overhead: str = ""
    cost: str = ""
    up_to: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nothing was typed."""
        return not (self.name or self.overhead or self.cost or self.up_to)


@dataclass(frozen=True, slots=True)
class InputState:
    """All that the panel shows. `mistakes` is by the field's name: "overhead.2", "message".

    What concerns no one field is under "".
    """

    source: InputSource = InputSource.TABLE
    rows: tuple[StageRow, ...] = (StageRow(),) * _EMPTY_ROWS
    overhead_unit: OverheadUnit = OverheadUnit.US
    cost_unit: CostUnit = CostUnit.NS_PER_BYTE
    delay: str = "0"
    profile: str = ""
    fit: str = ""  # the identifier of a stored one
    trace: str = ""
    kind: str = ""
    method: str = "robust"
    shape: str = "ranges"
    columns: str = ""
    test: str = ""
    run: str = ""
    where: str = ""
    stages_overlap: str = ""
    several_at_once: str = ""
    message: str = "64 KiB"
    has_items: bool = False  # in the place of the message
    items: str = ""
    items_note: str = ""  # why those of an answer are not there
    fill: str = "until"
    first_cap: str = ""
    current: str = ""
    relative: str = ""
    min_fragment: str = ""
    max_fragment: str = ""
    alignment: str = ""
    max_fragments: str = ""
    max_items: str = ""
    strategy: str = "auto"
    static_size: str = ""
    relative_gap: str = "1e-6"
    time_limit: str = "10"
    may_refragment: bool = False
    save_as: str = ""
    mistakes: Mapping[str, str] = field(default_factory=dict)
    unread: UnrecognisedTrace | UnreadableRows | None = None  # more on the trace than `mistakes`
    # The first field that is wrong, from above. Every wrong field asks for it: it is found once.
    first_mistake: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if self.mistakes:
            object.__setattr__(self, "first_mistake", self._first_mistake())

    @property
    def given_rows(self) -> tuple[StageRow, ...]:
        """The rows in which something was typed."""
        return tuple(row for row in self.rows if not row.is_blank)

    def stage_pairs(self) -> list[tuple[str, str]]:
        """Return the stages with their units and the delay, as a form sends them; none of none."""
        rows = [(name, getattr(row, name)) for row in self.given_rows for name in STAGE_FIELDS]
        return [*rows, *self.unit_pairs()] if rows else []

    def unit_pairs(self) -> list[tuple[str, str]]:
        """Return the units of the stages, and the delay, as a form sends them."""
        return [(name, str(getattr(self, name))) for name in UNIT_FIELDS]

    @property
    def sources(self) -> tuple[InputSource, ...]:
        """Where the costs may come from: a fit only where one is at hand."""
        return tuple(one for one in InputSource if one is not InputSource.FIT or self.fit)

    @property
    def asks_items(self) -> bool:
        """Whether items are asked about: a trace is fitted for a message first."""
        return self.has_items and self.source is not InputSource.TRACE

    @property
    def has_constraints(self) -> bool:
        """Whether any constraint or unusual choice was made, so that its part is shown open."""
        default = InputState()
        changed = any(getattr(self, name) != getattr(default, name) for name in _UNUSUAL)
        return changed or any(name in self.mistakes for name in _UNUSUAL)

    @property
    def has_ranges(self) -> bool:
        """Whether any stage has several fit ranges, so that their column is shown."""
        return any(row.up_to for row in self.rows)

    @property
    def stage_numbers(self) -> tuple[int, ...]:
        """The number of each row's stage, from 1; 0 for a row that continues the one above.

        Blank rows are no stages: they have the numbers that the next ones would have.
        """
        found: list[int] = []
        stages, blank, goes_on = 0, 0, False
        for row in self.rows:
            if row.is_blank:
                blank += 1
                found.append(stages + blank)
                continue
            stages, blank = stages + (not goes_on), 0
            found.append(0 if goes_on else stages)
            goes_on = bool(row.up_to)
        return tuple(found)

    @property
    def name_notes(self) -> Mapping[int, str]:
        """Notes on repeated names, by the row's place."""
        first = [i for i, number in enumerate(self.stage_numbers) if number]
        named = [i for i in first if self.rows[i].name]
        unique = unique_names([self.rows[i].name for i in named])
        return {
            i: f"an earlier stage has this name; answers call this one “{name}”"
            for i, name in zip(named, unique, strict=True)
            if name != self.rows[i].name
        }

    @property
    def has_fit_choices(self) -> bool:
        """Whether how to fit was chosen, so that its part is shown open."""
        of_file = self.kind or self.columns or self.test or self.run or self.where
        said = of_file or self.stages_overlap or self.several_at_once
        return bool(said) or self.method != "robust" or self.shape != "ranges"

    def _first_mistake(self) -> str:
        order = [f"{name}.{row}" for row in range(len(self.rows)) for name in _COLUMNS]
        before = ("overhead-unit", "cost-unit", *order)
        chosen = (
            "delay",
            "save_as",
            "profile",
            "fit",
            "trace",
            "kind",
            *("columns", "test", "run", "where"),
            "stages_overlap",
            *("message", "current", "first_cap", "relative"),
            *("items", "fill"),
        )
        places = (*before, *chosen, *_UNUSUAL)
        return next((name for name in places if name in self.mistakes), "")

    @property
    def offers(self) -> Offers:
        """What can be chosen."""
        return OFFERS

    def with_mistakes(self, mistakes: Mapping[str, str]) -> InputState:
        """Return the same with what is wrong."""
        return replace(self, mistakes=dict(mistakes))

    @classmethod
    def empty(cls) -> InputState:
        return cls()

    @classmethod
    def of_example(cls, name: str) -> InputState:
        """Return a ready example. Raises NotFound."""
        found = example_named(name)
        given = cls(message=found.message)
        if found.pipeline is None:
            return replace(given, source=InputSource.TRACE, trace=read_example_table(found))
        if found.has_items:
            items, cap = read_example_table(found).strip(), found.first_cap
            given = cls(has_items=True, items=items, first_cap=cap, current=found.current)
        return given.with_pipeline(found.pipeline)

    @classmethod
    def of_form(cls, pairs: Iterable[tuple[str, str]]) -> InputState:
        """Read what a form sent: fields by name, columns of the table as repeated fields."""
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value.strip())
        texts: dict[str, Any] = {name: given[name][-1] for name in _TEXTS if name in given}
        return cls(
            source=_one_of(InputSource, given, "source"),
            rows=_rows(given),
            overhead_unit=_one_of(OverheadUnit, given, "overhead_unit", other="unspecified"),
            cost_unit=_one_of(CostUnit, given, "cost_unit", other="unspecified"),
            may_refragment="may_refragment" in given,
            has_items="has_items" in given,
            **texts,
        )

    @classmethod
    def of_question(
        cls,
        message_bytes: int,
        limits: FragmentLimits = _NO_LIMITS,
        *,
        may_refragment: bool = False,
        profile: str | None = None,
        pipeline: Pipeline | Machine | None = None,
    ) -> InputState:
        """Return a question, as far as the panel has fields for it."""
        found = cls(
            message=_format_size(message_bytes),
            min_fragment=_format_size(limits.min_fragment_bytes, default=1),
            max_fragment=_format_size(limits.max_fragment_bytes),
            alignment=_format_size(limits.alignment_bytes, default=1),
            max_fragments=_format_count(limits.max_fragments),
            may_refragment=may_refragment,
        )
        if pipeline is not None:
            found = found.with_pipeline(pipeline)
        return found if profile is None else found.with_profile(profile)

    @classmethod
    def of_answer(cls, answer: OptimizeOut) -> InputState:
        """Return the question of a stored answer, as far as it is in it."""
        found = cls.of_question(
            answer.message_bytes,
            limits_of(answer.constraints, items=True),
            may_refragment=answer.allow_refragmentation,
            profile=answer.profile.reference if answer.profile else None,
            pipeline=stored_stages(answer.pipeline) if answer.pipeline else None,
        )
        if answer.fit is not None and answer.profile is None:
            found = found.with_fit(answer.fit)
        current = current_of(answer)
        is_whole = current is not None and current >= answer.message_bytes
        return replace(found, current="whole" if is_whole else _format_size(current))

    @classmethod
    def of_items(cls, answer: ItemsOptimizeOut) -> InputState:
        """Return the question of a stored answer about items."""
        items, current = answer.items, answer.current
        table, note = None, ""
        if len(items.bytes) > MAX_SHOWN_ITEMS:
            note = f"{len(items.bytes)} items are too many to stand here: paste them again"
        else:
            table = item_table(asdict(items))
            note = "" if table else "no table says these items: their names are not of one"
        is_whole = current is not None and current.cap_bytes == answer.message_bytes
        return replace(
            cls.of_answer(answer),
            has_items=True,
            items=(table or "").rstrip(),
            items_note=note,
            fill=answer.fill.rule,
            first_cap=_format_size(answer.fill.first_bytes),
            max_items=_format_count(answer.constraints.max_fragment_items),
            current="whole" if is_whole else _format_size(current.cap_bytes if current else None),
        )

    @classmethod
    def of_record(cls, record: AnswerRecord) -> InputState:
        """Return the question of an answer of another version, as far as its body can be read."""
        limits = read_part(ConstraintsOut, record.body, "constraints")
        pipeline = read_part(PipelineOut, record.body, "pipeline")
        name, revision = record.profile_name, record.profile_revision
        return cls.of_question(
            record.message_bytes,
            limits_of(limits, items=True) if limits else _NO_LIMITS,
            profile=f"{name}@{revision}" if name is not None else None,
            pipeline=stored_stages(pipeline) if pipeline else None,
        )

    @property
    def units(self) -> ShownUnits:
        """Return the units of the table's columns, the defaults where the costs are not in it; and
        what else addresses keep.
        """
        kept = {"current": self.current, "relative": self.relative}
        if self.source is not InputSource.TABLE:
            return ShownUnits.from_texts(kept)
        units = {"overhead_unit": self.overhead_unit, "cost_unit": self.cost_unit}
        return ShownUnits.from_texts({**kept, **units})

    def keeping(self, kept: Iterable[tuple[str, str]]) -> InputState:
        """Return the same with what an address keeps of the question."""
        given = dict(kept)
        current, relative = (given.get(name) for name in ("current", "relative"))
        return replace(
            self,
            current=self.current if current is None else current,
            relative=self.relative if relative is None else relative,
        )

    def in_units(self, units: ShownUnits) -> InputState:
        """Return costs of µs and ns a byte in the units of the question, each column as a whole.

        A stage without a cost a byte has no bandwidth: then the costs stay as they are.
        """
        kept = units
        if any(row.cost and not units.format_cost(float(row.cost)) for row in self.rows):
            kept = ShownUnits(units.overhead)
        return replace(
            self,
            rows=tuple(_in_units(row, kept) for row in self.rows),
            overhead_unit=kept.overhead,
            cost_unit=kept.cost,
        )

    def with_profile(self, reference: str) -> InputState:
        """Return the same with this stored profile as where the costs come from."""
        return replace(self, source=InputSource.PROFILE, profile=reference)

    def with_fit(self, fit: FitOut) -> InputState:
        """Return the same with this fit as where the costs come from, where it is stored."""
        if fit.fit_id is None:
            document = dump_json(replace(fit, plot=None)).decode()
            return replace(self, source=InputSource.TRACE, trace=document)
        return replace(self, source=InputSource.FIT, fit=fit.fit_id)

    def with_pipeline(self, pipeline: Pipeline | Machine) -> InputState:
        """Return the same with this pipeline in the table, in µs and ns a byte; a machine's costs
        alone would be another question, and are left out.
        """
        if isinstance(pipeline, Machine):
            return replace(self, mistakes={**self.mistakes, "": _NO_WORDS})
        rows = [row for stage in pipeline.stages for row in _rows_of(stage)]
        hands_on = any(stage.handoff_bytes is not None for stage in pipeline.stages)
        return replace(
            self,
            mistakes={**self.mistakes, "": _NO_HANDOFF} if hands_on else self.mistakes,
            rows=tuple(rows),
            overhead_unit=OverheadUnit.US,
            cost_unit=CostUnit.NS_PER_BYTE,
            delay=format_number(pipeline.delay_us),
        )


_NO_HANDOFF = (
    "the table has no column for handoff_bytes: these stages hand on whole fragments here. Ask the "
    "service (POST /optimize, /simulate) for stages that hand bytes on as they move"
)
_NO_WORDS = (
    "the table has no columns for lanes, delays, processors and windows: these stages have some, "
    "and are not in it. Ask the service for them (POST /optimize, /compare, /audit, /simulate), or "
    "the command line"
)
_COLUMNS = ("name", "overhead", "cost", "up_to")
_UNUSUAL = (
    "min_fragment",
    "max_fragment",
    "alignment",
    "max_fragments",
    "max_items",
    "may_refragment",
    "strategy",
    "static_size",
    "relative_gap",
    "time_limit",
)
_TEXTS = (
    *("delay", "save_as", "profile", "fit", "trace", "kind", "method", "shape", "message"),
    *("columns", "test", "run", "where"),
    "stages_overlap",
    "several_at_once",
    *("items", "fill", "first_cap"),
    "current",
    "relative",
    *(name for name in _UNUSUAL if name != "may_refragment"),
)


def _rows(given: Mapping[str, list[str]]) -> tuple[StageRow, ...]:
    columns = [given.get(name, []) for name in _COLUMNS]
    count = min(max(map(len, columns)), MAX_ROWS + 1)
    cells = [[*column, *[""] * count][:count] for column in columns]
    return tuple(StageRow(*row) for row in zip(*cells, strict=True)) or (StageRow(),)


def _in_units(row: StageRow, units: ShownUnits) -> StageRow:
    return replace(
        row,
        overhead=row.overhead and units.format_overhead(float(row.overhead)),
        cost=row.cost and units.format_cost(float(row.cost)),
    )


def _rows_of(stage: Stage) -> Iterable[StageRow]:
    for number, part in enumerate(stage.ranges):
        yield StageRow(
            stage.name if number == 0 else "",
            format_number(part.overhead_us),
            format_number(part.ns_per_byte),
            _format_size(part.up_to_bytes),
        )


def _format_size(size: int | None, *, default: int | None = None) -> str:
    return "" if size is None or size == default else format_bytes(size)


def _format_count(number: int | None) -> str:
    return "" if number is None else str(number)


def _one_of(
    kind: type[Choice], given: Mapping[str, list[str]], name: str, *, other: str = ""
) -> Choice:
    """Return the choice that was sent: the first for none, `other` or the first if unknown."""
    first = next(iter(kind))
    sent = given.get(name, [""])[-1] or first
    return next((one for wanted in (sent, other) for one in kind if one == wanted), first)
