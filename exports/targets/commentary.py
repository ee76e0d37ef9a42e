"""The head of every export: what it is, what it was made from, what it costs, whether it is read.

Exact     deterministic: no date, no machine; the same input gives the same text.
Traps     names come from outside. Every line is made of printable characters alone, holds nothing
          that ends or continues a comment in INI, shell, XML or C, and is short enough for readers
          with a line buffer: inih, which UCX uses, would take what is over 200 bytes for a new
          line that is no comment (its ini.h, INI_MAX_LINE).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from domain.errors import InvalidInput
from domain.model import CostModel
from domain.pipeline import FitRange, Stage
from domain.regret import ChosenSetting, Objective, Regret, SizeRule
from domain.uncertain_answer import RegretFigures, SettingsInDraws
from domain.units import format_bytes
from exports.targets.gain import comparison, warnings
from exports.targets.target import ExportInput, Target

LINE_BYTES = 100
_MAX_BYTES_OF_A_NAME = 400
# What is replaced, in this order: ends, beginnings and continuations of comments.
_ENDS = (("*/", "* /"), ("/*", "/ *"), ("\\", "_"), ("??", "?_"), ("]]>", "]] >"))
_WORDS = {
    Objective.TIME: "least total time",
    Objective.MEAN: "least mean regret",
    Objective.WORST: "least worst regret",
}


def commentary(
    given: ExportInput, target: Target, *, prefix: str = "# ", verified_by: str | None = None
) -> str:
    """Head lines, each after the prefix and with a line feed at its end.

    `verified_by` is said instead of the target's where it depends on the options; "" is unverified.
    """
    read_by = target.verified_by if verified_by is None else verified_by
    draws = None if given.refused else given.over_draws  # those of a model that failed say nothing
    lines = [
        *warnings(given, target),
        *_origin(given, target),
        *([given.verified] if given.verified else []),
        *model_lines(given.model),
        *comparison(given, target),
        *(_costs(given.chosen, draws, target) if given.chosen is not None else ()),
        reading(read_by, target.grammar),
    ]
    return comment(lines, prefix)


def comment(lines: Iterable[str], prefix: str = "# ") -> str:
    """Return lines as a comment: plain, wrapped, each after the prefix and with a line feed."""
    in_block = bool(prefix) and not prefix.strip()  # of XML or C
    shown = (plain(line, in_block=in_block) for line in lines)
    pieces = (piece for line in shown for piece in _wrapped(line, LINE_BYTES - len(prefix)))
    return "".join(f"{prefix}{piece}".rstrip() + "\n" for piece in pieces)


def plain(text: str, *, in_block: bool = True) -> str:
    """The text on one line, printable, without anything that ends or continues a comment; in a
    block of lines XML takes no two hyphens.
    """
    shown = "".join(one if one.isprintable() else " " for one in text)
    while in_block and "--" in shown:
        shown = shown.replace("--", "- -")
    for found, instead in _ENDS:
        shown = shown.replace(found, instead)
    return shown


def one_size(given: ExportInput, rule: SizeRule) -> int:
    """The size that every message repeats. Raises InvalidInput where the rule does not admit it."""
    if given.chosen is None or len(given.chosen.setting.steps) != 1:
        raise InvalidInput("expected one size for every message", field="setting")
    size = given.chosen.setting.steps[0].size_bytes
    if size is None:
        raise InvalidInput("expected a size: these messages are sent whole", field="setting")
    check_size(size, rule)
    return size


def check_size(size_bytes: int, rule: SizeRule) -> None:
    """Raise InvalidInput naming the part of the rule that the size breaks."""
    if not rule.min_bytes <= size_bytes <= rule.max_bytes:
        raise InvalidInput(
            f"expected a size of {rule.min_bytes} to {rule.max_bytes} bytes",
            field="setting",
        )
    if size_bytes % rule.multiple_of:
        raise InvalidInput(f"expected a multiple of {rule.multiple_of} bytes", field="setting")
    if rule.is_power_of_two and size_bytes & (size_bytes - 1):
        raise InvalidInput("expected a power of two", field="setting")


def _origin(given: ExportInput, target: Target) -> Iterator[str]:
    options = ", ".join(f"{name}={value}" for name, value in given.options.items())
    yield f"{target.title} ({target.name}{': ' if options else ''}{options})"
    if given.profile:
        yield f"made by Sluice from profile '{_short(given.profile)}', revision {given.revision}"
    else:
        yield "made by Sluice from a pipeline without a name"
    if given.table_digest:
        yield f"plan table {given.table_digest}"


def model_lines(model: CostModel) -> Iterator[str]:
    """Yield the costs of every stage, and a delay where there is one."""
    if model.stages is None:
        for name, cost in model.costs().items():
            for stage in cost if isinstance(cost, tuple) else (cost,):
                yield f"{name} of all stages together: {_cost(stage)}"
    for number, stage in enumerate(model.stages or (), start=1):
        yield f"stage {number} '{_short(stage.name)}': {_cost(stage)}"
    if model.delay_us:
        yield f"delay {model.delay_us:.6g} us a message"


def _cost(stage: Stage) -> str:
    if len(stage.ranges) <= 4:
        return "; ".join(map(_line, stage.ranges))
    first, last = _line(stage.ranges[0]), _line(stage.ranges[-1])
    return f"{first}; {len(stage.ranges) - 2} more ranges; {last}"


def _line(part: FitRange) -> str:
    end = "" if part.up_to_bytes is None else f" up to {part.up_to_bytes} bytes"
    return f"{part.overhead_us:.6g} us + {part.ns_per_byte:.6g} ns a byte{end}"


def _costs(
    chosen: ChosenSetting, over_draws: SettingsInDraws | None, target: Target
) -> Iterator[str]:
    for step in chosen.setting.steps:
        is_all = len(chosen.setting.steps) == 1
        where = "for every message" if is_all else f"from {step.from_bytes}"
        yield f"size {where}: {_size(step.size_bytes)}"
    workload = _short(chosen.workload.words)
    how = (
        "what to set for this message"
        if chosen.is_given
        else f"chosen for {_WORDS[chosen.objective]}"
    )
    yield f"{how} over the workload: {workload}"
    found = (chosen.time_regret, chosen.mean_regret, chosen.worst_regret)
    yield f"regret over the best schedules known: {_figures(*found)}"
    at_most = (chosen.time_at_most, chosen.mean_at_most, chosen.worst_at_most)
    yield f"regret over any schedules within the limits, at most: {_figures(*at_most)}"
    if chosen.is_partial:
        yield "time ended before the best schedules were found: more of it may choose other sizes"
    if over_draws is not None:
        own, *others = (_in_draws(setting.regret) for setting in over_draws.settings)
        draws = f"{over_draws.draws} draws of the fitted costs"
        yield f"in {draws}, over the best repeated sizes: {own}"
        for one, figures in zip(over_draws.settings[1:], others, strict=True):
            yield f"of {_size(int(one.name))} instead: {figures}"
    if target.figures_note:
        yield target.figures_note
    if chosen.at_powers:
        yield "  message bytes     size bytes  regret"
    yield from map(_row, chosen.at_powers)


def _figures(time: float, mean: float, worst: float) -> str:
    return f"total time {percent(time)}, mean {percent(mean)}, worst {percent(worst)}"


def _in_draws(regret: RegretFigures) -> str:
    return f"mean {percent(regret.mean)}, in 95 % of them at most {percent(regret.p95)}"


def _row(regret: Regret) -> str:
    return f"{regret.message_bytes:>15} {regret.size_bytes:>14}  {percent(regret.over_best)}"


def _size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "sent whole"
    words = format_bytes(size_bytes)
    return f"{size_bytes} bytes" + ("" if words.endswith(" B") else f" ({words})")


def percent(share: float) -> str:
    """Return a share in hundredths of a per cent."""
    return f"{100.0 * share + 0.0:.2f} %" if isfinite(share) else "unbounded"


def reading(read_by: str, grammar: str) -> str:
    """Return which program reads the text in the tests, if any, and the grammar that it follows."""
    if read_by:
        return f"Read back in tests by {read_by}; grammar after {grammar}"
    return f"UNVERIFIED: not read by the real program; grammar after {grammar}"


def _short(text: str) -> str:
    """At most some hundred bytes of it: a name is no place for a book."""
    kept = text.encode(errors="replace")[:_MAX_BYTES_OF_A_NAME].decode(errors="ignore")
    return kept if len(kept) >= len(text) else f"{kept}..."


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Pieces of at most `width` bytes of UTF-8, broken at spaces where there are any."""
    indent = " " * (2 + len(line) - len(line.lstrip(" ")))
    piece, *words = line.split(" ")
    for word in words:
        if piece.strip() and len(f"{piece} {word}".encode()) > width:
            yield from _sliced(piece, width)
            piece = f"{indent}{word}"
        else:
            piece = f"{piece} {word}"
    yield from _sliced(piece, width)


def _sliced(piece: str, width: int) -> Iterator[str]:
    while piece.strip():
        kept = piece.encode()[:width].decode(errors="ignore")
        yield kept
        piece = piece[len(kept) :]
