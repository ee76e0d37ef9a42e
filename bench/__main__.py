"""The benchmarks' command line; see the package."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.profiling import profile
from bench.registry import specs
from bench.report import RESULTS, document, format_result, unmet, write_page, write_result
from bench.spec import FULL, QUICK, BenchSpec


def main(arguments: list[str] | None = None) -> int:
    """Run cases, or profile one. Returns 0 also where a target was missed: that is a finding."""
    known = specs()
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["profile"]:
        return _profile(known, given[1:])
    options = _options(known, given)
    effort = QUICK if options.quick else FULL
    folder = options.out or (None if options.quick else RESULTS)
    for name in options.case or list(known):
        _run(known[name], effort_quick=effort is QUICK, folder=folder)
    if folder == RESULTS:
        write_page()
    return 0


def _options(known: dict[str, BenchSpec], given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure solvers and service. `python -m bench profile CASE [WORKLOAD]` "
        "shows where the time goes.",
    )
    parser.add_argument("case", nargs="*", choices=[[], *known], help="all when none is named")
    parser.add_argument("--quick", action="store_true", help="in seconds; writes nothing")
    parser.add_argument("--out", type=Path, help="folder for the JSON (default: bench/results)")
    return parser.parse_args(given)


def _run(spec: BenchSpec, *, effort_quick: bool, folder: Path | None) -> None:
    effort = QUICK if effort_quick else FULL
    print(f"\n== {spec.name}: {spec.title}", flush=True)
    started_s = time.perf_counter()
    result = spec.run(effort)
    print(format_result(result))
    print(f"   {time.perf_counter() - started_s:.0f} s")
    for sentence in unmet(result.checks):
        print(f"   target missed: {sentence}")
    if folder is not None:
        write_result(document(spec, result, effort), folder)


def _profile(known: dict[str, BenchSpec], given: list[str]) -> int:
    workloads = {
        f"{spec.name} {name}": prepare
        for spec in known.values()
        for name, prepare in spec.workloads.items()
    }
    asked = " ".join(given)
    chosen = [name for name in workloads if name == asked or name.split()[0] == asked]
    if not chosen:
        print("python -m bench profile one of: " + "; ".join(workloads), file=sys.stderr)
        return 2
    for name in chosen:
        print(f"\n== {name}\n{profile(workloads[name])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
