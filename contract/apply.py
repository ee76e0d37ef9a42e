"""What sluice apply prints as JSON: a setting that was measured over the installed library."""

from __future__ import annotations

from .declare import Output, output, sent


@output
class ComparedOut(Output):
    """A program and a size: medians in µs, and how many times as long it took with the setting.

    `low` and `high` are the interval of `ratio`; the numbers of the setting are null where its
    result was wrong.
    """

    program: str = sent("the program that was run")
    message_bytes: int = sent("size of the message, bytes")
    before_us: float = sent("median without the setting, µs")
    after_us: float | None = sent("median with the setting, µs; null: its result was wrong")
    ratio: float | None = sent("how many times as long it took with the setting")
    low: float | None = sent("lower end of the interval of `ratio`")
    high: float | None = sent("upper end of the interval of `ratio`")
    outcome: str = sent("what the interval says of the setting")


@output
class TrialOut(Output):
    """A trial: its pairs, and why the programs did not end with the setting, where they did not."""

    pairs: int = sent("how often each program was run without and with the setting")
    failure: str = sent("why the programs did not end with the setting; empty: they did")
    compared: tuple[ComparedOut, ...] = sent("each program and size")


@output
class AppliedOut(Output):
    """A setting that was measured over the installed library, and whether it is kept.

    `text` is what is kept, null where nothing is; `trials` are in their order: a part of the
    setting that lost is left out of the next one, and the last one confirms.
    """

    target: str = sent("the target, as requests call it")
    library: str = sent("the installed library and its version")
    is_kept: bool = sent("whether the setting is kept")
    reason: str = sent("why, in words")
    text: str | None = sent("the configuration that is kept; null: none is")
    trials: tuple[TrialOut, ...] = sent("the trials, in their order")
