"""Documents of the service, as a person reads them; each function gives parts to print in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.console.gantt import MAX_BLOCKS, Ink, chart_of, draw
from app.console.screen import Column, Facts, Grid, Part
from app.schemas.fits import notice_of
from app.text.names import printable
from app.text.notices import notice_lines
from app.text.numbers import (
    format_cost,
    format_count,
    format_excess,
    format_gap,
    format_percent,
    format_sizes,
)
from app.text.units import format_given_time, format_proven, format_time
from domain.pipeline import FitRange, Pipeline, Stage
from domain.units import format_bytes

Document = Mapping[str, Any]
Parts = Iterator[Part]

STATUS_SAYS = {
    "optimal": "proven optimal, in whole bytes",
    "optimal_before_rounding": "proven optimal in real-valued sizes; whole bytes add the gap",
    "proven_gap": "not proven optimal; the gap is the most that can be missing",
    "time_limit": "stopped early: the best so far; the gap is the most that can be missing",
}
_INTERVALS_FROM_WIDTH = 110
_AT_MOST = "latency_is_upper_bound"


def pipeline_of(document: Document) -> Pipeline:
    """The pipeline that a document describes."""
    return Pipeline(tuple(map(_stage_of, document["stages"])), document.get("delay_us", 0.0))


def _stage_of(document: Document) -> Stage:
    ranges = document.get("ranges") or [document]
    return Stage(
        document["name"],
        tuple(
            FitRange(part["overhead_us"], part["ns_per_byte"], part.get("up_to_bytes"))
            for part in ranges
        ),
    )


# --- an answer ------------------------------------------------------------------------------------


def answer_parts(document: Document, *, width: int, ink: Ink) -> Parts:
    """An answer: what to send, how good it is, the Gantt, and what simpler cuts would cost."""
    yield from schedule_parts(document, width=width, ink=ink)
    yield ""
    yield instead_table(document)
    yield ""
    yield from warning_parts(_without_fit_warnings(document))


def _without_fit_warnings(document: Document) -> Document:
    """The answer's own warnings: those of its fit are counted above it, and told by the fit."""
    of_fit = document["fit"]["warnings"] if document["fit"] else []
    return {"warnings": [one for one in document["warnings"] if one not in of_fit]}


def schedule_parts(document: Document, *, width: int, ink: Ink) -> Parts:
    """What to send, how good it is, and the Gantt."""
    size = format_bytes(document["message_bytes"])
    yield f"{size} through {_crossed(document)}{_source(document)}"
    yield ""
    yield Facts(tuple(_answer_facts(document)))
    yield ""
    yield from gantt_parts(document, width=width, ink=ink)


def _answer_facts(document: Document) -> Iterator[tuple[str, str]]:
    yield "strategy", document["strategy"]
    yield (
        "fragments",
        f"{format_count(document['fragments'])}: {format_sizes(document['fragment_bytes'])} bytes",
    )
    is_most = any(found["code"] == _AT_MOST for found in document["warnings"])
    latency, bound = format_proven(document["latency_us"], document["lower_bound_us"])
    yield "latency", ("at most " if is_most else "") + latency
    gap = format_gap(document["relative_gap"])
    yield "bound", f"no schedule of its class is below {bound}; gap {gap}"
    yield "status", f"{document['status']}: {STATUS_SAYS.get(document['status'], '')}"
    yield "bottleneck", _bottleneck(document)
    if document.get("levels"):
        yield "levels", "stages cut differently; the coarsest cut is shown above"
    if document.get("limited_by"):
        yield "limited by", document["limited_by"]


def _bottleneck(document: Document) -> str:
    if document["pipeline"] is None:
        return "known by its time, not by its place"
    return printable(document["pipeline"]["stages"][document["bottleneck_stage"]]["name"])


def _crossed(document: Document) -> str:
    """What the message crosses, in a few words."""
    if document["pipeline"] is None:
        return "a pipeline seen from outside"
    return _count(len(document["pipeline"]["stages"]), "stage")


def _source(document: Document) -> str:
    profile = document.get("profile")
    return f", profile {profile['name']}@{profile['revision']}" if profile else ""


def gantt_parts(document: Document, *, width: int, ink: Ink) -> Parts:
    """The Gantt of an answer; a sentence instead where it cannot be drawn."""
    if document["pipeline"] is None:
        yield "(no Gantt: outside measurements do not tell when a fragment is in which stage)"
        return
    stages = document["pipeline"]["stages"]
    levels = document.get("levels")
    blocks = document["fragments"] * len(stages)
    if levels:
        blocks = sum(map(len, levels))
    if blocks > MAX_BLOCKS:
        yield f"(no Gantt: {blocks} blocks are more than can be told apart)"
        return
    chart = chart_of(
        pipeline_of(document["pipeline"]),
        document["fragment_bytes"],
        bottleneck=document["bottleneck_stage"],
        levels=levels,
    )
    yield "\n".join(draw(chart, width=width, ink=ink))


def instead_table(document: Document) -> Grid:
    """What libraries do instead, and what it costs."""
    latency_us = document["latency_us"]
    rows = []
    best = document.get("best_fixed")
    if best:
        how = _repeated(best["size_bytes"], best["fragments"])
        rows.append(_instead_row("best fixed size", how, best["latency_us"], latency_us))
    for baseline in document["baselines"]:
        how = _how(baseline)
        rows.append(_instead_row(baseline["strategy"], how, baseline["latency_us"], latency_us))
    columns = (Column("instead", is_number=False), Column("how", is_number=False))
    return Grid((*columns, Column("latency"), Column("more by")), tuple(rows))


def _how(baseline: Document) -> str:
    if baseline["latency_us"] is None:
        return f"not possible: {printable(baseline['declined'] or '')}"
    if baseline["static_bytes"]:
        return _repeated(baseline["static_bytes"], baseline["fragments"])
    if baseline["fragments"] == 1:
        return "not cut"
    return f"{format_count(baseline['fragments'])} equal fragments"


def _repeated(size: int, fragments: int) -> str:
    return f"{format_bytes(size)} each: {_count(fragments, 'fragment')}"


def _instead_row(name: str, how: str, other_us: float | None, latency_us: float) -> tuple[str, ...]:
    if other_us is None:
        return (name, how, "", "")
    return (name, how, format_time(other_us), format_excess(other_us, latency_us))


def warning_parts(document: Document) -> Parts:
    """The warnings of a document, one line each."""
    for warning in document.get("warnings", ()):
        yield f"note: {printable(warning['detail'])} ({warning['code']})"


# --- pipelines and fits ---------------------------------------------------------------------------


def stages_table(pipeline: Document) -> Grid:
    """The stages of a pipeline; a stage with several ranges takes a row for each."""
    return _costs_table(pipeline["stages"], heading="stage")


def aggregate_table(aggregate: Document) -> Grid:
    """The total and the bottleneck of an aggregate, each as a stage."""
    parts = [{**aggregate[part], "name": part} for part in ("total", "bottleneck")]
    return _costs_table(parts, heading="seen from outside")


def _costs_table(stages: Sequence[Document], *, heading: str) -> Grid:
    has_ranges = any(stage.get("ranges") for stage in stages)
    columns = [Column(heading, is_number=False), Column("overhead µs"), Column("ns per byte")]
    if has_ranges:
        columns.append(Column("fragments up to"))
    rows: list[tuple[str, ...]] = []
    for stage in stages:
        for place, part in enumerate(stage.get("ranges") or [stage]):
            name = printable(stage["name"]) if place == 0 else ""
            row = [name, format_cost(part["overhead_us"]), format_cost(part["ns_per_byte"])]
            if has_ranges:
                end = part.get("up_to_bytes")
                row.append(format_bytes(end) if end else "any" if place == 0 else "larger")
            rows.append(tuple(row))
    return Grid(tuple(columns), tuple(rows))


def fit_parts(document: Document, *, width: int) -> Parts:
    """A fit: what was understood, each stage's line with its standard errors, the warnings."""
    said = document["understood"].items()
    yield Facts(tuple((name.replace("_", " "), _value(value)) for name, value in said))
    yield ""
    yield fit_table(_fitted_stages(document), width=width)
    for line in notice_lines(notice_of(one) for one in document["warnings"]):
        yield f"note: {printable(line)}"


def fit_summary_parts(document: Document, *, width: int) -> Parts:
    """A fit above the answer that it gave: its lines, and how much there is to beware of."""
    yield fit_table(_fitted_stages(document), width=width)
    codes = [warning["code"] for warning in document["warnings"]]
    if codes:
        told = ", ".join(dict.fromkeys(codes))
        yield f"note: the fit has {_count(len(codes), 'warning')} ({told}); sluice fit tells them"


def _fitted_stages(document: Document) -> list[Document]:
    aggregate = document["aggregate"]
    outside = [aggregate["total"], aggregate["bottleneck"]] if aggregate else []
    return [*document["pipeline"]["stages"], *outside]


def fit_table(stages: Sequence[Document], *, width: int) -> Grid:
    """Estimates ± standard errors, a row for each range; 95 % intervals too where there is room."""
    is_wide = width >= _INTERVALS_FROM_WIDTH
    has_ranges = any(len(stage["ranges"]) > 1 for stage in stages)
    columns = [Column("stage", is_number=False)] + [Column("up to")] * has_ranges
    columns += [Column("overhead µs ± s.e.")] + [Column("95 %")] * is_wide
    columns += [Column("ns per byte ± s.e.")] + [Column("95 %")] * is_wide
    columns += [Column("residuals")]
    rows = [
        _fit_row(stage, place, is_wide=is_wide, has_ranges=has_ranges)
        for stage in stages
        for place in range(len(stage["ranges"]))
    ]
    return Grid(tuple(columns), tuple(rows))


def _fit_row(stage: Document, place: int, *, is_wide: bool, has_ranges: bool) -> tuple[str, ...]:
    line, row = stage["ranges"][place], [printable(stage["name"]) if place == 0 else ""]
    if has_ranges:
        end = line["up_to_bytes"]
        row.append(format_bytes(end) if end else "larger" if place else "any")
    for name, error, digits in (
        ("overhead_us", "overhead_std_error_us", 3),
        ("ns_per_byte", "ns_per_byte_std_error", 4),
    ):
        row.append(f"{line[name]:.{digits}f} ± {line[error]:.{digits}f}")
        if is_wide:
            low, high = line[f"{name}_interval"]
            row.append(f"{low:.{digits - 1}f} … {high:.{digits - 1}f}")
    return (*row, format_percent(stage["relative_residual_std"]) if place == 0 else "")


# --- comparisons and profiles ---------------------------------------------------------------------


def comparison_parts(document: Document) -> Parts:
    """The table of a comparison, one grid a message size, and what was declined."""
    yield f"{_crossed(document)}{_source(document)}"
    sizes = dict.fromkeys(row["message_bytes"] for row in document["rows"])
    for size in sizes:
        rows = [row for row in document["rows"] if row["message_bytes"] == size]
        yield ""
        yield format_bytes(size)
        yield comparison_grid([row for row in rows if row["latency_us"] is not None])
        yield from comparison_note_parts(rows)


def comparison_grid(rows: Sequence[Document]) -> Grid:
    """What each strategy costs on one message; the least latency is marked."""
    least_us = min((row["latency_us"] for row in rows), default=0.0)
    columns = (
        Column("strategy", is_number=False),
        Column("fragments"),
        Column("greatest"),
        Column("latency"),
        Column("more by"),
        Column("gap"),
    )
    return Grid(columns, tuple(_comparison_row(row, least_us) for row in rows))


def _comparison_row(row: Document, least_us: float) -> tuple[str, ...]:
    name = row["strategy"]
    if row["chosen"] != name:
        name += f" ({row['chosen']})"
    return (
        name + (_NESTED_MARK if _is_nested(row) else ""),
        format_count(row["fragments"]),
        f"{row['largest_fragment_bytes']} B",
        format_time(row["latency_us"]),
        "least" if row["latency_us"] <= least_us else format_excess(row["latency_us"], least_us),
        format_gap(row["relative_gap"]) + (" (cut off)" if row["status"] == "time_limit" else ""),
    )


_NESTED_MARK = " *"


def comparison_note_parts(rows: Sequence[Document]) -> Parts:
    """What the mark means, and which strategies have no answer, and why."""
    if any(map(_is_nested, rows)):
        yield "* stages may cut differently: a class of its own, with a lower bound of its own"
    for row in rows:
        if row["latency_us"] is None:
            yield f"{row['strategy']}: {printable(row['declined'] or 'no answer')}"


def _is_nested(row: Document) -> bool:
    return str(row["chosen"] or "").startswith("hierarchical")


def profiles_table(document: Document) -> Grid:
    """All profiles."""
    columns = (
        Column("profile", is_number=False),
        Column("revision"),
        Column("stages"),
        Column("from", is_number=False),
    )
    rows = (
        (
            item["name"],
            f"{item['revision']} of {item['latest_revision']}",
            _how_many(item),
            _provenance(item),
        )
        for item in document["items"]
    )
    return Grid(columns, tuple(rows))


def profile_parts(document: Document) -> Parts:
    """A profile, or one revision of it: its stages and where they came from."""
    yield f"{document['name']}@{document['revision']}  {_provenance(document)}"
    yield ""
    model = document["pipeline"] or document["aggregate"]
    yield stages_table(model) if document["pipeline"] else aggregate_table(model)
    delay_us = model["delay_us"]
    if delay_us > 0.0:
        yield f"and a constant delay of {format_given_time(delay_us)}"


def revisions_table(document: Document) -> Grid:
    """Every revision of a profile; the current one is marked."""
    columns = (
        Column("revision"),
        Column("", is_number=False),
        Column("created", is_number=False),
        Column("stages"),
        Column("from", is_number=False),
    )
    rows = (
        (
            str(item["revision"]),
            "current" if item["is_current"] else "",
            item["created_at"][:19].replace("T", " "),
            _how_many(item),
            _provenance(item),
        )
        for item in document["revisions"]
    )
    return Grid(columns, tuple(rows))


def _how_many(document: Document) -> str:
    pipeline = document["pipeline"]
    return str(len(pipeline["stages"])) if pipeline else "aggregate"


def _provenance(document: Document) -> str:
    provenance = document["provenance"]
    detail = printable(provenance["detail"])
    return f"{provenance['origin']}: {detail}" if detail else str(provenance["origin"])


# --- small things ---------------------------------------------------------------------------------


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return printable(", ".join(map(str, value)))
    return printable(str(value))


def _count(number: int, noun: str) -> str:
    return f"{format_count(number)} {noun}{'' if number == 1 else 's'}"
