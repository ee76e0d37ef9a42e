"""What kept transfers, or a contradicting trace, say of messages in the place of the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.transferred import choice_of, what_transfers_say
from app.text.transferred import transfers_sentence
from domain.structure import Evidence, Structure, StructureKind, TracedWindow
from domain.uncertain_answer import DecisionCode, Reason
from domain.verification import Contradiction, ModelVerdict, Verification, VerifiedSize

KIB, MIB = 1 << 10, 1 << 20
MESSAGE = 32 * MIB
STAGES = ("read", "send")
EVIDENCE = Evidence(50, 800, 0.03, 0.4, 0.0, 0.01)
FAILED, HOLDS = ModelVerdict.DOES_NOT_HOLD, ModelVerdict.HOLDS
KINDS = {
    StructureKind.SERIAL: Structure(StructureKind.SERIAL, STAGES, EVIDENCE),
    StructureKind.BARRIER: Structure(StructureKind.BARRIER, STAGES, EVIDENCE),
    StructureKind.WINDOW: Structure(
        StructureKind.WINDOW, STAGES, EVIDENCE, windows=(TracedWindow("read", "send", 4, 0.0),)
    ),
    StructureKind.SWEEP: Structure(StructureKind.SWEEP, STAGES, EVIDENCE, reason="it is late"),
}


def verified(verdict: ModelVerdict, took_us: dict[int, float]) -> Verification:
    sizes = tuple(
        VerifiedSize(size, -(-MESSAGE // size), took, took, 0.99 * took, 1.01 * took, 9)
        for size, took in took_us.items()
    )
    return Verification(verdict, MESSAGE, (), sizes)


TOOK = {64 * KIB: 43_700.0, MIB: 26_100.0, MESSAGE: 44_000.0}
SIZES = st.sampled_from([1, KIB, 64 * KIB, MIB, 4 * MIB, MESSAGE, 64 * MIB])


def test_nothing_is_said_without_transfers_or_where_the_model_holds() -> None:
    assert what_transfers_say(None, messages=(1, MESSAGE)) is None
    holds = verified(HOLDS, TOOK)
    assert what_transfers_say(holds, messages=(1, MESSAGE)) is None
    assert what_transfers_say(holds, messages=(MIB, MIB)) is None


@pytest.mark.parametrize("verdict", [HOLDS, FAILED])
def test_of_the_one_message_that_was_transferred_times_decide(verdict: ModelVerdict) -> None:
    say = what_transfers_say(
        verified(verdict, TOOK), messages=(MESSAGE, MESSAGE), current_bytes=64 * KIB
    )
    assert say is not None
    assert say.choice is not None
    assert (say.code, say.reason) == (DecisionCode.SET_IT, Reason.TRANSFERRED)
    assert say.choice.size_bytes == MIB
    assert transfers_sentence(say).startswith("Set 1 MiB: ")


@given(
    first=SIZES,
    last=SIZES,
    current=st.none() | SIZES,
    took=st.lists(st.floats(1.0, 1e6), min_size=3, max_size=3),
)
def test_a_failed_model_never_sets_what_was_not_measured_to_be_faster(
    first: int, last: int, current: int | None, took: list[float]
) -> None:
    """Whatever is asked, and whatever transfers took."""
    times = dict(zip(TOOK, took, strict=True))
    messages = (min(first, last), max(first, last))
    say = what_transfers_say(verified(FAILED, times), messages=messages, current_bytes=current)
    assert say is not None
    if say.code is DecisionCode.SET_IT:
        assert messages == (MESSAGE, MESSAGE)
        assert say.choice is not None
        compared = min(current or MESSAGE, MESSAGE)
        assert times[say.choice.size_bytes] < times[compared]
    elif messages != (MESSAGE, MESSAGE):
        assert (say.code, say.reason) == (DecisionCode.MEASURE_FIRST, Reason.DOES_NOT_HOLD)
        assert "sluice sweep --bytes" in transfers_sentence(say)


@pytest.mark.parametrize("structure", KINDS.values(), ids=KINDS)
def test_a_contradicted_revision_sets_nothing(structure: Structure) -> None:
    found = Contradiction(1, 2, structure)
    for messages in ((MIB, MIB), (1, MIB)):
        say = what_transfers_say(found, messages=messages, current_bytes=64 * KIB)
        assert say is not None
        assert (say.code, say.reason) == (DecisionCode.MEASURE_FIRST, Reason.STRUCTURE)
        sentence = transfers_sentence(say)
        assert sentence.startswith("Measure first: revision 1 says pipelined; ")
        assert "sluice sweep --bytes 1MiB" in sentence
    assert (found.has_failed, found.misfit) == (True, 0.0)
    notice = found.notice()
    assert notice.code == "model_contradicted"
    assert "in the trace of revision 2" in notice.detail


def test_what_overlaps_is_in_the_sentence_where_stages_do_not() -> None:
    serial = Contradiction(1, 2, KINDS[StructureKind.SERIAL]).found
    assert serial == "revision 1 says pipelined; here stages overlapped 3 % of the time"
    window = Contradiction(1, 2, KINDS[StructureKind.WINDOW]).found
    assert window.startswith("revision 1 says pipelined; measured: at most 4 fragments from")


def test_of_a_contradicted_revision_the_size_in_use_stays() -> None:
    found = Contradiction(1, 2, KINDS[StructureKind.SERIAL])
    choice = choice_of(found, None, message_bytes=MIB, current_bytes=64 * KIB)
    assert choice is not None
    assert (choice.size_bytes, choice.size, choice.best) == (64 * KIB, None, None)
