"""The NCCL tuner plugin, called as NCCL calls it: sizes, bounds, what it leaves alone, refusals."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import decode, encode
from exports.targets.nccl import TARGET
from exports.targets.target import ExportInput
from tests.clients.c_support import require, require_compiler
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, a_plan_table

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "clients" / "c" / "nccl"
TABLES = ROOT / "tests" / "data" / "tables"
THREADS = 8
GRAIN, MIN_CHUNK = 512, 16384
BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE = range(5)
TREE, RING, COLLNET_DIRECT = range(3)
LL, LL128, SIMPLE = range(3)
CUT = {(BROADCAST, RING), (BROADCAST, TREE), (REDUCE, RING), (REDUCE, TREE), (ALL_REDUCE, TREE)}
BUILDS = {
    "gcc, addresses": ("gcc", "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"),
    "clang, threads": ("clang", "-O1 -g -fsanitize=thread"),
}


@dataclass(frozen=True)
class Question:
    """What NCCL asks for: a line of the program's input."""

    collective: int
    message_bytes: int
    algorithm: int = TREE
    protocol: int = SIMPLE
    channels: int = 1
    proposed: int = 524_288

    def line(self) -> str:
        """As like_nccl.c reads it."""
        return (
            f"{self.collective} {self.message_bytes} {self.algorithm} {self.protocol} "
            f"{self.channels} {self.proposed}\n"
        )


@dataclass(frozen=True)
class Answer:
    """What the program said."""

    returned: int
    chunks: list[int]
    log: str


@pytest.fixture(scope="module", params=BUILDS)
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the plugin and of the program that calls it."""
    compiler, flags = BUILDS[request.param]
    require("make")
    require_compiler(compiler, tuple(flags.split()))
    folder = tmp_path_factory.mktemp("nccl")
    set_here = (f"BUILD={folder}", "WERROR=-Werror", f"CC={compiler}", f"CFLAGS={flags}")
    reported = subprocess.run(
        ["make", "-s", "-C", str(SOURCES), "all", f"{folder}/like_nccl", *set_here],
        capture_output=True,
        text=True,
        check=False,
    )
    assert reported.returncode == 0, reported.stderr[:4000]
    return folder


def _ask(
    build: Path, questions: Sequence[Question], place: str | None = None, **settings: str
) -> Answer:
    """With these settings of the plugin, and SLUICE_TABLE where a place is given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    if place is not None:
        kept["SLUICE_TABLE"] = place
    reported = subprocess.run(
        [str(build / "like_nccl"), str(build / "libnccl-tuner-sluice.so"), str(THREADS)],
        input="".join(question.line() for question in questions),
        env={**kept, **{f"SLUICE_NCCL_{name}": value for name, value in settings.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert reported.returncode in (0, 2), reported.stderr[:4000]
    return Answer(
        reported.returncode, [int(line) for line in reported.stdout.split()], reported.stderr
    )


@cache
def _tables() -> dict[str, PlanTable]:
    units = ((1000, 900_000, 3), (900_001, 2**24, 60))
    return {
        "plain": a_plan_table(((1, 40_000, 1), (40_001, 2**26, 300)), seed=3),
        "aligned": a_plan_table(units, limits=FragmentLimits(1, None, 48), seed=4),
        "at most 256 KiB and a byte": a_plan_table(
            ((1, 262_145, 1),), limits=FragmentLimits(1, 262_145), seed=5
        ),
        "at most 8 KiB": a_plan_table(((1, 8000, 1),), limits=FragmentLimits(1, 8192), seed=6),
        "none to repeat": GOLDEN["sparse"][0](),
        "256 TiB": GOLDEN["huge"][0](),
    }


def _file(folder: Path, table: PlanTable) -> str:
    path = folder / "plan.slt"
    path.write_bytes(encode(table, profile="lab-7", revision=3))
    return str(path)


def _checksum(path: str) -> str:
    return Path(path).read_bytes()[27:23:-1].hex()


def _expected(table: PlanTable, asked: Question) -> int:
    """The size that the table gives, rounded up to the grain, inside the bounds."""
    message = -(-asked.message_bytes // asked.channels)
    if asked.protocol != SIMPLE or (asked.collective, asked.algorithm) not in CUT:
        return asked.proposed
    if not table.min_message_bytes <= message <= table.max_message_bytes:
        return asked.proposed
    size = table.repeated_size_at(message)
    maximum = min(asked.proposed, table.limits.max_fragment_bytes or asked.proposed)
    maximum = maximum // GRAIN * GRAIN
    if not size or maximum < MIN_CHUNK:
        return asked.proposed
    return min(max(-(-size // GRAIN) * GRAIN, MIN_CHUNK), maximum)


def _random_questions(table: PlanTable, *, seed: int) -> list[Question]:
    rng = random.Random(seed)
    edges = [repeat.message_bytes + step for repeat in table.repeats for step in (-1, 0, 1)]
    sizes = edges + [
        rng.randint(max(0, table.min_message_bytes - 10), table.max_message_bytes + 10)
        for _ in range(count(20_000))
    ]
    return [
        Question(
            rng.choice((BROADCAST, REDUCE, ALL_REDUCE)),
            size * (channels := rng.choice((1, 1, 1, 2, 17))),
            rng.choice((TREE, RING)),
            SIMPLE,
            channels,
            rng.choice((524_288, 524_288, 2**20, 65_536, 100_000, 16_384, 16_383, 8192, 511)),
        )
        for size in sizes
    ]


@pytest.mark.parametrize("name", _tables())
def test_sizes_are_the_plan_tables_inside_their_bounds(
    name: str, build: Path, tmp_path: Path
) -> None:
    table = _tables()[name]
    questions = _random_questions(table, seed=len(name))
    answer = _ask(build, questions, TABLE=_file(tmp_path, table))
    assert answer.returned == 0
    assert answer.chunks == [_expected(table, question) for question in questions]


def test_a_table_is_found_as_the_library_finds_it_where_its_checksum_is_told(
    build: Path, tmp_path: Path
) -> None:
    """By SLUICE_TABLE, a file or a folder; each rank might find another one without a checksum."""
    table, asked = _tables()["aligned"], [Question(BROADCAST, 2**22)]
    path = Path(_file(tmp_path, table))
    shutil.copy(path, tmp_path / "nccl.slt")
    expected = [_expected(table, one) for one in asked]
    assert expected != [one.proposed for one in asked]
    checksum = _checksum(str(path))
    for place in (str(path), str(tmp_path)):
        assert _ask(build, asked, place, CHECKSUM=checksum).chunks == expected
        assert _ask(build, asked, place).chunks == [one.proposed for one in asked]
    assert _ask(build, asked, str(tmp_path / "none"), CHECKSUM=checksum).returned == 2


def test_some_sizes_are_changed_and_none_is_above_what_nccl_proposed() -> None:
    """The comparison above would be worth nothing where everything were left alone."""
    table = _tables()["aligned"]
    questions = _random_questions(table, seed=1)
    expected = [_expected(table, question) for question in questions]
    changed = [
        chunk for chunk, asked in zip(expected, questions, strict=True) if chunk != asked.proposed
    ]
    assert len(changed) > len(questions) // 5
    assert len(set(changed)) > 100
    assert all(chunk <= asked.proposed for chunk, asked in zip(expected, questions, strict=True))


def test_everything_else_is_left_alone(build: Path, tmp_path: Path) -> None:
    """Other protocols, algorithms and collectives, those that nobody knows yet among them."""
    questions = [
        Question(collective, 2**24, algorithm, protocol, channels)
        for collective in (*range(10), -1, 2**31 - 1)
        for algorithm in (*range(9), -1, 2**31 - 1)
        for protocol in (*range(4), -1)
        for channels in (1, 8)
        if protocol != SIMPLE or (collective, algorithm) not in CUT
    ]
    questions += [Question(BROADCAST, 2**24, channels=channels) for channels in (0, -1)]
    answer = _ask(build, questions, TABLE=_file(tmp_path, _tables()["plain"]))
    assert answer.chunks == [question.proposed for question in questions]


def test_only_the_collectives_that_are_named(build: Path, tmp_path: Path) -> None:
    table, path = _tables()["plain"], _file(tmp_path, _tables()["plain"])
    questions = [Question(name, 2**24) for name in (BROADCAST, REDUCE, ALL_REDUCE)]
    cut = _expected(table, questions[0])
    assert cut != questions[0].proposed
    for names, expected in (
        ("broadcast", [cut, 524_288, 524_288]),
        ("allreduce,reduce", [524_288, cut, cut]),
        ("", [cut, cut, cut]),
    ):
        assert _ask(build, questions, TABLE=path, COLLECTIVES=names).chunks == expected


@pytest.mark.parametrize(
    "names", ["gather", "broadcast,", ",", "reduce allreduce", "Reduce", "x" * 9]
)
def test_collectives_that_are_misspelt_change_nothing_and_are_told(
    names: str, build: Path, tmp_path: Path
) -> None:
    path = _file(tmp_path, _tables()["plain"])
    answer = _ask(build, [Question(BROADCAST, 2**24)], TABLE=path, COLLECTIVES=names)
    assert answer.chunks == [524_288]
    assert "WARN 41 TUNER/Sluice: SLUICE_NCCL_COLLECTIVES is refused" in answer.log
    checked = _ask(build, [], TABLE=path, COLLECTIVES=names, CHECKSUM=_checksum(path))
    assert checked.returned == 2


def test_without_a_table_nothing_is_changed(build: Path) -> None:
    answer = _ask(build, [Question(BROADCAST, 2**24)])
    assert answer.chunks == [524_288]
    assert "INFO 41 TUNER/Sluice: SLUICE_NCCL_TABLE is not set" in answer.log
    assert "WARN" not in answer.log


def test_a_missing_file_changes_nothing_and_is_told(build: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.slt", tmp_path, Path("/dev/zero")):
        answer = _ask(build, [Question(BROADCAST, 2**24)], TABLE=str(path))
        assert answer.chunks == [524_288]
        assert f"WARN 41 TUNER/Sluice: {path} is refused: " in answer.log
        assert "NCCL's own sizes are left as they are" in answer.log


def test_malformed_files_change_nothing_and_are_told(build: Path) -> None:
    files = sorted((TABLES / "malformed").glob("*.slt"))
    assert len(files) > 50
    for path in files:
        answer = _ask(build, [Question(BROADCAST, 100)], TABLE=str(path))
        assert (answer.returned, answer.chunks) == (0, [524_288]), path.name
        assert "is refused: " in answer.log, path.name


def test_with_a_checksum_it_is_that_file_or_no_communicator(build: Path, tmp_path: Path) -> None:
    path = _file(tmp_path, _tables()["plain"])
    asked, right = [Question(BROADCAST, 2**24)], _checksum(path)
    for checksum in (right, right.upper()):
        answer = _ask(build, asked, TABLE=path, CHECKSUM=checksum)
        assert answer.returned == 0
        assert answer.chunks != [524_288]
        assert f"profile 'lab-7', revision 3, checksum {right}" in answer.log
    other = f"{int(right, 16) ^ 1:08x}"
    for checksum in (other, right[:7], f"{right}0", "g" * 8, f" {right}", f"0x{right}"):
        assert _ask(build, asked, TABLE=path, CHECKSUM=checksum).returned == 2
    refused = _ask(build, asked, TABLE=str(tmp_path / "missing"), CHECKSUM=right)
    assert (refused.returned, refused.chunks) == (2, [])
    assert "no communicator without the table" in refused.log
    assert _ask(build, asked, CHECKSUM=right).returned == 2


def test_changes_are_logged_where_that_is_wanted(build: Path, tmp_path: Path) -> None:
    path = _file(tmp_path, _tables()["plain"])
    asked = [Question(BROADCAST, 2**24), Question(BROADCAST, 2**24, protocol=LL128)]
    chunk = _expected(_tables()["plain"], asked[0])
    line = f"collective 0, algorithm 0, {2**24} bytes a channel: 524288 to {chunk}\n"
    assert _ask(build, asked, TABLE=path, LOG="1").log.count(line) == THREADS
    assert line not in _ask(build, asked, TABLE=path).log


def test_only_the_plugins_symbol_is_seen(build: Path) -> None:
    require("nm")
    reported = subprocess.run(
        ["nm", "-D", "--defined-only", str(build / "libnccl-tuner-sluice.so")],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[-1] for line in reported.stdout.splitlines()}
    ours = {name for name in names if "sluice" in name or "nccl" in name}
    assert {name for name in ours if not name.startswith("__")} == {"ncclTunerPlugin_v6"}


def test_the_export_sets_it_up(build: Path, tmp_path: Path) -> None:
    """What the `nccl` target writes makes the plugin take its table, and no other."""
    table = _tables()["plain"]
    path, options = _file(tmp_path, table), TARGET.options_from({"table": "/t/plan.slt"})
    file = Path(path).read_bytes()
    text = TARGET.render(
        ExportInput("lab-7", 3, table.pipeline, options, table=decode(file), table_bytes=file)
    )
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    settings = {name.removeprefix("SLUICE_NCCL_"): value for name, _, value in lines}
    assert settings.pop("NCCL_TUNER_PLUGIN") == "sluice"
    assert settings.pop("TABLE") == "/t/plan.slt"
    asked = [Question(BROADCAST, 2**24)]
    assert _ask(build, asked, TABLE=path, **settings).chunks == [_expected(table, asked[0])]
    other = tmp_path / "other.slt"
    other.write_bytes(encode(_tables()["aligned"], profile="lab-7", revision=3))
    assert _ask(build, asked, TABLE=str(other), **settings).returned == 2
