"""Stage costs as UCX's estimates: what is written, and what ucx_info makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage
from exports.targets.ucx_costs import TARGET
from tests.exports.given import given_for
from tests.exports.test_ucx import lines_of, ucx_info, values

PIPELINE = Pipeline(
    (
        Stage.of_line("copy", overhead_us=1.5, ns_per_byte=0.08),
        Stage("wire", (FitRange(9.0, 3.0, 4096), FitRange(2.5, 1e9 / 2**20 / 11000))),
        Stage.of_line("doorbell", overhead_us=0.25, ns_per_byte=0.0),
    )
)


def rendered(*, profile: str = "lab-7", **options: str) -> str:
    """The export of the pipeline above."""
    return TARGET.render(given_for(TARGET, options, pipeline=PIPELINE, profile=profile))


def test_without_a_choice_nothing_is_set() -> None:
    """Only the user knows which stage is which; the costs stand in the head."""
    text = rendered()
    assert lines_of(text) == []
    assert "stage 1 'copy': 1.5 us + 0.08 ns a byte" in text
    assert "nothing is set" in text


def test_stages_become_the_variables_asked_for() -> None:
    """A bandwidth in MiB/s of the last range, or an overhead in µs."""
    text = rendered(version="1.19", stages="1:bcopy_bw,2:cuda_ipc_bw,3:cuda_ipc_overhead")
    assert lines_of(text) == [
        "UCX_BCOPY_BW=11920.9289551MBs",
        "UCX_CUDA_IPC_BW=11000MBs",
        "UCX_CUDA_IPC_OVERHEAD=0.25us",
    ]
    assert "a stage with several ranges is given by its last one" in text
    assert "UNVERIFIED" in text


def test_directions_share_a_variable_with_a_default() -> None:
    """UCX wants a value for every key of such a list."""
    text = rendered(version="1.19", stages="1:cuda_copy_bw.h2d,2:cuda_copy_bw.d2h")
    assert lines_of(text) == [
        "UCX_CUDA_COPY_BW=10000MBs,h2d:11920.9289551MBs,d2h:11000MBs",
    ]


def test_a_section_is_for_the_machines_asked_for() -> None:
    """Filters first; a name that fits inih's buffer and ends no section."""
    text = rendered(
        profile="lab]\n[x " + "y" * 99, version="1.17", stages="1:bcopy_bw", cpu_model="Mil*"
    )
    section, *rest = lines_of(text)
    assert rest == ["CPU model=Mil*", "UCX_BCOPY_BW=11920.9289551MBs"]
    assert section.startswith("[Sluice lab___x yy")
    assert len(section) <= 51
    assert section.count("[") == section.count("]") == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stages": "4:bcopy_bw"}, "expected stages from 1 to 3"),
        ({"stages": "0:bcopy_bw"}, "expected stages from 1 to 3"),
        ({"stages": "1:nvlink"}, "expected variables out of"),
        ({"stages": "1:cuda_copy_bw.h2d"}, r"for UCX 1\.19 and later"),
        ({"stages": "1:cuda_ipc_lat", "version": "1.17"}, r"for UCX 1\.19 and later"),
        ({"stages": "1:bcopy_bw,2:bcopy_bw"}, "each variable once"),
        ({"stages": "1:cuda_copy_bw,2:cuda_copy_bw.h2d", "version": "1.19"}, "either one"),
        ({"stages": "3:bcopy_bw"}, "no bandwidth"),
        ({"stages": "1:bcopy_bw", "cpu_model": "Milan"}, r"UCX before 1\.17 applies a section"),
        ({"stages": "bcopy_bw"}, "expected stages to match"),
        ({"cpu_model": "a]\n[b"}, "expected cpu_model to match"),
    ],
)
def test_what_cannot_be_said_is_refused(options: dict[str, str], reason: str) -> None:
    """Rather than left out in silence."""
    with pytest.raises(InvalidInput, match=reason):
        rendered(**options)


def test_ucx_reads_the_estimates(tmp_path: Path) -> None:
    """Its own print of the configuration, and of a transport's bandwidth."""
    text = rendered(stages="1:bcopy_bw,2:posix_bw")
    assert "Read back in tests by ucx_info 1.13.1" in text
    (tmp_path / "ucx.conf").write_text(text)
    reported = values(ucx_info("-c", UCX_CONFIG_DIR=str(tmp_path)))
    assert reported["UCX_BCOPY_BW"] == "11920.93MBps"
    assert reported["UCX_POSIX_BW"] == "11000.00MBps"
    assert reported["UCX_SYSV_BW"] == values(ucx_info("-c"))["UCX_SYSV_BW"]
    device = ucx_info("-d", "-t", "posix", UCX_CONFIG_DIR=str(tmp_path)).stdout
    assert "+ 11000.00 MB/sec" in device


def test_ucx_would_tell(tmp_path: Path) -> None:
    """The negative control: another value is seen, and an unreadable one is refused."""
    (tmp_path / "ucx.conf").write_text("UCX_POSIX_BW=10999MBs\nUCX_BCOPY_BW=h2d:1MBs\n")
    reported = ucx_info("-c", UCX_CONFIG_DIR=str(tmp_path))
    assert values(reported).get("UCX_POSIX_BW") != "11000.00MBps"
    assert "Invalid value for BCOPY_BW" in reported.stdout + reported.stderr


def test_this_ucx_takes_sections_for_any_machine(tmp_path: Path) -> None:
    """Why no section is written for it: a filter that fits no machine does not keep it out."""
    (tmp_path / "ucx.conf").write_text("[a]\nCPU model=none such\nUCX_POSIX_BW=123MBs\n")
    found = values(ucx_info("-c", UCX_CONFIG_DIR=str(tmp_path)))
    assert found["UCX_POSIX_BW"] == "123.00MBps"
