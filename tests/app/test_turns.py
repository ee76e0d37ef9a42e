"""Turns: parties one after the other, and what leaves where one asks for too much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.turns import Turns


def taken(turns: Turns[str]) -> list[str]:
    """All that waits, in the order of its turns."""
    found = []
    while (item := turns.take()) is not None:
        found.append(item)
    return found


def test_parties_take_turns_and_so_do_their_matters() -> None:
    """One that asks once waits for one item of another, however many those are."""
    turns: Turns[str] = Turns(most=10)
    for item in ("a1", "a2", "a3"):
        turns.add("flood", "a", item)
    turns.add("flood", "b", "b1")
    turns.add("other", "c", "c1")
    assert taken(turns) == ["a1", "c1", "b1", "a2", "a3"]
    assert len(turns) == 0


def test_the_latest_of_the_longest_queue_leaves() -> None:
    """A new matter finds room where another one of its party has more than its part."""
    turns: Turns[str] = Turns(most=3)
    for item in ("a1", "a2", "a3"):
        assert turns.add("one", "a", item) is None
    assert turns.add("one", "a", "a4") == "a4"
    assert turns.add("one", "b", "b1") == "a3"
    assert turns.add("one", "b", "b2") == "b2"
    assert turns.add("other", "a", "x1") is None
    assert taken(turns) == ["a1", "x1", "b1", "a2"]


def test_what_nobody_waits_for_goes() -> None:
    """It takes no turn and no room; letting go of what is not there does nothing."""
    turns: Turns[str] = Turns(most=2)
    turns.add("one", "a", "a1")
    turns.add("one", "b", "b1")
    turns.discard("one", "a", "a1")
    turns.discard("one", "a", "a1")
    turns.discard("nobody", "a", "a1")
    assert turns.add("one", "c", "c1") is None
    assert taken(turns) == ["b1", "c1"]


ACTS = st.lists(
    st.tuples(st.sampled_from("PQR"), st.sampled_from("abc"), st.sampled_from(["add", "take"]))
)


@given(ACTS, st.integers(1, 4))
def test_nothing_is_lost_and_no_party_has_more_than_its_part(
    acts: list[tuple[str, str, str]], most: int
) -> None:
    """Whatever the order: each item leaves once, in the order of its queue."""
    turns: Turns[tuple[str, str, int]] = Turns(most=most)
    inside: set[tuple[str, str, int]] = set()
    for number, (party, matter, act) in enumerate(acts):
        if act == "add":
            item = (party, matter, number)
            inside.add(item)
            dropped = turns.add(party, matter, item)
            if dropped is not None:
                inside.remove(dropped)
        elif (item_ := turns.take()) is not None:
            same = [one for one in inside if one[:2] == item_[:2]]
            assert item_ == min(same, key=lambda one: one[2])
            inside.remove(item_)
        assert len(turns) == len(inside)
        assert all(sum(one[0] == party for one in inside) <= most for party in "PQR")
