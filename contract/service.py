"""What the service says of itself: its limits, and whether it answers."""

from __future__ import annotations

from typing import Literal

from .declare import Output, output, sent
from .rules import Strategy


@output
class LimitsOut(Output):
    """Everything that a request is measured against. Sizes in bytes, times in µs or s."""

    max_stages: int = sent("stages of a pipeline")
    max_ranges_per_stage: int = sent("ranges of fragment sizes of a stage, each with a line")
    max_name_length: int = sent("characters of a stage's name")
    max_overhead_us: float = sent("overhead of a stage, µs per fragment")
    max_ns_per_byte: float = sent("cost of a stage, ns per byte")
    min_message_bytes: int = sent("the smallest message, bytes")
    max_message_bytes: int = sent("the largest message, bytes")
    max_fragments: int = sent("fragments of a message")
    max_body_bytes: int = sent("size of a request's body in JSON, bytes")
    max_trace_bytes: int = sent("size of a file of measurements, bytes")
    max_measurements: int = sent("files that are fitted together")
    max_simulation_intervals: int = sent("intervals of one simulation's answer")
    max_comparison_rows: int = sent("messages times strategies of one comparison")
    default_relative_gap: float = sent("the gap to the optimum that suffices where none is said")
    default_time_limit_s: float = sent("time limit of a search where none is said, s")
    max_time_limit_s: float = sent("the longest time limit of a search, s")
    max_page_size: int = sent("items of a page of a list")
    strategies: tuple[Strategy, ...] = sent("the strategies that there are")
    workers: int = sent("processes that solve")
    worker_memory_bytes: int = sent("memory that each of them may use, bytes")


@output
class AliveOut(Output):
    """The process answers."""

    status: Literal["alive"] = sent("alive: the process answers")


@output
class ReadyOut(Output):
    """The database and the workers answer too. Where everybody needs a key, anybody may ask for
    this all the same, and `database` is null.
    """

    status: Literal["ready"] = sent("ready: the database and the workers answer")
    database: Literal["sqlite", "postgresql"] | None = sent(
        "the kind of database; null where everybody needs a key"
    )
    workers: int = sent("processes that are ready to solve")
