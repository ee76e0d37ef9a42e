"""The probe's transfers, raced: which size is faster here, and whether the model holds.

A run of the race is as many transfers in a row as take a few time slices: their median.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from app.console.files import KeptAsItGoes, write_whole
from app.console.racing import Ended, RaceRun
from app.console.running import erased_line
from app.console.transfers import (
    TRANSFERS_FILE,
    Model,
    alignment_of,
    current_of,
    facts_of,
    recommended_of,
    started,
    verdict_of,
)
from app.questions.transfers import DecidedTransfers
from app.text.units import printable
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.own_transfers import OwnTransfers, SizeVerdict
from domain.units import format_bytes
from domain.verification import Verification
from measuring.own_program import ProgramRun
from measuring.transfers import TransferPlan, Transfers
from measuring.verdict import MIN_RUNS

if TYPE_CHECKING:
    from analysis.size_race import RacePlan, SizeRace
    from measuring.sweep import Ask

RACING = 0.4  # of the time that tune has
_RUN_S, _MAX_IN_RUN = 0.02, 7  # a run of the race: so long, or so many transfers
_NOUN = "the transfers"


@dataclass(frozen=True, slots=True)
class Raced:
    """What the race decided, how the model is beside its transfers, and the size it recommends."""

    decided: DecidedTransfers
    verification: Verification
    recommended_bytes: int
    is_interrupted: bool

    @property
    def set_bytes(self) -> int | None:
        """The size to set; None where the one in use stays."""
        found = self.decided.decision
        return found.size_bytes if found.verdict is SizeVerdict.SET else None

    @property
    def is_decided(self) -> bool:
        """Whether a size is set or kept."""
        return self.decided.decision.verdict in (SizeVerdict.SET, SizeVerdict.KEEP)


def race_probe(model: Model, message_bytes: int, arguments: Arguments, output: Output) -> Raced:
    """Race the sizes of a message over the stages of a model, and write every transfer into a file.

    Raises KeyboardInterrupt where Ctrl-C came before there was enough for a verdict, NotMeasurable
    where time ended before that.
    """
    from analysis.size_race import SizeRace

    recommended = recommended_of(model, message_bytes, model.stages)
    plan = _plan(message_bytes, model.stages, recommended, arguments)
    race = SizeRace(plan)
    limit_s = RACING * arguments.time_limit
    found = Transfers(
        TransferPlan(message_bytes, (recommended,), model.stages, time_limit_s=limit_s)
    )
    target, is_interrupted = str(Path(arguments.folder) / TRANSFERS_FILE), False
    with started(model.stages, message_bytes, arguments) as probe:
        facts = facts_of(probe, arguments)
        try:
            _race(race, plan, found, probe.ask, limit_s, target, facts, output)
        except KeyboardInterrupt:
            is_interrupted = True
    text = found.to_csv(facts)
    write_whole(target, text.encode(), field="folder", noun=_NOUN)
    output.note(f"every transfer is in {printable(target)}")
    verification = verdict_of(text, model.pipeline, is_interrupted=is_interrupted)
    transfers = OwnTransfers(message_bytes, race.rows())
    decided = DecidedTransfers(race.decision(), transfers)
    return Raced(decided, verification, recommended, is_interrupted)


def _plan(
    message_bytes: int, stages: tuple[str, ...], recommended: int, arguments: Arguments
) -> RacePlan:
    """The plan of the race. Files past the page cache take multiples of a page, which round sizes
    are from two pages on.
    """
    from analysis.size_race import RacePlan

    step = alignment_of(stages)
    return RacePlan(
        message_bytes,
        current_bytes=current_of(arguments.uncertainty_current, message_bytes),
        smallest_bytes=None if step == 1 else min(message_bytes, 2 * step),
        suggested_bytes=(recommended,),
        seed=arguments.seed,
    )


def _race(
    race: SizeRace,
    plan: RacePlan,
    found: Transfers,
    ask: Ask,
    limit_s: float,
    target: str,
    facts: dict[str, str],
    output: Output,
) -> None:
    """Run the race, then those sizes that matter often enough for a verdict on the model."""
    kept = KeptAsItGoes(target, lambda: found.to_csv(facts))
    end_s = time.monotonic() + limit_s
    with erased_line(output.err) as show:

        def run(size: int, _: float) -> ProgramRun:
            show(f"{sum(map(len, found.runs.values()))} transfers; {format_bytes(size)}")
            begun_s = time.monotonic()
            if not race.rows():  # it warms up
                latency_us = found.take(ask, size, keep=False)
                return ProgramRun(latency_us, time.monotonic() - begun_s)
            times = list[float]()
            while not times or (len(times) < _MAX_IN_RUN and sum(times) < _RUN_S * 1e6):
                times.append(found.take(ask, size))
            if found.runs:
                kept.write()
            return ProgramRun(median(times), time.monotonic() - begun_s)

        ended = RaceRun(race, run, limit_s).to_end()
        sizes = (plan.compared_bytes, race.decision().leader_bytes, *plan.suggested_bytes)
        for size in dict.fromkeys(size for size in sizes if size is not None):
            while len(found.runs.get(size, ())) < MIN_RUNS and time.monotonic() < end_s:
                found.take(ask, size)
    found.ended = "known" if ended is Ended.RACE else "time"
