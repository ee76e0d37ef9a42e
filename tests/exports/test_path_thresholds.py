"""Thresholds between two paths: what is written, and what the programs that take it make of it."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest

from domain.errors import InvalidInput, StrategyDeclined
from exports.targets.path_thresholds import (
    MPICH_LIMIT,
    OPENMPI_LIMIT,
    PATH_THRESHOLDS,
    S3_THRESHOLD,
    UCX_THRESHOLD,
    PathThreshold,
    path_threshold_named,
)
from tests.exports.mpi_programs import parameters, variables
from tests.exports.test_ucx import ucx_info, values

SIZE = 4579


def rendered(
    target: PathThreshold, size: int | None = SIZE, said: tuple[str, ...] = (), **given: str
) -> str:
    """The setting of one size."""
    return target.render(size, target.options_from(given), said)


def settings_of(text: str) -> list[str]:
    """Lines that are no comments."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (UCX_THRESHOLD, [f"UCX_RNDV_THRESH={SIZE}"]),
        (OPENMPI_LIMIT, [f"btl_tcp_eager_limit = {SIZE - 1}"]),
        (MPICH_LIMIT, [f"MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE={SIZE - 1}"]),
        (S3_THRESHOLD, ["[default]", "s3 =", f"  multipart_threshold = {SIZE}"]),
    ],
)
def test_the_size_is_the_first_of_the_second_path(
    target: PathThreshold, expected: list[str]
) -> None:
    """Or the last one of the first path, where the program has a limit."""
    assert settings_of(rendered(target)) == expected


def test_one_path_alone_is_said_where_that_is_possible() -> None:
    """And declined elsewhere, with the reason."""
    assert settings_of(rendered(UCX_THRESHOLD, None)) == ["UCX_RNDV_THRESH=inf"]
    assert settings_of(rendered(UCX_THRESHOLD, 0)) == ["UCX_RNDV_THRESH=0"]
    for target in (OPENMPI_LIMIT, MPICH_LIMIT, S3_THRESHOLD):
        for size in (None, 0):
            with pytest.raises(StrategyDeclined, match="for every message"):
                rendered(target, size)


@pytest.mark.parametrize(
    ("target", "size"),
    [(OPENMPI_LIMIT, 1024), (OPENMPI_LIMIT, 2**31 + 1), (MPICH_LIMIT, 9), (S3_THRESHOLD, 2**33)],
)
def test_what_a_program_cannot_take_is_declined(target: PathThreshold, size: int) -> None:
    """With the sizes that it takes."""
    with pytest.raises(StrategyDeclined, match="it takes"):
        rendered(target, size)


def test_options_and_names_are_checked() -> None:
    """As those of other exports are."""
    with pytest.raises(InvalidInput, match="did you mean ucx-rndv-thresh"):
        path_threshold_named("ucx-rndv-tresh")
    with pytest.raises(InvalidInput, match="has no option"):
        UCX_THRESHOLD.options_from({"parameter": "x"})
    with pytest.raises(InvalidInput, match="expected form to be one of"):
        UCX_THRESHOLD.options_from({"form": "xml"})
    assert [path_threshold_named(one.name) for one in PATH_THRESHOLDS] == [*PATH_THRESHOLDS]


@pytest.mark.parametrize("target", PATH_THRESHOLDS)
def test_a_hostile_name_stays_in_the_comment(target: PathThreshold) -> None:
    """Whatever it holds."""
    said = ("A: x\nUCX_RNDV_THRESH=1\nbtl_tcp_eager_limit = 1 \\",)
    assert settings_of(rendered(target, said=said)) == settings_of(rendered(target))


# --- read by the programs -------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "shown"), [(SIZE, str(SIZE)), (None, "inf"), (0, "0")])
def test_ucx_reads_the_file(tmp_path: Path, size: int | None, shown: str) -> None:
    """ucx_info prints the value; without the file it prints another."""
    (tmp_path / "ucx.conf").write_text(rendered(UCX_THRESHOLD, size))
    assert values(ucx_info("-c", UCX_CONFIG_DIR=str(tmp_path)))["UCX_RNDV_THRESH"] == shown
    assert values(ucx_info("-c"))["UCX_RNDV_THRESH"] == "auto"


def of_shell(text: str) -> dict[str, str]:
    """The variables that a shell has after the text."""
    printed = subprocess.run(
        ["/bin/sh"], input=text + "env\n", capture_output=True, text=True, check=True
    )
    found = re.findall(r"^((?:OMPI_MCA|MPIR_CVAR)_\w+)=(.*)$", printed.stdout, re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("name", OPENMPI_LIMIT.parameters)
def test_openmpi_reads_every_limit(name: str) -> None:
    """ompi_info prints the value, of the variables that a shell has."""
    given = of_shell(rendered(OPENMPI_LIMIT, parameter=name, form="shell"))
    assert parameters(given)[name] == str(SIZE - 1)
    assert parameters({})[name] != str(SIZE - 1)


def test_openmpi_reads_the_file(tmp_path: Path) -> None:
    """As a file of parameters."""
    file = tmp_path / "mca.conf"
    file.write_text(rendered(OPENMPI_LIMIT))
    found = parameters({"OMPI_MCA_mca_base_param_files": str(file)})
    assert found["btl_tcp_eager_limit"] == str(SIZE - 1)


@pytest.mark.parametrize("name", MPICH_LIMIT.parameters)
def test_mpich_reads_every_limit(name: str) -> None:
    """Through MPI_T, whatever device it was built with."""
    given = of_shell(rendered(MPICH_LIMIT, parameter=name, form="shell"))
    assert variables([name], given) == {name: SIZE - 1}
    assert variables([name], {}) != {name: SIZE - 1}


def test_s3_clients_have_the_size_in_their_own_words() -> None:
    """A section that configparser reads, and a line of Python."""
    aws = configparser.ConfigParser()
    aws.read_string(rendered(S3_THRESHOLD))
    assert aws["default"]["s3"].split("\n") == ["", f"multipart_threshold = {SIZE}"]
    assert f"TransferConfig(multipart_threshold={SIZE})" in rendered(S3_THRESHOLD, form="boto3")
