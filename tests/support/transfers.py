"""Files of transfers as a machine of known costs would have them written."""

from __future__ import annotations

from domain.pipeline import Pipeline
from measuring.transfers import TransferPlan, Transfers
from measuring.verdict import repeated_cut

MESSAGE = 1 << 20
SIZES = tuple(MESSAGE >> power for power in range(7))
STAGES = ("memcpy", "tcp")


def transfers_of(machine: Pipeline, stages: tuple[str, ...] = STAGES, **facts: str) -> str:
    """The file of transfers through these stages, whose costs are the machine's."""

    def ask(line: str) -> str:
        message, size = map(int, line.split())
        cut = repeated_cut(message, size)
        pairs = [
            f"{sum(map(stage.time_us, cut)) * 1000:.0f}:{len(cut) * 10}" for stage in machine.stages
        ]
        return f"{message} {size} {machine.latency_us(cut) * 1000:.0f} 0 {' '.join(pairs)}"

    found = Transfers(TransferPlan(MESSAGE, SIZES, stages))
    found.run(ask)
    return found.to_csv({"processors": "2", **facts})
