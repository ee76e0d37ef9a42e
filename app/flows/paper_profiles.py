"""The published pipelines that a store holds from its first start.

Source: Wang et al. 1998, Tables 1 and 3 (µs per KB of 1024 bytes), and section 5.5 with Figure 14:
a network five times slower than Table 1 and a disk of 4 ms and 5 MB/s. The disk study's figures
come out only with 1 KB = 1000 bytes and 1 MB = 10^6 bytes, so its network is read that way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.errors import Conflict, NotFound
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.profile import Origin, Provenance
from domain.units import ns_per_byte_from_mb_per_s, ns_per_byte_from_us_per_kb

if TYPE_CHECKING:
    from models.session import Store

# (stage, overhead in µs, per-byte cost in µs per KB)
TABLE_1 = (
    ("sender copy", 7.2, 7.2),
    ("sender host DMA", 5.2, 24.9),
    ("network DMAs and receiver host DMA", 7.5, 24.9),
    ("receiver copy", 7.4, 7.9),
)
TABLE_3 = (
    ("server DMA", 2.1, 25.6),
    ("wire", 4.0, 60.1),
    ("requester DMA", 2.1, 25.6),
    ("requester CPU", 92.8, 26.2),
)
DISK_OVERHEAD_US = 4000.0
DISK_MB_PER_S = 5.0
SLOWER_NETWORK = 5.0


@dataclass(frozen=True, slots=True)
class PaperProfile:
    """A profile's name, its pipeline, and where it was published."""

    name: str
    pipeline: Pipeline
    source: str


def paper_profiles() -> tuple[PaperProfile, ...]:
    """All of them."""
    network = _lines(TABLE_1, bytes_per_kb=1000, scale=SLOWER_NETWORK)
    back = _lines(TABLE_1, bytes_per_kb=1000, scale=SLOWER_NETWORK, suffix=" (second network)")
    disk_ns = ns_per_byte_from_mb_per_s(DISK_MB_PER_S, bytes_per_mb=10**6)
    disk = ("disk", DISK_OVERHEAD_US, disk_ns)
    study = "Wang et al. 1998, section 5.5 and Figure 14"
    return (
        PaperProfile(
            "myrinet-gam",
            pipeline_of_lines(_lines(TABLE_1, bytes_per_kb=1024)),
            "Wang et al. 1998, Table 1; 1 KB = 1024 bytes",
        ),
        PaperProfile(
            "gms",
            pipeline_of_lines(_lines(TABLE_3, bytes_per_kb=1024)),
            "Wang et al. 1998, Table 3; 1 KB = 1024 bytes",
        ),
        PaperProfile(
            "disk-study",
            pipeline_of_lines([*network, disk]),
            f"{study}; network 5 x Table 1, then a disk; 1 KB = 1000 bytes, 1 MB = 10^6 bytes",
        ),
        PaperProfile(
            "disk-study-two-networks",
            pipeline_of_lines([*network, disk, *back]),
            f"{study}; the disk between two networks; 1 KB = 1000 bytes, 1 MB = 10^6 bytes",
        ),
    )


def seed_paper_profiles(store: Store) -> tuple[str, ...]:
    """Store those that are absent and return their names. What a user changed is left alone."""
    return tuple(profile.name for profile in _absent(store) if _added(store, profile))


def _absent(store: Store) -> Iterator[PaperProfile]:
    for profile in paper_profiles():
        with store.reading() as unit:
            try:
                unit.profiles.get(profile.name)
            except NotFound:
                missing = True
            else:
                missing = False
        if missing:
            yield profile


def _added(store: Store, profile: PaperProfile) -> bool:
    provenance = Provenance(Origin.PAPER, profile.source)
    try:
        with store.unit_of_work() as unit:
            unit.profiles.create(profile.name, profile.pipeline, provenance)
    except Conflict:  # another process that starts at the same time was first
        return False
    return True


def _lines(
    rows: tuple[tuple[str, float, float], ...],
    *,
    bytes_per_kb: int,
    scale: float = 1.0,
    suffix: str = "",
) -> list[tuple[str, float, float]]:
    return [
        (
            name + suffix,
            scale * overhead_us,
            ns_per_byte_from_us_per_kb(scale * us_per_kb, bytes_per_kb=bytes_per_kb),
        )
        for name, overhead_us, us_per_kb in rows
    ]
