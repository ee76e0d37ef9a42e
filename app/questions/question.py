"""Questions: a message, its pipeline or measurements, and how to solve it; and their files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from app.questions.transfers import TransfersQuestion
from contract.limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, MAX_SEED, MAX_TIME_LIMIT_S
from domain.aggregate import Aggregate
from domain.errors import InconsistentInput, InvalidInput, NotFound, StrategyDeclined
from domain.fit import MAY_BE_PIPELINED, FitOptions, TraceFit, taken_for_granted
from domain.machine import check_plain
from domain.measured_times import measured_times
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits
from domain.profile import ProfileReference, check_profile_name
from domain.solution import Notice, Strategy
from domain.structure import KnownOverlap
from domain.uncertain_fit import misfit_at, uncertain_model
from domain.uncertainty import UNKNOWN_ERRORS, KnownErrors, StatedInterval, stated_model
from domain.verification import Against
from models.records import FitRequest

_PIECE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """One file of measurements.

    `digest` is the SHA-256 of its `content_bytes` bytes; `pieces` gives them as often as asked, and
    `content` all at once. `descriptor` is that of the open file, None for one in memory.
    """

    digest: str
    content_bytes: int
    pieces: Callable[[], Iterable[bytes]]
    content: Callable[[], bytes]
    descriptor: int | None = None

    @classmethod
    def of(cls, content: bytes) -> LoadedTrace:
        """Return a file in memory."""
        digest = hashlib.sha256(content).hexdigest()
        return cls(digest, len(content), lambda: (content,), lambda: content)

    @classmethod
    def in_file(cls, descriptor: int, *, content_bytes: int, digest: str) -> LoadedTrace:
        """Return an open file, which stays open for as long as this is used."""
        return cls(
            digest,
            content_bytes,
            lambda: _pieces(descriptor, content_bytes),
            lambda: b"".join(_pieces(descriptor, content_bytes, piece_bytes=content_bytes)),
            descriptor,
        )


def _pieces(
    descriptor: int, content_bytes: int, *, piece_bytes: int = _PIECE_BYTES
) -> Iterator[bytes]:
    # By position: several readers of one descriptor do not get into each other's way.
    place = 0
    while place < content_bytes:
        piece = os.pread(descriptor, min(piece_bytes, content_bytes - place), place)
        if not piece:
            raise OSError("a temporary file is shorter than what was written to it")
        place += len(piece)
        yield piece


# --- questions ------------------------------------------------------------------------------------


IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One trace, as text or as the bytes of its file; `kind` where it cannot be detected."""

    content: str | bytes
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class UncertaintyOptions:
    """How to say how sure an answer is.

    `seed` fixes the draws, which else follow from the question. `relative` is the deviation of
    every cost, as a share, in the place of those of a fit, `intervals` those of single costs, of
    which the others are known exactly, or by `relative`. `current_bytes` is the size that the
    user repeats today, `sends_whole` that messages are sent whole. `robust` asks for the cut of
    least worst regret. Raises InvalidInput.
    """

    draws: int = 400
    seed: int | None = None
    relative: float | None = None
    current_bytes: int | None = None
    sends_whole: bool = False
    mtu_bytes: int | None = None
    robust: bool = False
    intervals: tuple[StatedInterval, ...] = ()

    @property
    def only_names_current(self) -> bool:
        """Whether the setting in use is all that was given: it is then only compared with."""
        has_current = self.sends_whole or self.current_bytes is not None
        return has_current and self == UncertaintyOptions(
            current_bytes=self.current_bytes, sends_whole=self.sends_whole
        )

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed <= MAX_SEED:
            raise InvalidInput("expected a seed of 64 bits", field="uncertainty.seed")


@dataclass(frozen=True, slots=True)
class FitReference:
    """A stored fit, by its identifier."""

    fit_id: str


@dataclass(frozen=True, slots=True)
class GivenFit:
    """A fit that was made before: the digests of its files, and how it was asked for.

    `fit_id` is the one under which it is stored here, None for one that came as a `document`.
    """

    fit: TraceFit
    trace_digests: tuple[str, ...]
    request: FitRequest
    fit_id: str | None = None
    document: bytes = b""

    @property
    def digest(self) -> str:
        """What distinguishes it: where it is stored, or else all of it."""
        return self.fit_id or hashlib.sha256(self.document).hexdigest()


Source: TypeAlias = CostModel | ProfileReference | tuple[Measurement, ...] | FitReference | GivenFit


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One optimisation. `source` is a model, a stored profile, measurements to fit, or a fit.

    `fit_options` go with measurements. `save_as` stores the model under this profile name together
    with the answer, or not at all. Without `uncertainty` fitted costs have the default one. Own
    `transfers` of the message decide in the place of the model. Raises InvalidInput.
    """

    message_bytes: int
    source: Source
    strategy: Strategy = Strategy.AUTO
    static_bytes: int | None = None
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    allow_refragmentation: bool = False
    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    save_as: str | None = None
    fit_options: FitOptions | None = None
    uncertainty: UncertaintyOptions | None = None
    transfers: TransfersQuestion | None = None

    @property
    def current_bytes(self) -> int | None:
        """The size that is repeated today, the message's where it is sent whole."""
        options = self.uncertainty
        if options is None:
            return None
        return self.message_bytes if options.sends_whole else options.current_bytes

    def __post_init__(self) -> None:
        check_static_bytes(self.strategy, self.static_bytes)
        if not 0.0 < self.time_limit_s <= MAX_TIME_LIMIT_S:
            raise InvalidInput(
                f"expected 0 < time_limit_s <= {MAX_TIME_LIMIT_S:g}", field="time_limit_s"
            )
        if self.transfers is not None and self.limits != FragmentLimits():
            raise InconsistentInput(
                "own transfers decide among the sizes that were transferred, without limits",
                field="constraints",
            )
        if self.save_as is None:
            return
        if isinstance(self.source, ProfileReference):
            raise InconsistentInput(
                "save_as stores what the request itself holds; a profile is stored already",
                field="save_as",
            )
        check_save_as(self.save_as)


def check_static_bytes(strategy: Strategy, static_bytes: int | None) -> None:
    """Raise InvalidInput unless a size to repeat is given exactly where it is used."""
    if strategy is Strategy.STATIC and static_bytes is None:
        raise InconsistentInput("strategy static needs static_bytes", field="static_bytes")
    if strategy is not Strategy.STATIC and static_bytes is not None:
        raise InconsistentInput("static_bytes goes with strategy static only", field="static_bytes")


def check_save_as(name: str) -> None:
    """Raise InvalidInput, naming save_as, unless a profile may have this name."""
    try:
        check_profile_name(name)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field="save_as") from None


def known_identifier(identifier: str, noun: str) -> None:
    """Raise NotFound for what cannot be an identifier; nothing is stored under it."""
    if IDENTIFIER.fullmatch(identifier) is None:
        raise NotFound(f"there is no {noun} with this id")


def stages_of_table(model: CostModel) -> Pipeline:
    """Return the pipeline that a table of this model has in its file: where only the total and the
    bottleneck are known, the slowest one with these. Raises StrategyDeclined where there is none.
    """
    if isinstance(model, Pipeline):
        return model
    if isinstance(model, Aggregate):
        return model.slowest_pipeline()
    check_plain(model, "profile")
    raise StrategyDeclined(f"there are no plan tables of the kind {model.kind}", field="profile")


def notices_of_costs(model: CostModel, fit: TraceFit | None) -> tuple[Notice, ...]:
    """Return what is said of a model's costs: its premise, and what else the fit of them says."""
    premise = (taken_for_granted(model.premise),) if model.premise else ()
    of_fit = () if fit is None else fit.notices
    return (*premise, *(one for one in of_fit if one.code != MAY_BE_PIPELINED))


def known_errors(
    model: CostModel,
    fit: TraceFit | None,
    options: UncertaintyOptions | None,
    *,
    message_bytes: tuple[int, int],
    verification: Against | None = None,
) -> KnownErrors | None:
    """Return the errors of a model's costs, of its fit or as typed; None where none are known.

    `message_bytes` are the least and the greatest message that they are for; by how much transfers
    contradicted the model, its `verification` says. Raises InconsistentInput where errors are asked
    for and none are known.
    """
    asked = options or UncertaintyOptions()
    misfit = verification.misfit if verification else 0.0
    if asked.relative is not None or asked.intervals:
        try:
            stated = stated_model(model, asked.relative or 0.0, asked.intervals)
        except InvalidInput as refusal:
            raise type(refusal)(refusal.detail, field=f"uncertainty.{refusal.field}") from None
        own = fit is not None and fit.to_model() == model
        times = measured_times(fit) if fit is not None and own else None
        overlap = fit.overlap if fit is not None and own else KnownOverlap()
        return KnownErrors(stated, misfit, asked.draws, asked.seed, times=times, overlap=overlap)
    known = None if fit is None else uncertain_model(fit)
    if fit is not None and known is not None and known.model == model:
        whole_us = tuple((one.message_bytes, one.measured_us) for one in fit.whole_messages)
        misfit = max(misfit, misfit_at(fit, *message_bytes))
        times = measured_times(fit)
        return KnownErrors(known, misfit, asked.draws, asked.seed, whole_us, times, fit.overlap)
    if options is None or options.only_names_current:
        return None
    raise InconsistentInput(UNKNOWN_ERRORS, field="uncertainty.relative")
