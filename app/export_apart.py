"""Exports whose sizes have to be chosen, in a process of its own; and the last of them, kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from app.apart import Apart
from app.flows.export_setting import Exported, ExportQuestion, export

KEPT = 256
KEPT_BYTES = 2**18  # longer ones are not kept


@dataclass(frozen=True, slots=True)
class ExportTask:
    """What to export."""

    question: ExportQuestion

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "export"

    def prepare(self) -> None:
        """Load what every choice of sizes needs."""
        import app.flows.best_known
        import exports.slt
        import solvers

        assert app.flows.best_known and exports.slt
        solvers.warm_up()

    def run(self) -> Exported:
        """Choose and render. Raises SluiceError."""
        return export(self.question)


class ExportApart:
    """One export. `run` blocks; `cancel` may be called by another thread."""

    def __init__(self, question: ExportQuestion, *, memory_bytes: int) -> None:
        self._child = Apart(ExportTask(question), memory_bytes=memory_bytes)

    def run(self) -> Exported:
        """The export. Raises what `export` does, Cancelled, LimitReached and SolverFailed."""
        return self._child.run()

    def cancel(self) -> None:
        """Nobody waits any more: kill the process."""
        self._child.cancel()


class KeptExports:
    """The exports made last, by the digest of their question: a client may ask every minute.

    Any thread may call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Exported] = OrderedDict()

    def get(self, digest: str) -> Exported | None:
        """A kept export, which becomes the youngest."""
        with self._lock:
            found = self._kept.get(digest)
            if found is not None:
                self._kept.move_to_end(digest)
            return found

    def keep(self, digest: str, made: Exported) -> None:
        """Keep it, and let the oldest go."""
        if len(made.content) > KEPT_BYTES:
            return
        with self._lock:
            self._kept[digest] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
