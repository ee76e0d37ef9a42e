"""domain/structure.py: what is said of each kind, and every rule that a refusal names."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from domain.errors import InvalidInput
from domain.structure import (
    Evidence,
    PlaceEffect,
    PlaceFlag,
    SharedProcessors,
    Structure,
    StructureKind,
    TracedWindow,
)

NAMES = ("hash", "send", "write")
EVIDENCE = Evidence(50, 800, 0.42, 0.3, 0.01, 0.02)
WINDOW = TracedWindow("send", "write", 4, 3110.0)


def structure(kind: StructureKind, **more: Any) -> Structure:
    return Structure(kind, NAMES, EVIDENCE, **more)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (structure(StructureKind.CHAIN), "Measured: stages overlap, 42 % of the time."),
        (
            structure(StructureKind.CHAIN, places=(PlaceFlag("send", 0.4, 2, -0.1),)),
            "Measured: stages overlap, 42 % of the time; send: the first 2 of a message take 0.4 "
            "times the later ones.",
        ),
        (
            structure(StructureKind.SERIAL),
            "Measured: one fragment at a time passes all stages; they overlap 42 % of the time.",
        ),
        (
            structure(StructureKind.STOP_AND_WAIT, return_us=312.0),
            "Measured: a fragment begins 312 µs after the one before has left: stop and wait.",
        ),
        (
            structure(StructureKind.WINDOW, windows=(WINDOW,)),
            "Measured: at most 4 fragments from the start of send to the end of write, a place "
            "back after 3.11 ms.",
        ),
        (
            structure(
                StructureKind.TURNS,
                windows=(TracedWindow("send", "send", 1, 0.0),),
                turns=(("hash", "write"),),
            ),
            "Measured: hash and write take turns, as on one processor.",
        ),
        (
            structure(StructureKind.LANES, lanes=(1, 4, 1)),
            "Measured: send handles 4 fragments at once.",
        ),
        (
            structure(StructureKind.SHARED_PROCESSORS, shared=SharedProcessors(NAMES, 2.0)),
            "Measured: hash, send and write share 2 processors.",
        ),
        (
            structure(StructureKind.SLOW_EACH_OTHER, shared=SharedProcessors(NAMES[:2], 1.25)),
            "Measured: hash and send slow each other.",
        ),
        (
            structure(StructureKind.BARRIER),
            "Measured: a stage begins when the whole message has left the one before.",
        ),
        (
            structure(StructureKind.SWEEP, reason="too few"),
            "Your trace fits no structure known here: too few.",
        ),
    ],
)
def test_the_sentence_says_what_was_found(found: Structure, sentence: str) -> None:
    assert found.sentence == sentence


def test_what_can_be_priced() -> None:
    priced = {kind for kind in StructureKind if structure(kind).is_priced}
    sums = {kind for kind in StructureKind if structure(kind).is_priced_as_a_sum}
    assert sums == {StructureKind.SERIAL, StructureKind.STOP_AND_WAIT, StructureKind.BARRIER}
    assert priced == {StructureKind.CHAIN, *sums}


def test_what_is_cheap_only_in_bursts_is_not_priced() -> None:
    dear, burst = PlaceFlag("send", 1.7, 1, 0.02), PlaceFlag("send", 0.3, 4, -0.01)
    assert dear.effect is PlaceEffect.FIRST_DEARER
    assert dear.text == "send: the first of a message takes 1.7 times the later ones"
    assert structure(StructureKind.CHAIN, places=(dear,)).is_priced
    assert not structure(StructureKind.CHAIN, places=(replace(dear, more=0.03),)).is_priced
    assert burst.effect is PlaceEffect.ONLY_IN_BURSTS
    assert not structure(StructureKind.CHAIN, places=(burst,)).is_priced


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"lanes": (1, 2)}, "lanes"),
        ({"lanes": (1, 0, 1)}, "lanes"),
        ({"return_us": -1.0}, "return_us"),
        ({"return_us": float("nan")}, "return_us"),
        ({"turns": (("hash", "disk"),)}, "stages"),
        ({"windows": (TracedWindow("disk", "send", 1, 0.0),)}, "stages"),
        ({"shared": SharedProcessors(("disk",), 1.0)}, "stages"),
        ({"places": (PlaceFlag("disk", 2.0, 1, 0.1),)}, "stages"),
    ],
)
def test_names_and_numbers_of_no_structure_are_refused(more: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        structure(StructureKind.CHAIN, **more)
    assert refused.value.field == field


def test_numbers_of_parts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="1 to 1024"):
        TracedWindow("a", "b", 0, 0.0)
    with pytest.raises(InvalidInput, match="finite"):
        TracedWindow("a", "b", 1, float("inf"))
    with pytest.raises(InvalidInput, match="1 to 1024"):
        SharedProcessors(("a", "b"), 0.5)
    with pytest.raises(InvalidInput, match="at least one stage"):
        Structure(StructureKind.SWEEP, (), EVIDENCE)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        structure(StructureKind.CHAIN).kind = StructureKind.SWEEP  # type: ignore[misc]
