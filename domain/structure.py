"""What of a mover's stages overlaps, as begins of its stages show it.

from domain.structure import Evidence, Structure, StructureKind
found = Structure(StructureKind.CHAIN, ("hash", "send"), Evidence(50, 800, 0.4, 0.0, 0.0, 0.01))

Source    docs/theory.md, "What overlaps". Stages are named in the order in which fragments pass
          them, times are in µs, shares are of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from contract.limits import MAX_PLACES
from domain.errors import InvalidInput

MAX_MORE = 0.02  # of a message's time: what first fragments may cost more, for it to be priced
ONE_AT_A_TIME = "one fragment at a time in each stage, which nobody has said (several_at_once)"
NOT_SAID = "stages that overlap, which nobody has said (stages_overlap)"
IF_THEY_OVERLAP = (
    "If these stages overlap: what is written here. One after another, it may be slower than the "
    "default. Say which with the file (stages_overlap, --stages-overlap yes|no)"
)


class StructureKind(StrEnum):
    """What lets a fragment begin, by the names clients use.

    chain              it is there, and its stage is free: stages overlap
    serial             the fragment before has left the last stage
    stop_and_wait      the same, and an answer has come back
    window             only so many fragments are under way between two stages
    lanes              a stage handles several fragments at once
    turns              two stages take turns
    shared_processors  stages compute on fewer processors than there are stages
    slow_each_other    stages slow each other, by what is not known
    barrier            the whole message has left the stage before
    sweep              none of these
    """

    CHAIN = "chain"
    SERIAL = "serial"
    STOP_AND_WAIT = "stop_and_wait"
    WINDOW = "window"
    LANES = "lanes"
    TURNS = "turns"
    SHARED_PROCESSORS = "shared_processors"
    SLOW_EACH_OTHER = "slow_each_other"
    BARRIER = "barrier"
    SWEEP = "sweep"


PRICED_AS_A_SUM = frozenset(
    {StructureKind.SERIAL, StructureKind.STOP_AND_WAIT, StructureKind.BARRIER}
)


@dataclass(frozen=True, slots=True)
class TracedWindow:
    """At most `fragments` between the start of a stage and the end of another, or the same one.

    A place is free again `return_us` after that end.
    """

    first: str
    last: str
    fragments: int
    return_us: float

    def __post_init__(self) -> None:
        _refuse(not 1 <= self.fragments <= MAX_PLACES, "fragments", f"1 to {MAX_PLACES}")
        _refuse(not _is_time(self.return_us), "return_us", "a finite time of 0 µs or more")


@dataclass(frozen=True, slots=True)
class SharedProcessors:
    """Stages that compute on this many processors; a fraction where that is estimated."""

    stages: tuple[str, ...]
    processors: float

    def __post_init__(self) -> None:
        _refuse(not 1 <= self.processors <= MAX_PLACES, "processors", f"1 to {MAX_PLACES}")


class PlaceEffect(StrEnum):
    """How a stage's times depend on the place of a fragment in its message."""

    FIRST_DEARER = "first dearer"
    ONLY_IN_BURSTS = "cheap only in bursts"


@dataclass(frozen=True, slots=True)
class PlaceFlag:
    """The first `fragments` of a message take `ratio` times what those of its second half do.

    `more` is what they take more in all, over the message's time.
    """

    stage: str
    ratio: float
    fragments: int
    more: float

    @property
    def effect(self) -> PlaceEffect:
        """Whether the first are dearer, or cheaper."""
        return PlaceEffect.FIRST_DEARER if self.ratio > 1.0 else PlaceEffect.ONLY_IN_BURSTS

    @property
    def text(self) -> str:
        """What is said of it."""
        first = "the first" if self.fragments == 1 else f"the first {self.fragments}"
        does = "takes" if self.fragments == 1 else "take"
        return f"{self.stage}: {first} of a message {does} {self.ratio:.2g} times the later ones"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a structure was found by.

    messages      how many were used
    fragments     of all of them
    overlap       time in which two stages work, over time in which any does
    late          time that begins come later than in a chain, over the messages' times
    left          the same, than by what was found
    replay_error  of the median message, replayed by what was found, over its time, less 1
    """

    messages: int
    fragments: int
    overlap: float
    late: float
    left: float
    replay_error: float


@dataclass(frozen=True, slots=True)
class Structure:
    """What of a mover's stages overlaps, and what that was found by.

    lanes           of each stage, 1 where it handles one fragment at a time; empty: 1 each
    windows, turns  what bounds the begins, where these do
    shared          the stages of shared processors
    return_us       from a fragment that has left to the next begin, where stages do not overlap
    handing_over_us  of each stage, from the end of the one before to its begin
    queue_us        of each stage, how long fragments wait for it
    has_busy_time   whether processor times were there, without which sharing is not seen
    reason          why it is a sweep
    Raises InvalidInput for names and numbers that no structure has.
    """

    kind: StructureKind
    stages: tuple[str, ...]
    evidence: Evidence
    lanes: tuple[int, ...] = ()
    windows: tuple[TracedWindow, ...] = ()
    turns: tuple[tuple[str, ...], ...] = ()
    shared: SharedProcessors | None = None
    return_us: float = 0.0
    places: tuple[PlaceFlag, ...] = ()
    handing_over_us: tuple[float, ...] = ()
    queue_us: tuple[float, ...] = ()
    has_busy_time: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        _refuse(not self.stages, "stages", "at least one stage")
        _refuse(bool(self.lanes) and len(self.lanes) != len(self.stages), "lanes", "one a stage")
        _refuse(any(not 1 <= one <= MAX_PLACES for one in self.lanes), "lanes", "1 or more")
        _refuse(not _is_time(self.return_us), "return_us", "a finite time of 0 µs or more")
        named = {name for one in self.windows for name in (one.first, one.last)}
        named.update(*self.turns, self.shared.stages if self.shared else ())
        named.update(one.stage for one in self.places)
        _refuse(not named <= set(self.stages), "stages", "every name that is used")

    @property
    def is_a_chain(self) -> bool:
        """Whether the model of a pipeline holds as it is."""
        return self.kind is StructureKind.CHAIN

    @property
    def is_known(self) -> bool:
        """Whether begins show any structure."""
        return self.kind is not StructureKind.SWEEP

    @property
    def denies_overlap(self) -> bool:
        """Whether begins show another structure than a pipeline's."""
        return self.is_known and not self.is_a_chain

    @property
    def is_priced_as_a_sum(self) -> bool:
        """Whether stages work one after the other, so that a message takes their sum."""
        return self.kind in PRICED_AS_A_SUM

    @property
    def is_priced(self) -> bool:
        """Whether a message can be priced; else only its own transfers decide.

        Fragments that are cheap only in bursts cost something else at every size, and what the
        first ones cost more is no cost of a stage.
        """
        depends = any(
            one.effect is PlaceEffect.ONLY_IN_BURSTS or one.more > MAX_MORE for one in self.places
        )
        return (self.is_a_chain or self.is_priced_as_a_sum) and not depends

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        return _SENTENCES[self.kind](self)


@dataclass(frozen=True, slots=True)
class KnownOverlap:
    """What is known of the overlap of a model's stages; they are a pipeline where nothing is said.

    structure        what was found from begins, None without any
    is_bare          costs are of durations alone, which serial and pipelined movers write alike
    several_at_once  whether a stage handles several fragments at once; None: nobody has said
    """

    structure: Structure | None = None
    is_bare: bool = False
    several_at_once: bool | None = None

    def is_unsaid(self, stages: int) -> bool:
        """Return whether nobody has said that so many stages overlap, nor seen it."""
        return self.premise(stages) == NOT_SAID

    def premise(self, stages: int) -> str:
        """Return what a pipeline's model of so many stages takes for granted; "" for nothing."""
        if self.structure is not None:
            return "" if self.structure.is_priced else "a pipeline, which begins do not show"
        if not self.is_bare:
            return ""
        if self.several_at_once:
            return "one fragment at a time in each stage, and you said that one has several"
        return NOT_SAID if stages > 1 else ""


def _chain(found: Structure) -> str:
    said = f"Measured: stages overlap, {100 * found.evidence.overlap:.0f} % of the time."
    return said if not found.places else f"{said[:-1]}; {_places(found)}."


def _places(found: Structure) -> str:
    return "; ".join(one.text for one in found.places)


def _serial(found: Structure) -> str:
    share = f"{100 * found.evidence.overlap:.0f} % of the time"
    return f"Measured: one fragment at a time passes all stages; they overlap {share}."


def _stop_and_wait(found: Structure) -> str:
    waits = _time_text(found.return_us)
    return f"Measured: a fragment begins {waits} after the one before has left: stop and wait."


def _window(found: Structure) -> str:
    return f"Measured: {'; '.join(map(_window_text, found.windows))}{_turns_too(found)}."


def _window_text(window: TracedWindow) -> str:
    many = "1 fragment" if window.fragments == 1 else f"{window.fragments} fragments"
    where = (
        f"in {window.first}"
        if window.first == window.last
        else f"from the start of {window.first} to the end of {window.last}"
    )
    back = f", a place back after {_time_text(window.return_us)}" if window.return_us > 0 else ""
    return f"at most {many} {where}{back}"


def _turns_too(found: Structure) -> str:
    return "".join(f"; {_listed(one)} take turns" for one in found.turns)


def _lanes(found: Structure) -> str:
    lanes = [
        f"{name} handles {count} fragments at once"
        for name, count in zip(found.stages, found.lanes, strict=True)
        if count > 1
    ]
    return f"Measured: {_listed(lanes)}."


def _turns(found: Structure) -> str:
    named = "; ".join(f"{_listed(one)} take turns, as on one processor" for one in found.turns)
    return f"Measured: {named}."


def _shared(found: Structure) -> str:
    shared = found.shared
    assert shared is not None
    of = "1 processor" if shared.processors == 1 else f"{shared.processors:g} processors"
    return f"Measured: {_listed(shared.stages)} share {of}."


def _slow(found: Structure) -> str:
    shared = found.shared
    assert shared is not None
    return f"Measured: {_listed(shared.stages)} slow each other."


def _barrier(_: Structure) -> str:
    return "Measured: a stage begins when the whole message has left the one before."


def _sweep(found: Structure) -> str:
    why = f": {found.reason}" if found.reason else ""
    return f"Your trace fits no structure known here{why}."


_SENTENCES = {
    StructureKind.CHAIN: _chain,
    StructureKind.SERIAL: _serial,
    StructureKind.STOP_AND_WAIT: _stop_and_wait,
    StructureKind.WINDOW: _window,
    StructureKind.LANES: _lanes,
    StructureKind.TURNS: _turns,
    StructureKind.SHARED_PROCESSORS: _shared,
    StructureKind.SLOW_EACH_OTHER: _slow,
    StructureKind.BARRIER: _barrier,
    StructureKind.SWEEP: _sweep,
}


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _time_text(time_us: float) -> str:
    return f"{time_us:.3g} µs" if time_us < 1000.0 else f"{time_us / 1000.0:.3g} ms"


def _is_time(time_us: float) -> bool:
    return isfinite(time_us) and time_us >= 0.0


def _refuse(is_wrong: bool, field: str, expected: str) -> None:
    if is_wrong:
        raise InvalidInput(f"expected {expected}", field=field)
