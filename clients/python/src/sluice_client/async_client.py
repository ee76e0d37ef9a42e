# Made by `python -m tools.write_client`; what is changed here is lost.
"""The asynchronous client, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from sluice_client.answers import (
    Change,
    Comparison,
    Explanation,
    Job,
    Keys,
    Limits,
    NewKey,
    Optimization,
    OptimizationSummary,
    Page,
    Readiness,
    Schedule,
    Simulation,
)
from sluice_client.async_core import AsyncCore
from sluice_client.crossover_answers import Crossovers
from sluice_client.export_answers import Audit, ExportedFile, ExportTarget
from sluice_client.fit_answers import Fit, FitPlot, MeasurementPlan
from sluice_client.hide_answers import Hidden
from sluice_client.layer_answers import LayerCosts, LayerSummary, PublishedLayer
from sluice_client.operations import (
    exporting,
    hiding,
    measuring,
    messaging,
    service,
    solving,
    storing,
)
from sluice_client.profile_answers import CompiledTable, Profile, Revision, Revisions, TableSummary
from sluice_client.shapes import (
    Aggregate,
    ComposedStage,
    Constraints,
    Delivery,
    ExcludedSample,
    FitOptions,
    Granularity,
    HostStages,
    Measurement,
    Pipeline,
    Processes,
    Setting,
    Stage,
    StepGroup,
    WorkloadSize,
)
from sluice_client.threshold_answers import Thresholds
from sluice_client.transfer_answers import DecidedTransfers
from sluice_client.uncertainty import Draws, UncertaintyOptions


class AsyncClient(AsyncCore):
    """The operations of a Sluice service, one method each to wait for.

    All tasks of one event loop may share a client. The arguments are those of Client, but for
    `http`, which is an asynchronous client of httpx. Raises SluiceClientError and what is below
    it.
    """

    async def optimize(
        self,
        message_bytes: int,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        strategy: str | None = None,
        static_bytes: int | None = None,
        constraints: Constraints | None = None,
        allow_refragmentation: bool | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
        save_as: str | None = None,
        uncertainty: UncertaintyOptions | None = None,
        transfers: str | Mapping[str, Any] | None = None,
    ) -> Optimization:
        """Cut a message of this size, with a proof of how good the cut is.

        Exactly one of `pipeline`, `aggregate`, `profile` ("name", or "name@2"), `measurements`, `fit`
        (what `fit` and `compose` return, or the document that `sluice fit --json` prints) and `fit_id`
        (of a stored fit); `fit_options` go with `measurements`. Of fitted costs the answer says how
        sure it is; `uncertainty` says over which draws, and what setting is in use. Own `transfers` of
        this message, the text of a file or a mapping with `rows` and `where`, decide in its place.
        """
        return await self.send(
            solving.optimize(
                message_bytes,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                strategy=strategy,
                static_bytes=static_bytes,
                constraints=constraints,
                allow_refragmentation=allow_refragmentation,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
                save_as=save_as,
                uncertainty=uncertainty,
                transfers=transfers,
            )
        )

    async def optimize_transfers(
        self,
        message_bytes: int,
        transfers: str | Mapping[str, Any],
        *,
        current: int | Literal["whole"] | None = None,
    ) -> DecidedTransfers:
        """Have own transfers of a message decide its size, without a model; `current` is the one in
        use.

        `transfers` is the text of a file with message_bytes, fragment_bytes and latency_us, or a
        mapping with `content` or `rows`, and `where` for its conditions.
        """
        return await self.send(
            solving.optimize_transfers(message_bytes, transfers, current=current)
        )

    async def compare(
        self,
        message_bytes: Sequence[int],
        *,
        strategies: Sequence[str],
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        static_bytes: int | None = None,
        constraints: Constraints | None = None,
        allow_refragmentation: bool | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
    ) -> Comparison:
        """Return what each strategy gives on each message size; `time_limit_s` is for the entire
        table.
        """
        return await self.send(
            solving.compare(
                message_bytes,
                strategies=strategies,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                static_bytes=static_bytes,
                constraints=constraints,
                allow_refragmentation=allow_refragmentation,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
            )
        )

    async def simulate(
        self,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        fragment_bytes: Sequence[int] | None = None,
        levels: Sequence[Sequence[int]] | None = None,
        delivery: Sequence[Delivery] | None = None,
        message_bytes: int | None = None,
    ) -> Simulation:
        """Return when each fragment is in each stage: one cut for all stages, `levels`, one a stage, or
        what the stages choose by `delivery`, one rule a stage, of a message of `message_bytes`. Of an
        aggregate what one cut takes at most.
        """
        return await self.send(
            solving.simulate(
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                fragment_bytes=fragment_bytes,
                levels=levels,
                delivery=delivery,
                message_bytes=message_bytes,
            )
        )

    async def thresholds(
        self,
        message_bytes: Sequence[int],
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        rule: str | None = None,
        stages: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        time_limit_s: float | None = None,
    ) -> Thresholds:
        """Return latencies by threshold (`rule` "eager") or by pulse size ("static"), the best of each
        message, and the best one for all of them.

        All stages have the same size, or those of `stages`, from 0, vary independently.
        """
        return await self.send(
            solving.thresholds(
                message_bytes,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                rule=rule,
                stages=stages,
                sizes=sizes,
                time_limit_s=time_limit_s,
            )
        )

    async def crossover(
        self,
        a: str | Pipeline | Aggregate | Measurement | Sequence[Measurement] | Fit,
        b: str | Pipeline | Aggregate | Measurement | Sequence[Measurement] | Fit,
        *,
        a_name: str | None = None,
        b_name: str | None = None,
        current_bytes: int | None = None,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        target: str | None = None,
        form: str | None = None,
        parameter: str | None = None,
    ) -> Crossovers:
        """Return where path `b` overtakes path `a`, and what a threshold between them costs.

        Each is a profile's name, stages, an aggregate, measurements or a fit. `current_bytes` is the
        first size that takes `b` today; `target` the program whose setting is written.
        """
        return await self.send(
            solving.crossover(
                a,
                b,
                a_name=a_name,
                b_name=b_name,
                current_bytes=current_bytes,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                target=target,
                form=form,
                parameter=parameter,
            )
        )

    async def optimization(
        self,
        id: str,
    ) -> Optimization:
        """Return a stored answer."""
        return await self.send(solving.optimization(id))

    async def describe_optimization(
        self,
        id: str,
        *,
        name: str | None = None,
        note: str | None = None,
    ) -> OptimizationSummary:
        """Give a stored answer a name and a note; "" takes one away, None leaves it as it is."""
        return await self.send(solving.describe_optimization(id, name=name, note=note))

    async def explanation(
        self,
        id: str,
        *,
        cheaper_by: float | None = None,
    ) -> Explanation:
        """Return where the latency of a stored answer is spent, and what cheaper stages would buy."""
        return await self.send(solving.explanation(id, cheaper_by=cheaper_by))

    async def optimizations(
        self,
        *,
        profile: str | None = None,
        revision: int | None = None,
        message_bytes: int | None = None,
        strategy: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[OptimizationSummary]:
        """Return a page of stored answers, newest first."""
        return await self.send(
            solving.optimizations(
                profile=profile,
                revision=revision,
                message_bytes=message_bytes,
                strategy=strategy,
                cursor=cursor,
                limit=limit,
            )
        )

    def each_optimization(
        self,
        *,
        profile: str | None = None,
        revision: int | None = None,
        message_bytes: int | None = None,
        strategy: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[OptimizationSummary]:
        """Yield every item from `cursor` on, page after page; `limit` is the length of a page."""
        return self._pages(
            lambda cursor: solving.optimizations(
                profile=profile,
                revision=revision,
                message_bytes=message_bytes,
                strategy=strategy,
                cursor=cursor,
                limit=limit,
            ),
            cursor,
        )

    async def schedule(
        self,
        name: str,
        message_bytes: int,
    ) -> Schedule:
        """Return the run-time lookup: from the profile's active table, or solved where there is none.

        `name@2` pins a revision. The answer is kept, and asked for again only if it has changed.
        """
        return await self.send(solving.schedule(name, message_bytes))

    async def start_optimize(
        self,
        message_bytes: int,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        strategy: str | None = None,
        static_bytes: int | None = None,
        constraints: Constraints | None = None,
        allow_refragmentation: bool | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
        save_as: str | None = None,
        uncertainty: UncertaintyOptions | None = None,
        transfers: str | Mapping[str, Any] | None = None,
    ) -> Job:
        """Cut a message of this size, with a proof of how good the cut is.

        Exactly one of `pipeline`, `aggregate`, `profile` ("name", or "name@2"), `measurements`, `fit`
        (what `fit` and `compose` return, or the document that `sluice fit --json` prints) and `fit_id`
        (of a stored fit); `fit_options` go with `measurements`. Of fitted costs the answer says how
        sure it is; `uncertainty` says over which draws, and what setting is in use. Own `transfers` of
        this message, the text of a file or a mapping with `rows` and `where`, decide in its place.

        Answered at once by the job that does it.
        """
        return await self.send(
            solving.start_optimize(
                message_bytes,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                strategy=strategy,
                static_bytes=static_bytes,
                constraints=constraints,
                allow_refragmentation=allow_refragmentation,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
                save_as=save_as,
                uncertainty=uncertainty,
                transfers=transfers,
            )
        )

    async def start_compare(
        self,
        message_bytes: Sequence[int],
        *,
        strategies: Sequence[str],
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        static_bytes: int | None = None,
        constraints: Constraints | None = None,
        allow_refragmentation: bool | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
    ) -> Job:
        """Return what each strategy gives on each message size; `time_limit_s` is for the entire
        table.

        Answered at once by the job that does it.
        """
        return await self.send(
            solving.start_compare(
                message_bytes,
                strategies=strategies,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                static_bytes=static_bytes,
                constraints=constraints,
                allow_refragmentation=allow_refragmentation,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
            )
        )

    async def start_thresholds(
        self,
        message_bytes: Sequence[int],
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        rule: str | None = None,
        stages: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        time_limit_s: float | None = None,
    ) -> Job:
        """Return latencies by threshold (`rule` "eager") or by pulse size ("static"), the best of each
        message, and the best one for all of them.

        All stages have the same size, or those of `stages`, from 0, vary independently.

        Answered at once by the job that does it.
        """
        return await self.send(
            solving.start_thresholds(
                message_bytes,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                rule=rule,
                stages=stages,
                sizes=sizes,
                time_limit_s=time_limit_s,
            )
        )

    async def hide(
        self,
        message_bytes: int | None = None,
        *,
        calculation_us: float | None = None,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        granularity: Granularity | None = None,
        constraints: Constraints | None = None,
        messages: int | None = None,
        messages_are: str | None = None,
        instructions: float | None = None,
        instructions_per_us: float | None = None,
        hideable_fraction: float | None = None,
        streamed: bool | None = None,
        hiding_overhead_us: float | None = None,
        host_stages: HostStages | None = None,
        exchange: str | None = None,
        min_gain: float | None = None,
        processes: Processes | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
    ) -> Hidden:
        """Return what hiding a message behind a calculation gains, and the fragments for it.

        Exactly one of where stages may come from (see `optimize`) and `granularity`; with the former a
        message, and `calculation_us` or `instructions` with `instructions_per_us`.
        """
        return await self.send(
            hiding.hide(
                message_bytes,
                calculation_us=calculation_us,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                granularity=granularity,
                constraints=constraints,
                messages=messages,
                messages_are=messages_are,
                instructions=instructions,
                instructions_per_us=instructions_per_us,
                hideable_fraction=hideable_fraction,
                streamed=streamed,
                hiding_overhead_us=hiding_overhead_us,
                host_stages=host_stages,
                exchange=exchange,
                min_gain=min_gain,
                processes=processes,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
            )
        )

    async def start_hide(
        self,
        message_bytes: int | None = None,
        *,
        calculation_us: float | None = None,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        granularity: Granularity | None = None,
        constraints: Constraints | None = None,
        messages: int | None = None,
        messages_are: str | None = None,
        instructions: float | None = None,
        instructions_per_us: float | None = None,
        hideable_fraction: float | None = None,
        streamed: bool | None = None,
        hiding_overhead_us: float | None = None,
        host_stages: HostStages | None = None,
        exchange: str | None = None,
        min_gain: float | None = None,
        processes: Processes | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
    ) -> Job:
        """Return what hiding a message behind a calculation gains, and the fragments for it.

        Exactly one of where stages may come from (see `optimize`) and `granularity`; with the former a
        message, and `calculation_us` or `instructions` with `instructions_per_us`.

        Answered at once by the job that does it.
        """
        return await self.send(
            hiding.start_hide(
                message_bytes,
                calculation_us=calculation_us,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                granularity=granularity,
                constraints=constraints,
                messages=messages,
                messages_are=messages_are,
                instructions=instructions,
                instructions_per_us=instructions_per_us,
                hideable_fraction=hideable_fraction,
                streamed=streamed,
                hiding_overhead_us=hiding_overhead_us,
                host_stages=host_stages,
                exchange=exchange,
                min_gain=min_gain,
                processes=processes,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
            )
        )

    async def hidden(
        self,
        id: str,
    ) -> Hidden:
        """Return a stored answer about hiding."""
        return await self.send(hiding.hidden(id))

    async def fit(
        self,
        trace: bytes | str,
        *,
        content_type: str = "application/octet-stream",
        kind: str | None = None,
        method: str | None = None,
        shape: str | None = None,
        max_ranges: int | None = None,
        groups: Sequence[StepGroup] = (),
        excluded: Sequence[ExcludedSample] = (),
        as_stage: str | None = None,
        columns: str | None = None,
        total_is_uncut: bool | None = None,
        several_at_once: bool | None = None,
        stages_overlap: bool | None = None,
        message_bytes: int | None = None,
        save_as: str | None = None,
        plot: bool | None = None,
    ) -> Fit:
        """Fit one file of measurements, as it was written; gzip too.

        The service detects formats by their content. `content_type` "application/json" is for its own
        JSON format alone. `columns` are those of a table, as in "size=bytes,time=copy:ms".
        `total_is_uncut` says that nothing cut the messages whose latencies were measured,
        `several_at_once` whether a stage handles several fragments at once, and `stages_overlap`
        whether stages work on different fragments at the same time.
        """
        return await self.send(
            measuring.fit(
                trace,
                content_type=content_type,
                kind=kind,
                method=method,
                shape=shape,
                max_ranges=max_ranges,
                groups=groups,
                excluded=excluded,
                as_stage=as_stage,
                columns=columns,
                total_is_uncut=total_is_uncut,
                several_at_once=several_at_once,
                stages_overlap=stages_overlap,
                message_bytes=message_bytes,
                save_as=save_as,
                plot=plot,
            )
        )

    async def fit_together(
        self,
        measurements: Sequence[Measurement],
        *,
        method: str | None = None,
        shape: str | None = None,
        max_ranges: int | None = None,
        groups: Sequence[StepGroup] = (),
        excluded: Sequence[ExcludedSample] = (),
        as_stage: str | None = None,
        columns: str | None = None,
        total_is_uncut: bool | None = None,
        several_at_once: bool | None = None,
        stages_overlap: bool | None = None,
        message_bytes: int | None = None,
        save_as: str | None = None,
        plot: bool | None = None,
    ) -> Fit:
        """Fit several files that are measurements of one pipeline."""
        return await self.send(
            measuring.fit_together(
                measurements,
                method=method,
                shape=shape,
                max_ranges=max_ranges,
                groups=groups,
                excluded=excluded,
                as_stage=as_stage,
                columns=columns,
                total_is_uncut=total_is_uncut,
                several_at_once=several_at_once,
                stages_overlap=stages_overlap,
                message_bytes=message_bytes,
                save_as=save_as,
                plot=plot,
            )
        )

    async def compose(
        self,
        stages: Sequence[ComposedStage],
        *,
        method: str | None = None,
        shape: str | None = None,
        max_ranges: int | None = None,
        excluded: Sequence[ExcludedSample] = (),
        save_as: str | None = None,
        plot: bool | None = None,
    ) -> Fit:
        """Fit a pipeline of stages that were measured each by itself, in files of their own."""
        return await self.send(
            measuring.compose(
                stages,
                method=method,
                shape=shape,
                max_ranges=max_ranges,
                excluded=excluded,
                save_as=save_as,
                plot=plot,
            )
        )

    async def stored_fit(
        self,
        id: str,
    ) -> Fit:
        """Return a stored fit, by its `fit_id`."""
        return await self.send(measuring.stored_fit(id))

    async def fit_plot(
        self,
        id: str,
    ) -> FitPlot:
        """Return what a plot of a stored fit shows."""
        return await self.send(measuring.fit_plot(id))

    async def trace(
        self,
        digest: str,
    ) -> bytes:
        """Return a stored trace, byte for byte as it was measured."""
        return await self.send(measuring.trace(digest))

    async def plan_measurements(
        self,
        min_message_bytes: int,
        max_message_bytes: int,
        *,
        measurements: Measurement | Sequence[Measurement] | None = None,
        tolerance: float | None = None,
    ) -> MeasurementPlan:
        """Return which message sizes to measure next, from outside."""
        return await self.send(
            measuring.plan_measurements(
                min_message_bytes, max_message_bytes, measurements=measurements, tolerance=tolerance
            )
        )

    async def profiles(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Profile]:
        """Return a page of profiles by name, each at its current revision."""
        return await self.send(storing.profiles(cursor=cursor, limit=limit))

    def each_profile(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Profile]:
        """Yield every item from `cursor` on, page after page; `limit` is the length of a page."""
        return self._pages(lambda cursor: storing.profiles(cursor=cursor, limit=limit), cursor)

    async def profile(
        self,
        name: str,
    ) -> Profile:
        """Return a profile at its current revision."""
        return await self.send(storing.profile(name))

    async def create_profile(
        self,
        name: str,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        detail: str | None = None,
    ) -> Profile:
        """Create a profile with revision 1: a pipeline, an aggregate, or a fit, as a document or by the
        identifier of a stored one.
        """
        return await self.send(
            storing.create_profile(
                name, pipeline=pipeline, aggregate=aggregate, fit=fit, fit_id=fit_id, detail=detail
            )
        )

    async def revise_profile(
        self,
        name: str,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        detail: str | None = None,
    ) -> Profile:
        """Add a revision, which becomes the current one. Sent twice it would add two."""
        return await self.send(
            storing.revise_profile(
                name, pipeline=pipeline, aggregate=aggregate, fit=fit, fit_id=fit_id, detail=detail
            )
        )

    async def delete_profile(
        self,
        name: str,
    ) -> None:
        """Delete a profile with its revisions; answers that name it stay."""
        return await self.send(storing.delete_profile(name))

    async def revisions(
        self,
        name: str,
    ) -> Revisions:
        """Return every revision, and where its stages came from."""
        return await self.send(storing.revisions(name))

    async def set_current(
        self,
        name: str,
        revision: int,
    ) -> Profile:
        """Roll back or forward to a revision that exists; its active table comes with it."""
        return await self.send(storing.set_current(name, revision))

    async def verify(
        self,
        name: str,
        transfers: str,
    ) -> Revision:
        """Compare recorded transfers with a profile's model, and keep the verdict with its revision.

        `transfers` is the text of the file that `sluice verify` writes; `name@2` pins a revision.
        """
        return await self.send(storing.verify(name, transfers))

    async def compile_table(
        self,
        name: str,
        *,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        relative_gap: float | None = None,
        constraints: Constraints | None = None,
        time_limit_s: float | None = None,
        activate: bool | None = None,
    ) -> CompiledTable:
        """Compile a table for a range of message sizes; the stored one where it was compiled before.

        From `time_limit_s` on the gaps are those reached, and a warning says so.
        Lookups answer from it with `activate` true, and, where that is None, if their revision has
        no active table yet.
        """
        return await self.send(
            storing.compile_table(
                name,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                relative_gap=relative_gap,
                constraints=constraints,
                time_limit_s=time_limit_s,
                activate=activate,
            )
        )

    async def start_compile_table(
        self,
        name: str,
        *,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        relative_gap: float | None = None,
        constraints: Constraints | None = None,
        time_limit_s: float | None = None,
        activate: bool | None = None,
    ) -> Job:
        """Compile a table for a range of message sizes; the stored one where it was compiled before.

        From `time_limit_s` on the gaps are those reached, and a warning says so.
        Lookups answer from it with `activate` true, and, where that is None, if their revision has
        no active table yet.

        Answered at once by the job that does it.
        """
        return await self.send(
            storing.start_compile_table(
                name,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                relative_gap=relative_gap,
                constraints=constraints,
                time_limit_s=time_limit_s,
                activate=activate,
            )
        )

    async def tables(
        self,
        name: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[TableSummary]:
        """Return a page of a profile's compiled tables, newest first; `name@2` for those of a
        revision.
        """
        return await self.send(storing.tables(name, cursor=cursor, limit=limit))

    def each_table(
        self,
        name: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[TableSummary]:
        """Yield every item from `cursor` on, page after page; `limit` is the length of a page."""
        return self._pages(lambda cursor: storing.tables(name, cursor=cursor, limit=limit), cursor)

    async def table(
        self,
        digest: str,
    ) -> CompiledTable:
        """Return the description of a compiled table."""
        return await self.send(storing.table(digest))

    async def table_file(
        self,
        digest: str,
    ) -> bytes:
        """Return the table file, for `Table.from_bytes`."""
        return await self.send(storing.table_file(digest))

    async def table_twin(
        self,
        digest: str,
    ) -> Any:
        """Return the JSON twin of a table file, as it is."""
        return await self.send(storing.table_twin(digest))

    async def active_table(
        self,
        name: str,
    ) -> CompiledTable:
        """Return the description of the table that lookups of this profile are answered from."""
        return await self.send(storing.active_table(name))

    async def active_table_file(
        self,
        name: str,
    ) -> bytes:
        """Return the file of the active table; `fetch_table` keeps one on disk fresh."""
        return await self.send(storing.active_table_file(name))

    async def activate_table(
        self,
        name: str,
        digest: str,
    ) -> CompiledTable:
        """Make a compiled table of the profile its active one; the way back is the same."""
        return await self.send(storing.activate_table(name, digest))

    async def job(
        self,
        id: str,
    ) -> Job:
        """Return where a job stands."""
        return await self.send(storing.job(id))

    async def cancel_job(
        self,
        id: str,
    ) -> Job:
        """Stop a job; its best answer so far is kept. It may still be stopping."""
        return await self.send(storing.cancel_job(id))

    async def export_targets(
        self,
    ) -> tuple[ExportTarget, ...]:
        """Return every target: what it takes, its options, and what verifies it."""
        return await self.send(exporting.export_targets())

    async def export(
        self,
        name: str,
        target: str,
        *,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        workload: Sequence[WorkloadSize] | None = None,
        objective: str | None = None,
        constraints: Constraints | None = None,
        options: Mapping[str, str] | None = None,
        time_limit_s: float | None = None,
        table: str | None = None,
    ) -> ExportedFile:
        """Return a profile as a library's configuration; `name@2` pins a revision.

        Sizes are chosen for messages of `min_message_bytes` to `max_message_bytes`, or for a `workload`
        in place of that range. The `objective` is what they have the least of: the regret of the total
        "time" with a workload, else the "mean" regret; or the "worst".
        `time_limit_s` is for the solves by which they are chosen. `options` are the target's own;
        `table` is the digest of a compiled table in place of the active one.
        """
        return await self.send(
            exporting.export(
                name,
                target,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                workload=workload,
                objective=objective,
                constraints=constraints,
                options=options,
                time_limit_s=time_limit_s,
                table=table,
            )
        )

    async def audit(
        self,
        setting: Setting,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        workload: Sequence[WorkloadSize] | None = None,
        objective: str | None = None,
        max_regret: float | None = None,
        over: str | None = None,
        time_limit_s: float | None = None,
        in_draws: float | None = None,
        uncertainty: Draws | None = None,
    ) -> Audit:
        """Return what an existing setting costs over the optimum, and what to change.

        Exactly one of where costs may come from (see `optimize`). Without a `workload` every octave of
        the range counts the same. The `objective` is "time" with a workload, the total time of its
        messages, else the "mean" regret; or "worst". `max_regret` is a share, 0.05 for 5 %; with
        `in_draws`, another share, it has to be kept in so many draws of the costs too. `uncertainty`
        says which.
        """
        return await self.send(
            exporting.audit(
                setting,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                workload=workload,
                objective=objective,
                max_regret=max_regret,
                over=over,
                time_limit_s=time_limit_s,
                in_draws=in_draws,
                uncertainty=uncertainty,
            )
        )

    async def start_export(
        self,
        name: str,
        target: str,
        *,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        workload: Sequence[WorkloadSize] | None = None,
        objective: str | None = None,
        constraints: Constraints | None = None,
        options: Mapping[str, str] | None = None,
        time_limit_s: float | None = None,
        table: str | None = None,
    ) -> Job:
        """Return a profile as a library's configuration; `name@2` pins a revision.

        Sizes are chosen for messages of `min_message_bytes` to `max_message_bytes`, or for a `workload`
        in place of that range. The `objective` is what they have the least of: the regret of the total
        "time" with a workload, else the "mean" regret; or the "worst".
        `time_limit_s` is for the solves by which they are chosen. `options` are the target's own;
        `table` is the digest of a compiled table in place of the active one.

        Answered at once by the job that does it.
        """
        return await self.send(
            exporting.start_export(
                name,
                target,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                workload=workload,
                objective=objective,
                constraints=constraints,
                options=options,
                time_limit_s=time_limit_s,
                table=table,
            )
        )

    async def start_audit(
        self,
        setting: Setting,
        *,
        pipeline: Pipeline | None = None,
        aggregate: Aggregate | None = None,
        profile: str | None = None,
        measurements: Measurement | Sequence[Measurement] | None = None,
        fit: Fit | Mapping[str, Any] | None = None,
        fit_id: str | None = None,
        fit_options: FitOptions | None = None,
        min_message_bytes: int | None = None,
        max_message_bytes: int | None = None,
        workload: Sequence[WorkloadSize] | None = None,
        objective: str | None = None,
        max_regret: float | None = None,
        over: str | None = None,
        time_limit_s: float | None = None,
        in_draws: float | None = None,
        uncertainty: Draws | None = None,
    ) -> Job:
        """Return what an existing setting costs over the optimum, and what to change.

        Exactly one of where costs may come from (see `optimize`). Without a `workload` every octave of
        the range counts the same. The `objective` is "time" with a workload, the total time of its
        messages, else the "mean" regret; or "worst". `max_regret` is a share, 0.05 for 5 %; with
        `in_draws`, another share, it has to be kept in so many draws of the costs too. `uncertainty`
        says which.

        Answered at once by the job that does it.
        """
        return await self.send(
            exporting.start_audit(
                setting,
                pipeline=pipeline,
                aggregate=aggregate,
                profile=profile,
                measurements=measurements,
                fit=fit,
                fit_id=fit_id,
                fit_options=fit_options,
                min_message_bytes=min_message_bytes,
                max_message_bytes=max_message_bytes,
                workload=workload,
                objective=objective,
                max_regret=max_regret,
                over=over,
                time_limit_s=time_limit_s,
                in_draws=in_draws,
                uncertainty=uncertainty,
            )
        )

    async def layers(
        self,
    ) -> tuple[LayerSummary, ...]:
        """Return the published messaging layers."""
        return await self.send(messaging.layers())

    async def layer(
        self,
        name: str,
    ) -> PublishedLayer:
        """Return a published layer, and where its publication contradicts itself."""
        return await self.send(messaging.layer(name))

    async def layer_costs(
        self,
        layer: str | Mapping[str, Any],
        message_bytes: Sequence[int],
        *,
        cycles: Mapping[str, float] | None = None,
        clock_mhz: float | None = None,
        features: Sequence[str] | None = None,
        packet_words: Sequence[int] | None = None,
        mapping: str | None = None,
        handshake: str | None = None,
        between: Sequence[Stage] | None = None,
        wire_us: float | None = None,
        out_of_order: float | None = None,
        tune: bool | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
        save_as: str | None = None,
    ) -> LayerCosts:
        """Return what a layer, by name or as a document, costs on messages of these sizes.

        `features` are those whose savings are wanted, each that would remove something where None.
        With `tune` each message is cut anew for each set of them, within `time_limit_s` for all.
        `save_as` stores the stages of the layer as it is.
        """
        return await self.send(
            messaging.layer_costs(
                layer,
                message_bytes,
                cycles=cycles,
                clock_mhz=clock_mhz,
                features=features,
                packet_words=packet_words,
                mapping=mapping,
                handshake=handshake,
                between=between,
                wire_us=wire_us,
                out_of_order=out_of_order,
                tune=tune,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
                save_as=save_as,
            )
        )

    async def start_layer_costs(
        self,
        layer: str | Mapping[str, Any],
        message_bytes: Sequence[int],
        *,
        cycles: Mapping[str, float] | None = None,
        clock_mhz: float | None = None,
        features: Sequence[str] | None = None,
        packet_words: Sequence[int] | None = None,
        mapping: str | None = None,
        handshake: str | None = None,
        between: Sequence[Stage] | None = None,
        wire_us: float | None = None,
        out_of_order: float | None = None,
        tune: bool | None = None,
        relative_gap: float | None = None,
        time_limit_s: float | None = None,
        save_as: str | None = None,
    ) -> Job:
        """Return what a layer, by name or as a document, costs on messages of these sizes.

        `features` are those whose savings are wanted, each that would remove something where None.
        With `tune` each message is cut anew for each set of them, within `time_limit_s` for all.
        `save_as` stores the stages of the layer as it is.

        Answered at once by the job that does it.
        """
        return await self.send(
            messaging.start_layer_costs(
                layer,
                message_bytes,
                cycles=cycles,
                clock_mhz=clock_mhz,
                features=features,
                packet_words=packet_words,
                mapping=mapping,
                handshake=handshake,
                between=between,
                wire_us=wire_us,
                out_of_order=out_of_order,
                tune=tune,
                relative_gap=relative_gap,
                time_limit_s=time_limit_s,
                save_as=save_as,
            )
        )

    async def limits(
        self,
    ) -> Limits:
        """Return everything that a request is measured against."""
        return await self.send(service.limits())

    async def keys(
        self,
    ) -> Keys:
        """Return every key of the owner who asks; takes the scope `admin`, as the next three do."""
        return await self.send(service.keys())

    async def create_key(
        self,
        name: str,
        *,
        scope: str,
        expires_in_s: int | None = None,
        requests_per_s: int | None = None,
    ) -> NewKey:
        """Make a key of the scope `read`, `write`, `admin` or `metrics`; its secret is sent once."""
        return await self.send(
            service.create_key(
                name, scope=scope, expires_in_s=expires_in_s, requests_per_s=requests_per_s
            )
        )

    async def rotate_key(
        self,
        id: str,
        *,
        kept_s: int | None = None,
    ) -> NewKey:
        """Make a key like this one, which goes on for `kept_s`, an hour without it."""
        return await self.send(service.rotate_key(id, kept_s=kept_s))

    async def revoke_key(
        self,
        id: str,
    ) -> None:
        """End a key, and the browsers that signed in by it, at once."""
        return await self.send(service.revoke_key(id))

    async def changes(
        self,
        *,
        subject: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Change]:
        """Return a page of who changed what, the newest first; takes the scope `admin`."""
        return await self.send(service.changes(subject=subject, cursor=cursor, limit=limit))

    def each_change(
        self,
        *,
        subject: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Change]:
        """Yield every item from `cursor` on, page after page; `limit` is the length of a page."""
        return self._pages(
            lambda cursor: service.changes(subject=subject, cursor=cursor, limit=limit), cursor
        )

    async def is_alive(
        self,
    ) -> bool:
        """Return whether the process answers; raises where it does not."""
        return await self.send(service.is_alive())

    async def readiness(
        self,
    ) -> Readiness:
        """Check that the database and the workers answer. Raises Unavailable while they do not."""
        return await self.send(service.readiness())

    async def metrics(
        self,
    ) -> str:
        """Return the counters, in Prometheus' text format."""
        return await self.send(service.metrics())

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        query: Mapping[str, object] | None = None,
        may_repeat: bool | None = None,
    ) -> Any:
        """Call any operation by its path; the answer as JSON, None for an empty one.

        It is sent again after a failure if it is a GET or a POST, which then has a key under which the
        service does it once, or if `may_repeat` says that it may be.
        """
        return await self.send(
            service.request(method, path, json=json, query=query, may_repeat=may_repeat)
        )
