"""A user's own transfers as a source: which size to set is read off them, without a model.

decided = decide(TransfersQuestion(text, message_bytes=64 << 20, current_bytes=512 << 10))
decided.decision.sentence()
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import InconsistentInput
from domain.own_transfers import OwnTransfers, SizeDecision

MAX_ROWS_BESIDE = 1000  # of one about a model too


@dataclass(frozen=True, slots=True)
class TransfersQuestion:
    """Transfers as the text of a file or as they are, and what is asked of them.

    Without `message_bytes` the file has to be of one message. The size in use is `current_bytes`,
    or the whole message where it `sends_whole`. `where` chooses values of conditions.
    """

    transfers: str | OwnTransfers
    message_bytes: int | None = None
    current_bytes: int | None = None
    sends_whole: bool = False
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DecidedTransfers:
    """A decision, the transfers that it rests on, and columns of the file that it does not use."""

    decision: SizeDecision
    transfers: OwnTransfers
    unused: tuple[str, ...] = ()


def decide(question: TransfersQuestion, *, max_rows: int | None = None) -> DecidedTransfers:
    """Return what the transfers decide. Raises UnreadableTrace, also for transfers of another
    message than is asked for, and InvalidInput for none with a time, and for more than `max_rows`.
    """
    from analysis.transfer_sizes import decide_size

    given, unused = question.transfers, tuple[str, ...]()
    if isinstance(given, str):
        from fitting.own_transfers import read_own_file

        file = read_own_file(
            given, where=dict(question.where), message_bytes=question.message_bytes
        )
        given, unused = file.transfers, file.unused
    if max_rows is not None and len(given.rows) > max_rows:
        raise InconsistentInput(
            f"expected at most {max_rows} transfers, got {len(given.rows)}", field="transfers"
        )
    if not given.usable:
        raise InconsistentInput("expected at least one transfer with a time", field="transfers")
    decision = decide_size(given, _current_of(question, given.message_bytes))
    return DecidedTransfers(decision, given, unused)


@dataclass(frozen=True, slots=True)
class TransfersWork:
    """Transfers of a request, and how many they may be."""

    question: TransfersQuestion
    max_rows: int

    def read(self) -> DecidedTransfers:
        """Read and decide. Raises as `decide`."""
        return decide(self.question, max_rows=self.max_rows)


def _current_of(question: TransfersQuestion, message_bytes: int) -> int | None:
    """The size in use: of one beyond the message, the message in one piece."""
    if question.sends_whole:
        return message_bytes
    current = question.current_bytes
    return None if current is None else min(current, message_bytes)
