"""The rows of a file of own transfers, and what has to be the same in all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput, UnitMismatch
from domain.own_transfers import OwnTransfer, OwnTransfers, TransferStatus
from domain.units import format_bytes, parse_bytes
from fitting.readers.text import number_of, size_of
from fitting.transfer_columns import (
    FRAGMENT,
    LATENCY,
    MAX_NAME,
    MAX_REASON,
    MESSAGE,
    Columns,
    refuse,
)

MAX_CHALLENGES = 256
_MAX_WHOLE = 2**48
_MAX_BEGAN_S = 1e12

_MAX_VALUES = 8  # of a condition, that are listed


def one_line(text: str, max_length: int) -> str:
    """Return a text on one line."""
    joined = " ".join(text.split())
    return "".join(letter for letter in joined if letter.isprintable())[:max_length].strip()


class Rows:
    """The rows so far, and the values of what has to be the same in all of them."""

    def __init__(self, columns: Columns, where: Mapping[str, str], message: int | None) -> None:
        self._columns, self._where, self._message = columns, where, message
        self._values = {name: dict[str, None]() for name in columns.conditions}
        self.messages = dict[int, None]()
        self.rows = list[OwnTransfer]()
        self.num_read = 0

    def add(self, fields: Sequence[str], number: int) -> None:
        """Take a row, unless another one was chosen. Raises UnreadableTrace."""
        columns = self._columns
        if len(fields) != columns.width:
            refuse(f"line {number}: expected {columns.width} fields, got {len(fields)}")
        self.num_read += 1
        message = _size(fields[columns.message], number, MESSAGE)
        if self._message is not None and message != self._message:
            self._note(self.messages, message)
            return
        if any(fields[columns.conditions[name]] != value for name, value in self._where.items()):
            self._note_values(fields, self._where)
            return
        self._note(self.messages, message)
        self._note_values(fields, columns.conditions)
        self.rows.append(self._transfer(fields, message, number))

    def _note_values(self, fields: Sequence[str], names: Mapping[str, object]) -> None:
        for name in names:
            self._note(self._values[name], fields[self._columns.conditions[name]])

    @staticmethod
    def _note(values: dict[int, None] | dict[str, None], value: int | str) -> None:
        if len(values) <= _MAX_VALUES:
            values[value] = None  # type: ignore[index]

    def _transfer(self, fields: Sequence[str], message: int, number: int) -> OwnTransfer:
        columns = self._columns
        fragment = _size(fields[columns.fragment], number, FRAGMENT)

        def cell(name: str) -> str:
            place = columns.optional.get(name)
            return "" if place is None else fields[place]

        def optional(name: str, read: Callable[[str], float | int]) -> float | int | None:
            word = cell(name)
            return _tried(read, word, number, name) if word else None

        status = self._status(cell("status"), number)
        block, challenge = optional("block", _whole), optional("challenge", _challenge)
        return OwnTransfer(
            min(fragment, message),
            self._latency_us(fields[columns.latency], message, status, number),
            block=None if block is None else int(block),
            began_s=optional("began_s", _began_s),
            status=status,
            challenge=None if challenge is None else int(challenge),
            reason=one_line(cell("reason"), MAX_REASON),
        )

    def _status(self, word: str, number: int) -> TransferStatus:
        try:
            return TransferStatus(word or "ok")
        except ValueError:
            refuse(f"line {number}, status: expected {', '.join(TransferStatus)}")

    def _latency_us(
        self, word: str, message: int, status: TransferStatus, number: int
    ) -> float | None:
        is_timed = status in (TransferStatus.OK, TransferStatus.WARM_UP)
        if is_timed and not word:
            refuse(
                f"line {number}, {LATENCY}: expected a time, or the status refused or ended for a "
                "transfer that has none"
            )
        if not is_timed:
            return None
        return _tried(
            lambda cell: self._columns.measure.latency_us(cell, message), word, number, LATENCY
        )

    def transfers(self) -> OwnTransfers:
        """Return the rows as transfers of one message. Raises UnreadableTrace, InvalidInput."""
        if not self.num_read:
            refuse(f"expected at least one transfer below the line {MESSAGE},{FRAGMENT},…")
        if not self.rows:
            self._refuse_choice()
        if self._message is None and len(self.messages) > 1:
            sizes = [format_bytes(size) for size in self.messages]
            refuse(f"{MESSAGE} has {_listed(sizes)}: choose the message that is asked for")
        conditions = list[tuple[str, str]]()
        for name, found in self._chosen_values().items():
            if len(found) > 1:
                refuse(
                    f"{name} has {_listed(list(found))}: transfers under several are not of one "
                    f"program; choose one, as in {name}={next(iter(found))}"
                )
            conditions += [(name, value) for value in found if value]
        return OwnTransfers(next(iter(self._own_messages())), tuple(self.rows), tuple(conditions))

    def _own_messages(self) -> tuple[int, ...]:
        return (self._message,) if self._message is not None else tuple(self.messages)

    def _chosen_values(self) -> dict[str, dict[str, None]]:
        chosen = {name: {value: None} for name, value in self._where.items()}
        return {**self._values, **chosen}

    def _refuse_choice(self) -> NoReturn:
        """Say what there is in place of what was chosen."""
        if self._message is not None and self._message not in self.messages:
            sizes = _listed([format_bytes(size) for size in self.messages])
            refuse(
                f"{MESSAGE} has {sizes}: these transfers say nothing of a message of "
                f"{format_bytes(self._message)}"
            )
        chosen = " and ".join(f"{name}={value}" for name, value in self._where.items())
        known = "; ".join(f"{name} has {_listed(list(self._values[name]))}" for name in self._where)
        refuse(f"no transfer has {chosen}: {known}")


def _listed(values: Sequence[str]) -> str:
    """As in "2 values, 1 and 16"; more than are listed are "more than 8 values"."""
    shown = [value[:MAX_NAME] or "nothing" for value in values[:_MAX_VALUES]]
    if len(values) > _MAX_VALUES:
        return f"more than {_MAX_VALUES} values, {', '.join(shown[:3])} among them"
    if len(shown) == 1:
        return f"the value {shown[0]}"
    return f"{len(shown)} values, {', '.join(shown[:-1])} and {shown[-1]}"


def _size(word: str, number: int, column: str) -> int:
    """A size in bytes, with or without a unit. Raises UnreadableTrace."""
    size = size_of(word)
    if size is None:
        try:
            size = parse_bytes(word)
        except UnitMismatch as refusal:
            refuse(f"line {number}, {column}: {refusal.detail}")
    if not 1 <= size <= MAX_MESSAGE_BYTES:
        refuse(f"line {number}, {column}: expected 1 to {MAX_MESSAGE_BYTES} bytes")
    return size


def _tried(read: Callable[[str], float], word: str, number: int, column: str) -> float:
    try:
        return read(word)
    except InvalidInput as refusal:
        refuse(f"line {number}, {column}: {refusal.detail}")


def _whole(word: str) -> int:
    value = size_of(word)
    if value is None or value > _MAX_WHOLE:
        raise InvalidInput(f"expected a whole number from 0 to {_MAX_WHOLE}")
    return value


def _challenge(word: str) -> int:
    value = size_of(word)
    if value is None or not 1 <= value <= MAX_CHALLENGES:
        raise InvalidInput(f"expected a whole number from 1 to {MAX_CHALLENGES}")
    return value


def _began_s(word: str) -> float:
    value = number_of(word)
    if value is None or not abs(value) <= _MAX_BEGAN_S:
        raise InvalidInput(f"expected a time in s of at most {_MAX_BEGAN_S:g}")
    return value
