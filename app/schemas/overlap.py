"""What is known of the overlap of a fit's stages, as it is sent and taken."""

from __future__ import annotations

from dataclasses import asdict

from contract.overlap import (
    EvidenceOut,
    OverlapOut,
    PlaceFlagOut,
    SharedProcessorsOut,
    StructureOut,
    TracedWindowOut,
)
from domain.structure import KnownOverlap, Structure


def structure_out(found: Structure) -> StructureOut:
    """Return a structure as it is sent."""
    sent = asdict(found)
    shared = sent.pop("shared")
    return StructureOut(
        **{
            **sent,
            "sentence": found.sentence,
            "evidence": EvidenceOut(**sent["evidence"]),
            "windows": tuple(TracedWindowOut(**one) for one in sent["windows"]),
            "places": tuple(PlaceFlagOut(**one) for one in sent["places"]),
        },
        shared=shared and SharedProcessorsOut(**shared),
    )


def overlap_out(overlap: KnownOverlap) -> OverlapOut | None:
    """Return what is known as it is sent, None where the stages are a pipeline."""
    if overlap == KnownOverlap():
        return None
    found = overlap.structure
    structure = None if found is None else structure_out(found)
    return OverlapOut(structure, overlap.is_bare, overlap.several_at_once)
