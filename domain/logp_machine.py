"""A pair of end points that obey LogP, simulated event by event.

The sender issues requests, computes, and handles whatever replies have come before the next one.
Its network interface holds a few messages and takes one every gap; the receiver handles a request
and sends a reply, through an interface of the same kind.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

QUEUE = 4  # messages that an interface holds before the processor has to wait


@dataclass(frozen=True, slots=True)
class LogPMachine:
    """LogP's parameters in µs (Culler et al. 1996, sec. 2)."""

    send_us: float
    receive_us: float
    gap_us: float
    wire_us: float

    @property
    def round_trip_us(self) -> float:
        """Return the time of one request and its reply: 2 (o_s + L + o_r)."""
        return 2.0 * (self.send_us + self.wire_us + self.receive_us)

    def burst_us(self, messages: int, computation_us: float) -> float:
        """Return the time until the last of a burst of requests is issued and computed after."""
        now, free_at = 0.0, 0.0  # the sender's clock; when its interface takes the next message
        held: deque[float] = deque()  # when each message in the interface leaves it
        receiver, reply_at = 0.0, 0.0
        replies: deque[float] = deque()
        for _ in range(messages):
            while replies and replies[0] <= now:
                replies.popleft()
                now += self.receive_us
            while held and held[0] <= now:
                held.popleft()
            if len(held) >= QUEUE:
                now = held.popleft()
            now += self.send_us
            leaves = max(now, free_at)
            free_at = leaves + self.gap_us
            held.append(free_at)
            receiver = max(receiver, leaves + self.wire_us) + self.receive_us + self.send_us
            reply_at = max(receiver, reply_at)
            replies.append(reply_at + self.wire_us)
            reply_at += self.gap_us
            now += computation_us
        return now


def many_to_one_us(machine: LogPMachine, senders: int, messages: int) -> float:
    """Return the mean cost of a message, µs, where so many ends send to one, without replies.

    Source: Culler et al. 1996, Table 5. The receiver's interface takes one message every gap, in
    the order in which they come, and each sender has at most QUEUE that it has not taken: what the
    network holds for it.
    """
    clocks, issued = [0.0] * senders, [0] * senders
    waiting = [deque[float]() for _ in range(senders)]  # when each of them is taken
    taken_at = 0.0
    ready = [(0.0, sender) for sender in range(senders)]
    while ready:
        now, sender = heappop(ready)
        if len(waiting[sender]) >= QUEUE:
            now = max(now, waiting[sender].popleft())
        now = max(now + machine.send_us, clocks[sender] + machine.gap_us if issued[sender] else 0.0)
        taken_at = max(taken_at + machine.gap_us, now + machine.wire_us)
        waiting[sender].append(taken_at)
        clocks[sender], issued[sender] = now, issued[sender] + 1
        if issued[sender] < messages:
            heappush(ready, (now, sender))
    return max(clocks) / messages
