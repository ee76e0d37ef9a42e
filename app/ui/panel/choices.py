"""The choices of the input panel: units of costs, ready examples, common sizes.

Answers and jobs are stored in µs and ns a byte, whatever was typed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from app.questions.profiles import paper_profiles
from app.text.units import OF_MODEL
from contract.declare import Asked, words_of
from contract.fit_options import METHODS, SHAPES
from contract.limits import MAX_RUN
from contract.optimize import OptimizeIn
from domain.errors import InvalidInput, NotFound
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.trace_formats import TraceFormat
from domain.units import CostUnit, OverheadUnit, format_number

_EXACT_DIGITS = 17
KEPT = ("current", "relative", "last")
MAX_KEPT = 40

Unit = TypeVar("Unit", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class ShownUnits:
    """A unit of each column of the stage table, and `kept`, what else addresses keep of a question:
    the setting in use, how well the costs are known, and the answer before.
    """

    overhead: OverheadUnit = OverheadUnit.US
    cost: CostUnit = CostUnit.NS_PER_BYTE
    kept: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_texts(cls, given: Mapping[str, str]) -> ShownUnits:
        """Return units as an address has them; what a page never sends counts as nothing."""
        default = cls()
        return cls(
            _reported(given.get("overhead_unit", ""), default.overhead),
            _reported(given.get("cost_unit", ""), default.cost),
            kept_of(given),
        )

    @property
    def query(self) -> str:
        """Return units for an address, without the defaults: "cost_unit=gb_per_s", or ""."""
        default = ShownUnits()
        pairs = (
            ("overhead_unit", self.overhead, default.overhead),
            ("cost_unit", self.cost, default.cost),
        )
        units = [(name, str(unit)) for name, unit, common in pairs if unit != common]
        return urlencode([*units, *self.kept])

    @property
    def asked(self) -> str:
        """The query with its question mark, or ""."""
        return f"?{self.query}" if self.query else ""

    @property
    def also(self) -> str:
        """The query for an address that has one already, or ""."""
        return f"&{self.query}" if self.query else ""

    def onto(self, address: str) -> str:
        """Return the address with these units."""
        return address + (self.also if "?" in address else self.asked)

    def after(self, last: str) -> ShownUnits:
        """Return the same, the answer of this identifier being the one before; "" is none."""
        others = tuple(pair for pair in self.kept if pair[0] != "last")
        return replace(self, kept=(*others, *([("last", last)] if last else [])))

    def format_overhead(self, overhead_us: float) -> str:
        """Return a fixed time in its unit: the shortest number that means the same."""
        return _typed(self.overhead.to_us, overhead_us / self.overhead.to_us(1.0), overhead_us)

    def format_cost(self, ns_per_byte: float) -> str:
        """Return a cost a byte in its unit; "" for no cost as a bandwidth."""
        one = self.cost.to_ns_per_byte(1.0)
        if not self.cost.is_bandwidth:
            return _typed(self.cost.to_ns_per_byte, ns_per_byte / one, ns_per_byte)
        if not ns_per_byte > 0.0:
            return ""
        return _typed(self.cost.to_ns_per_byte, one / ns_per_byte, ns_per_byte)


def kept_of(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what an address keeps of a question beside its units, as it was typed."""
    found = ((name, given.get(name, "").strip()[:MAX_KEPT]) for name in KEPT)
    return tuple((name, text) for name, text in found if text)


def _typed(read: Callable[[float], float], near: float, value: float) -> str:
    """Return the shortest number about `near` that is read as this value; `near` where none is."""
    for digits in range(1, _EXACT_DIGITS + 1):
        short = float(f"{near:.{digits}g}")
        if short > 0.0 and read(short) == value:
            return format_number(short)
    return format_number(near)


def _reported(given: str, default: Unit) -> Unit:
    kinds = {str(one): one for one in type(default) if str(one) != "unspecified"}
    return kinds.get(given, default)


# --- offers: ready examples, common sizes, and choices in words -----------------------------------


FOLDER = Path(__file__).resolve().parents[3] / "examples"
COMMON_SIZES = (
    *("1 KiB", "4 KiB", "8 KiB", "16 KiB", "64 KiB", "256 KiB"),
    *("1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB"),
)
STRATEGIES = (
    ("auto", "the best known way"),
    ("exact", f"exact: proven optimum {OF_MODEL}"),
    ("repeat", "best size, repeated"),
    ("fixed", "best number of equal fragments"),
    ("static", "a size of mine, repeated"),
    ("ramp", "ramp up"),
    ("ramp_up_down", "ramp up and down"),
    ("hierarchical", "hierarchical"),
    ("hierarchical_ramp", "hierarchical ramp"),
    ("single", "one fragment"),
)
KINDS = (
    ("", "told from the file"),
    ("direct", "times of every stage"),
    ("end_to_end", "latencies of whole messages"),
    ("indirect", "latencies and inter-arrival times"),
    ("logp", "LogP signatures"),
)
FILLS = (
    ("until", "with the item that reaches it: DDP"),
    ("before", "before the item that exceeds it: packed"),
)
SAID = (("", "not said"), ("true", "yes"), ("false", "no"))


@dataclass(frozen=True, slots=True)
class InputExample:
    """A ready example: a pipeline, or a file of measurements where that is None.

    Where `has_items` a file of them is the message, with a cap of the first fragment, and one in
    use.
    """

    name: str
    words: str
    about: str
    message: str
    pipeline: Pipeline | None = None
    has_items: bool = False
    first_cap: str = ""
    current: str = ""


def _pipeline_of(name: str) -> Pipeline:
    """Return the stages of a request body in the folder of examples."""
    body = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    stages = body["pipeline"]["stages"]
    return pipeline_of_lines([(s["name"], s["overhead_us"], s["ns_per_byte"]) for s in stages])


_WORDS = {
    "myrinet-gam": ("Myrinet GAM", "4 KiB"),
    "gms": ("GMS", "8 KiB"),
    "disk-study": ("disk", "1 MiB"),
    "disk-study-two-networks": ("disk, two networks", "1 MiB"),
}
_STAGING = "kv-staging"
FIRST_EXAMPLE, FIRST_RELATIVE = _STAGING, "10 %"  # what the first view shows solved
_MEASURED = InputExample(
    "local-path-direct",
    "a measured trace",
    "stage times of a local path: copies, CRC-32, loopback TCP and a file written to disk",
    "1 MiB",
)
_GRADIENTS = InputExample(
    "resnet50-gradients",
    "DDP buckets",
    "the gradients of a ResNet-50, cut between tensors; costs and times of backward are assumed",
    "",
    pipeline_of_lines([("all-reduce", 1500.0, 1.818)]),
    has_items=True,
    first_cap="1 MiB",
    current="25 MiB",
)
EXAMPLES = (
    InputExample(
        _STAGING,
        "GPU staging",
        "GPU to GPU through host memory; costs composed from three published machines",
        "16 MiB",
        _pipeline_of(_STAGING),
    ),
    _GRADIENTS,
    *(
        InputExample(one.name, _WORDS[one.name][0], one.source, _WORDS[one.name][1], one.pipeline)
        for one in paper_profiles()
        if not one.hands_on  # the panel's table has no handoffs
    ),
    _MEASURED,
)


@cache
def trace_formats() -> tuple[TraceFormat, ...]:
    """Return the formats that are read: readers are loaded when the panel is first shown."""
    from fitting import formats

    return formats()


ASKED = {word.name: word for word in words_of(OptimizeIn) if word.label}


@dataclass(frozen=True, slots=True)
class Offers:
    """All that can be chosen in the panel, each with its text."""

    examples: tuple[InputExample, ...] = EXAMPLES
    sizes: tuple[str, ...] = COMMON_SIZES
    overhead_units: tuple[OverheadUnit, ...] = tuple(OverheadUnit)[
        :-1
    ]  # all but the unspecified one
    cost_units: tuple[CostUnit, ...] = tuple(CostUnit)[:-1]
    strategies: tuple[tuple[str, str], ...] = STRATEGIES
    kinds: tuple[tuple[str, str], ...] = KINDS
    methods: tuple[tuple[str, str], ...] = METHODS
    shapes: tuple[tuple[str, str], ...] = SHAPES
    said: tuple[tuple[str, str], ...] = SAID
    fills: tuple[tuple[str, str], ...] = FILLS

    @property
    def asked(self) -> Mapping[str, Asked]:
        """What each field is called, by its name."""
        return ASKED

    @property
    def unit_table(self) -> dict[str, Any]:
        """Every unit for the page's script."""
        return unit_table()

    @property
    def formats(self) -> tuple[TraceFormat, ...]:
        """Every format of measurements."""
        return trace_formats()


OFFERS = Offers()


def run_of(text: str) -> int | None:
    """Return the number of a run, None where none is typed. Raises InvalidInput."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MAX_RUN):
        raise InvalidInput(f"expected a run from 1 to {MAX_RUN}", field="run")
    return int(text)


def said_of(text: str) -> bool | None:
    """Return what was chosen of `SAID`, None for nothing and for what is none of these."""
    return {"true": True, "false": False}.get(text)


def as_said(said: bool | None) -> str:
    """Return the choice of `SAID` that says this."""
    return "" if said is None else str(said).lower()


def example_named(name: str) -> InputExample:
    """Return the example of this name. Raises NotFound."""
    found = next((one for one in EXAMPLES if one.name == name), None)
    if found is None:
        raise NotFound("there is no example of this name", field="example")
    return found


def read_example_table(example: InputExample) -> str:
    """Return the measurements of an example that is a trace, or its items."""
    return (FOLDER / f"{example.name}.csv").read_text(encoding="utf-8")


def unit_table() -> dict[str, dict[str, dict[str, Any]]]:
    """Return all units for the page's script: words, spelling, and what one is in µs or ns a byte.

    Of a bandwidth the `inverse` divided by it is the time.
    """
    times = {
        unit.value: {"words": unit.words, "spelling": unit.spelling, "factor": unit.to_us(1.0)}
        for unit in OverheadUnit
        if unit is not OverheadUnit.UNSPECIFIED
    }
    costs = {
        unit.value: {
            "words": unit.words,
            "spelling": unit.spelling,
            "inverse" if unit.is_bandwidth else "factor": unit.to_ns_per_byte(1.0),
        }
        for unit in CostUnit
        if unit is not CostUnit.UNSPECIFIED
    }
    return {"overhead": times, "cost": costs}
