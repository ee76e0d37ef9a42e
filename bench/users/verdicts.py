"""What answers did to users, by what their machines truly take; and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.spec import Cell, Check, Table
from bench.users.kinds import Kind, Spread, User, user_of
from bench.users.machines import repeated
from bench.users.questions import Stated, ask
from domain.solution import Strategy
from domain.uncertain_answer import DecisionCode

HARMED = 0.01  # slower than before by more than this share
GREAT_HARM = 0.10
WORTH = 0.10  # a gain above this is missed where it is not set
MAX_HARMED, MAX_MISSED, MIN_COVERED = 0.005, 0.03, 0.80  # shares of users
_CLOSE = 0.02  # an expected latency this near to a limit is simulated anew, with more messages
STRATEGIES = (Strategy.REPEAT, Strategy.AUTO)
_SIMULATED = 3  # candidates whose latency is simulated, those that seem best


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one user was answered, and what is true, times in µs.

    `loss` is by which share the advised cut is slower than the setting in use, 0 unless it is to be
    set; `to_gain` by which share the best size is faster. `interval_us` is that of the
    advised cut, with `true_us` its expected latency; None where nothing was.
    """

    user: User
    strategy: Strategy
    stated: Stated
    loss: float
    to_gain: float
    best_bytes: int
    current_us: float
    true_us: float | None
    interval_us: tuple[float, float] | None

    @property
    def is_set(self) -> bool:
        """Whether the answer sets another size."""
        return self.stated.decision == DecisionCode.SET_IT

    @property
    def is_harmed(self) -> bool:
        """Whether what is to be set is slower than what was."""
        return self.is_set and self.loss > HARMED

    @property
    def could_gain(self) -> bool:
        """Whether there is a gain that is worth telling."""
        return self.to_gain > WORTH

    @property
    def is_missed(self) -> bool:
        """Whether such a gain is not set."""
        return self.could_gain and not self.is_set

    @property
    def covers(self) -> bool | None:
        """Whether the interval of the answer holds what is true; None without one."""
        if self.interval_us is None or self.true_us is None:
            return None
        return self.interval_us[0] <= self.true_us <= self.interval_us[1]


def users(count: int, seed: int, spread: Spread | None = None) -> Iterator[User]:
    """So many users, the kinds in turns."""
    kinds = list(Kind)
    for number in range(count):
        yield user_of((seed, number), kinds[number % len(kinds)], spread)


def judged_users(count: int, seed: int, spread: Spread | None = None) -> list[Verdict]:
    """The verdicts on so many users: a round of kinds repeats one size, the next may cut anyhow."""
    return [
        judged(user, STRATEGIES[number // len(Kind) % len(STRATEGIES)])
        for number, user in enumerate(users(count, seed, spread))
    ]


def judged(user: User, strategy: Strategy) -> Verdict:
    """Ask for this user, and look at what that does."""
    total, machine = user.message_bytes, user.machine
    stated = ask(user.rows, total, user.current_bytes, strategy)
    now = repeated(total, user.current_bytes)
    current_us = machine.expected_us(user.seed, now)
    loss = 0.0
    if stated.decision == DecisionCode.SET_IT:
        loss = max(_loss(user, cut, now, current_us) for cut in stated.advised)
    best_bytes, best_us = _best(user)
    interval, true_us = _interval(user, stated)
    to_gain = max(1.0 - best_us / current_us, 0.0)
    return Verdict(user, strategy, stated, loss, to_gain, best_bytes, current_us, true_us, interval)


def _loss(user: User, cut: tuple[int, ...], now: tuple[int, ...], current_us: float) -> float:
    machine = user.machine
    found = machine.expected_us(user.seed, cut) / current_us - 1.0
    if abs(found - HARMED) > _CLOSE:
        return found
    new, old = (machine.expected_us((*user.seed, 2), one, times=10) for one in (cut, now))
    return new / old - 1.0


def _best(user: User) -> tuple[int, float]:
    """The best of the sizes measured or between them, and its latency in µs."""
    machine, total = user.machine, user.message_bytes
    cuts = {size: repeated(total, size) for size in user.candidates()}
    if not cuts:
        return user.current_bytes, float("inf")
    near = sorted(cuts, key=lambda size: machine.chain_us(cuts[size]))[:_SIMULATED]
    found = {size: machine.expected_us(user.seed, cuts[size]) for size in near}
    best = min(found, key=lambda size: found[size])
    return best, found[best]


def _interval(user: User, stated: Stated) -> tuple[tuple[float, float] | None, float | None]:
    """The interval of the advised cut; of a size other than the answer's by asking for it."""
    if stated.answer is None or not stated.advised:
        return None, None
    cut = stated.advised[0]
    answer = stated.answer
    if answer.fragment_bytes != cut:
        again = ask(
            user.rows,
            user.message_bytes,
            user.current_bytes,
            Strategy.STATIC,
            static_bytes=max(cut),
        )
        if again.answer is None:
            return None, None
        answer = again.answer
    known = answer.uncertainty
    if known is None or known.latency_us.p05 is None or known.latency_us.p95 is None:
        return None, None
    true_us = user.machine.expected_us(user.seed, cut)
    return (known.latency_us.p05, known.latency_us.p95), true_us


# --- all of them ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tally:
    """How many users there were, and what came of them."""

    users: int
    sets: int
    harmed: int
    worst_loss: float
    could_gain: int
    missed: int
    refused: int
    stated: int
    covered: int

    @property
    def harmed_share(self) -> float:
        """Of all users."""
        return self.harmed / max(self.users, 1)

    @property
    def missed_share(self) -> float:
        """Of those who could gain."""
        return self.missed / max(self.could_gain, 1)

    @property
    def covered_share(self) -> float:
        """Of the intervals of answers."""
        return self.covered / self.stated if self.stated else 1.0


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Count."""
    found = list(verdicts)
    return Tally(
        users=len(found),
        sets=sum(one.is_set for one in found),
        harmed=sum(one.is_harmed for one in found),
        worst_loss=max((one.loss for one in found if one.is_set), default=0.0),
        could_gain=sum(one.could_gain for one in found),
        missed=sum(one.is_missed for one in found),
        refused=sum(one.stated.decision == "refused" for one in found),
        stated=sum(one.covers is not None for one in found),
        covered=sum(one.covers is True for one in found),
    )


def table(verdicts: Sequence[Verdict], title: str) -> Table:
    """One row a kind, and one of all."""
    by_kind = {str(kind): [one for one in verdicts if one.user.kind is kind] for kind in Kind}
    rows: list[tuple[Cell, ...]] = []
    for name, some in {**by_kind, "all": list(verdicts)}.items():
        one = tally(some)
        rows.append(
            (
                name,
                one.users,
                one.sets,
                one.harmed,
                round(100.0 * max(one.worst_loss, 0.0), 1),
                f"{one.missed}/{one.could_gain}",
                f"{one.covered}/{one.stated}",
                one.refused,
            )
        )
    columns = (
        "kind",
        "users",
        "set_it",
        "harmed",
        "worst, %",
        "gains missed",
        "intervals that hold",
        "refused",
    )
    return Table(title, columns, tuple(rows))


def checks(verdicts: Sequence[Verdict]) -> tuple[Check, ...]:
    """What is asked of the answers."""
    of_all = tally(verdicts)
    minimum = min(
        tally(one for one in verdicts if one.user.kind is kind).covered_share for kind in Kind
    )
    return (
        Check("users harmed", of_all.harmed_share, MAX_HARMED, "share"),
        Check("worst loss of a user", max(of_all.worst_loss, 0.0), GREAT_HARM, "share"),
        Check("gains above 10 % that are missed", of_all.missed_share, MAX_MISSED, "share"),
        Check("intervals that hold, least kind", minimum, MIN_COVERED, "share", "at least"),
    )
