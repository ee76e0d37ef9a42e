"""A pipeline from rows, where every stage costs one line."""

from __future__ import annotations

from collections.abc import Iterable

from sluice_client.contract.pipeline import LineStageIn, PipelineIn


def pipeline_of_lines(
    lines: Iterable[tuple[str, float, float]], *, delay_us: float = 0.0
) -> PipelineIn:
    """Return a pipeline from (name, overhead_us, ns_per_byte) rows."""
    return PipelineIn(
        stages=[
            LineStageIn(name=name, overhead_us=overhead_us, ns_per_byte=ns_per_byte)
            for name, overhead_us, ns_per_byte in lines
        ],
        delay_us=delay_us,
    )
