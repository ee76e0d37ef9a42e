"""What was found, as contract/hide.py sends it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from analysis.hidden_ratios import ModelHidden
from analysis.hiding import Hidden
from app.schemas.base import echoes, notices_out, revision_out, same_named, timestamp
from app.schemas.stages import constraints_out, pipeline_out
from contract.hide import (
    BestProcessesOut,
    GammaWindowOut,
    HiddenCountOut,
    HideOut,
    ItemsHideOut,
    LatencyOptimalOut,
    ProcessPointOut,
    StoredHideOut,
)
from domain.profile import ProfileRevision
from domain.solution import Notice

if TYPE_CHECKING:
    from analysis.hidden_items import HiddenItems
    from app.questions.items import ItemsAcross
    from domain.items import ItemSequence


def of_pipeline(
    found: Hidden,
    profile: ProfileRevision | None,
    of_fit: Sequence[Notice],
    said: Notice | None = None,
) -> HideOut:
    """Return an answer about a pipeline as it is sent; `said` is what transfers said of it."""
    first = () if said is None else (said,)
    asked, cut = found.question, found.cut
    window, best = found.window, found.best_processes
    return HideOut(
        gain=found.gain,
        gain_at_most=found.gain_at_most,
        max_gain=found.max_gain,
        regime=found.regime.value,
        gamma=found.gamma,
        window=None if window is None else same_named(GammaWindowOut, window),
        **echoes(HideOut, asked),
        overhead=None if found.overlap is None else found.overlap.overhead,
        best_processes=None if best is None else same_named(BestProcessesOut, best),
        curve=tuple(same_named(ProcessPointOut, point) for point in found.curve),
        warnings=notices_out((*first, *found.warnings, *of_fit)),
        message_bytes=asked.problem.message_bytes,
        messages_are=asked.messages_are.value,
        hiding_overhead_us=asked.overhead_us,
        exchange=asked.exchange.value,
        without_us=found.without_us,
        with_us=found.with_us,
        lower_bound_us=found.lower_bound_us,
        relative_gap=found.relative_gap,
        status=found.status.value,
        fragment_bytes=cut.fragment_bytes,
        fragments=len(cut.fragment_bytes),
        latency_us=cut.latency_us,
        host_us=cut.host_us,
        latency_optimal=same_named(LatencyOptimalOut, found.latency_optimal),
        calculation_for_full_hiding_us=found.calculation_for_full_hiding_us,
        counts=tuple(same_named(HiddenCountOut, row) for row in found.rows),
        constraints=constraints_out(asked.problem.limits),
        pipeline=pipeline_out(asked.problem.pipeline),
        profile=revision_out(profile),
    )


def of_model(found: ModelHidden) -> HideOut:
    """Return an answer in the paper's terms as it is sent."""
    asked, window, best = found.question, found.window, found.best_processes
    return HideOut(
        gain=found.gain,
        gain_at_most=found.gain,
        max_gain=asked.overlap.peak_gain,
        regime=found.regime.value,
        gamma=found.gamma,
        window=None if window is None else same_named(GammaWindowOut, window),
        **echoes(HideOut, asked, asked.overlap),
        overhead=asked.overlap.overhead,
        best_processes=None if best is None else same_named(BestProcessesOut, best),
        curve=tuple(same_named(ProcessPointOut, point) for point in found.curve),
        warnings=notices_out(found.warnings),
    )


def stored(answer: HideOut, *, id: str, created_at: datetime) -> StoredHideOut:
    """Return the answer under its identifier."""
    return StoredHideOut(**vars(answer), id=id, created_at=timestamp(created_at))


def of_items(
    found: HiddenItems,
    given: ItemSequence,
    across: ItemsAcross,
    *,
    id: str,
    created_at: datetime,
) -> ItemsHideOut:
    """Return an answer about items, `given` as they were asked, as it is sent and stored."""
    from app.schemas.items import (
        best_cap_out,
        current_cap_out,
        fill_out,
        items_out,
        limit_out,
        set_items_out,
    )

    asked, run, solution = found.question, found.run, found.run.solution
    sizes = solution.fragment_bytes
    said = (*across.notices_of_costs(sizes), *given.notices, *found.warnings)
    return ItemsHideOut(
        gain=found.gain,
        gain_at_most=found.gain_at_most,
        max_gain=None,
        regime=found.regime.value,
        gamma=asked.work.whole_us / found.alone.latency_us if found.alone.latency_us else None,
        window=None,
        min_gain=None,
        hideable_fraction=0.0,
        overhead=None,
        best_processes=None,
        curve=(),
        warnings=notices_out(dict.fromkeys(said)),
        message_bytes=given.total_bytes,
        messages=1,
        messages_are="serial",
        calculation_us=asked.work.whole_us,
        hiding_overhead_us=0.0,
        streamed=True,
        exchange="one_way",
        without_us=found.without_us,
        with_us=found.with_us,
        lower_bound_us=solution.lower_bound_us,
        relative_gap=solution.relative_gap,
        status=solution.status.value,
        fragment_bytes=sizes,
        fragments=len(sizes),
        latency_us=found.latency_us,
        host_us=found.host_us,
        latency_optimal=same_named(LatencyOptimalOut, found.latency_optimal),
        calculation_for_full_hiding_us=None,
        counts=(),
        constraints=constraints_out(across.limits, across.problem.max_fragment_items),
        pipeline=pipeline_out(asked.problem.pipeline),
        profile=revision_out(across.found.profile),
        id=id,
        created_at=timestamp(created_at),
        items=items_out(given),
        fill=fill_out(asked.fill),
        loading=asked.is_loading,
        fragment_overhead_us=asked.fragment_overhead_us,
        communication_us=found.alone.latency_us,
        exposed_us=found.exposed_us,
        hidden_share=found.hidden_share,
        fragment_items=solution.fragment_items,
        set_items=set_items_out(asked.fill, run),
        best_cap=best_cap_out(run.solution.problem, run.best_cap, found.with_us),
        current=current_cap_out(run.solution.problem, run.current, found.with_us),
        limit=limit_out(solution.problem, found.path, is_loading=asked.is_loading),
    )
