"""The movers of the bench: each moves its message whole, at sizes that divide it and others."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from bench import own_movers
from bench.cases.programs import KIB, MIB, PROGRAMS, FullSweep, RealProgram, Swept
from measuring.own_program import OwnProgram
from tests.support.system import require_system


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("movers")
    (made / "source.bin").write_bytes(bytes(range(256)) * (32 * MIB // 256))
    return made


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_each_program_runs_at_whole_and_odd_sizes(program: RealProgram, folder: Path) -> None:
    name = program.own(folder).words[0]
    require_system(shutil.which(name), name, f"apt-get install {name}")
    for size in (program.message_bytes, program.message_bytes // 3):
        run = program.own(folder).run(size, limit_s=60.0)
        if "ended with 126" in run.reason or "no program" in run.reason:
            pytest.skip(run.reason)
        assert run.latency_us is not None, run.reason


def test_a_copy_is_whole(folder: Path) -> None:
    own_movers.copy(3 * MIB + 1, folder)
    digests = {
        hashlib.sha1((folder / name).read_bytes(), usedforsecurity=False).digest()
        for name in ("source.bin", "target.bin")
    }
    assert len(digests) == 1


def test_fragments_are_the_message() -> None:
    assert list(own_movers.cut(10, 4)) == [4, 4, 2]
    assert list(own_movers.cut(8, 8)) == [8]


def test_sizes_are_round_and_within_the_message() -> None:
    for program in PROGRAMS:
        sizes = program.sizes()
        assert sizes[0] >= program.smallest_bytes
        assert sizes[-1] == program.message_bytes
        assert isinstance(program.own(Path("x")), OwnProgram)


def test_regret_and_what_is_certain_of_it() -> None:
    truth = FullSweep({4 * KIB: 10.0, 8 * KIB: 8.0}, 0.01, 2, 1.0)
    assert (truth.best, truth.regret(4 * KIB)) == (8 * KIB, 0.25)
    one = Swept("x", 4096, "set", 8192, 9, 1.0, 0.01, 0.0, (0.05, 0.02), (0.04, 0.01))
    assert one.regret == pytest.approx(0.0513, abs=1e-4)
    assert one.sure_regret == pytest.approx(0.01, abs=1e-3)
    assert one.is_slower
