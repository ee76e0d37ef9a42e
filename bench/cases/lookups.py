"""Lookups in a table file: the C library and the Python client, beside what libraries do today."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import solvers
from app.questions.profiles import paper_profiles
from bench.machine import CHECKOUT
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.workloads import KIB, MIB, example_trace
from domain.pipeline import Pipeline
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits
from exports.table.slt import encode

_CLIENT = CHECKOUT / "clients" / "c"
_COMPILERS = ("gcc", "clang")
_FLAGS = ("-std=c11", "-O3")  # as the library builds itself
_REPEAT_NS, _FRAGMENT_NS, _CALL_NS, _PYTHON_NS = 15.0, 2.0, 25.0, 1000.0
_COLD = 2.0  # times an array
_SEED = 5
_COMPILE_LIMIT_S = 300.0
_PLAIN = FragmentLimits()


@dataclass(frozen=True, slots=True)
class _Instance:
    """A table: its pipeline, its limits, how exact it is."""

    name: str
    pipeline: Pipeline
    limits: FragmentLimits = _PLAIN
    max_message_bytes: int = 16 * MIB
    relative_gap: float = 1e-3


def _instances(effort: Effort) -> Iterator[_Instance]:
    papers = {paper.name: paper.pipeline for paper in paper_profiles()}
    yield _Instance("myrinet-gam", papers["myrinet-gam"])
    yield _Instance("gms", papers["gms"])
    aligned = FragmentLimits(64, 64 * KIB, 64)
    yield _Instance("myrinet-gam, 64-byte units", papers["myrinet-gam"], aligned, MIB, 1e-2)
    if effort.name == "full":
        yield _Instance("example trace", example_trace())


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    number = effort.pick(20_000, quick=2_000)
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        programs = dict(_compiled(Path(folder)))
        found = [
            _measured(instance, number, Path(folder), programs) for instance in _instances(effort)
        ]
    rows = [row for one in found for row in one.rows]
    counts = [row for one in found for row in one.count_rows]
    pythons = [one.python_row for one in found]
    return CaseResult(
        (_c_table(number, rows), _counts_table(counts), _python_table(number, pythons)),
        tuple(check for one in found for check in one.checks),
    )


def _compiled(folder: Path) -> Iterator[tuple[str, Path]]:
    """The library's own benchmark with each compiler that there is."""
    sources = [*sorted((_CLIENT / "src").glob("*.c")), _CLIENT / "bench" / "lookup_bench.c"]
    for compiler in filter(shutil.which, _COMPILERS):
        made = folder / f"lookups-{compiler}"
        line = [compiler, *_FLAGS, "-I", str(_CLIENT / "include"), "-o", str(made)]
        subprocess.run([*line, *map(str, sources)], check=True)
        yield compiler, made


@dataclass(frozen=True, slots=True)
class _Found:
    rows: list[tuple[Cell, ...]]
    count_rows: list[tuple[Cell, ...]]
    python_row: tuple[Cell, ...]
    checks: list[Check]


def _measured(instance: _Instance, number: int, folder: Path, programs: dict[str, Path]) -> _Found:
    table_path, sizes_path = folder / "bench.slt", folder / "sizes"
    table_path.write_bytes(_file_of(instance))
    sizes_path.write_text("\n".join(map(str, _sizes(instance.max_message_bytes, number))))
    reported = {
        compiler: _reported([str(program), str(table_path), str(sizes_path)])
        for compiler, program in programs.items()
    }
    python = _reported(
        [sys.executable, "-m", "bench.reader_child", str(table_path), str(sizes_path)]
    )
    checks = [check for name, one in reported.items() for check in _checks(instance, name, one)]
    what = f"Python, {instance.name}, repeated size"
    checks.append(Check(what, python["repeat_ns"], _PYTHON_NS, "ns"))
    return _Found(
        [_c_row(instance, compiler, one) for compiler, one in reported.items()],
        [row for compiler, one in reported.items() for row in _count_rows(instance, compiler, one)],
        _python_row(instance, python),
        checks,
    )


def _file_of(instance: _Instance) -> bytes:
    table = solvers.compile_table(
        instance.pipeline,
        instance.limits,
        min_message_bytes=1,
        max_message_bytes=instance.max_message_bytes,
        relative_gap=instance.relative_gap,
        fragment_cap=DEFAULT_FRAGMENT_CAP,
        time_limit_s=_COMPILE_LIMIT_S,
    )
    return encode(table, profile="", revision=0)


def _sizes(max_message_bytes: int, number: int) -> list[int]:
    """Log-uniform, in random order."""
    rng = random.Random(_SEED)
    return [round(2.0 ** (rng.random() * log(max_message_bytes, 2.0))) for _ in range(number)]


def _reported(line: list[str]) -> dict[str, Any]:
    places = os.pathsep.join((str(CHECKOUT), str(CHECKOUT / "clients" / "python" / "src")))
    done = subprocess.run(
        line, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": places}
    )
    reported: dict[str, Any] = json.loads(done.stdout)
    return reported


# --- what is reported -----------------------------------------------------------------------------


def _checks(instance: _Instance, compiler: str, reported: dict[str, Any]) -> Iterator[Check]:
    label = f"{compiler}, {instance.name}"
    yield Check(f"{label}, repeated size", reported["repeat_ns"]["median"], _REPEAT_NS, "ns")
    yield Check(f"{label}, repeated size, nothing cached", reported["cold_ratio"], _COLD, "arrays")
    fragments = reported["fragments"]["mean"]
    yield Check(
        f"{label}, schedule of {fragments:.0f} fragments in the mean",
        reported["schedule_ns"]["median"],
        _FRAGMENT_NS * fragments + _CALL_NS,
        "ns",
    )
    worst = max(reported["schedule_counts"], key=lambda one: one["ns"] / one["allowed_ns"])
    yield Check(
        f"{label}, schedule of {worst['fragments']} fragments, the dearest of all counts",
        worst["ns"],
        worst["allowed_ns"],
        "ns",
    )


def _c_row(instance: _Instance, compiler: str, reported: dict[str, Any]) -> tuple[Cell, ...]:
    return (
        f"{instance.name}, {compiler}",
        reported["repeat_ns"]["median"] / reported["if_chain_ns"]["median"],
        reported["repeat_ns"]["median"],
        reported["schedule_fit"]["per_call_ns"],
        reported["schedule_fit"]["per_fragment_ns"],
        reported["cold_repeat_ns"]["median"],
        reported["cold_array_ns"]["median"],
        reported["if_chain_ns"]["median"],
        reported["constant_ns"]["median"],
        reported["schedule_ns"]["median"],
        reported["cut_ns"]["median"],
        reported["fragments"]["mean"],
        reported["open_ns"]["median"] / 1e3,
        reported["file_bytes"],
    )


def _c_table(number: int, rows: list[tuple[Cell, ...]]) -> Table:
    columns = (
        "table, compiler",
        "repeat / chain of ifs",
        "repeated size ns",
        "schedule: ns a call",
        "ns a fragment",
        "repeated size ns, cold",
        "array ns, cold",
        "chain of ifs ns",
        "constant ns",
        "schedule ns",
        "iterator ns",
        "fragments in the mean",
        "opening µs",
        "file bytes",
    )
    title = f"C library, {number} log-uniform sizes in random order, medians over passes"
    return Table(title, columns, tuple(rows))


def _count_rows(
    instance: _Instance, compiler: str, reported: dict[str, Any]
) -> Iterator[tuple[Cell, ...]]:
    """Counts of 1, 2, 4, 8 ... fragments, and the greatest."""
    counts = reported["schedule_counts"]
    chosen = [one for one in counts if one["fragments"] & (one["fragments"] - 1) == 0]
    for one in [*chosen, counts[-1]]:
        share = one["ns"] / one["allowed_ns"]
        yield (
            f"{instance.name}, {compiler}, {one['fragments']} fragments",
            share,
            one["ns"],
            one["allowed_ns"],
            one["sizes"],
        )


def _counts_table(rows: list[tuple[Cell, ...]]) -> Table:
    title = "C library, whole schedules by their number of fragments"
    columns = ("schedule", "ns / allowed", "ns", "allowed: 2 ns a fragment + 25 ns", "sizes")
    return Table(title, columns, tuple(rows), is_detail=True)


def _python_row(instance: _Instance, reported: dict[str, Any]) -> tuple[Cell, ...]:
    short = reported["short_schedule_ns"]
    return (
        instance.name,
        reported["repeat_ns"] / 1e3,
        short / 1e3 if short is not None else None,
        reported["schedule_ns"] / 1e3,
        reported["mean_fragments"],
        reported["open_ns"] / 1e6,
    )


def _python_table(number: int, rows: list[tuple[Cell, ...]]) -> Table:
    columns = (
        "table",
        "repeated size µs",
        "schedule of at most 8 fragments µs",
        "schedule µs",
        "fragments in the mean",
        "opening ms",
    )
    title = f"Python client's reader, {number} log-uniform sizes in random order"
    return Table(title, columns, tuple(rows))


SPEC = BenchSpec(
    name="lookups",
    title="Lookups in a table file",
    about=(
        "What a messaging library does for each message. The C library is compiled with -O3 by "
        "each compiler that is there, and run by its own benchmark (`clients/c/bench`) beside a "
        "constant and a chain of ifs; nothing is allocated. The Python client's reader runs in a "
        "process of its own. Random sizes from 1 byte up; the caches are warm, but for what is "
        "called cold: single lookups, each after 64 MiB of other memory were written, beside one "
        "of an array."
    ),
    run=_run,
    workloads={},
)
