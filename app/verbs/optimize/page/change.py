"""What answers have in one respect, and what changed from an answer to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from app.text.numbers import format_cost, format_excess, format_size
from app.text.units import format_given_time, format_time
from app.ui.addresses import address
from app.verbs.optimize.show import bottleneck_name, format_constraints
from contract.optimize import OptimizeOut
from contract.pipeline import AggregateOut, StageOut
from domain.units import format_bytes

PLACE = "/ui/compare"  # of answers side by side
NONE = "none"


@dataclass(frozen=True, slots=True)
class Row:
    """What the answers have in one respect."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether they differ."""
        return len(set(self.values)) > 1


def row_of(name: str, answers: Sequence[OptimizeOut], words: Callable[[OptimizeOut], str]) -> Row:
    """Return what each of the answers has in this respect."""
    return Row(name, tuple(words(answer) for answer in answers))


def profile_words(answer: OptimizeOut) -> str:
    """Return the profile that an answer is of."""
    return answer.profile.reference if answer.profile else NONE


def bottleneck_words(answer: OptimizeOut) -> str:
    """Return the stage that is occupied longest, and that it is not known."""
    return bottleneck_name(answer) or "not known"


def stage_words(answer: OptimizeOut) -> list[str]:
    """Return what each stage costs, its name first; of an aggregate its total and bottleneck."""
    model = answer.model
    if isinstance(model, AggregateOut):
        parts = (("total", model.total), ("bottleneck", model.bottleneck))
        return [f"{name}: {_costs(stage)}" for name, stage in parts]
    return [f"{stage.name}: {_costs(stage)}" for stage in model.stages]


def _costs(stage: StageOut) -> str:
    parts = []
    for part in stage.parts:
        end = part.up_to_bytes
        where = f" up to {format_bytes(end)}" if end else ""
        overhead, per_byte = format_cost(part.overhead_us), format_cost(part.ns_per_byte)
        parts.append(f"{overhead} µs + {per_byte} ns/byte{where}")
    return "; ".join(parts)


# --- an answer and the one before it --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """What an answer changed against the one before it, by its name: figures, what was asked, where
    they are side by side.
    """

    before: str
    figures: tuple[str, ...]
    asked: tuple[str, ...]
    place: str


def change_between(
    before: OptimizeOut, now: OptimizeOut, sizes: tuple[int | None, int | None], *, name: str
) -> Change:
    """Return what changed; `sizes` are what was and is to be repeated, `name` is of `before`."""
    return Change(
        name or "the answer before",
        tuple(_changed_figures(before, now, sizes)),
        tuple(_changed_question(before, now)),
        address(PLACE, [("id", before.id), ("id", now.id)]),
    )


def _changed_figures(
    before: OptimizeOut, now: OptimizeOut, sizes: tuple[int | None, int | None]
) -> Iterator[str]:
    old, new = format_time(before.latency_us), format_time(now.latency_us)
    excess = format_excess(now.latency_us, before.latency_us)
    share = "" if excess in ("", "equal") else f" ({excess})"
    yield f"latency {new}, {f'instead of {old}{share}' if share else 'as before'}"
    if None not in sizes:
        was, is_now = (format_size(size or 0) for size in sizes)
        yield f"repeat {is_now}, {'as before' if was == is_now else f'instead of {was}'}"
    old, new = bottleneck_words(before), bottleneck_words(now)
    yield f"bottleneck {new}, {'as before' if old == new else f'instead of {old}'}"


def _changed_question(before: OptimizeOut, now: OptimizeOut) -> Iterator[str]:
    """Yield what was asked otherwise: the message, limits, the stages' costs."""
    both = [before, now]
    rows = [
        row_of("message", both, lambda one: format_bytes(one.message_bytes)),
        row_of("profile", both, profile_words),
        row_of("limits", both, lambda one: ", ".join(format_constraints(one)) or NONE),
        row_of("delay", both, lambda one: format_given_time(one.model.delay_us)),
    ]
    for old, new in zip_longest(stage_words(before), stage_words(now), fillvalue=NONE):
        rows.append(Row("stage", (old, new)))
    for row in rows:
        if row.differs:
            name = "" if row.name == "stage" else f"{row.name} "
            was, is_now = row.values
            known = was.partition(": ")[0] == is_now.partition(": ")[0] and row.name == "stage"
            yield f"{name}{is_now} instead of {was.partition(': ')[2] if known else was}"
