"""Turns: requesters one after the other, and what leaves where one asks for too much."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.execution.engine import FairQueue
from domain.errors import Overloaded


def queue_of(max_of_requester: int = 10, max_waiting: int = 100) -> FairQueue[str]:
    return FairQueue(max_waiting=max_waiting, max_of_requester=max_of_requester)


def taken(queue: FairQueue[str]) -> list[str]:
    """All that waits, in the order of its turns."""
    found = []
    while (item := queue.take()) is not None:
        found.append(item)
    return found


def test_requesters_take_turns_and_so_do_their_subjects() -> None:
    """One that asks once waits for one item of another, however many those are."""
    queue = queue_of()
    for item in ("a1", "a2", "a3"):
        queue.add(item, requester="flood", subject="a")
    queue.add("b1", requester="flood", subject="b")
    queue.add("c1", requester="other", subject="c")
    assert taken(queue) == ["a1", "c1", "b1", "a2", "a3"]
    assert len(queue) == 0


def test_a_requester_that_comes_back_does_not_go_first() -> None:
    """It had the last turn, and another one has waited since."""
    queue = queue_of()
    queue.add("a1", requester="one")
    assert queue.take() == "a1"
    queue.add("a2", requester="one")
    queue.add("b1", requester="other")
    assert taken(queue) == ["b1", "a2"]


def test_the_newest_of_the_longest_queue_leaves() -> None:
    """A new subject finds space where another of its requester has more than its part."""
    queue = queue_of(3)
    for item in ("a1", "a2", "a3"):
        assert queue.add(item, requester="one", subject="a") is None
    assert queue.add("a4", requester="one", subject="a") == "a4"
    assert queue.add("b1", requester="one", subject="b") == "a3"
    assert queue.add("b2", requester="one", subject="b") == "b2"
    assert queue.add("x1", requester="other", subject="a") is None
    assert taken(queue) == ["a1", "x1", "b1", "a2"]


def test_too_many_in_all_are_refused_whoever_asks() -> None:
    queue = queue_of(max_waiting=2)
    for item in "ab":
        queue.add(item, requester=item)
    with pytest.raises(Overloaded, match="2 requests are waiting"):
        queue.add("c", requester="c")
    assert taken(queue) == ["a", "b"]
    assert queue.add("c", requester="c") is None


def test_who_may_not_take_keeps_the_place() -> None:
    queue = queue_of()
    for item in ("a1", "a2", "b1", "b2"):
        queue.add(item, requester=item[0])
    assert queue.take(lambda requester: requester == "b") == "b1"
    assert queue.take(lambda requester: requester == "b") == "b2"
    assert queue.take(lambda requester: requester == "b") is None
    assert taken(queue) == ["a1", "a2"]


def test_what_nobody_waits_for_goes() -> None:
    """It takes no turn and no space; removing what is not there does nothing."""
    queue = queue_of(2)
    queue.add("a1", requester="one", subject="a")
    queue.add("b1", requester="one", subject="b")
    assert queue.remove("a1", requester="one", subject="a")
    assert not queue.remove("a1", requester="one", subject="a")
    assert not queue.remove("a1", requester="nobody", subject="a")
    assert queue.add("c1", requester="one", subject="c") is None
    assert taken(queue) == ["b1", "c1"]


def test_draining() -> None:
    queue = queue_of()
    for item in ("a1", "a2", "b1"):
        queue.add(item, requester=item[0], subject=item)
    assert sorted(queue.drain()) == ["a1", "a2", "b1"]
    assert (len(queue), queue.take()) == (0, None)


def test_threads() -> None:
    """Each item is taken once."""
    queue, found = queue_of(1000, 10_000), []  # type: tuple[FairQueue[str], list[str]]

    def add(requester: str) -> None:
        for number in range(500):
            queue.add(f"{requester}{number}", requester=requester)
            if (item := queue.take()) is not None:
                found.append(item)

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found += taken(queue)
    assert sorted(found) == sorted(f"{name}{number}" for name in "abcd" for number in range(500))


ACTS = st.lists(
    st.tuples(
        st.sampled_from("PQR"), st.sampled_from("abc"), st.sampled_from(["add", "take", "take P"])
    )
)


@given(ACTS, st.integers(1, 4), st.integers(1, 8))
def test_nothing_is_lost_and_no_requester_has_more_than_its_part(
    acts: list[tuple[str, str, str]], max_of_requester: int, max_waiting: int
) -> None:
    """Whatever the order: each item leaves once, in the order of its queue."""
    queue: FairQueue[tuple[str, str, int]] = FairQueue(
        max_waiting=max_waiting, max_of_requester=max_of_requester
    )
    inside: set[tuple[str, str, int]] = set()
    for number, (requester, subject, act) in enumerate(acts):
        if act == "add":
            item = (requester, subject, number)
            if len(inside) >= max_waiting:
                with pytest.raises(Overloaded):
                    queue.add(item, requester=requester, subject=subject)
                continue
            inside.add(item)
            displaced = queue.add(item, requester=requester, subject=subject)
            if displaced is not None:
                inside.remove(displaced)
        else:
            only_p = act == "take P"
            found = queue.take((lambda one: one == "P") if only_p else (lambda _: True))
            if found is None:
                assert not any(not only_p or one[0] == "P" for one in inside)
                continue
            assert not only_p or found[0] == "P"
            same = [one for one in inside if one[:2] == found[:2]]
            assert found == min(same, key=lambda one: one[2])
            inside.remove(found)
        assert len(queue) == len(inside) <= max_waiting
        assert all(sum(one[0] == name for one in inside) <= max_of_requester for name in "PQR")
