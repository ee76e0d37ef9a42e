"""When do writes deadlock? Every state that processes and their buffers can reach is searched.

Units stand for bytes. A channel has a send buffer S, perhaps a relay of fixed storage N, and a
receive buffer R; the network moves a unit on when there is room. docs/papers/strumpen94.md has the
theorem: blocking writes of fragments F, with everything pending read before each, deadlock if and
only if F > R.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import pytest

T = TypeVar("T")
Stores = tuple[int, ...]  # what each store of a channel holds, from the sender's to the receiver's
Process = tuple[int, int, int]  # units not begun, of the fragment being written, not received
State = tuple[tuple[Process, ...], tuple[Stores, ...]]


@dataclass(frozen=True)
class Ring:
    """Processes that each send `message` units to the next one; two of them exchange."""

    capacities: Stores
    message: int
    fragment: int
    processes: int = 2
    policy: str = "discipline"

    def deadlocks(self) -> bool:
        """Whether a state can be reached in which nothing can happen and not all is received."""
        empty = (0,) * len(self.capacities)
        first: State = (
            ((self.message, 0, self.message),) * self.processes,
            (empty,) * self.processes,
        )
        seen, left = {first}, [first]
        while left:
            state = left.pop()
            following = list(self._following(state))
            if not following and any(process != (0, 0, 0) for process in state[0]):
                return True
            new = [one for one in following if one not in seen]
            seen.update(new)
            left += new
        return False

    def _following(self, state: State) -> Iterator[State]:
        processes, channels = state
        for place, stores in enumerate(channels):
            for at in range(len(stores) - 1):
                if stores[at] and stores[at + 1] < self.capacities[at + 1]:
                    moved = (*stores[:at], stores[at] - 1, stores[at + 1] + 1, *stores[at + 2 :])
                    yield processes, _with(channels, place, moved)
        for place in range(self.processes):
            yield from self._steps(state, place)

    def _steps(self, state: State, place: int) -> Iterator[State]:
        """What a process can do next: channel i leads from process i to the one behind it."""
        processes, channels = state
        todo, writing, missing = processes[place]
        behind = (place - 1) % self.processes
        incoming, own = channels[behind], channels[place]
        may_read = {
            "blocking": not todo and not writing,
            "discipline": not writing,
            "agent": True,
        }[self.policy]
        if may_read and incoming[-1]:
            read = _with(channels, behind, (*incoming[:-1], incoming[-1] - 1))
            yield _with(processes, place, (todo, writing, missing - 1)), read
        has_looked = self.policy != "discipline" or not incoming[-1]
        if todo and not writing and has_looked:
            size = min(self.fragment, todo)
            yield _with(processes, place, (todo - size, size, missing)), channels
        if writing and own[0] < self.capacities[0]:
            written = _with(channels, place, (own[0] + 1, *own[1:]))
            yield _with(processes, place, (todo, writing - 1, missing)), written


def _with(row: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*row[:place], value, *row[place + 1 :])


SIZES = [(sent, received) for sent in (1, 2, 3) for received in (1, 2, 3)]


@pytest.mark.parametrize(("sent", "received"), SIZES)
def test_blocking_writes_deadlock_above_both_buffers(sent: int, received: int) -> None:
    for message in range(1, sent + received + 3):
        ring = Ring((sent, received), message, message, policy="blocking")
        assert ring.deadlocks() == (message > sent + received)


@pytest.mark.parametrize(("sent", "received"), SIZES)
def test_the_discipline_deadlocks_above_the_receive_buffer(sent: int, received: int) -> None:
    """Whatever the send buffer holds, for messages of enough fragments."""
    for fragment in range(1, received + 3):
        message = sent + received + 2 * fragment
        ring = Ring((sent, received), message, fragment)
        assert ring.deadlocks() == (fragment > received), fragment


@pytest.mark.parametrize("storage", [1, 2])
@pytest.mark.parametrize("received", [1, 2])
def test_a_relay_changes_nothing(storage: int, received: int) -> None:
    for fragment in range(1, received + 2):
        ring = Ring((1, storage, received), 1 + storage + received + 2 * fragment, fragment)
        assert ring.deadlocks() == (fragment > received)


@pytest.mark.parametrize("fragment", [1, 2])
def test_a_ring_of_three_is_as_two(fragment: int) -> None:
    ring = Ring((1, 1), 2 + 2 * fragment, fragment, processes=3)
    assert ring.deadlocks() == (fragment > 1)


@pytest.mark.parametrize(("sent", "received"), [one for one in SIZES if sum(one) <= 4])
def test_an_agent_never_deadlocks(sent: int, received: int) -> None:
    """It reads while it writes: no condition on anything."""
    for fragment in (1, received + 1, sent + received + 2):
        message = sent + received + 2
        assert not Ring((sent, received), message, fragment, policy="agent").deadlocks()


def test_agents_in_a_ring_never_deadlock() -> None:
    assert not Ring((1, 1), 3, 3, processes=3, policy="agent").deadlocks()
    assert Ring((1, 1), 3, 3, processes=3, policy="blocking").deadlocks()
