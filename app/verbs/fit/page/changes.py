"""What differs between two fits of the same measurements: asked, found, and warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.text.notices import MEANINGS, named, notice_items
from domain.fit import FitOptions, StageFit
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
    """`asked` is what was asked differently, in words; `rows` the largest changes first.

    `ranges` says where their number changed, `stages` which came instead of which.
    """

    before_id: str
    asked: tuple[str, ...]
    rows: tuple[ChangeRow, ...]
    ranges: tuple[str, ...]
    stages: str
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def first(self) -> tuple[ChangeRow, ...]:
        """The rows that are shown at once."""
        return self.rows[:SHOWN]

    @property
    def rest(self) -> tuple[ChangeRow, ...]:
        """Those behind a click."""
        return self.rows[SHOWN:]


def fit_changes(before: FitRecord, after: FitRecord) -> FitChanges:
    """Return the differences of two fits of the same measurements."""
    old = {stage.name: stage for stage in before.fit.fitted_stages}
    new = {stage.name: stage for stage in after.fit.fitted_stages}
    rows, remarks, same = list[ChangeRow](), list[str](), list[str]()
    for name in (stage for stage in new if stage in old):
        found = list(_rows(old[name], new[name]))
        counts = (len(old[name].lines), len(new[name].lines))
        if counts[0] != counts[1]:
            remarks.append(f"{name} {counts[1]} instead of {counts[0]}")
        elif not found:
            same.append(name)
        rows += found
    if before.fit.delay_us != after.fit.delay_us:
        rows.append(_row("all", "delay, µs", before.fit.delay_us, after.fit.delay_us))
    notices_before, notices_after = _notices(before), _notices(after)
    rows.sort(key=lambda row: -abs(row.share) if row.share is not None else 0.0)
    return FitChanges(
        before_id=before.id,
        asked=tuple(_asked(_options(before), _options(after))),
        rows=tuple(rows),
        ranges=tuple(remarks),
        stages="; ".join(_stages_moved(old, new)),
        unchanged=tuple(same),
        removed=tuple(_differing(notices_before, notices_after)),
        new=tuple(_differing(notices_after, notices_before)),
    )


def _rows(old: StageFit, new: StageFit) -> Iterator[ChangeRow]:
    """Yield parameters where the ranges are the same, else times at the ends of the sizes."""
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
    removed, come = (
        [name for name in old if name not in new],
        [name for name in new if name not in old],
    )
    if come:
        yield (f"{named(come)} instead of {named(removed)}" if removed else f"{named(come)} came")
    elif removed:
        yield f"{named(removed)} went"


# --- differences of the requests ------------------------------------------------------------------


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
    if before.total_is_uncut != after.total_is_uncut:
        yield "latencies of uncut messages" if after.total_is_uncut else "latencies of any messages"
    for name, words in _OF_OVERLAP:
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"{words}: {_SAID_IN_WORDS[other]} instead of {_SAID_IN_WORDS[one]}"
    if before.as_stage != after.as_stage:
        yield f"times of the stage {after.as_stage}" if after.as_stage else "times of messages"
    for group in after.groups:
        if group not in before.groups:
            yield f"one stage made of {named(group.steps)}"
    for group in before.groups:
        if group not in after.groups:
            yield f"stages of their own for {named(group.steps)}"


_OF_OVERLAP = (
    ("stages_overlap", "stages overlap"),
    ("several_at_once", "several fragments at once in a stage"),
)
_SAID_IN_WORDS = {None: "not said", True: "yes", False: "no"}


def _samples(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"


# --- differences of the notices -------------------------------------------------------------------


def _notices(record: FitRecord) -> dict[str, list[str]]:
    """Return codes, important ones first, and the measured steps each is about."""
    steps = {group.name: group.steps for group in _options(record).groups}
    return {
        item.code: [step for stage in item.stages or ("",) for step in steps.get(stage, (stage,))]
        for item in notice_items(record.fit.notices)
    }


def _differing(these: dict[str, list[str]], those: dict[str, list[str]]) -> Iterator[str]:
    """Yield what is reported here and not there."""
    for code, stages in these.items():
        only = [stage for stage in stages if stage not in those.get(code, ())]
        if not only:
            continue
        title = MEANINGS[code].title if code in MEANINGS else code.replace("_", " ")
        yield f"{named(only)}: {title}" if any(only) else title
