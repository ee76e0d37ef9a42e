"""What is different from the fit that this one was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.text.notices import MEANINGS, named, notice_items
from domain.fit import FitOptions, StageFit, TraceFit
from domain.units import format_bytes
from models.records import FitRecord

_SAME = 1e-9  # relative: less is the arithmetic's
SHOWN = 10


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A number of a stage, before and after; `share` is None where it was 0."""

    stage: str
    what: str
    before: float
    after: float
    share: float | None


@dataclass(frozen=True, slots=True)
class FitChanges:
    """`asked` says what was asked differently, in words; `rows` the greatest changes first.

    `ranges` says where their number changed, `stages` which came instead of which.
    """

    before_id: str
    asked: tuple[str, ...]
    rows: tuple[ChangeRow, ...]
    ranges: tuple[str, ...]
    stages: str
    unchanged: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def first(self) -> tuple[ChangeRow, ...]:
        """The rows that are shown at once."""
        return self.rows[:SHOWN]

    @property
    def rest(self) -> tuple[ChangeRow, ...]:
        """Those behind a click."""
        return self.rows[SHOWN:]


def fitted_stages(fit: TraceFit) -> tuple[StageFit, ...]:
    """What was fitted: stages, or total and bottleneck."""
    if fit.aggregate is not None:
        return (fit.aggregate.total, fit.aggregate.bottleneck)
    return fit.stages


def fit_changes(before: FitRecord, after: FitRecord) -> FitChanges:
    """The differences of two fits of the same measurements."""
    old = {stage.name: stage for stage in fitted_stages(before.fit)}
    new = {stage.name: stage for stage in fitted_stages(after.fit)}
    rows, remarks, same = list[ChangeRow](), list[str](), list[str]()
    for name in (one for one in new if one in old):
        found = list(_rows(old[name], new[name]))
        counts = (len(old[name].lines), len(new[name].lines))
        if counts[0] != counts[1]:
            remarks.append(f"{name} {counts[1]} instead of {counts[0]}")
        elif not found:
            same.append(name)
        rows += found
    if before.fit.delay_us != after.fit.delay_us:
        rows.append(_row("all", "delay, µs", before.fit.delay_us, after.fit.delay_us))
    said_before, said_after = _said(before), _said(after)
    rows.sort(key=lambda row: -abs(row.share) if row.share is not None else 0.0)
    return FitChanges(
        before_id=before.id,
        asked=tuple(_asked(_options(before), _options(after))),
        rows=tuple(rows),
        ranges=tuple(remarks),
        stages="; ".join(_stages_moved(old, new)),
        unchanged=tuple(same),
        gone=tuple(_words(said_before, said_after)),
        new=tuple(_words(said_after, said_before)),
    )


def _rows(old: StageFit, new: StageFit) -> Iterator[ChangeRow]:
    """Parameters where the lines are of the same ranges, else times at the ends of the sizes."""
    if [line.up_to_bytes for line in old.lines] == [line.up_to_bytes for line in new.lines]:
        for one, other in zip(old.lines, new.lines, strict=True):
            reach = ""
            if len(new.lines) > 1:
                end = other.up_to_bytes
                reach = f", up to {format_bytes(end)}" if end else ", above"
            for what, name in (("overhead, µs", "overhead_us"), ("cost, ns/byte", "ns_per_byte")):
                row = _row(old.name, what + reach, getattr(one, name), getattr(other, name))
                if _is_change(row):
                    yield row
        return
    sizes = [size.message_bytes for size in new.sizes]
    for size in dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])) if sizes else ():
        times = (stage.to_stage().time_us(size) for stage in (old, new))
        row = _row(old.name, f"time of {format_bytes(size)}, µs", *times)
        if _is_change(row):
            yield row


def _row(stage: str, what: str, before: float, after: float) -> ChangeRow:
    return ChangeRow(stage, what, before, after, after / before - 1.0 if before else None)


def _is_change(row: ChangeRow) -> bool:
    return abs(row.after - row.before) > _SAME * abs(row.before)


def _stages_moved(old: Mapping[str, StageFit], new: Mapping[str, StageFit]) -> Iterator[str]:
    gone, come = (
        [name for name in old if name not in new],
        [name for name in new if name not in old],
    )
    if come:
        yield f"{named(come)} instead of {named(gone)}" if gone else f"{named(come)} came"
    elif gone:
        yield f"{named(gone)} went"


# --- what was asked -------------------------------------------------------------------------------


def _options(record: FitRecord) -> FitOptions:
    return record.request.options if record.request else FitOptions()


def _asked(before: FitOptions, after: FitOptions) -> Iterator[str]:
    out, back = (
        set(after.excluded) - set(before.excluded),
        set(before.excluded) - set(after.excluded),
    )
    if out:
        yield f"{_samples(len(out))} left out"
    if back:
        yield f"{_samples(len(back))} taken back"
    for words, name in (("method", "method"), ("shape", "shape"), ("at most", "max_ranges")):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"{words} {other} instead of {one}" + (" ranges" if name == "max_ranges" else "")
    for group in after.groups:
        if group not in before.groups:
            yield f"one stage made of {named(group.steps)}"
    for group in before.groups:
        if group not in after.groups:
            yield f"stages of their own for {named(group.steps)}"


def _samples(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"


# --- what was said --------------------------------------------------------------------------------


def _said(record: FitRecord) -> dict[str, list[str]]:
    """Codes, important ones first, and the measured steps each is said of."""
    steps = {group.name: group.steps for group in _options(record).groups}
    return {
        item.code: [step for stage in item.stages or ("",) for step in steps.get(stage, (stage,))]
        for item in notice_items(record.fit.notices)
    }


def _words(these: dict[str, list[str]], those: dict[str, list[str]]) -> Iterator[str]:
    """What is said here and not there."""
    for code, stages in these.items():
        only = [stage for stage in stages if stage not in those.get(code, ())]
        if not only:
            continue
        title = MEANINGS[code].title if code in MEANINGS else code.replace("_", " ")
        yield f"{named(only)}: {title}" if any(only) else title
