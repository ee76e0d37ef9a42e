"""papers/: what is computed of Wang98, Culler96 and Karamcheti94, against other sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.logp_machine import LogPMachine, many_to_one_us
from papers.items import Figure, Item
from papers.registry import PAPERS


def item(paper: str, name: str) -> Item:
    (spec,) = [spec for spec in PAPERS[paper].items if spec.name == name]
    return spec.compute()


def figures(paper: str, name: str) -> dict[str, Figure]:
    found = {one.name: one for one in item(paper, name).figures}
    assert len(found) == len(item(paper, name).figures), "each number has a name of its own"
    return found


# --- Karamcheti94 ---------------------------------------------------------------------------------


def test_every_entry_of_its_tables_is_there_and_agrees() -> None:
    """180 entries, 30 formulas of three terms, each exactly."""
    sizes = {"table-1": 3, "table-2": 60, "table-3": 120, "figure-8-formulas": 90}
    for name, size in sizes.items():
        found = figures("karamcheti94", name)
        assert len(found) == size
        assert all(one.ok and one.difference == 0.0 for one in found.values())


def test_figure_6_is_what_the_features_leave() -> None:
    found = figures("karamcheti94", "figure-6")
    assert found["finite, 16 words, features"].computed == 181.0
    assert found["finite, 16 words, saved"].computed == pytest.approx(54.4081, abs=1e-4)
    assert found["indefinite, 1024 words, saved"].computed == pytest.approx(70.9094, abs=1e-4)
    assert all(one.ok for one in found.values())


def test_the_text_s_9_to_11_per_cent_are_shown_and_not_compared() -> None:
    found = figures("karamcheti94", "figure-8-curve")
    shares = [one.computed for name, one in found.items() if name.startswith("finite")]
    assert shares == pytest.approx([12.576, 11.941, 11.137, 10.322, 9.660, 9.215], abs=1e-3)
    assert all(one.ok is None for one in found.values())


def test_most_of_a_saving_is_the_size_of_the_packets() -> None:
    found = figures("karamcheti94", "tuned-savings")
    assert found["indefinite, packets of 4 words, saved"].computed == pytest.approx(59.6, abs=0.1)
    assert found["indefinite, packets of 128 words, saved"].computed == pytest.approx(24.1, abs=0.1)
    assert found["indefinite, both cut anew, saved"].computed == pytest.approx(
        100.0 * (1.0 - 3095.0 / 3926.0), abs=1e-6
    )


# --- Wang98 ---------------------------------------------------------------------------------------


def test_ramps_gain_no_more_than_the_text_says() -> None:
    """10 % by the disk's parameters, 11 % by the message; a curve for each overhead."""
    for name, most in (("figures-10-11", 10.0), ("figures-12-13", 11.0)):
        found = item("wang98", name)
        assert found.ok
        assert 9.0 < found.figures[0].computed <= most
        (over_a, over_b) = found.plots
        assert [len(plot.curves) for plot in (over_a, over_b)] == [7, 7]
        assert max(y for curve in over_b.curves for _, y in curve.points) == pytest.approx(
            1.0 + found.figures[0].computed / 100.0
        )


def test_the_greatest_gain_over_whole_pages_is_at_4_kib() -> None:
    found = figures("wang98", "figure-9")
    assert found["at"].computed == 4096.0
    assert found["greatest gain over GAM"].computed == pytest.approx(51.8793, abs=1e-4)


def test_two_parameters_are_enough_for_equal_fragments() -> None:
    found = figures("wang98", "table-2")
    assert [one.computed for one in found.values()] == pytest.approx([7.5, 40.0])


def test_two_fragments_of_4_kb_overlap() -> None:
    """One takes 286.9 µs; the second comes a bottleneck's time later."""
    found = item("wang98", "figure-7")
    assert found.figures[0].computed == pytest.approx(286.9 + 7.5 + 4 * 24.9, abs=1e-9)
    assert found.runs[0].timeline.latency_us == found.figures[0].computed


# --- Culler96 -------------------------------------------------------------------------------------


def test_parameters_come_back_from_simulated_signatures() -> None:
    found = figures("culler96", "figures-4-5-8")
    assert found["Myrinet, long burst: g"].computed == pytest.approx(12.3889, abs=5e-5)
    assert found["Myrinet, 8 bytes in bulk: g"].computed == pytest.approx(17.9834, abs=5e-5)
    assert all(one.ok for one in found.values())


def test_the_gap_hides_behind_slow_ends() -> None:
    found = figures("culler96", "figure-11")
    assert [one.computed for one in found.values()] == pytest.approx([100.0] * 3, rel=1e-3)


def test_many_to_one_shares_the_gap() -> None:
    """A ratio of K within 2 %; the printed ones stand beside."""
    found = figures("culler96", "table-5")
    for ends in (3, 7, 15):
        assert found[f"K = {ends}"].computed == pytest.approx(ends, rel=0.02)


@given(
    st.floats(0.1, 9.0),
    st.floats(0.1, 40.0),
    st.floats(0.0, 20.0),
    st.integers(1, 8),
    st.integers(1, 60),
)
def test_one_receiver_takes_one_message_every_gap(
    send: float, gap: float, wire: float, senders: int, messages: int
) -> None:
    """All messages but those on their way were taken one by one; alone, a sender pays its own."""
    machine = LogPMachine(send, 1.0, gap, wire)
    cost_us = many_to_one_us(machine, senders, messages)
    on_the_way = 5 * senders
    assert cost_us * messages >= (senders * messages - on_the_way) * gap * (1.0 - 1e-9)
    assert cost_us >= many_to_one_us(machine, 1, messages) * (1.0 - 1e-9) >= send * (1.0 - 1e-9)


def test_uses_of_the_model() -> None:
    found = [one.computed for one in item("culler96", "uses-of-the-model").figures]
    assert found == pytest.approx([9.9, 78.3, 762.3, 13.745, 52.01], rel=1e-4)
