"""Notices of fits and advice of audits, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.audit import WORTH_SAYING, Audit, Change, Priced
from app.text.numbers import format_gap, format_regret, format_regret_span
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.solution import Notice
from domain.units import format_bytes


def capitalised(text: str) -> str:
    """Return the text with a capital, the rest as it is."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return a refusal's text with a capital and a full stop; a field's name stays as it is."""
    first = text.partition(" ")[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun if not begun or begun.endswith((".", "!", "?", ":")) else f"{begun}."


# --- advice of an audit, in sentences -------------------------------------------------------------


def format_change(outcome: Audit, change: Change) -> str:
    """Return one of the audit's changes in words, with what it would cost."""
    if change is Change.NO_OTHER_SIZE:
        return "no other single size for all messages gains 0.1 % or more"
    if change is Change.ONE_SIZE:
        return f"{_for_all(outcome)}: {_costs(outcome.single)}"
    if change is Change.STEPS and outcome.size_steps is not None:
        steps = len(outcome.size_steps.setting.steps)
        costs = _costs(outcome.size_steps)
        return f"let the size grow with the message, in {steps} steps: {costs}"
    if change is Change.LOOKUP and outcome.repeats is not None:
        return (
            "look the size up for each message in a compiled table: mean regret "
            f"{format_regret(outcome.repeats)}"
        )
    left = outcome.schedules_at_most
    words = "less than 0.1 %" if left < WORTH_SAYING else f"at most {format_gap(left)}"
    return (
        "send schedules of several sizes out of a compiled table: mean regret 0 %; any other "
        f"schedules could gain {words} more"
    )


def format_advised_regret(at_least: float | None, at_most: float | None) -> str:
    """Return the regret of what is advised, with its limits where more than what is worth saying
    lies between them.
    """
    return format_regret_span(at_least, at_most, worth_saying=WORTH_SAYING)


def _costs(priced: Priced) -> str:
    where = format_bytes(priced.worst.message_bytes)
    mean, worst = (
        format_advised_regret(span.at_least, span.at_most)
        for span in (priced.mean, priced.worst_span)
    )
    return f"mean regret {mean}, worst {worst} at {where}"


def _for_all(outcome: Audit) -> str:
    size = outcome.single.setting.size_at(MAX_MESSAGE_BYTES)
    if size >= outcome.workload.sizes[-1].message_bytes:
        return "send every message whole"
    return f"repeat {format_bytes(size)} for all messages"


# --- notices of a fit, in the order of their importance for the answer ----------------------------


MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code means in a few words that follow stages' names, and what to do about it.

    `single` stands for the title where every stage has one outlier.
    """

    title: str
    advice: str = ""
    single: str = ""


# The first ones change every number, the last ones none.
MEANINGS: Mapping[str, Meaning] = {
    "unit_assumed": Meaning(
        "the unit is assumed",
        "See whether the times below can be right; a column that names its unit settles it.",
    ),
    "read_is_round_trip": Meaning(
        "latencies of reads hold the request too", "Measure sends or writes, or halve with care."
    ),
    "noise_decides_nothing": Meaning(
        "noise decides nothing", "Measure more, and do not cut by this stage until then."
    ),
    "no_bottleneck": Meaning("no bottleneck is known", "Add a bandwidth test of the same path."),
    "latency_missing": Meaning("latencies are missing", "Add a latency test of the same path."),
    "one_size": Meaning("one size was measured", "Measure signatures of two sizes and more."),
    "regime_missing": Meaning(
        "a part of the signature is missing",
        "Measure bursts of 1 to 256 messages, without computation and with much of it.",
    ),
    "bottleneck_above_total": Meaning(
        "the slowest stage takes longer than all together",
        "See that both tests took the same path, and that the latency is one way.",
    ),
    "steps_overlap": Meaning(
        "steps overlap", "Make the steps named one stage, below or with group in the request."
    ),
    "time_not_measured": Meaning("a step is missing", "Find the step that was not timed."),
    "narrowed_fit_alternates": Meaning(
        "the range goes back and forth", "Fit with ranges, or with one line over all sizes."
    ),
    "narrowed_fit_unsettled": Meaning(
        "the range still moves", "Fit with ranges, or with one line over all sizes."
    ),
    "overhead_not_supported": Meaning("the overhead is not determined", "Measure smaller sizes."),
    "cost_not_supported": Meaning("the cost a byte is not determined", "Measure larger sizes."),
    "too_few_sizes": Meaning(
        "too few sizes", "Measure five sizes and more; doubling ones are a good choice."
    ),
    "range_too_narrow": Meaning(
        "sizes are too close together", "Measure smaller and larger sizes."
    ),
    "negative_overhead_clipped": Meaning(
        "the overhead came out below 0 and is set to 0", "See whether small sizes are missing."
    ),
    "negative_ns_per_byte_clipped": Meaning(
        "the cost a byte came out below 0 and is set to 0", "See whether large sizes are missing."
    ),
    "negative_wire_latency_clipped": Meaning(
        "the wire latency came out below 0 and is set to 0",
        "See whether the round trips are of the same messages.",
    ),
    "stages_disagree_with_round_trip": Meaning(
        "the overheads are not stages in series",
        "Go by the whole message, or measure the stages themselves.",
    ),
    "network_hides_delay": Meaning(
        "the delay is set to 0", "Take unpipelined latencies as too long by what is said."
    ),
    "more_ranges_supported": Meaning(
        "the limit of fit ranges is reached", "Allow more ranges, or fit fewer sizes."
    ),
    "jump_not_measured": Meaning(
        "times jump where nothing was measured", "Measure sizes between the two named."
    ),
    "curvature": Meaning(
        "times bend away from the line", "Allow more ranges, or measure more sizes there."
    ),
    "excluded_not_found": Meaning(
        "samples to leave out were not found", "Name stage, size and time as they were measured."
    ),
    "quantised_clock": Meaning("the clock is coarse", "Time several repetitions at once."),
    "outliers": Meaning(
        "outliers", "The robust method weighs them down; find out what else ran.", "one outlier"
    ),
    "not_monotone": Meaning(
        "a larger size is faster", "Measure in random order, and leave first repetitions out."
    ),
    "warm_up": Meaning("the first repetition is slower", "Leave first repetitions out."),
    "sizes_off_the_line": Meaning(
        "single sizes lie off the line", "Look at them in the chart; measure them again."
    ),
    "too_few_repetitions": Meaning("few repetitions", "Measure each size five times or more."),
    "tool_warned": Meaning("the tool printed warnings", "See what it complained of."),
    "narrowed_fit": Meaning("one line over the sizes in use", ""),
    "switch_found": Meaning(
        "the line changes between ranges",
        "Nothing is wrong; see that sizes around the change were measured.",
    ),
}
_ORDER = {code: place for place, code in enumerate(MEANINGS)}
_HARMLESS = ("narrowed_fit", "switch_found")
_UNKNOWN = Meaning("")


@dataclass(frozen=True, slots=True)
class NoticeItem:
    """Notices of one code, those of all stages together."""

    code: str
    title: str
    advice: str
    notices: tuple[Notice, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that it is about, once each."""
        return tuple(dict.fromkeys(one.stage for one in self.notices if one.stage is not None))

    @property
    def is_harmless(self) -> bool:
        """Whether it only describes the fit, and warns of nothing."""
        return self.code in _HARMLESS

    @property
    def is_grouped(self) -> bool:
        """Whether several stages share it."""
        return len(self.stages) > 1

    @property
    def words(self) -> str:
        """In one sentence: that of the notice where it is alone, else what all have in common."""
        if not self.is_grouped:
            return "; ".join(notice.detail for notice in self.notices)
        return f"{named(self.stages)}: {self.title}"


def notice_items(notices: Iterable[Notice]) -> tuple[NoticeItem, ...]:
    """Return the notices of a fit by code, the important ones first."""
    found: dict[str, list[Notice]] = {}
    for notice in notices:
        found.setdefault(notice.code, []).append(notice)
    items = [_item(code, tuple(alike)) for code, alike in found.items()]
    return tuple(sorted(items, key=lambda item: _ORDER.get(item.code, len(_ORDER))))


def named(stages: Sequence[str]) -> str:
    """Return names in a sentence."""
    if len(stages) > MAX_NAMED:
        return f"{', '.join(stages[: MAX_NAMED - 1])} and {len(stages) - MAX_NAMED + 1} more"
    return " and ".join((", ".join(stages[:-1]), stages[-1])) if len(stages) > 1 else stages[0]


def notice_lines(notices: Iterable[Notice]) -> Iterator[str]:
    """Yield a line each, as the command line prints them."""
    for item in notice_items(notices):
        advice = f". {item.advice}" if item.advice and item.is_grouped else ""
        yield f"{item.words} ({item.code}){advice}"


def _item(code: str, notices: tuple[Notice, ...]) -> NoticeItem:
    meaning = MEANINGS.get(code, _UNKNOWN)
    title = meaning.title or code.replace("_", " ")
    if meaning.single and all(notice.value("outliers") == 1 for notice in notices):
        title = meaning.single
    return NoticeItem(code, title, meaning.advice, notices)
