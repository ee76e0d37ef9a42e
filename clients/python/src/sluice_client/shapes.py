"""What goes into requests and comes back in answers alike: pipelines, aggregates, constraints.

Sizes are whole bytes, times µs, per-byte costs ns. The service checks the values; here they are
only carried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FitRange:
    """One cost line, µs a fragment and ns a byte, up to this fragment size; None: without end."""

    overhead_us: float
    ns_per_byte: float
    up_to_bytes: int | None = None


@dataclass(frozen=True)
class Stage:
    """A name, and a cost line for each range of fragment sizes, ascending, the last one open.

    With the name "" the service names it by its place: "stage 1", "stage 2", ... With
    `handoff_bytes` its bytes are handed on as they move, so many at a time.
    """

    name: str
    ranges: tuple[FitRange, ...]
    handoff_bytes: int | None = None

    @classmethod
    def of_line(
        cls,
        name: str = "",
        *,
        overhead_us: float,
        ns_per_byte: float,
        handoff_bytes: int | None = None,
    ) -> Stage:
        """Return a stage whose cost is one line at every fragment size."""
        return cls(name, (FitRange(overhead_us, ns_per_byte),), handoff_bytes)

    @property
    def is_line(self) -> bool:
        """Whether one line covers every fragment size."""
        return len(self.ranges) == 1 and self.ranges[0].up_to_bytes is None

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        ranges = [
            {
                "up_to_bytes": one.up_to_bytes,
                "overhead_us": one.overhead_us,
                "ns_per_byte": one.ns_per_byte,
            }
            for one in self.ranges
        ]
        document: dict[str, Any] = {"ranges": ranges}
        if self.name:
            document["name"] = self.name
        if self.handoff_bytes is not None:
            document["handoff_bytes"] = self.handoff_bytes
        return document


@dataclass(frozen=True)
class Pipeline:
    """Ordered stages, and a constant delay (µs) that occupies none of them."""

    stages: tuple[Stage, ...]
    delay_us: float = 0.0

    @classmethod
    def of_lines(
        cls, lines: Iterable[tuple[str, float, float]], *, delay_us: float = 0.0
    ) -> Pipeline:
        """Return a pipeline from (name, overhead_us, ns_per_byte) rows."""
        stages = tuple(
            Stage.of_line(name, overhead_us=overhead_us, ns_per_byte=ns_per_byte)
            for name, overhead_us, ns_per_byte in lines
        )
        return cls(stages, delay_us)

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {"stages": [stage.as_json() for stage in self.stages], "delay_us": self.delay_us}


@dataclass(frozen=True)
class Aggregate:
    """All stages together, the slowest of them, and a delay (µs) that is not in the total.

    `total_is_uncut` says that nothing cut the messages whose latencies are the total; else no
    answer says to set a size.
    """

    total: Stage
    bottleneck: Stage
    delay_us: float = 0.0
    total_is_uncut: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {
            "total": self.total.as_json(),
            "bottleneck": self.bottleneck.as_json(),
            "delay_us": self.delay_us,
            "total_is_uncut": self.total_is_uncut,
        }


@dataclass(frozen=True)
class Constraints:
    """What every cut must respect; None: no such limit."""

    min_fragment_bytes: int = 1
    max_fragment_bytes: int | None = None
    alignment_bytes: int = 1
    max_fragments: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Measurement:
    """The text of one trace, and its kind where the text does not show it."""

    content: str
    kind: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {"content": self.content, "kind": self.kind}


@dataclass(frozen=True)
class StepGroup:
    """Measured steps, neighbours in the trace, that form one stage: `overlap` or `sequence`."""

    name: str
    steps: tuple[str, ...]
    combine: str

    def as_json(self) -> dict[str, Any]:
        """Return it as bodies have it."""
        return {"name": self.name, "steps": list(self.steps), "combine": self.combine}

    def as_word(self) -> str:
        """Return it as the query of a fit has it."""
        return f"{self.name}:{self.combine}:{','.join(self.steps)}"


@dataclass(frozen=True)
class Delivery:
    """How a stage cuts what arrives: `store_and_forward`, `static`, `eager`, `planned` or `same`.

    `pulse_bytes` goes with static, `threshold_bytes` and `max_pulse_bytes` with eager, and
    `planned_bytes` with planned.
    """

    rule: str
    pulse_bytes: int | None = None
    threshold_bytes: int | None = None
    max_pulse_bytes: int | None = None
    planned_bytes: tuple[int, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as bodies have it."""
        planned = None if self.planned_bytes is None else list(self.planned_bytes)
        return {
            "rule": self.rule,
            "pulse_bytes": self.pulse_bytes,
            "threshold_bytes": self.threshold_bytes,
            "max_pulse_bytes": self.max_pulse_bytes,
            "planned_bytes": planned,
        }


@dataclass(frozen=True)
class ComposedStage:
    """A stage that was measured by itself: its files, which step of them, and its processor.

    `columns` are those of its tables, as in "size=bytes,time=copy:ms"; `test`, `run` and `where`
    say which test, run and condition of its files is meant.
    """

    name: str
    measurements: Measurement | Sequence[Measurement]
    step: str | None = None
    processor: str | None = None
    columns: str | None = None
    test: str | None = None
    run: int | None = None
    where: str | None = None


@dataclass(frozen=True)
class ExcludedSample:
    """A sample to leave out of a fit: every one of this stage with this size and this time."""

    stage: str
    message_bytes: int
    time_us: float

    def as_json(self) -> dict[str, Any]:
        """Return it as bodies have it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def as_word(self) -> str:
        """Return it as the query of a fit has it."""
        return f"{self.message_bytes}:{self.time_us!r}:{self.stage}"


@dataclass(frozen=True)
class FitOptions:
    """How to fit measurements; None leaves the choice to the service."""

    method: str | None = None
    shape: str | None = None
    max_ranges: int | None = None
    groups: tuple[StepGroup, ...] = ()
    excluded: tuple[ExcludedSample, ...] = ()
    as_stage: str | None = None
    columns: str | None = None
    total_is_uncut: bool | None = None
    several_at_once: bool | None = None
    stages_overlap: bool | None = None
    test: str | None = None
    run: int | None = None
    where: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as bodies have it."""
        given = {
            "method": self.method,
            "shape": self.shape,
            "max_ranges": self.max_ranges,
            "as_stage": self.as_stage,
            "columns": self.columns,
            "test": self.test,
            "run": self.run,
            "where": self.where,
            "total_is_uncut": self.total_is_uncut,
            "several_at_once": self.several_at_once,
            "stages_overlap": self.stages_overlap,
        }
        document: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        if self.groups:
            document["groups"] = [group.as_json() for group in self.groups]
        if self.excluded:
            document["excluded"] = [sample.as_json() for sample in self.excluded]
        return document


@dataclass(frozen=True)
class SettingStep:
    """From this message size on, messages repeat this size; None: they are sent whole."""

    from_bytes: int
    size_bytes: int | None

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {"from_bytes": self.from_bytes, "size_bytes": self.size_bytes}


@dataclass(frozen=True)
class Setting:
    """A setting that messages are cut by today, made by one of its four class methods."""

    document: dict[str, Any]

    @classmethod
    def static(cls, static_bytes: int) -> Setting:
        """Return the setting that always repeats this size."""
        return cls({"static_bytes": static_bytes})

    @classmethod
    def whole(cls) -> Setting:
        """Return the setting that sends every message whole."""
        return cls({"whole": True})

    @classmethod
    def stepped(cls, steps: Iterable[SettingStep]) -> Setting:
        """Return a size for each range of message sizes."""
        return cls({"steps": [step.as_json() for step in steps]})

    @classmethod
    def configured(cls, target: str, content: str) -> Setting:
        """Return what a library's configuration says, in the syntax of this export target."""
        return cls({"configuration": {"target": target, "content": content}})


@dataclass(frozen=True)
class WorkloadSize:
    """A message size of a workload, and how much it counts."""

    message_bytes: int
    weight: float = 1.0

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {"message_bytes": self.message_bytes, "weight": self.weight}


@dataclass(frozen=True)
class Granularity:
    """Instructions per byte, of the software and that a byte takes to be sent; `overhead` is what
    hiding adds, relative to the calculation.
    """

    software: float
    hardware: float
    overhead: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class HostStages:
    """Stages, by name or place from 0, that run on the processor which calculates."""

    sender: tuple[int | str, ...] = ()
    receiver: tuple[int | str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {"sender": list(self.sender), "receiver": list(self.receiver)}


@dataclass(frozen=True)
class Processes:
    """Numbers of processes asked about; the calculation asked about is that of each of `at`.

    `communication` is `constant`, `sqrt`, `linear` or, with an `exponent`, `exponent`.
    """

    max_processes: int
    min_processes: int = 1
    at: int = 1
    communication: str = "constant"
    exponent: float | None = None
    speedup_reference: str = "calculation"

    def as_json(self) -> dict[str, Any]:
        """Return it as requests have it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
