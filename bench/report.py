"""Results as JSON, and the page docs/benchmarks.md made of all of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import plots
from bench.machine import CHECKOUT, commit, libraries, machine
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table

RESULTS = CHECKOUT / "bench" / "results"
PAGE = CHECKOUT / "docs" / "benchmarks.md"
PLOTS = CHECKOUT / "docs" / "plots"
# What bench.plots draws of a case, and the words for who does not see it.
_PICTURES = {
    "scaling": (plots.TIME, "Time of one exact solve against fragments × stages, by solver"),
    "structured": (plots.RATIOS, "Time of the fastest general solver over ours, by class"),
}

_INTRODUCTION = """\
# Benchmarks

After this page you can say how fast Sluice is, which targets it misses, and measure it again.
`make bench` writes the page from `bench/results/*.json`, which have all rows, and how they were
measured. `python -m bench CASE` runs one case, `--quick` a small one that writes nothing,
`profile CASE` shows where time goes.

Read the ratios first: the sides of a comparison take turns, so a busy machine slows all alike,
while milliseconds move by a third between runs on a shared machine.
"""


def document(spec: BenchSpec, result: CaseResult, effort: Effort) -> dict[str, Any]:
    """The result of one case as it is stored."""
    return {
        "case": spec.name,
        "title": spec.title,
        "about": spec.about,
        "effort": effort.name,
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "libraries": libraries(),
        "checks": [asdict(check) | {"met": check.met} for check in result.checks],
        "notes": list(result.notes),
        "tables": [asdict(table) for table in result.tables],
    }


def write_result(found: dict[str, Any], folder: Path) -> Path:
    """One file a case; what was there before is in the history."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found['case']}.json"
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def write_page(folder: Path = RESULTS, page: Path = PAGE) -> None:
    """The page and its pictures, from every stored result."""
    plots.write_plots(folder, PLOTS)
    stored = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    parts = [_INTRODUCTION, _runs(stored), _missed(stored), *filter(None, map(_section, stored))]
    page.write_text("\n".join(parts))


def format_result(result: CaseResult) -> str:
    """The same tables for the terminal."""
    checks = [_check_row(asdict(check) | {"met": check.met}) for check in result.checks]
    parts = [_markdown(table) for table in result.tables]
    if checks:
        parts.append(_grid(_CHECK_COLUMNS, checks))
    return "\n".join([*parts, *(f"* {note}" for note in result.notes)])


_MAX_ROWS, _MAX_COLUMNS = 12, 5  # of a table on the page
_CHECK_COLUMNS = ("target", "met", "measured", "asked for", "unit")


def _runs(stored: list[dict[str, Any]]) -> str:
    rows = [
        (
            found["case"],
            found["measured_at"],
            found["commit"]["id"][:10] + ("+" if found["commit"]["changed_files"] else ""),
            f"{sum(check['met'] for check in found['checks'])}/{len(found['checks'])}",
        )
        for found in stored
    ]
    kinds = sorted({_machine(found["machine"]) for found in stored})
    note = f"\nOn {'; '.join(kinds)}. `+`: with files changed after the commit.\n"
    return "## Runs\n\n" + _grid(("case", "measured", "commit", "targets met"), rows) + note


def _machine(box: dict[str, Any]) -> str:
    return f"{box['processor']}, {box['cores']} cores, {box['memory_gib']} GiB, {box['python']}"


def _missed(stored: list[dict[str, Any]]) -> str:
    rows = [
        tuple(cell for cell in _check_row(check) if cell != "**no**")
        for found in stored
        for check in found["checks"]
        if not check["met"]
    ]
    columns = tuple(column for column in _CHECK_COLUMNS if column != "met")
    return "## Missed targets\n\n" + _grid(columns, rows) if rows else ""


def _check_row(check: dict[str, Any]) -> tuple[Cell, ...]:
    met = "yes" if check["met"] else "**no**"
    limit = f"{check['rule']} {_shown(check['limit'])}"
    return check["what"], met, check["value"], limit, check["unit"]


def _section(found: dict[str, Any]) -> str:
    """The main tables of a case, cut to what a page can have; empty where all is in its file."""
    tables = [
        Table(
            table["title"],
            tuple(table["columns"][:_MAX_COLUMNS]),
            tuple(tuple(row[:_MAX_COLUMNS]) for row in table["rows"][:_MAX_ROWS]),
        )
        for table in found["tables"]
        if not table.get("is_detail", False)
    ]
    picture = _picture(found["case"])
    if not tables and not picture:
        return ""
    about = found["about"].partition(". ")[0].rstrip(".") + ".\n" + picture
    return "\n".join([f"## {found['title']}\n", about, *map(_markdown, tables)])


def _sentence(check: dict[str, Any]) -> str:
    limit = f"{check['rule']} {_shown(check['limit'])}"
    return f"{check['what']}: {_shown(check['value'])} {check['unit']}, asked for {limit}"


def _picture(case: str) -> str:
    if case not in _PICTURES:
        return ""
    name, words = _PICTURES[case]
    return f"\n![{words}](plots/{name})\n"


def _markdown(table: Table) -> str:
    return f"### {table.title}\n\n" + _grid(table.columns, table.rows)


def _grid(columns: tuple[str, ...], rows: Any) -> str:
    lines = [" | ".join(columns), "|".join(["---"] * len(columns))]
    lines += [" | ".join(map(_shown, row)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        if cell == 0.0 or abs(cell) < 1e-3 or abs(cell) >= 1e7:
            return f"{cell:.1e}" if cell else "0"
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def unmet(checks: tuple[Check, ...]) -> list[str]:
    """Targets that were missed, in words."""
    return [_sentence(asdict(check)) for check in checks if not check.met]
