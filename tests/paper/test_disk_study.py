"""The disk study of Wang98 sec. 5.5 and Figure 14, by the paper's convention and in real sizes."""

import pytest

from domain.pipeline import Pipeline, pipeline_of_lines
from papers.disk_study import Study, disk_study

# Table 1 (µs, µs per KB of 1000 bytes), five times slower; a disk of 4 ms and 5e6 bytes a second.
TABLE_1 = ((7.2, 7.2), (5.2, 24.9), (7.5, 24.9), (7.4, 7.9))
NETWORK = tuple((f"net {j}", 5.0 * g, 5.0 * per_kb) for j, (g, per_kb) in enumerate(TABLE_1))
DISK = ("disk", 4000.0, 200.0)
MESSAGE_BYTES = 65_536
POINTS = 0.15  # percentage points within which an improvement must be the paper's


def pipeline(networks: int) -> Pipeline:
    """A network and the disk, and a second network where there are two."""
    return pipeline_of_lines([*NETWORK, DISK, *(NETWORK if networks == 2 else ())])


@pytest.fixture(scope="module", params=[1, 2])
def networks(request: pytest.FixtureRequest) -> int:
    """One network, or one on each side of the disk."""
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def study(networks: int) -> Study:
    """The study of that pipeline."""
    return disk_study(pipeline(networks), len(NETWORK), MESSAGE_BYTES)


# A with its number of fragments, B with its number of blocks, C or C' by the line.
LATENCIES = {
    1: ((31_876.9, 2), (26_277.4, 2), 24_046.4),
    2: ((39_557.8, 3), (31_447.7, 2), 29_557.0),
}
PUBLISHED_PERCENT = {1: (21.3, 9.2), 2: (25.8, 6.4)}


def test_the_latencies_and_the_numbers_of_blocks(networks: int, study: Study) -> None:
    """A and B to the last digit printed; the end of C's iteration to two parts in 100 000."""
    (fixed_us, fragments), (equal_us, blocks), ramp_us = LATENCIES[networks]
    assert study.fixed.latency_us == pytest.approx(fixed_us, abs=0.05)
    assert len(study.fixed.blocks_bytes) == fragments
    assert study.hierarchical.latency_us == pytest.approx(equal_us, abs=0.05)
    assert len(study.hierarchical.blocks_bytes) == blocks
    assert study.hierarchical_ramp.latency_us == pytest.approx(ramp_us, rel=2e-5)


def test_the_improvements_are_the_published_ones(networks: int, study: Study) -> None:
    """Old/new - 1, in per cent."""
    hierarchy, ramp = PUBLISHED_PERCENT[networks]
    assert 100.0 * study.hierarchy_gain == pytest.approx(hierarchy, abs=POINTS)
    assert 100.0 * study.ramp_gain == pytest.approx(ramp, abs=POINTS)


def test_every_algorithm_sends_the_whole_message(study: Study) -> None:
    """The blocks at the disk add up."""
    for result in (study.fixed, study.hierarchical, study.hierarchical_ramp):
        assert sum(result.blocks_bytes) == pytest.approx(MESSAGE_BYTES)
        assert min(result.blocks_bytes) > 0.0


def test_a_ramp_starts_small_and_ends_small_only_with_a_network_behind(
    networks: int, study: Study
) -> None:
    """Ramp-up for one network, ramp-up-and-down between two."""
    sizes = study.hierarchical_ramp.blocks_bytes
    assert sizes[0] < max(sizes)
    assert (sizes[-1] < max(sizes)) == (networks == 2)
