"""MPICH's control variables: what is written, read, and what MPI_T makes of it."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.mpich import OFI_TARGET, TARGET, read
from tests.exports.given import given_for
from tests.exports.mpi_programs import (
    built,
    environment,
    is_right_with_mpich,
    mpich,
    variables,
)

NAMES = next(option for option in TARGET.options if option.name == "parameter").choices
SINCE_4_1 = [name for name in NAMES if name.startswith(("MPIR_CVAR_BCAST", "MPIR_CVAR_ALLREDUCE"))]
IN_DEBIAN = [name for name in NAMES if name not in SINCE_4_1]
IBCAST = "MPIR_CVAR_IBCAST_TREE_PIPELINE_CHUNK_SIZE"
IREDUCE = "MPIR_CVAR_IREDUCE_RING_CHUNK_SIZE"
KIB_64 = FragmentSetting.always(65536)


def rendered(size: int = 131_136, **options: str) -> str:
    """The export of one size."""
    return TARGET.render(given_for(TARGET, options, setting=FragmentSetting.always(size)))


def lines_of(text: str) -> list[str]:
    """Lines that are no comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


# --- written --------------------------------------------------------------------------------------


def test_one_variable_in_bytes() -> None:
    """With the algorithm that it counts for in a comment."""
    text = rendered()
    assert lines_of(text) == ["MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE=131136"]
    assert "MPIR_CVAR_BCAST_INTRA_ALGORITHM=pipelined_tree" in text
    assert "UNVERIFIED" in text
    shell = rendered(parameter=IREDUCE, form="shell")
    assert lines_of(shell) == [f"export {IREDUCE}=131136"]
    assert "Read back in tests by MPI_T of MPICH 4.0.2" in shell


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"parameter": IBCAST}, "gives wrong data"),
        ({"parameter": IREDUCE, "version": "4.0"}, "ends the program"),
        ({"version": "4.0"}, r"came in MPICH 4\.1"),
    ],
)
def test_what_can_corrupt_or_stop_a_program_is_refused(
    options: dict[str, str], reason: str
) -> None:
    """Unless the programs are said to be such that it cannot."""
    with pytest.raises(InvalidInput, match=reason):
        rendered(131_136, **options)


def test_no_gpu_buffer_below_its_default() -> None:
    """The old variable has no target; the new one begins at its default."""
    assert not any("GPU" in name for name in NAMES)
    for size in (2**20 - 4096, 2**20 + 64, 2**24 + 4096):
        with pytest.raises(InvalidInput):
            OFI_TARGET.render(given_for(OFI_TARGET, setting=FragmentSetting.always(size)))
    text = OFI_TARGET.render(given_for(OFI_TARGET, setting=FragmentSetting.always(2**21)))
    assert lines_of(text) == ["MPIR_CVAR_CH4_OFI_PIPELINE_CHUNK_SZ=2097152"]
    assert f"may allocate 1024 of them: {2**31} bytes" in text
    assert "UNVERIFIED" in text
    assert read(text) == FragmentSetting.always(2**21)


# --- read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["env", "shell"])
def test_the_reader_gives_the_setting_back(name: str, form: str) -> None:
    """Every variable in both forms."""
    text = rendered(parameter=name, form=form, programs="uniform")
    assert read(text) == FragmentSetting.always(131_136)


@pytest.mark.parametrize(
    "text",
    [
        f"{IBCAST}=65536",
        f"export {IBCAST}='65536' # lab\r\n",
        f"PATH=/bin\n{IBCAST}=1\n\n# {IBCAST}=2\n{IBCAST}=+65536",
        f"{IBCAST}=65536\n{IREDUCE}=65536",
        "MPIR_CVAR_CH4_OFI_GPU_PIPELINE_BUFFER_SZ=65536",
    ],
)
def test_files_as_people_keep_them(text: str) -> None:
    """The last one wins; what is not written can be read all the same."""
    assert read(text) == KIB_64


@pytest.mark.parametrize("value", ["0", "-1"])
def test_no_chunks_are_whole_messages(value: str) -> None:
    """As in the source: without a size there is no pipeline."""
    assert read(f"{IBCAST}={value}") == FragmentSetting.always(None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a variable such as"),
        (f"{IBCAST}=1\n{IREDUCE}=2", f"ambiguous: {IBCAST}, {IREDUCE} differ"),
        (f"\n{IBCAST}=64K", "line 2: expected bytes in decimal digits"),
        (f"{IBCAST}=", "line 1: expected bytes"),
        (f"{IBCAST}=999999999999999999", "line 1: expected a size of at most"),
        (f"{IBCAST}={'9' * 5000}", "line 1: expected bytes"),
    ],
)
def test_what_is_unclear_or_hostile_is_refused(text: str, reason: str) -> None:
    """The line and the rule are named."""
    with pytest.raises(InvalidInput, match=reason) as refusal:
        read(text)
    assert refusal.value.field == "setting"


@hypothesis_given(st.text(alphabet="0123456789+-kKM =#;\n\"'"))
def test_any_value_is_a_setting_or_refused(text: str) -> None:
    """Never another error."""
    try:
        setting = read(f"{IBCAST}={text}")
    except InvalidInput:
        return
    assert len(setting.steps) == 1


# --- read by MPICH --------------------------------------------------------------------------------


def test_mpich_reads_every_variable() -> None:
    """Through MPI_T, from the environment that a shell has after the export."""
    script = "".join(
        rendered(131_136 + 64 * place, parameter=name, form="shell", programs="uniform")
        for place, name in enumerate(IN_DEBIAN)
    )
    printed = subprocess.run(
        ["/bin/sh"], input=script + "env\n", capture_output=True, text=True, check=True
    )
    pairs = (line.partition("=") for line in printed.stdout.splitlines())
    given = {name: value for name, _, value in pairs if name.startswith("MPIR_CVAR")}
    expected = {name: 131_136 + 64 * place for place, name in enumerate(IN_DEBIAN)}
    assert variables(IN_DEBIAN, given) == expected


def test_mpich_would_tell() -> None:
    """The negative control: its own defaults differ, and a unit ends the program."""
    assert all(value <= 0 for value in variables(IN_DEBIAN, {}).values())
    assert variables([IBCAST], {IBCAST: "65535"}) == {IBCAST: 65535}
    program = built("mpi_cvar.c", mpich("mpicc.mpich"))
    refused = subprocess.run(
        [program, IBCAST],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment({IBCAST: "64K"}),
    )
    assert refused.returncode != 0
    assert "Invalid character K" in refused.stdout + refused.stderr


def test_this_mpich_has_the_names_that_it_should() -> None:
    """Those of 4.0, and not those that came in 4.1."""
    assert set(variables(list(NAMES), {})) == set(IN_DEBIAN)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("algorithm", ["tsp_tree", "tsp_ring"])
def test_reductions_in_fragments_keep_the_order(algorithm: str, ranks: int) -> None:
    """What needs no word about the programs is right for one that does not commute."""
    given = {
        "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM": algorithm,
        "MPIR_CVAR_IREDUCE_TREE_PIPELINE_CHUNK_SIZE": "65536",
        "MPIR_CVAR_IREDUCE_RING_CHUNK_SIZE": "65536",
    }
    assert is_right_with_mpich("iordered", 200_000, given, ranks=ranks)


@pytest.mark.parametrize(("mode", "size"), [("itypes", 65536), ("iwide", 4096)])
def test_what_is_refused_by_default_does_corrupt_or_stop(mode: str, size: int) -> None:
    """Right without the size; wrong data, or a division by zero, with it."""
    tree = {"MPIR_CVAR_IBCAST_INTRA_ALGORITHM": "tsp_tree"}
    assert is_right_with_mpich(mode, 800_000, tree)
    assert not is_right_with_mpich(mode, 800_000, {**tree, IBCAST: str(size)})
