"""What is known of the overlap of a fit's stages, as it is sent and taken."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Output, output, rule, sent
from .limits import MAX_LISTED_PLACES, MAX_PLACES, MAX_REASON, MAX_STAGES
from .rules import Count, NotNegative, Share

Structured: TypeAlias = Literal[
    "chain",
    "serial",
    "stop_and_wait",
    "window",
    "lanes",
    "turns",
    "shared_processors",
    "slow_each_other",
    "barrier",
    "sweep",
]
# Without control characters, line separators and marks that turn the direction of text around.
_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*$"

Places = Annotated[int, rule(ge=1, le=MAX_PLACES, is_whole=True)]
Reason = Annotated[str, rule(max_length=MAX_REASON, pattern=_ONE_LINE)]
Named = Annotated[tuple[str, ...], rule(max_length=MAX_STAGES)]


@output
class TracedWindowOut(Output):
    """At most so many fragments between the start of a stage and the end of another, or itself.

    A place is free again `return_us` after that.
    """

    first: str = sent("the stage at whose start a fragment takes a place")
    last: str = sent("the stage at whose end the place is left")
    fragments: Places = sent("how many fragments there may be between both at most")
    return_us: NotNegative = sent("how long after that the place is free again, µs")


@output
class SharedProcessorsOut(Output):
    """Stages that compute on so many processors; a fraction where that is estimated."""

    stages: Named = sent("the stages that compute on them")
    processors: Annotated[float, rule(ge=1.0, le=MAX_PLACES)] = sent(
        "how many processors they share; a fraction where that is estimated"
    )


@output
class PlaceFlagOut(Output):
    """The first `fragments` of a message take `ratio` times what later ones do; in all `more` of
    the message's time.
    """

    stage: str = sent("the stage whose first fragments take another time")
    ratio: NotNegative = sent("what these take over what those of the second half take")
    fragments: Places = sent("how many fragments of a message these are")
    more: float = sent("what they add to the message's time, as a share of it")


@output
class EvidenceOut(Output):
    """What a structure was found by; shares are of 1.

    `overlap` is the time in which two stages work, over that in which any does; `late` by what
    begins come later than in a chain, over the messages' time, and `left` what is left of that;
    `replay_error` of the median message, replayed by what was found.
    """

    messages: Count = sent("messages that were looked at")
    fragments: Count = sent("fragments of these messages")
    overlap: Share = sent("the time in which two stages work, over that in which any does")
    late: float = sent("by what begins come later than in a chain, over the messages' time")
    left: float = sent("by what begins come later than by the structure found, as `late`")
    replay_error: float = sent(
        "the median message, replayed by what was found, over its time, less 1"
    )


@output
class StructureOut(Output):
    """What begins of the stages show: `kind`, in words as `sentence`, and its numbers.

    `lanes` are of each stage, `return_us` is from a fragment that has left to the next begin.
    """

    kind: Structured = sent("which structure it is")
    sentence: str = sent("the structure in words")
    stages: Annotated[tuple[str, ...], rule(min_length=1, max_length=MAX_STAGES)] = sent(
        "the stages, in the order in which a fragment passes them"
    )
    evidence: EvidenceOut = sent("what it was found by")
    lanes: Annotated[tuple[Places, ...], rule(max_length=MAX_STAGES)] = sent(
        "how many fragments each stage handles at a time; empty: 1 each"
    )
    windows: Annotated[tuple[TracedWindowOut, ...], rule(max_length=MAX_LISTED_PLACES)] = sent(
        "bounds of the fragments between two stages"
    )
    turns: Annotated[tuple[Named, ...], rule(max_length=MAX_LISTED_PLACES)] = sent(
        "stages that work in turns, in groups"
    )
    shared: SharedProcessorsOut | None = sent("stages that share processors; null: none do")
    return_us: NotNegative = sent(
        "from a fragment that has left to the next begin, where stages do not overlap, µs"
    )
    places: Annotated[tuple[PlaceFlagOut, ...], rule(max_length=MAX_LISTED_PLACES)] = sent(
        "stages whose first fragments take another time"
    )
    handing_over_us: Annotated[tuple[NotNegative, ...], rule(max_length=MAX_STAGES)] = sent(
        "of each stage, from the end of the one before to its begin, µs"
    )
    queue_us: Annotated[tuple[NotNegative, ...], rule(max_length=MAX_STAGES)] = sent(
        "how long fragments wait for each stage, µs"
    )
    has_busy_time: bool = sent(
        "whether processor times were there, without which sharing is not seen"
    )
    reason: Reason = sent("why it is a sweep; else empty")


@output
class OverlapOut(Output):
    """What is known of the overlap of a fit's stages.

    `structure` is what begins show. `is_bare`: times are durations alone, which serial and
    pipelined programs write alike. `several_at_once`: whether a stage handles several fragments at
    once, null where nobody has said.
    """

    structure: StructureOut | None = sent("what begins of the stages show; null: there are none")
    is_bare: bool = sent(
        "whether times are durations alone, which serial and pipelined programs write alike"
    )
    several_at_once: bool | None = sent(
        "whether a stage handles several fragments at once; null: nobody has said"
    )
