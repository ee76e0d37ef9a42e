"""How an answer's latency moves with its stages' costs and with the message, as it is sent."""

from __future__ import annotations

from .declare import Output, Sparse, output, sent


@output
class SlopeOut(Output):
    """The derivatives on both sides: they differ at a kink; null where a side is not there."""

    falling: float | None = sent("the derivative from below; null where that side is not there")
    rising: float | None = sent("the derivative from above; null where that side is not there")


@output
class CostChangeOut(Output):
    """What both costs of a stage, changed by this share, do to the latency, µs.

    `same_cut_us` is what the answer's cut takes then, `best_us` the best real-valued cut into as
    many fragments, of which `lower_bound_us` is proven of this model; null where not solved.
    """

    by: float = sent("the share by which both costs are more, or below 0 less")
    same_cut_us: float = sent("what the answer's cut takes then, µs")
    best_us: float | None = sent(
        "what the best real-valued cut into as many fragments takes, µs; null: not solved"
    )
    lower_bound_us: float | None = sent(
        "what such a cut takes at least, proven of this model, µs; null: not solved"
    )


@output
class PlacesChangeOut(Output):
    """What one lane or place fewer, and one more, do to the message in `repeated_bytes`, µs."""

    places: int = sent("how many lanes or places there are")
    fewer_us: float | None = sent("what it takes with one fewer, µs; null: there is one")
    more_us: float | None = sent("what it takes with one more, µs; null: no more are admitted")


@output
class StageSensitivityOut(Sparse):
    """How the latency moves with a stage's overhead (µs per µs) and cost (µs per ns/byte).

    Of a machine also with the delay behind the stage, and with its lanes where it has several.
    """

    name: str = sent("the stage by its name")
    by_overhead: SlopeOut = sent("µs of latency per µs of overhead")
    by_ns_per_byte: SlopeOut = sent("µs of latency per ns/byte")
    changes: tuple[CostChangeOut, ...] = sent("what changes of both costs do")
    by_delay: SlopeOut | None = sent("µs of latency per µs of delay behind the stage", default=None)
    lanes: PlacesChangeOut | None = sent("what other lanes do", default=None)


@output
class WindowSensitivityOut(Output):
    """How the latency moves with a window: with its way back (µs per µs), and with its places."""

    name: str = sent("the stages that it is over, by their names")
    by_return: SlopeOut = sent("µs of latency per µs until a place is free again")
    places: PlacesChangeOut | None = sent("what other places do; null: no size can be repeated")


@output
class SensitivitiesOut(Sparse):
    """How the latency moves with the costs, and with the message (µs per byte).

    `basis` is `optimum` of this model, the best real-valued cut into as many fragments, or `cut`,
    the answer's own cut as it is, of which nothing is said by the message. Of a machine with
    windows, and where one size can be repeated what that takes: lanes and places are changed there.
    """

    basis: str = sent(
        "optimum, the best real-valued cut into as many fragments, or cut, the answer's own"
    )
    sentence: str = sent("what decides the latency, in words")
    by_message_byte: SlopeOut = sent("µs of latency per byte of the message")
    stages: tuple[StageSensitivityOut, ...] = sent("each stage, in their order")
    windows: tuple[WindowSensitivityOut, ...] = sent("each window, in their order", default=())
    repeated_bytes: int | None = sent(
        "the size for which lanes and places are changed, bytes", default=None
    )
    repeated_us: float | None = sent("what the message takes in it as it is, µs", default=None)
