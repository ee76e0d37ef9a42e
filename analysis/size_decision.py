"""The decision as a value: what was found of every size, gains, and how many runs would decide."""

from __future__ import annotations

from math import ceil

from analysis.size_evidence import SizeEvidence
from domain.own_transfers import NEAR_BEST, OwnTransfers, SizeDecision, SizeVerdict, TransferStatus

MARGIN = 0.01  # what a size has to be faster by, in log time, to be set
_SURE_ERRORS = 3.0  # standard errors that a gain has by the time it wins
_KEEP_ERRORS = 1.28
_MAX_MORE_RUNS = 200


def default_current(transfers: OwnTransfers, current_bytes: int | None) -> int:
    """Return what sizes are compared with: the current one, else the message in one piece, or the
    largest size where that was not transferred.
    """
    if current_bytes is not None:
        return current_bytes
    return max((row.fragment_bytes for row in transfers.usable), default=transfers.message_bytes)


def decision_of(
    transfers: OwnTransfers,
    evidence: SizeEvidence | None,
    verdict: SizeVerdict,
    *,
    current_bytes: int | None,
    size_bytes: int | None,
    condition: str = "",
) -> SizeDecision:
    """Return the decision with everything that the transfers say; no evidence: none was usable.

    The size that is set leads, else the fastest that was transferred.
    """
    current = default_current(transfers, current_bytes)
    refused = tuple(sorted(transfers.refused.items()))
    spent = [row for row in transfers.rows if row.status is not TransferStatus.WARM_UP]
    leader_bytes = size_bytes if verdict is SizeVerdict.SET else None
    if evidence is not None and leader_bytes is None:
        leader_bytes = evidence.by_mean[0]
    gain = None
    if evidence is not None and leader_bytes in evidence.sizes and leader_bytes != current:
        gain = evidence.gain(leader_bytes, current) if current in evidence.sizes else None
    return SizeDecision(
        verdict=verdict,
        message_bytes=transfers.message_bytes,
        current_bytes=current,
        is_current_known=current_bytes is not None,
        size_bytes=size_bytes,
        leader_bytes=leader_bytes,
        gain=gain,
        noise=evidence.noise if evidence else 0.0,
        runs=len(spent),
        seconds=_seconds(transfers),
        sizes=evidence.found() if evidence else (),
        refused=refused,
        curve=evidence.curve.constants_us if evidence and evidence.curve.holds else None,
        condition=condition,
        more_runs=_more_runs(evidence, current) if verdict is SizeVerdict.NOT_DECIDED else None,
    )


def _seconds(transfers: OwnTransfers) -> float:
    """From the first begin to the last end where begins are known, else all times together."""
    rows = transfers.rows
    begins = [row.began_s for row in rows if row.began_s is not None]
    if rows and len(begins) == len(rows):
        ends = [
            row.began_s + (row.latency_us or 0.0) * 1e-6 for row in rows if row.began_s is not None
        ]
        return max(ends) - min(begins)
    return sum(row.latency_us or 0.0 for row in rows) * 1e-6


def _more_runs(evidence: SizeEvidence | None, current: int) -> int | None:
    """About how many more runs of the current size and the best other one would decide, in tens;
    None where it would take more than 200, or the current size was not run.
    """
    if evidence is None or current not in evidence.sizes or len(evidence.sizes) < 2:
        return None
    other = next(size for size in evidence.by_mean if size != current)
    lead, error = evidence.centres.lead(other, current)
    wanted = lead / _SURE_ERRORS if lead > MARGIN else (NEAR_BEST - lead) / _KEEP_ERRORS
    runs = 1 / (1 / evidence.centres.runs_of(other) + 1 / evidence.centres.runs_of(current))
    more = 4.0 * runs * max(0.0, (error / wanted) ** 2 - 1.0)
    tens = 10 * max(1, ceil(more / 10))
    return tens if tens <= _MAX_MORE_RUNS else None
