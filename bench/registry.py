"""The cases: every module of bench/cases registers itself by its SPEC."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import bench.cases
from bench.spec import BenchSpec


def specs() -> dict[str, BenchSpec]:
    """All cases by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.cases.__path__))
    found: list[BenchSpec] = [import_module(f"bench.cases.{name}").SPEC for name in names]
    return {spec.name: spec for spec in found}
