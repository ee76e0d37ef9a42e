"""The input panel's texts as a request, and a stored answer as a request that gives it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from analysis.size_curve import ChangedCost, with_cost
from app.errors import field_problems
from app.schemas.answers import current_of
from app.schemas.base import dump_json
from app.schemas.stages import given_aggregate, pipeline_out, stored_pipeline
from app.ui.panel.choices import ShownUnits, run_of, said_of
from app.ui.panel.state import InputSource, InputState, StageRow
from contract.limits import (
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_RANGES,
    MAX_STAGES,
    MAX_TIME_LIMIT_S,
)
from contract.optimize import OptimizeOut
from domain.errors import InvalidInput, SluiceError, StrategyDeclined, UnitMismatch
from domain.pipeline import stage_name
from domain.units import Unit, parse_bytes, parse_number, parse_quantity, parse_share

_UNLIMITED = {
    "min_fragment_bytes": 1,
    "max_fragment_bytes": None,
    "alignment_bytes": 1,
    "max_fragments": None,
}


def question_of(answer: OptimizeOut) -> dict[str, Any]:
    """Return the body for POST /optimize, without what is left to its default anyway.

    It names the strategy that gave the schedule: a question with `auto` gets the same one.
    """
    return dict(_fields(answer))


def whole_question_of(answer: OptimizeOut) -> dict[str, Any]:
    """Return the same with costs in place of a profile's name, or a fit in place of where it is
    stored: it needs no store.
    """
    fit = None if answer.fit is None else replace(answer.fit, fit_id=None)
    return question_of(replace(answer, profile=None, fit=fit))


_EXPONENTS = {"half": -1.0, "double": 1.0}
_MAX_EXPONENT = 2.0


def changed_costs(fields: Mapping[str, str]) -> dict[str, float]:
    """Return the costs that a form changes, as "1.per_byte", each with its factor.

    A button halves or doubles one: `what` is "1.per_byte.half". Without one, sliders have the
    factors' binary logarithms, from -2 to 2. Raises InvalidInput.
    """
    given = {name: text for name, text in fields.items() if name != "what"}
    if what := fields.get("what"):
        name, _, factor = what.rpartition(".")
        given = {name: str(_EXPONENTS.get(factor, ""))}
    try:
        exponents = {name: float(text) for name, text in given.items()}
    except ValueError:
        exponents = {"": 0.0}
    for name, exponent in exponents.items():
        stage, _, cost = name.partition(".")
        known = stage.isascii() and stage.isdigit() and len(stage) < 4 and cost in set(ChangedCost)
        if not known or not abs(exponent) <= _MAX_EXPONENT:
            raise InvalidInput("expected a stage, a cost and half or double, as 1.per_byte.half")
    return {name: 2.0**exponent for name, exponent in exponents.items() if exponent}


def changed_question(
    answer: OptimizeOut, factors: Mapping[str, float], units: ShownUnits
) -> dict[str, Any]:
    """Return the same question with these costs of stages, counted from 0, times their factors.

    `units` have what an address keeps of the question. Raises InvalidInput where there are none,
    and StrategyDeclined where no stages are known.
    """
    if answer.pipeline is None:
        raise StrategyDeclined("no stages are known of a pipeline that is seen from outside")
    if not factors:
        raise InvalidInput("expected a cost that is another")
    pipeline = stored_pipeline(answer.pipeline)
    for name, factor in factors.items():
        stage, _, cost = name.partition(".")
        pipeline = with_cost(pipeline, int(stage), ChangedCost(cost), factor)
    typed = replace(answer, profile=None, fit=None, pipeline=pipeline_out(pipeline))
    question = question_of(typed)
    kept = InputState.of_answer(answer).keeping(units.kept)
    reader = _Reader(kept)
    uncertainty = reader.uncertainty()
    if reader.mistakes:
        raise InvalidInput(next(iter(reader.mistakes.values())))
    question.pop("uncertainty", None)
    question |= {"strategy": "auto"} | ({"uncertainty": uncertainty} if uncertainty else {})
    question.pop("static_bytes", None)
    return question


def _fields(answer: OptimizeOut) -> Iterator[tuple[str, Any]]:
    yield "message_bytes", answer.message_bytes
    yield _source(answer)
    yield "strategy", str(answer.strategy)
    if answer.strategy == "static":
        yield "static_bytes", answer.fragment_bytes[0]
    limits = asdict(answer.constraints)
    given = {name: limits[name] for name, default in _UNLIMITED.items() if limits[name] != default}
    if given:
        yield "constraints", given
    if answer.allow_refragmentation:
        yield "allow_refragmentation", True
    current = current_of(answer)
    if current is not None:
        is_whole = current >= answer.message_bytes
        yield "uncertainty", {"current": "whole" if is_whole else {"repeat": current}}


def _source(answer: OptimizeOut) -> tuple[str, Any]:
    if answer.profile is not None:
        return "profile", answer.profile.reference
    if answer.fit is not None:
        fit_id = answer.fit.fit_id
        return ("fit", _plain(answer.fit)) if fit_id is None else ("fit_id", fit_id)
    if answer.aggregate is not None:
        return "aggregate", _plain(given_aggregate(answer.aggregate))
    return "pipeline", _plain(answer.pipeline)


def _plain(part: object) -> Any:
    """Return a part as JSON has it: objects and lists."""
    return orjson.loads(dump_json(part))


def json_lines(question: dict[str, Any]) -> str:
    """Return a question as JSON, a line for each field and for each stage."""
    return (
        "{\n" + ",\n".join(f"  {_dump(key)}: {_field(question[key])}" for key in question) + "\n}"
    )


def _field(value: Any) -> str:
    if not isinstance(value, dict) or "stages" not in value:
        return _dump(value)
    stages = ",\n".join(f"      {_dump(stage)}" for stage in value["stages"])
    others = "".join(
        f",\n    {_dump(key)}: {_dump(value[key])}" for key in value if key != "stages"
    )
    return f'{{\n    "stages": [\n{stages}\n    ]{others}\n  }}'


def _dump(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


# --- the panel's texts as a request ---------------------------------------------------------------


_LIMITS = (
    ("min_fragment", "min_fragment_bytes"),
    ("max_fragment", "max_fragment_bytes"),
    ("alignment", "alignment_bytes"),
    ("max_fragments", "max_fragments"),
)
Row = tuple[int, StageRow]


@dataclass(frozen=True, slots=True)
class InputRequest:
    """The document of an OptimizeIn, the field that each JSON pointer came from, and mistakes.

    The document is whole only where there are no mistakes; those are by the field's name.
    """

    document: Mapping[str, Any]
    places: Mapping[str, str]
    mistakes: Mapping[str, str]

    def mistakes_in(self, error: SluiceError) -> dict[str, str]:
        """Return what an error means for this request, by field; "" for what fits none."""
        found: dict[str, str] = {}
        for problem in field_problems(error):
            found.setdefault(self._field(problem.pointer), problem.detail)
        if not found:
            found[self._field(f"/{error.field}") if error.field else ""] = error.detail
        return found

    def _field(self, pointer: str) -> str:
        steps = pointer.split("/")
        while len(steps) > 1:
            if (name := self.places.get("/".join(steps))) is not None:
                return name
            steps.pop()
        return ""


def request_of(entry: InputState) -> InputRequest:
    """Return the request that the panel's texts make."""
    reader = _Reader(entry)
    document = reader.common()
    if entry.source is InputSource.TABLE:
        document["pipeline"] = reader.pipeline()
    elif entry.source is InputSource.PROFILE:
        document["profile"] = reader.profile()
    elif entry.source is InputSource.FIT:
        document["fit_id"] = reader.fit()
    else:
        document |= reader.measurements()
    return InputRequest(document, reader.places, reader.mistakes)


def transfers_asked(entry: InputState) -> tuple[int | None, int | None, dict[str, str]]:
    """Return the message and the size in use as typed, each None where it was not, and mistakes."""
    reader = _Reader(entry)
    message = reader.message()
    current = reader.uncertainty().get("current")
    size = message if current == "whole" else current["repeat"] if current else None
    return message, size, reader.mistakes


@dataclass(slots=True)
class _Reader:
    """Reads text after text, and notes where it came from and what is wrong with it."""

    entry: InputState
    places: dict[str, str] = field(default_factory=dict)
    mistakes: dict[str, str] = field(default_factory=dict)

    def message(self) -> int | None:
        """Return the message's size, None where it was not given."""
        return self._size("message", "/message_bytes", needed=False)

    def common(self) -> dict[str, Any]:
        """Return all but where the costs come from."""
        entry = self.entry
        document: dict[str, Any] = {
            "message_bytes": self._size("message", "/message_bytes", needed=True),
            "constraints": self._constraints(),
            "strategy": entry.strategy,
            "allow_refragmentation": entry.may_refragment,
            "relative_gap": self._share("relative_gap", "/relative_gap"),
            "time_limit_s": self._number("time_limit", "/time_limit_s", maximum=MAX_TIME_LIMIT_S),
        }
        self.places |= {"/strategy": "strategy", "/save_as": "save_as"}
        self.places["/allow_refragmentation"] = "may_refragment"
        if entry.strategy == "static" or entry.static_size:
            document["static_bytes"] = self._size(
                "static_size", "/static_bytes", needed=entry.strategy == "static"
            )
        if uncertainty := self.uncertainty():
            document["uncertainty"] = uncertainty
        if entry.save_as and entry.source is InputSource.TABLE:
            document["save_as"] = entry.save_as
        return document

    def uncertainty(self) -> dict[str, Any]:
        """Return the setting in use and how well the costs are known, as far as they were given."""
        found: dict[str, Any] = {}
        self.places["/uncertainty"] = "current"
        if self.entry.current == "whole":
            found["current"] = "whole"
        elif (size := self._size("current", "/uncertainty/current", needed=False)) is not None:
            found["current"] = {"repeat": size}
        if self.entry.relative:
            found["relative"] = self._share("relative", "/uncertainty/relative")
        return found

    def pipeline(self) -> dict[str, Any]:
        """Return the stage table."""
        stages = _stages(self.entry.rows)
        if not stages:
            self.mistakes["overhead.0"] = "expected at least one stage"
        if len(stages) > MAX_STAGES:
            self.mistakes[f"name.{stages[MAX_STAGES][0][0]}"] = (
                f"expected at most {MAX_STAGES} stages; this one is over"
            )
        self.places["/pipeline"] = f"overhead.{stages[0][0][0]}" if stages else "overhead.0"
        return {
            "stages": [self._stage(number, rows) for number, rows in enumerate(stages)],
            "delay_us": self._number("delay", "/pipeline/delay_us", maximum=MAX_OVERHEAD_US),
        }

    def profile(self) -> str:
        """Return the reference to a stored profile."""
        self.places["/profile"] = "profile"
        if not self.entry.profile:
            self.mistakes["profile"] = "expected the name of a stored profile"
        return self.entry.profile

    def fit(self) -> str:
        """Return the identifier of a stored fit."""
        self.places["/fit_id"] = "fit"
        return self.entry.fit

    def measurements(self) -> dict[str, Any]:
        """Return pasted measurements."""
        self.places |= {"/measurements": "trace", "/fit_options": "trace"}
        self.places["/measurements/kind"] = self.places["/kind"] = "kind"
        for name in ("columns", "test", "run", "where", "stages_overlap"):
            self.places[f"/fit_options/{name}"] = name
        if not self.entry.trace:
            self.mistakes["trace"] = "expected measurements: paste them, or drop a file here"
        return {
            "measurements": {"content": self.entry.trace, "kind": self.entry.kind or None},
            "fit_options": {
                "method": self.entry.method,
                "shape": self.entry.shape,
                **{name: said for name, said in self._said_of_overlap() if said is not None},
                **{name: said for name, said in self._said_of_rows() if said},
            },
        }

    def _said_of_overlap(self) -> Iterator[tuple[str, bool | None]]:
        for name in ("stages_overlap", "several_at_once"):
            yield name, said_of(getattr(self.entry, name))

    def _said_of_rows(self) -> Iterator[tuple[str, str | int | None]]:
        """Which columns, test, run and condition of the file are meant."""
        for name in ("columns", "test", "where"):
            yield name, getattr(self.entry, name)
        try:
            yield "run", run_of(self.entry.run)
        except InvalidInput as refusal:
            self.mistakes["run"] = refusal.detail

    def _stage(self, number: int, rows: Sequence[Row]) -> dict[str, Any]:
        place = f"/pipeline/stages/{number}"
        self.places[place] = self.places[f"{place}/name"] = f"name.{rows[0][0]}"
        self.places[f"{place}/ranges"] = f"up_to.{rows[-1][0]}"
        self._check_rows(rows)
        name = self._stage_name(number, rows[0])
        if len(rows) == 1:
            return {"name": name, **self._costs(place, rows[0])}
        ranges = [
            self._range(f"{place}/ranges/{part}", row, is_last=row is rows[-1])
            for part, row in enumerate(rows)
        ]
        return {"name": name, "ranges": ranges}

    def _stage_name(self, number: int, row: Row) -> str:
        name = row[1].name or stage_name(number + 1)
        if len(name) > MAX_NAME_LENGTH:
            self.mistakes[f"name.{row[0]}"] = f"expected at most {MAX_NAME_LENGTH} characters"
        return name

    def _check_rows(self, rows: Sequence[Row]) -> None:
        if len(rows) > MAX_RANGES:
            self.mistakes[f"up_to.{rows[MAX_RANGES][0]}"] = (
                f"expected at most {MAX_RANGES} ranges a stage"
            )
        last, row = rows[-1]
        if row.up_to:
            self.mistakes[f"up_to.{last}"] = (
                "a stage's last range has no end: leave this empty, or add the next range below"
            )
        for place, row in rows[1:]:
            if row.name and row.name != rows[0][1].name:
                self.mistakes[f"name.{place}"] = (
                    "the row above ends at a size, so this row continues its stage: leave the "
                    "name empty, or that size"
                )

    def _range(self, place: str, row: Row, *, is_last: bool) -> dict[str, Any]:
        costs = self._costs(place, row)
        if is_last:
            return {"up_to_bytes": None, **costs}
        name = f"up_to.{row[0]}"
        end = self._read_size(name, f"{place}/up_to_bytes", row[1].up_to)
        if end is not None and row[0] > 0 and end <= self._end_above(row[0]):
            self.mistakes[name] = "expected more than the size at which the range above ends"
        return {"up_to_bytes": end, **costs}

    def _end_above(self, row: int) -> int:
        try:
            return parse_bytes(self.entry.rows[row - 1].up_to)
        except UnitMismatch:
            return 0

    def _costs(self, place: str, row: Row) -> dict[str, Any]:
        number, cells = row
        overhead = self._overhead(f"overhead.{number}", cells.overhead)
        cost = self._cost(f"cost.{number}", cells.cost)
        self.places[f"{place}/overhead_us"] = f"overhead.{number}"
        self.places[f"{place}/ns_per_byte"] = f"cost.{number}"
        return {"overhead_us": overhead, "ns_per_byte": cost}

    def _overhead(self, name: str, text: str) -> float | None:
        found = self._measured(name, text, self.entry.overhead_unit, "overhead-unit")
        if found is None or found[1].to_us(found[0]) <= MAX_OVERHEAD_US:
            return None if found is None else found[1].to_us(found[0])
        self.mistakes[name] = f"expected at most {MAX_OVERHEAD_US:g} µs"
        return None

    def _cost(self, name: str, text: str) -> float | None:
        found = self._measured(name, text, self.entry.cost_unit, "cost-unit")
        if found is None:
            return None
        try:
            cost = found[1].to_ns_per_byte(found[0])
        except UnitMismatch as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if cost <= MAX_NS_PER_BYTE:
            return cost
        self.mistakes[name] = f"expected at most {MAX_NS_PER_BYTE:g} ns/byte"
        return None

    def _measured(
        self, name: str, text: str, unit: Unit, chooser: str
    ) -> tuple[float, Unit] | None:
        """Return a cell's number and unit; an unspecified one is asked for at the chooser."""
        try:
            found = parse_quantity(text, unit)
        except UnitMismatch as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if found[1].value != "unspecified":
            return found
        self.mistakes[chooser] = "expected a unit for the numbers of this column: choose it"
        return None

    def _constraints(self) -> dict[str, int]:
        found = {}
        for name, key in _LIMITS:
            pointer = f"/constraints/{key}"
            self.places[f"/{key}"] = name
            if (size := self._size(name, pointer, needed=False)) is not None:
                found[key] = size
        self.places["/constraints"] = "min_fragment"
        return found

    def _size(self, name: str, pointer: str, *, needed: bool) -> int | None:
        text: str = getattr(self.entry, name)
        self.places[pointer] = name
        if not text and not needed:
            return None
        return self._read_size(name, pointer, text)

    def _read_size(self, name: str, pointer: str, text: str) -> int | None:
        self.places[pointer] = name
        try:
            size = parse_bytes(text)
        except UnitMismatch as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if 1 <= size <= MAX_MESSAGE_BYTES:
            return size
        self.mistakes[name] = "expected at least 1 and at most 256 TiB"
        return None

    def _number(self, name: str, pointer: str, *, maximum: float) -> float | None:
        self.places[pointer] = name
        rule = f"expected a number from 0 to {maximum:g}"
        value = self._parsed(name, getattr(self.entry, name), rule=rule)
        if value is None or value <= maximum:
            return value
        self.mistakes[name] = rule
        return None

    def _share(self, name: str, pointer: str) -> float | None:
        self.places[pointer] = name
        try:
            value = parse_share(getattr(self.entry, name))
        except InvalidInput as refusal:
            self.mistakes[name] = refusal.detail
            return None
        if value <= 1.0:
            return value
        self.mistakes[name] = "expected at most 100 %"
        return None

    def _parsed(self, name: str, text: str, *, rule: str) -> float | None:
        try:
            value = parse_number(text)
        except InvalidInput:
            value = -1.0
        if value >= 0.0:
            return value
        self.mistakes[name] = rule
        return None


def _stages(rows: Iterable[StageRow]) -> list[list[Row]]:
    """Return the rows of each stage, with their numbers; blank rows count for nothing."""
    stages: list[list[Row]] = []
    goes_on = False
    for number, row in enumerate(rows):
        if row.is_blank:
            continue
        if goes_on:
            stages[-1].append((number, row))
        else:
            stages.append([(number, row)])
        goes_on = bool(row.up_to)
    return stages
