"""An answer as parts: what to send, how good it is, the Gantt, and the cost of simpler cuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from app.schemas.in_flight import ends_of, in_flight_facts, machine_of
from app.schemas.items import items_facts
from app.schemas.stages import limits_of, sensitivity_facts, stored_stages
from app.schemas.uncertainty import uncertainty_facts
from app.text.in_flight import format_in_budget, format_whole
from app.text.numbers import (
    format_count,
    format_counted,
    format_excess,
    format_figure,
    format_gap,
    format_size,
    format_sizes,
)
from app.text.units import (
    NOT_OF_MACHINE,
    OF_MODEL,
    TimeUnit,
    format_proven,
    format_repeated,
    format_setting_name,
    format_time,
    printable,
)
from app.ui.gantt import MAX_BLOCKS, chart_of, machine_chart_of
from app.ui.parts import Chart, Column, Facts, Grid, Part, failures, noted, others
from contract.optimize import (
    BaselineOut,
    DeliveredOptimizeOut,
    ItemsOptimizeOut,
    MachineOptimizeOut,
    OptimizeOut,
)
from contract.uncertainty import UncertaintyOut
from domain.fit import MAY_BE_PIPELINED
from domain.in_flight import CountTable
from domain.machine import Machine
from domain.machine_timeline import machine_timeline_of, work_of
from domain.problem import MachineProblem
from domain.solution import Status
from domain.units import format_bytes
from solvers.contract import Deadline

# Of each status: its colour on a page, its word, and what it says in one line.
STATUS_WORDS = {
    Status.OPTIMAL: (
        "good",
        f"optimum {OF_MODEL}",
        f"proven optimum {OF_MODEL}, in whole bytes",
    ),
    Status.OPTIMAL_BEFORE_ROUNDING: (
        "good",
        f"optimum {OF_MODEL} before rounding",
        f"proven optimum {OF_MODEL} in real-valued sizes; whole bytes add the gap",
    ),
    Status.PROVEN_GAP: (
        "",
        f"proven gap {OF_MODEL}",
        f"no proven optimum {OF_MODEL}; the gap is the most that can be missing",
    ),
    Status.TIME_LIMIT: (
        "warn",
        "time limit reached",
        "stopped early: the best so far; the gap is the most that can be missing",
    ),
}
_AT_MOST = "latency_is_upper_bound"
_COUNTS_S = 2.0  # what the table of lanes or places may take
EQUAL, WHOLE = "equal fragments", "not cut"
_LIMITS = {
    "max_fragments": "the greatest number of fragments that was allowed",
    "SLUICE_MAX_FRAGMENTS": "the service's own cap on fragments, SLUICE_MAX_FRAGMENTS",
    "min_fragment_bytes": "the least fragment size that was allowed",
    "alignment_bytes": "the alignment that was asked for",
}


def parts(
    answer: OptimizeOut, *, with_sensitivities: bool = False, by_count: Sequence[Part] = ()
) -> Iterator[Part]:
    """Yield an answer: what to send, how good it is, the Gantt, and the cost of simpler cuts.

    That its model failed on the machine comes before all of it. `by_count` are the `count_parts` of
    an answer that is shown with them.
    """
    yield from failures(answer.warnings)
    if isinstance(answer, ItemsOptimizeOut):
        yield from _items_parts(answer)
        return
    if answer.uncertainty:
        yield from uncertainty_parts(answer.uncertainty)
        yield ""
    elif answer.set_this:
        yield from (answer.set_this.sentence, "")
    if answer.set_this and answer.set_this.over:
        yield from (answer.set_this.over.sentence, "")
    yield from schedule_parts(answer)
    yield ""
    if with_sensitivities and answer.sensitivities:
        yield Facts(tuple(sensitivity_facts(answer.sensitivities)))
        yield ""
    if by_count:
        yield from (*by_count, "")
    yield instead_table(answer)
    if any(baseline.source for baseline in answer.baselines):
        yield "What sets the defaults of systems, and where they are written: --json."
    yield ""
    # Those of its fit are counted above it, and listed by the fit.
    of_fit = answer.fit.warnings if answer.fit else ()
    shown = [
        warning
        for warning in others(answer.warnings)
        if warning not in of_fit or warning.code == MAY_BE_PIPELINED
    ]
    yield from noted(shown)


def _items_parts(answer: ItemsOptimizeOut) -> Iterator[Part]:
    """Yield what to set for a message that is cut between items, and how good that is."""
    of_profile = f", profile {answer.profile.reference}" if answer.profile else ""
    yield answer.set_items.sentence
    yield ""
    yield format_path(answer) + of_profile
    yield ""
    sure = uncertainty_facts(answer.uncertainty) if answer.uncertainty else ()
    yield Facts((*_answer_facts(answer), *items_facts(answer), *sure))
    yield ""
    yield from noted(others(answer.warnings))


def uncertainty_parts(known: UncertaintyOut) -> Iterator[Part]:
    """Yield what to do, and how sure that is."""
    yield printable(known.sentence)
    yield ""
    yield Facts(tuple(uncertainty_facts(known)))


def schedule_parts(answer: OptimizeOut) -> Iterator[Part]:
    """Yield what to send, how good it is, and the Gantt."""
    of_profile = f", profile {answer.profile.reference}" if answer.profile else ""
    yield format_path(answer) + of_profile
    yield ""
    yield Facts(tuple(_answer_facts(answer)))
    yield ""
    if isinstance(answer, MachineOptimizeOut):
        yield Facts(tuple(in_flight_facts(answer)))
        yield ""
    yield gantt_part(answer)


def _answer_facts(answer: OptimizeOut) -> Iterator[tuple[str, str]]:
    yield "strategy", answer.strategy
    yield (
        "fragments",
        f"{format_count(answer.fragments)}: {format_sizes(answer.fragment_bytes)} bytes",
    )
    latency, bound = latency_and_bound(answer)
    yield "latency", ("at most " if is_at_most(answer) else "") + latency
    gap = format_gap(answer.relative_gap)
    yield "bound", f"no schedule of its class is below {bound}; gap {gap}"
    yield "status", f"{answer.status}: {STATUS_WORDS[Status(answer.status)][2]}"
    if answer.is_fitted:
        yield "proof", NOT_OF_MACHINE
    yield "bottleneck", printable(bottleneck_name(answer)) or "known by its time, not by its place"
    yield from delivery_facts(answer)
    if answer.levels:
        yield "levels", "stages cut differently; the coarsest cut is shown above"
    if answer.limited_by:
        yield "limited by", answer.limited_by


def gantt_part(answer: OptimizeOut) -> Chart | str:
    """Return the Gantt of an answer; a sentence instead where it cannot be drawn."""
    if answer.pipeline is None:
        return "(no Gantt: outside measurements do not tell when a fragment is in which stage)"
    if answer.cells > MAX_BLOCKS:
        return f"(no Gantt: {answer.cells} blocks are more than can be distinguished)"
    model = stored_stages(answer.pipeline)
    if isinstance(model, Machine):
        if work_of(model, answer.fragments) > MAX_BLOCKS:
            return "(no Gantt: too many orders of the processors' fragments would be looked at)"
        return machine_chart_of(machine_timeline_of(model, answer.fragment_bytes))
    return chart_of(
        model,
        answer.fragment_bytes,
        bottleneck=answer.bottleneck_stage or 0,
        levels=answer.levels,
    )


def instead_table(answer: OptimizeOut) -> Grid:
    """Return what other settings cost: the one in use, one piece, and the systems' defaults."""
    latency_us = answer.latency_us
    rows = []
    best = answer.best_fixed
    if best:
        each = format_repeated(best.size_bytes, written=_sizes_of(answer))
        how = _counted(each, best.fragments)
        rows.append(_instead_row("best fixed size", how, best.latency_us, latency_us))
    for baseline in answer.baselines:
        how, name = _how(answer, baseline), format_setting_name(baseline.name or baseline.strategy)
        rows.append(_instead_row(name, how, baseline.latency_us, latency_us))
    columns = (Column("instead", is_number=False), Column("how", is_number=False))
    return Grid((*columns, Column("latency"), Column("more by")), tuple(rows))


def count_parts(answer: OptimizeOut, *, fragment_cap: int) -> Iterator[Part]:
    """Yield size and time by lanes or places of an answer of a machine, which are solved now: for
    two seconds at most. Nothing of another answer, and where no size can be repeated.
    """
    from analysis.size_by_count import size_by_count

    best = answer.best_fixed
    if best is None or not isinstance(answer, MachineOptimizeOut):
        return
    machine = machine_of(answer)
    limits = limits_of(answer.constraints)
    problem = MachineProblem(machine, answer.message_bytes, limits, fragment_cap)
    found = answer.in_flight
    of_first = [one.lanes for one in found.stages[:1]] or [one.places for one in found.windows[:1]]
    also = [one.enough for one in of_first if one.enough is not None]
    table = size_by_count(problem, best.size_bytes, also, Deadline.after(_COUNTS_S))
    if table is not None and table.rows:
        yield _count_grid(answer, table)
    if table is not None and table.left_out:
        counts = ", ".join(map(format_count, table.left_out))
        yield f"Not looked for, {_COUNTS_S:g} s were over: {_counted_noun(answer, table)} {counts}."


def _count_grid(answer: MachineOptimizeOut, table: CountTable) -> Grid:
    """Each count with its best size, what that takes, and how much more than with the best."""
    pipeline = answer.pipeline
    assert pipeline is not None, "a machine has stages"
    noun = _counted_noun(answer, table)
    if table.stage is not None:
        about = printable(pipeline.stages[table.stage].name)
    else:
        about = ends_of(pipeline.windows[table.window or 0])
    budget = None if table.window is None else pipeline.windows[table.window].get("bytes")

    def size_words(size_bytes: int) -> str:
        if budget is None:
            return format_size(size_bytes, with_bytes=False)
        return format_in_budget(size_bytes, int(budget))

    best_us = min(row.latency_us for row in table.rows)
    unit = TimeUnit.of(best_us)
    return Grid(
        (
            Column(noun),
            Column("best size"),
            Column("fragments"),
            Column("latency"),
            Column("more by"),
        ),
        tuple(
            (
                format_count(row.count),
                size_words(row.size_bytes),
                format_count(row.fragments),
                unit.named(row.latency_us),
                format_excess(row.latency_us, best_us),
            )
            for row in table.rows
        ),
        f"Size and time by {noun} of {about}",
    )


def _counted_noun(answer: MachineOptimizeOut, table: CountTable) -> str:
    """What the rows of a table count."""
    if table.stage is not None or answer.pipeline is None:
        return "lanes"
    return "buffers" if "bytes" in answer.pipeline.windows[table.window or 0] else "places"


def _sizes_of(answer: OptimizeOut) -> Callable[[int], str]:
    """How the sizes of an answer are written."""
    if isinstance(answer, MachineOptimizeOut):
        return partial(format_whole, written=format_bytes)
    return format_bytes  # plain stages' answers are worded as they always were


def cut_words(answer: OptimizeOut, other: BaselineOut) -> str:
    """Return how another setting cuts the message, and that its time was measured."""
    cut = EQUAL
    if other.static_bytes:
        cut = format_repeated(other.static_bytes, other.default_bytes, written=_sizes_of(answer))
    elif other.strategy == "single" or other.fragments == 1:
        cut = WHOLE
    return cut if other.measured_us is None else f"{cut}, at most as measured"


def _how(answer: OptimizeOut, other: BaselineOut) -> str:
    if other.latency_us is None:
        return f"not possible: {printable(other.declined or '')}"
    return _counted(cut_words(answer, other), other.fragments or 0)


def _counted(cut: str, fragments: int) -> str:
    """Return a cut with how many fragments it makes, where its words do not say that."""
    if cut == EQUAL:
        return format_counted(fragments, "fragment")
    return cut if cut.startswith(WHOLE) else f"{cut}: {format_counted(fragments, 'fragment')}"


def _instead_row(name: str, how: str, other_us: float | None, latency_us: float) -> tuple[str, ...]:
    if other_us is None:
        return (name, how, "", "")
    return (name, how, format_time(other_us), format_excess(other_us, latency_us))


def delivery_facts(answer: OptimizeOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of what its stages choose, as a person reads it; else nothing."""
    if not isinstance(answer, DeliveredOptimizeOut):
        return
    for stage in answer.delivery:
        eager = f"eager from {format_count(stage.threshold_bytes or 1)} bytes"
        static = f"{format_count(stage.pulse_bytes or 0)} bytes each"
        what = static if stage.threshold_bytes is None else eager
        noun = "pulse" if stage.pulses == 1 else "pulses"
        yield f"stage {stage.stage}", f"{format_count(stage.pulses)} {noun}, {what}"
    yield "cut-through", f"{format_time(answer.ideal_us)} at best"
    yield "whole", f"{format_time(answer.store_and_forward_us)}, store and forward"
    if answer.sustained_mb_per_s is not None:
        yield "back to back", f"{format_figure(answer.sustained_mb_per_s)} MB/s at most"


# --- figures and sentences of terminal and page ---------------------------------------------------


def latency_and_bound(answer: OptimizeOut) -> tuple[str, str]:
    """Return both in one unit, with as many digits as show their gap."""
    return format_proven(answer.latency_us, answer.lower_bound_us)


def latency_unit(answer: OptimizeOut) -> TimeUnit:
    """Return the unit and decimals of the latency beside its bound."""
    return TimeUnit.of(answer.latency_us, answer.lower_bound_us)


def is_at_most(answer: OptimizeOut) -> bool:
    """Return whether the latency is the maximum of all pipelines with these costs."""
    return any(found.code == _AT_MOST for found in answer.warnings)


def bottleneck_name(answer: OptimizeOut) -> str:
    """Return the name of the stage that is occupied longest; "" where no stage is known."""
    if answer.pipeline is None or answer.bottleneck_stage is None:
        return ""
    return answer.pipeline.stages[answer.bottleneck_stage].name


def format_path(answer: OptimizeOut) -> str:
    """Return the message and what it crosses."""
    message = _sizes_of(answer)(answer.message_bytes)
    if isinstance(answer, ItemsOptimizeOut):
        size = format_size(answer.message_bytes, with_bytes=False)
        message = f"{format_counted(len(answer.items.bytes), 'item')}, {size},"
    if answer.pipeline is None:
        return f"{message} through a pipeline seen from outside"
    stages = len(answer.pipeline.stages)
    return f"{message} through {stages} stage{'s' * (stages != 1)}"


def format_constraints(answer: OptimizeOut) -> tuple[str, ...]:
    """Return each limit that the schedule keeps; none where any cut was admitted."""
    limits, found = answer.constraints, []
    if limits.min_fragment_bytes > 1:
        found.append(f"fragments of at least {format_bytes(limits.min_fragment_bytes)}")
    if limits.max_fragment_bytes:
        found.append(f"fragments of at most {format_bytes(limits.max_fragment_bytes)}")
    if limits.alignment_bytes > 1:
        found.append(f"all but the last a multiple of {format_bytes(limits.alignment_bytes)}")
    if limits.max_fragments:
        found.append(f"at most {format_count(limits.max_fragments)} fragments")
    if limits.max_fragment_items:
        found.append(f"at most {format_counted(limits.max_fragment_items, 'item')} a fragment")
    if answer.allow_refragmentation:
        found.append("stages may cut anew")
    return tuple(found)


def format_limiting(answer: OptimizeOut) -> str:
    """Return what keeps another fragment from helping; "" where nothing does."""
    name = answer.limited_by
    if not name:
        return ""
    return f"More fragments could be faster, but for {_LIMITS.get(name, name)}."


# --- what was proven ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proof:
    """A status in words: a word or two with a colour, and the whole sentence."""

    kind: str
    word: str
    sentence: str


def proof_of(answer: OptimizeOut) -> Proof:
    """Return what was proven of an answer."""
    status, gap = Status(answer.status), answer.relative_gap
    kind, word, _ = STATUS_WORDS[status]
    _, bound = latency_and_bound(answer)
    admitted = _class_of(answer, f" {OF_MODEL}")
    of_fit = f" Proven {NOT_OF_MACHINE}." if answer.is_fitted else ""
    if status is Status.OPTIMAL:
        stated = f"No {admitted} is faster"
        return Proof(kind, word, f"{stated}{_by_more_than(gap)}.{of_fit}")
    if status is Status.OPTIMAL_BEFORE_ROUNDING:
        return Proof(kind, word, _before_rounding(answer) + of_fit)
    between = f"No {admitted} is faster than {bound}; this one is {_about(gap)} above that."
    if status is Status.TIME_LIMIT:
        between = f"The time limit ended the search: this is the best found until then. {between}"
    return Proof(kind, word, between + of_fit)


def _class_of(answer: OptimizeOut, of_model: str = "") -> str:
    """Return which schedules the proof speaks of."""
    if answer.allow_refragmentation or answer.levels:
        return f"schedule{of_model} within these limits, also one that cuts anew between stages,"
    return f"schedule{of_model} within these limits"


def _by_more_than(gap: float) -> str:
    return f" by more than {format_gap(gap).removeprefix('< ')}" if gap > 0.0 else ""


def _about(gap: float) -> str:
    """Return a gap inside a sentence."""
    return format_gap(gap).replace("< ", "less than ")


def _before_rounding(answer: OptimizeOut) -> str:
    _, bound = latency_and_bound(answer)
    gap = _about(answer.relative_gap)
    unit = answer.constraints.alignment_bytes
    whole = "whole bytes" if unit == 1 else f"whole multiples of {format_bytes(unit)}"
    return (
        f"With sizes in fractions of a byte the optimum {OF_MODEL} is proven, and no "
        f"{_class_of(answer)} is faster than {bound}; {whole} are {gap} above that."
    )
