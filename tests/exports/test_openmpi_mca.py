"""Open MPI's parameter files: what is written, read, and what ompi_info and mpirun make of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from exports.targets.openmpi_mca import TARGET, read
from tests.exports.given import given_for
from tests.exports.mpi_programs import messages, parameters

NAMES = next(option for option in TARGET.options if option.name == "parameter").choices
IN_DEBIAN = [name for name in NAMES if "smcuda" not in name]
KIB_256 = FragmentSetting.always(256 * 1024)
REDUCE = "coll_tuned_reduce_algorithm_segmentsize"
BCAST = "coll_tuned_bcast_algorithm_segmentsize"


def rendered(size: int = 131_136, **options: str) -> str:
    """The export of one size."""
    return TARGET.render(given_for(TARGET, options, setting=FragmentSetting.always(size)))


def lines_of(text: str) -> list[str]:
    """Lines that are no comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


# --- written --------------------------------------------------------------------------------------


def test_no_algorithm_is_forced() -> None:
    """What an algorithm costs has no price, so that none is written; reductions are no default."""
    assert lines_of(rendered()) == ["coll_han_bcast_segsize = 131136"]
    text = rendered(parameter=BCAST, programs="uniform", form="shell")
    assert lines_of(text) == [f"export OMPI_MCA_{BCAST}=131136"]
    assert "an algorithm, coll_tuned_*_algorithm, which are not set here" in text


@pytest.mark.parametrize("name", [BCAST, "coll_adapt_bcast_segment_size"])
def test_what_can_give_wrong_data_is_refused(name: str) -> None:
    """Unless the programs are said to be such that it cannot."""
    with pytest.raises(InvalidInput, match="gives wrong data"):
        rendered(parameter=name)
    assert lines_of(rendered(parameter=name, programs="uniform"))[-1] == f"{name} = 131136"


@pytest.mark.parametrize("name", NAMES)
def test_the_head_names_the_versions_and_whether_it_is_read(name: str) -> None:
    """Debian's Open MPI is built without CUDA."""
    text = rendered(parameter=name, programs="uniform")
    assert f"# {name}: Open MPI 4." in text
    assert ("UNVERIFIED" in text) == (name not in IN_DEBIAN)


@pytest.mark.parametrize("size", [64, 4032, 4100, 2**30 + 64])
def test_sizes_outside_the_rule_are_not_written(size: int) -> None:
    """Too small, no whole elements, no int."""
    with pytest.raises(InvalidInput):
        rendered(size)


# --- read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["file", "shell"])
@pytest.mark.parametrize("name", NAMES)
def test_the_reader_gives_the_setting_back(name: str, form: str) -> None:
    """Every parameter in both forms."""
    text = rendered(parameter=name, form=form, programs="uniform")
    assert read(text) == FragmentSetting.always(131_136)


@pytest.mark.parametrize(
    "text",
    [
        "coll_han_bcast_segsize = 262144",
        "coll_han_bcast_segsize=256k\r\n",
        "btl = self,vader\ncoll_han_bcast_segsize = 0x40000\n",
        "coll_han_bcast_segsize = 01000000",
        "coll_han_bcast_segsize = 256KB",
        'export OMPI_MCA_coll_han_bcast_segsize="262144"',
        "OMPI_MCA_coll_han_bcast_segsize=262144",
        "-mca coll_han_bcast_segsize 262144",
        "--mca coll_han_bcast_segsize 262144\n-x PATH",
        "mpirun -np 4 --mca pml ob1 -mca coll_han_bcast_segsize 256k --mca btl self ./a.out",
        "coll_han_bcast_segsize = 1\n# later\ncoll_han_bcast_segsize = 262144",
        "/* coll_han_bcast_segsize = 1\n coll_han_bcast_segsize = 2 */\n// x\n"
        "coll_han_bcast_segsize = 262144",
        "coll_han_bcast_segsize = 262144\ncoll_han_reduce_segsize = 262144",
    ],
)
def test_files_as_people_keep_them(text: str) -> None:
    """Files, tune files and environments; numbers as strtoull and Open MPI's suffixes say."""
    assert read(text) == KIB_256


def test_a_size_of_zero_is_the_whole_message() -> None:
    """As in the collectives' source."""
    assert read("coll_han_bcast_segsize = 0") == FragmentSetting.always(None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a parameter such as"),
        ("btl_tcp_eager_limit = 65536", "found none"),
        ("/* coll_han_bcast_segsize = 1", "found none"),
        (
            "coll_han_bcast_segsize = 1\ncoll_han_reduce_segsize = 2",
            "ambiguous: coll_han_bcast_segsize, coll_han_reduce_segsize differ",
        ),
        ("\ncoll_han_bcast_segsize = -1", "line 2: expected a size"),
        ("coll_han_bcast_segsize = 1.5M", "line 1: expected a size"),
        ("coll_han_bcast_segsize =", "line 1: expected a size"),
        ("coll_han_bcast_segsize = 089", "line 1: expected digits of an octal"),
        ("coll_han_bcast_segsize = 0xffffffffffffffff", "line 1: expected a size of at most"),
        ("coll_han_bcast_segsize = " + "9" * 5000, "line 1: expected a size"),
        (
            "mpirun -np 2 coll_han_bcast_segsize 1",
            "line 1: expected one NAME = VALUE, or arguments",
        ),
        ("-x OMPI_MCA_coll_han_bcast_segsize=1", "line 1: expected one NAME = VALUE, or arguments"),
        ("unset OMPI_MCA_coll_han_bcast_segsize", "line 1: expected one NAME"),
        ("coll_han_bcast_segsize = 1\x07", "line 1: expected printable"),
    ],
)
def test_what_is_unclear_or_hostile_is_refused(text: str, reason: str) -> None:
    """The line and the rule are named."""
    with pytest.raises(InvalidInput, match=reason) as refusal:
        read(text)
    assert refusal.value.field == "setting"


@hypothesis_given(st.text(alphabet="0123456789xkmgKMGBb =/*#\n\r\"'"))
def test_any_value_is_a_setting_or_refused(text: str) -> None:
    """Never another error."""
    try:
        setting = read(f"coll_han_bcast_segsize = {text}")
    except InvalidInput:
        return
    assert len(setting.steps) == 1


# --- read by Open MPI -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", IN_DEBIAN)
def test_open_mpi_reads_the_file(tmp_path: Path, name: str) -> None:
    """ompi_info prints the value; without the file it prints another."""
    file = tmp_path / "params.conf"
    file.write_text(rendered(parameter=name, programs="uniform"))
    reported = parameters({"OMPI_MCA_mca_base_param_files": str(file)})
    assert reported[name] == "131136"
    assert parameters({})[name] not in ("131136", "")


def test_the_shell_form_reaches_open_mpi() -> None:
    """Sourced by a shell, as it would be."""
    script = rendered(form="shell") + "env\n"
    printed = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=True)
    pairs = (line.partition("=") for line in printed.stdout.splitlines())
    reported = parameters({name: value for name, _, value in pairs if name.startswith("OMPI_MCA_")})
    assert reported["coll_han_bcast_segsize"] == "131136"


@pytest.mark.parametrize(("collective", "name"), [("bcast", BCAST), ("reduce", REDUCE)])
def test_messages_are_cut_as_the_file_says(tmp_path: Path, collective: str, name: str) -> None:
    """A real broadcast and a real reduction: so many messages, and the right data."""
    file = tmp_path / "params.conf"
    file.write_text(rendered(65536, parameter=name, programs="uniform"))
    algorithm = {"bcast": "3", "reduce": "6"}[collective]
    forced = ("--mca", f"coll_tuned_{collective}_algorithm", algorithm)
    tuned = ("--tune", str(file), "--mca", "coll_tuned_use_dynamic_rules", "1", *forced)
    assert messages(tmp_path, collective, 1_000_000, *tuned)["0>1"] == 16
    assert messages(tmp_path, collective, 65536, *tuned)["0>1"] == 1
    untuned = messages(tmp_path, collective, 1_000_000)
    assert untuned.get("0>1") != 16
