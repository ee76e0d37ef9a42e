"""Notices of fits and decisions of uncertain answers, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.uncertainty import LARGEST, UncertaintyQuestion, forbids_current
from app.text.in_flight import at_once_words
from app.text.measured_times import (
    IF_UNCUT,
    doubt,
    gain_words,
    refusal_words,
    remarks,
    stages_to_time,
)
from app.text.numbers import (
    format_gain,
    format_probability,
    format_size,
    two_digits,
)
from app.text.overlap import (
    EITHER_WAY,
    IF_ONE_AT_A_TIME,
    either_way_words,
    one_stage_words,
    overlap_words,
)
from app.text.transferred import sweep_command
from domain.default_sizes import CURRENT
from domain.fragment_setting import FragmentSetting
from domain.machine import Machine
from domain.solution import Notice
from domain.uncertain_answer import (
    BY_OVERLAP,
    REFUSED,
    Decision,
    DecisionCode,
    Measurement,
    MeasurementKind,
    Reason,
    SettingsInDraws,
    Uncertainty,
)
from domain.uncertainty import KnownErrors, NamedCut, Parameter, StatedStage, UncertainModel
from domain.units import format_bytes


def capitalised(text: str) -> str:
    """Return the text with a capital, the rest as it is."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return a refusal's text with a capital and a full stop; a field's name stays as it is."""
    first = text.partition(" ")[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun if not begun or begun.endswith((".", "!", "?", ":")) else f"{begun}."


# --- decisions of uncertain answers, in sentences -------------------------------------------------


_NEARLY_AS_GOOD = 0.02  # in the mean over the draws


def decision_sentence(found: Uncertainty, question: UncertaintyQuestion) -> str:
    """Return what to do and why, what it rests on, and what to measure where that is worth it."""
    said = [_decided(found, question), *_one_stage(found, question)]
    said += [*remarks(found), *rest_on(found)]
    if forbids_current(question):
        said.insert(0, f"Your {_setting(question)} is not within the limits.")
    said += known_to(question.model)
    if found.decision.measure is not None:
        said.append(_to_measure(found.decision.measure, found.decision, question))
    elif _is_left_to_a_program(found.decision):
        said.append(f"{_command(question)} would tell too.")
    return " ".join(said)


def _is_left_to_a_program(decision: Decision) -> bool:
    """Whether a program would tell, by the premise or else, and nothing has said so yet."""
    return decision.code is DecisionCode.MEASURE_FIRST and decision.reason not in BY_OVERLAP


def _one_stage(found: Uncertainty, question: UncertaintyQuestion) -> Iterator[str]:
    """What a file of one stage lacks, where it says not to cut."""
    stages = question.model.stages
    is_alone = question.overlap.is_bare and len(stages) == 1
    if is_alone and found.decision.advised.is_whole(question.message_bytes):
        yield one_stage_words(stages[0].name)


def settings_sentence(found: SettingsInDraws, errors: KnownErrors, words: Mapping[str, str]) -> str:
    """Return what to do about a setting for many messages; `words` say what each setting is."""
    setting, *others = found.settings
    gain = format_gain((found.gain.p05, found.gain.p95))
    of = "in total time" if found.is_of_time else "in the mean"
    set_instead = f"{words[found.advised]}: {gain} than {words[setting.name]}, {of}"
    if found.code is DecisionCode.SET_IT:
        said = f"Set {set_instead}"
        if found.reason is Reason.EITHER_WAY:
            said = f"{said}, {EITHER_WAY}"
    elif found.code is DecisionCode.MEASURE_FIRST:
        said = f"Measure first, then {set_instead}, {IF_UNCUT}"
        if found.reason is Reason.ONE_AT_A_TIME:
            said = f"Measure first: {set_instead}, {EITHER_WAY}, {IF_ONE_AT_A_TIME}"
        elif found.reason in BY_OVERLAP:
            said = f"Measure first: {set_instead}, if these stages overlap"
        elif found.reason not in (None, Reason.PREMISE):
            why = doubt(found.reason, found.unmeasured_bytes)
            said = f"Measure first: by the fitted lines {set_instead}, {why}"
    elif found.code is DecisionCode.KEEP_YOURS:
        near = two_digits(found.thresholds.regret_p95)
        said = f"Keep {words[setting.name]}: within {near} % of the best in 95 % of the draws"
    elif found.code is DecisionCode.NO_GAIN_PROVABLE:
        names = " or ".join(dict.fromkeys(words[one.name] for one in others))
        margin = two_digits(found.thresholds.margin)
        if found.gain.p95 <= found.thresholds.margin:
            said = f"Nothing to gain: {names} would gain {margin} % at most"
        else:
            said = f"No gain provable: {names} may be {gain}; {cannot_tell(errors.model)}"
    else:
        said = f"Within 2 % of the best repeated sizes {format_probability(setting.good)}"
    return " ".join([f"{said}.", *known_to(errors.model)])


def cannot_tell(model: UncertainModel) -> str:
    """Return what does not tell which cut is faster."""
    is_typed = isinstance(model.stages[0], StatedStage)
    return "such costs cannot tell" if is_typed else "the measurements cannot tell"


def setting_words(setting: FragmentSetting) -> str:
    """Return what a setting repeats, or how many steps it has."""
    if len(setting.steps) > 1:
        return f"{len(setting.steps)} size steps"
    size = setting.steps[0].size_bytes
    return "one piece" if size is None else format_bytes(size)


def known_to(model: UncertainModel) -> Iterator[str]:
    """Yield the deviation that was typed, where one was."""
    stage = model.stages[0]
    if not isinstance(stage, StatedStage):
        return
    if any(isinstance(one, StatedStage) and one.deviations for one in model.stages):
        yield "For costs that are known to the intervals given."
    else:
        yield f"For costs that are known to ±{two_digits(stage.relative)} %."


def _decided(found: Uncertainty, question: UncertaintyQuestion) -> str:
    decision = found.decision
    match decision.code:
        case DecisionCode.SET_IT:
            return _set_it(found, question)
        case DecisionCode.KEEP_YOURS:
            return f"Keep your {_setting(question)}: {_kept_because(decision, question)}."
        case DecisionCode.MEASURE_FIRST if decision.reason in BY_OVERLAP:
            current = question.current.size_bytes if question.current else None
            other = _compared(decision, question)
            return overlap_words(found, question.message_bytes, current, other)
        case DecisionCode.MEASURE_FIRST if decision.reason in REFUSED:
            size = decision.advised.size_bytes
            cut = "this cut" if size is None else _size_in(question, size)
            other = _compared(decision, question)
            return refusal_words(decision, found.file, cut, other)
        case DecisionCode.MEASURE_FIRST:
            may = format_gain((decision.gain.p05, decision.gain.p95))
            return f"Measure first: {_a_cut(decision.advised)} may be {may}."
    return _not_cut(decision, question)


def _set_it(found: Uncertainty, question: UncertaintyQuestion) -> str:
    decision, size = found.decision, found.decision.advised.size_bytes
    # What is near by the lines is not, nor what is near if stages overlap.
    by_file = decision.reason in (Reason.FILE_FASTER, Reason.EITHER_WAY)
    if size is None:
        first = "Send the fragments of this answer."
    elif size >= question.message_bytes:
        first = "Do not cut."
    else:
        near = "" if by_file else _or_round(found, size)
        first = f"Set {format_bytes(size)}{_at_once(question, size)}{near}."
    if size is None:
        flat = f" Where one size has to be repeated: {_size_in(question, found.repeats_bytes)}."
    else:
        flat = "" if by_file else _flat(found, size)
    other = _compared(decision, question)
    if decision.reason is Reason.EITHER_WAY and found.both_ways is not None:
        return f"{first} {capitalised(either_way_words(found.both_ways, other))}."
    return f"{first} {gain_words(decision, other)}.{flat}"


def _at_once(question: UncertaintyQuestion, size: int) -> str:
    """On how many lanes of a machine, or how many at a time."""
    model = question.model.model
    if not isinstance(model, Machine):
        return ""
    return at_once_words(model, size, question.message_bytes)


def _compared(decision: Decision, question: UncertaintyQuestion) -> str:
    """What the advised cut is compared with."""
    if decision.against == CURRENT:
        return f"your {_setting(question)}"
    is_largest = decision.against == LARGEST
    return "the largest size that the limits admit" if is_largest else decision.against


def _or_round(found: Uncertainty, size: int) -> str:
    """The round size that is nearly as good, where the advised one is not round."""
    sizes = [one.size_bytes for one in found.round_sizes]
    if not sizes or size in sizes or found.round_sizes[0].regret_mean > _NEARLY_AS_GOOD:
        return ""
    regret = two_digits(found.round_sizes[0].regret_mean)
    return f", or the round {format_bytes(sizes[0])}: {regret} % above the best in the mean"


def _flat(found: Uncertainty, size: int | None) -> str:
    """The sizes around this one that are within 2 % of the best."""
    near = next((one for one in found.good_sizes if one.within == 0.02), None)
    around = (
        [(low, high) for low, high in near.intervals if low <= (size or 0) <= high] if near else []
    )
    if not around:
        return ""
    low, high = (format_size(end, with_bytes=False) for end in around[0])
    return "" if low == high else f" Sizes from {low} to {high} are within about 2 %."


def _kept_because(decision: Decision, question: UncertaintyQuestion) -> str:
    if decision.reason is Reason.NEAR_BEST:
        within = two_digits(decision.thresholds.regret_p95)
        kept = decision.advised.size_bytes
        return f"{_continued(kept, question)}it is within {within} % of the best"
    why = "no other size is certain to be faster"
    return why if decision.measure else f"{why}, and no measurement is worth its time"


def _continued(size: int | None, question: UncertaintyQuestion) -> str:
    """That what is said of a size is not said by its measured time, where it has none."""
    low, high = question.measured_bytes or (1, question.message_bytes)
    size = min(size or low, question.message_bytes)
    is_timed = question.measured_us is not None and size == question.message_bytes
    if is_timed or low <= size <= high:
        return ""
    return "by the lines, continued beyond the sizes that were measured, "


def _not_cut(decision: Decision, question: UncertaintyQuestion) -> str:
    cut, gain = decision.cut, decision.cut_gain
    is_cut = (decision.advised.size_bytes or 0) < question.message_bytes
    if cut is None:
        return "Do not cut: the limits admit nothing else."
    if gain is None:
        size = _size_in(question, decision.advised.size_bytes or question.message_bytes)
        return f"Repeat {size}: no other size within the limits is certain to be faster."
    may = format_gain((gain.p05, gain.p95))
    if decision.reason is Reason.WITHIN_MISFIT:
        off = two_digits(decision.thresholds.margin)
        why = f"{_a_cut(cut)} may be {may}, and whole messages were measured {off} % off the model"
    elif decision.reason is Reason.CUT_NOT_FASTER:
        why = f"{_a_cut(cut)} may be {may}; {cannot_tell(question.model)}"
    elif decision.reason is Reason.ONE_PIECE_IS_BEST:
        by_lines = _continued(question.message_bytes, question)
        why = f"{by_lines}one piece is expected to take the least time; {_a_cut(cut)} may be {may}"
    else:
        why = f"{_a_cut(cut)} may be {may}, and no measurement is worth its time"
    return f"{'It hardly matters' if is_cut else 'Do not cut'}: {why}."


def _to_measure(one: Measurement, decision: Decision, question: UncertaintyQuestion) -> str:
    would = " may gain more"
    if decision.code is DecisionCode.MEASURE_FIRST:
        would = " would tell"
    elif decision.code is DecisionCode.NO_GAIN_PROVABLE:
        would = " would" if decision.reason is Reason.CUT_NOT_FASTER else " may find a gain"
    if one.kind is MeasurementKind.WHOLE_MESSAGES:
        sizes = [cut.size_bytes for cut in one.cuts or ()]
        if sizes and None not in sizes:  # an uneven cut is no size that a program is given
            return f"{_command(question)}{would}."
        ways = both_ways(sizes, question.message_bytes)
        return f"Timing {one.repetitions} {ways}{would}."
    size, measured = one.fragment_bytes or 0, question.measured_bytes
    is_new = measured is not None and not measured[0] <= size <= measured[1]
    what = stages_to_time(question.model, one.stage or "", is_new=is_new)
    return f"Timing {what} at {format_bytes(size)}, {one.repetitions} times,{would}."


def _command(question: UncertaintyQuestion) -> str:
    """The command by which a program of the user's own decides."""
    current = question.current.size_bytes if question.current else None
    return sweep_command(question.message_bytes, current)


def both_ways(sizes: Sequence[int | None], message_bytes: int | None = None) -> str:
    """Return whole messages cut in two ways to be timed in turns, as fragments of these sizes.

    None are an answer's own fragments; a size of at least `message_bytes` is one piece.
    """
    if not sizes:
        return "whole messages both ways"
    ways = [
        "the fragments of this answer"
        if size is None
        else "one piece"
        if message_bytes is not None and size >= message_bytes
        else format_bytes(size)
        for size in sizes
    ]
    return f"whole messages in {' and in '.join(ways)} by turns"


def rest_on(found: Uncertainty) -> Iterator[str]:
    """Yield what an answer rests on that the measurements do not determine."""
    names = {Parameter.OVERHEAD: "the overhead", Parameter.PER_BYTE: "the per-byte cost"}
    rests = [f"{names[one.parameter]} of {one.stage}" for one in found.rests_on]
    if rests:
        undecided = " and ".join(dict.fromkeys(rests[:MAX_NAMED]))
        yield f"This rests on {undecided}, which the measurements do not determine."


def _setting(question: UncertaintyQuestion) -> str:
    size = question.current.size_bytes if question.current else None
    return _size_in(question, size or question.message_bytes)


def _size_in(question: UncertaintyQuestion, size: int) -> str:
    return "one piece" if size >= question.message_bytes else format_bytes(size)


def _a_cut(cut: NamedCut) -> str:
    return f"a cut of {format_bytes(cut.size_bytes)}" if cut.size_bytes else "this cut"


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
    "model_does_not_hold": Meaning("the model failed its verification"),
    "model_contradicted": Meaning("a trace shows another structure than the model"),
    "model_not_decided": Meaning("whether the model holds is not known"),
    "model_holds_with_offset": Meaning("the model holds with an offset"),
    "model_holds": Meaning("the model was verified"),
    "beyond_measured_sizes": Meaning("sizes were not measured", "Measure them, or use others."),
    "unit_assumed": Meaning(
        "the unit is assumed",
        "See whether the times below can be right; a column that names its unit settles it.",
    ),
    "read_is_round_trip": Meaning(
        "latencies of reads hold the request too", "Measure sends or writes, or halve with care."
    ),
    "several_lanes": Meaning(
        "several transfers were under way at once", "Measure one at a time for the cost of one."
    ),
    "noise_decides_nothing": Meaning(
        "noise decides nothing", "Measure more, and do not cut by this stage until then."
    ),
    "total_may_be_pipelined": Meaning("the latency may be of messages that a library cut"),
    "overlap_contradicted": Meaning("what you said of the overlap is not what was measured"),
    "preempted": Meaning("others wanted the processor", "Measure on an idle machine."),
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
    "stages_measured_apart": Meaning(
        "the stages were measured apart", "Time whole messages through all of them, cut and uncut."
    ),
    "processor_shared": Meaning(
        "stages share a processor and are no neighbours",
        "Expect cuts to gain less than is said; measure the stages together.",
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
    "ends_are_the_bottleneck": Meaning(
        "the ends limit the rate, not the network",
        "Take the interval between messages as that of the overheads.",
    ),
    "overheads_disagree": Meaning(
        "two receive overheads were measured",
        "See which of them is what the application does.",
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
    "drift_found": Meaning(
        "times moved while they were measured", "Measure longer, or on a quiet machine."
    ),
    "sizes_off_the_line": Meaning(
        "single sizes lie off the line", "Look at them in the chart; measure them again."
    ),
    "too_few_repetitions": Meaning("few repetitions", "Measure each size five times or more."),
    "times_below_zero": Meaning(
        "times below 0 were left out", "Take differences of longer times, or of more at once."
    ),
    "tool_warned": Meaning("the tool printed warnings", "See what it complained of."),
    "run_aborted": Meaning("the run was aborted", "Run it again, up to the largest size."),
    "rows_cut_off": Meaning("rows are cut off", "See that the file is whole."),
    "narrowed_fit": Meaning("one line over the sizes in use", ""),
    "switch_found": Meaning(
        "the line changes between ranges",
        "Nothing is wrong; see that sizes around the change were measured.",
    ),
}
_ORDER = {code: place for place, code in enumerate(MEANINGS)}
_HARMLESS = ("model_holds", "model_holds_with_offset", "narrowed_fit", "switch_found")


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
    meaning = MEANINGS.get(code, Meaning(""))
    title = meaning.title or code.replace("_", " ")
    if meaning.single and all(notice.value("outliers") == 1 for notice in notices):
        title = meaning.single
    return NoticeItem(code, title, meaning.advice, notices)
