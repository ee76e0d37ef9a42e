"""Counts of installed MPIs, what callgrind writes, and layers of counts."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.layer_cost import work_of
from app.cli import main
from domain.errors import InvalidInput, NotMeasurable, TimeLimitReached
from domain.messaging_layer import End, Service
from measuring import count as counting
from measuring.callgrind import Dump, read_dump
from measuring.count import CountedCall, CountedLibrary, CountPlan, calls_of, count
from measuring.counted_layer import CountChange, changes, layer_of
from measuring.services import service_of
from tests.support.system import require_system

LIBRARIES = ("mpich", "openmpi")


@pytest.fixture(scope="session", params=LIBRARIES)
def counted(request: pytest.FixtureRequest) -> CountedLibrary:
    """Eight counts of 8 bytes by one MPI."""
    name = request.param
    tools = [shutil.which(tool) for tool in ("valgrind", f"mpicc.{name}", f"mpirun.{name}")]
    packages = "apt-get install valgrind mpich openmpi-bin libopenmpi-dev"
    require_system(all(tools), f"valgrind and {name}", packages)
    plan = CountPlan(mpicc=f"mpicc.{name}", message_bytes=(8,), allow_run_as_root=True)
    return count(plan)


def test_counts_are_the_same_again(counted: CountedLibrary) -> None:
    """To the instruction, in 6 of 8 repetitions or more; each call takes 200 to 2000."""
    assert [call.end for call in counted.calls] == [*End]
    for call in counted.calls:
        assert call.repetitions == 8
        assert call.identical >= 6
        assert call.is_countable
        assert 200 <= call.instructions <= 2000
        assert 0 < call.data < call.instructions
        assert sum(cost for _, cost, _ in call.functions) == call.instructions


def test_counts_make_a_layer(counted: CountedLibrary) -> None:
    """Whose work at the counted size is what was counted, and that names its library."""
    layer = layer_of(counted).layer
    work = work_of(layer, 8)
    for call in counted.calls:
        assert work.of(end=call.end).total == call.instructions
        assert work.of(end=call.end).in_class("mem") == call.data
    assert counted.version in layer.source
    assert "valgrind" in layer.source


# --- what callgrind writes ------------------------------------------------------------------------


DUMP = """# callgrind format
desc: Trigger: Client Request: destination 64 3

events: Ir Dr Dw I1mr
summary: 30 5 2 1

ob=/usr/lib/libmpi.so.40
fl=???
fn=PMPI_Recv
0 10 2
cob=/usr/lib/libc.so.6
cfn=memcpy
calls=1 7
0 12 1 1
3 8 2 1 1

ob=/usr/lib/libc.so.6
fn=memcpy
12 12 1 1

totals: 30 5 2 1
"""


def test_a_dump_is_read() -> None:
    """Own costs by library and function; the line after `calls=` is another's."""
    found = read_dump(DUMP)
    assert found == Dump(
        End.DESTINATION, 64, 3, 30, 7, (("libmpi:PMPI_Recv", 18, 5), ("libc:memcpy", 12, 2))
    )
    assert found.unexplained == 0


@pytest.mark.parametrize("line", ["desc:", "summary:"])
def test_other_files_are_passed_over(line: str) -> None:
    """Those of the end of the program have no label."""
    assert read_dump("\n".join(one for one in DUMP.split("\n") if not one.startswith(line))) is None


def dump(instructions: int, repetition: int = 0, **more: Any) -> Dump:
    """One repetition of a send."""
    own = ((("libmpi:PMPI_Send", instructions, 10)),)
    return replace(Dump(End.SOURCE, 8, repetition, instructions, 10, own), **more)


def test_the_least_counts_and_its_middle_tells_whether_it_waited() -> None:
    """A call is countable where the middle is within 1 % of the least."""
    (steady,) = calls_of([dump(100, 0), dump(5000, 1), dump(101, 2), dump(100, 3), dump(100, 4)])
    assert (steady.instructions, steady.identical, steady.repetitions) == (100, 3, 5)
    assert steady.is_countable
    (waited,) = calls_of([dump(100, 0), dump(102, 1), dump(105, 2)])
    assert not waited.is_countable


def test_functions_are_those_that_sum_to_the_call() -> None:
    """The first repetition may hold work from before it."""
    odd = dump(100, 0, functions=(("libmpi:PMPI_Send", 112, 20),))
    (call,) = calls_of([odd, dump(100, 1)])
    assert call.functions == dump(100).functions


@pytest.mark.parametrize(
    ("function", "service"),
    [
        ("libopen-pal:opal_convertor_unpack", Service.BASE),
        ("libc:__memcpy_avx_unaligned_erms", Service.BASE),
        ("mca_btl_vader:mca_btl_vader_sendi", Service.BUFFERING),
        ("mca_pml_ob1:mca_pml_ob1_recv_request_progress_match", Service.ORDERING),
        ("libuct:uct_mm_ep_am_short", Service.BUFFERING),
        ("libmpich:0x00000000001653", Service.OTHER),
    ],
)
def test_services_by_name(function: str, service: Service) -> None:
    """And what no pattern names is other."""
    assert service_of(function) is service


# --- layers of counts -----------------------------------------------------------------------------


def call(end: End, size: int, instructions: int, **more: Any) -> CountedCall:
    """A call that is countable."""
    own = (("libmpi:PMPI_Send", instructions, instructions // 3),)
    found = CountedCall(end, size, instructions, instructions // 3, 8, 8, float(instructions), own)
    return replace(found, **more)


def library(*calls: CountedCall, rendezvous: tuple[int, ...] = ()) -> CountedLibrary:
    """Counts of a library."""
    return CountedLibrary("An MPI 1.0, of today", "cc", "valgrind-3", "", calls, rendezvous)


def both(size: int, instructions: int) -> list[CountedCall]:
    """A send and a receive that take the same."""
    return [call(end, size, instructions) for end in End]


LINE = st.tuples(st.integers(0, 500), st.integers(0, 9))  # once, and a byte


@given(LINE, LINE, st.lists(st.integers(1, 5000), min_size=2, max_size=5, unique=True))
def test_lines_are_found(reg: tuple[int, int], mem: tuple[int, int], sizes: list[int]) -> None:
    """Of registers and of memory: the layer does at every size what was counted."""
    sizes.sort()
    calls = []
    for size in sizes:
        data = mem[0] + mem[1] * size
        instructions = 1 + reg[0] + reg[1] * size + data
        own = (("libmpi:PMPI_Send", instructions, data),)
        calls += [call(end, size, instructions, data=data, functions=own) for end in End]
    made = layer_of(library(*calls))
    for one in calls:
        work = work_of(made.layer, one.message_bytes).of(end=one.end)
        assert float(work.total) == pytest.approx(one.instructions, rel=1e-9)
        assert float(work.in_class("mem")) == pytest.approx(one.data, rel=1e-9)
    assert {notice.code for notice in made.notices} <= {"string_instruction"}


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_counts_that_fall_or_start_below_nothing(first: int, last: int) -> None:
    """Make no negative count: a fall is level, and what begins with bytes goes through 0."""
    layer = layer_of(library(*both(64, 3 * first), *both(128, 3 * last))).layer
    work = work_of(layer, 128).of(end=End.SOURCE).total
    assert work == 3 * (last if last > first else first)


def test_what_a_line_does_not_show_is_told() -> None:
    """A bend between the ends, and a copy that is counted by the byte."""
    calls = [*both(8, 400), *both(64, 900), *both(512, 800)]
    codes = [notice.code for notice in layer_of(library(*calls)).notices]
    assert codes == ["string_instruction", "not_linear"] * 2
    straight = [*both(8, 408), *both(16, 416), *both(1008, 1408 - 500)]
    assert [one.code for one in layer_of(library(*straight[:2])).notices] == []


def test_calls_that_waited_are_left_out() -> None:
    """And named; so are those of rendezvous. Where none is left, nothing is counted."""
    waited = call(End.SOURCE, 1024, 1321, middle=23000.0)
    made = layer_of(library(*both(8, 400), waited, rendezvous=(4096,)))
    assert [notice.code for notice in made.notices] == ["not_countable", "not_countable"]
    assert made.notices[0].value("message_bytes") == 4096.0
    with pytest.raises(NotMeasurable):
        layer_of(library(waited, call(End.DESTINATION, 1024, 700)))


def test_changes_are_told_call_by_call() -> None:
    """A rise, a fall, and a call that waits now."""
    before = {(End.SOURCE, 8): 400, (End.DESTINATION, 8): 500, (End.SOURCE, 64): 100}
    now = [call(End.SOURCE, 8, 404), call(End.DESTINATION, 8, 450)]
    waits = call(End.SOURCE, 64, 100, middle=1000.0)
    up, down, lost = changes(before, [*now, waits])
    assert up == CountChange(End.SOURCE, 8, 400, 404)
    assert up.share == pytest.approx(0.01)
    assert down.share == pytest.approx(-0.1)
    assert (lost.now, lost.share) == (None, None)


# --- what can be wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"message_bytes": ()}, "bytes"),
        ({"message_bytes": (0,)}, "bytes"),
        ({"message_bytes": (2**26 + 1,)}, "bytes"),
        ({"repetitions": 0}, "repetitions"),
        ({"time_limit_s": 0.0}, "time_limit_s"),
        ({"time_limit_s": float("nan")}, "time_limit_s"),
    ],
)
def test_bad_plans(wrong: dict[str, Any], field: str) -> None:
    """Are refused by their field."""
    with pytest.raises(InvalidInput) as refusal:
        CountPlan(**wrong)
    assert refusal.value.field == field


def test_the_launcher_is_named_like_the_wrapper() -> None:
    """Also in a folder; or it is given."""
    assert CountPlan(mpicc="mpicc.mpich").mpi.starts_with == "mpirun.mpich"
    assert CountPlan(mpicc="/opt/mpicc-x/bin/mpicc").mpi.starts_with == "/opt/mpicc-x/bin/mpirun"
    assert CountPlan(mpicc="a", launcher="srun").mpi.starts_with == "srun"


def script(folder: Path, name: str, text: str) -> str:
    """A program that stands in for another."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that compiles nothing, a launcher that prints its script, a valgrind."""
    script(tmp_path, "mpicc", "exit 0")
    script(tmp_path, "valgrind", "echo valgrind-3")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize(
    ("printed", "error", "said"),
    [
        (
            "echo ranks 1; echo version An MPI",
            InvalidInput,
            "mpicc builds for An MPI, and .*mpirun starts launcher 1: each rank is alone",
        ),
        ("echo 'Process terminating (SIGILL)'; exit 4", NotMeasurable, "older"),
        ("echo no room; exit 3", NotMeasurable, "status 3: no room"),
        ("echo ranks 2; echo version An MPI", NotMeasurable, "saw no instruction"),
    ],
)
def test_runs_that_count_nothing(
    stand_ins: Path, printed: str, error: type[Exception], said: str
) -> None:
    """Say why: another launcher, an unknown instruction, a failure, no instruction."""
    case = '[ "$1" = --version ] && { echo launcher 1; exit 0; }\n'
    script(stand_ins, "mpirun", case + printed)
    with pytest.raises(error, match=said):
        count(CountPlan(mpicc=str(stand_ins / "mpicc")))


def test_missing_programs(stand_ins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper, a launcher, valgrind, its headers, what compiles."""
    with pytest.raises(InvalidInput, match=r"no mpicc\.none here"):
        count(CountPlan(mpicc="mpicc.none"))
    with pytest.raises(InvalidInput) as refusal:
        count(CountPlan(mpicc=str(stand_ins / "mpicc"), launcher="mpirun.none"))
    assert refusal.value.field == "launcher"
    script(stand_ins, "mpirun", "exit 0")
    script(stand_ins, "mpicc", "echo 'callgrind.h: No such file'; exit 1")
    with pytest.raises(NotMeasurable, match="headers"):
        count(CountPlan(mpicc=str(stand_ins / "mpicc")))
    script(stand_ins, "mpicc", "echo 'x.c: error: no'; exit 1")
    with pytest.raises(InvalidInput, match="error: no"):
        count(CountPlan(mpicc=str(stand_ins / "mpicc")))
    monkeypatch.setattr(counting.shutil, "which", lambda name: None if name == "valgrind" else name)
    with pytest.raises(NotMeasurable, match="no valgrind"):
        count(CountPlan(mpicc="mpicc"))


def test_open_mpi_as_root_has_to_be_asked_for(
    stand_ins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is then passed on."""
    script(
        stand_ins,
        "mpirun",
        'echo "$1" >> ' + str(stand_ins / "asked") + "\necho mpirun (Open MPI) 4; exit 1",
    )
    monkeypatch.setattr(counting.os, "geteuid", lambda: 0)
    with pytest.raises(InvalidInput, match="--allow-run-as-root"):
        count(CountPlan(mpicc=str(stand_ins / "mpicc")))
    with pytest.raises(NotMeasurable):
        count(CountPlan(mpicc=str(stand_ins / "mpicc"), allow_run_as_root=True))
    assert (stand_ins / "asked").read_text().split()[-1] == "--allow-run-as-root"


def test_a_run_that_does_not_end_is_ended_with_its_children(stand_ins: Path) -> None:
    """At the time limit; none of them is left once the system is done with what was killed."""
    mark = "86399.5"
    script(stand_ins, "mpirun", f'[ "$1" = --version ] && exit 0\nsleep {mark} & sleep {mark}')
    with pytest.raises(TimeLimitReached):
        count(CountPlan(mpicc=str(stand_ins / "mpicc"), time_limit_s=0.5))
    left = [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]
    assert not psutil.wait_procs(left, timeout=60.0)[1]


# --- the commands ---------------------------------------------------------------------------------


def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Count into a file, use it as a layer, check it: 0 within the share, 7 above it."""
    monkeypatch.setattr(counting, "count", lambda plan: library(*both(8, 400), *both(64, 428)))
    path = str(tmp_path / "layer.json")
    assert main(("model", "layer", "count", "--mpicc", "mpicc.mpich", "--output", path)) == 0
    assert "428" in capsys.readouterr().out
    assert main(("model", "layer", path, "--bytes", "64")) == 0
    assert "856 instructions" in capsys.readouterr().out
    assert main(("model", "layer", "check", path)) == 0
    monkeypatch.setattr(counting, "count", lambda plan: library(*both(8, 405), *both(64, 428)))
    assert main(("model", "layer", "check", path, "--max-more", "2%")) == 0
    capsys.readouterr()
    assert main(("model", "layer", "check", path, "--json")) == 7
    found = json.loads(capsys.readouterr().out)
    assert not found["is_kept"]
    assert found["calls"][0]["share"] == pytest.approx(0.0125)


def test_a_baseline_that_is_none(tmp_path: Path) -> None:
    """Is bad input."""
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    assert main(("model", "layer", "check", str(path))) == 2
    assert main(("model", "layer", "check", str(tmp_path / "none.json"))) == 4
    assert main(("model", "layer", "count", "--mpicc", "mpicc.none")) == 2
