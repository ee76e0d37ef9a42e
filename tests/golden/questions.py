"""The questions whose answers are golden files, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from domain.solution import Strategy
from exports.target import Takes
from exports.targets import TARGETS
from tests.app.serving import MYRINET

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "data" / "traces"
EXAMPLES = ROOT / "examples"
CSV_HEADER = "message_bytes,repetition,latency_us,interarrival_us\n"


class Form(StrEnum):
    """How an answer is kept."""

    JSON = "json"
    TEXT = "txt"
    PAGE = "page.txt"  # a page's text, without its markup
    DIGEST = "sha256"  # binary: length and digest


@dataclass(frozen=True, slots=True)
class Http:
    """A request. `<name>` in the path, the body or the form is what the answer `name` is kept as.

    That is its id, or a table's digest. With `job` the answer is that of the ended job. One that is
    not `kept` only prepares others.
    """

    name: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    text: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    form: Form = Form.JSON
    job: bool = False
    htmx: bool = False
    kept: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the command line; `<folder>` is one of the run's own, `<name>` as above."""

    name: str
    words: tuple[str, ...]
    writes: str | None = None
    form: Form = Form.TEXT
    environment: Mapping[str, str] = field(default_factory=dict)


# --- models ---------------------------------------------------------------------------------------

RANGED: dict[str, Any] = {
    "stages": [
        {
            "name": "bus",
            "ranges": [
                {"up_to_bytes": 2048, "overhead_us": 1.0, "ns_per_byte": 9.0},
                {"up_to_bytes": None, "overhead_us": 12.0, "ns_per_byte": 3.0},
            ],
        },
        {"name": "wire <&> µ", "overhead_us": 4.0, "ns_per_byte": 6.5},
        {"name": "disk", "overhead_us": 2.5, "ns_per_byte": 5.0},
    ],
    "delay_us": 3.5,
}
TWO: dict[str, Any] = {
    "stages": [
        {"name": "first", "overhead_us": 1.0, "ns_per_byte": 10.0},
        {"name": "second", "overhead_us": 2.0, "ns_per_byte": 30.0},
    ],
    "delay_us": 5.0,
}
THREE: dict[str, Any] = {"stages": MYRINET["stages"][:3]}
AGGREGATE: dict[str, Any] = {
    "total": {"name": "all", "overhead_us": 20.0, "ns_per_byte": 60.0},
    "bottleneck": {"name": "slowest", "overhead_us": 7.0, "ns_per_byte": 24.0},
}
LIMITS = {
    "min_fragment_bytes": 128,
    "max_fragment_bytes": 2048,
    "alignment_bytes": 64,
    "max_fragments": 12,
}


def trace(name: str) -> str:
    """A trace file's text."""
    return (TRACES / name).read_text()


def example(name: str) -> str:
    """An example file's text."""
    return (EXAMPLES / name).read_text()


def measured_csv(*sizes: int) -> str:
    """Times of two stages: 30 µs + 10 ns per byte, then 1 µs + 20 ns per byte."""
    return CSV_HEADER + "".join(
        f"{size},{n},{50 + 0.05 * size},{max(30 + 0.01 * size, 1 + 0.02 * size)}\n"
        for size in sizes
        for n in range(3)
    )


# --- the service ----------------------------------------------------------------------------------


def _post(name: str, path: str, body: Mapping[str, Any], **more: Any) -> Http:
    return Http(name, "POST", path, body, **more)


def _optimize(name: str, message_bytes: int, **asked: Any) -> Http:
    body = {"message_bytes": message_bytes, "time_limit_s": 600, **asked}
    if not {"profile", "aggregate", "pipeline", "measurements"} & body.keys():
        body["pipeline"] = MYRINET
    return _post(f"optimize/{name}", "/optimize", body)


def _profiles() -> list[Http]:
    return [
        _post("profiles/line", "/profiles", {"name": "line", "pipeline": MYRINET}),
        _post(
            "profiles/ranged",
            "/profiles",
            {"name": "ranged", "pipeline": RANGED, "detail": "made by hand: a < b"},
        ),
        _post("profiles/sums", "/profiles", {"name": "sums", "aggregate": AGGREGATE}),
        Http("profiles/ranged-2", "PUT", "/profiles/ranged", {"pipeline": TWO, "detail": "two"}),
        _post("profiles/ranged-back", "/profiles/ranged/current", {"revision": 1}),
        Http("profiles/revisions", "GET", "/profiles/ranged/revisions"),
        Http("profiles/list", "GET", "/profiles"),
        _post("profiles/taken", "/profiles", {"name": "line", "pipeline": TWO}),
        Http("profiles/none", "GET", "/profiles/none-such"),
        Http("profiles/schedule", "GET", "/profiles/line/schedule?bytes=4096"),
    ]


def _optimizations() -> list[Http]:
    by_strategy = [
        _optimize(str(strategy), 4096, strategy=strategy, static_bytes=1024, pipeline=MYRINET)
        if strategy is Strategy.STATIC
        else _optimize(str(strategy), 4096, strategy=strategy, allow_refragmentation=True)
        if strategy.startswith("hierarchical")
        else _optimize(str(strategy), 4096, strategy=strategy)
        for strategy in Strategy
        if strategy not in (Strategy.RAMP, Strategy.RAMP_UP_DOWN)
    ]
    return [
        *by_strategy,
        _optimize("ramp", 4096, strategy="ramp", pipeline=TWO),
        _optimize("ramp_up_down", 4096, strategy="ramp_up_down", pipeline=THREE),
        _optimize("limits", 10_000, constraints=LIMITS),
        _optimize("large", 65_536),
        _optimize("ranges", 20_000, pipeline=RANGED),
        _optimize("ranges-limits", 8000, pipeline=RANGED, constraints=LIMITS),
        _optimize("aggregate", 4096, aggregate=AGGREGATE),
        _optimize("aggregate-limits", 8192, aggregate=AGGREGATE, constraints=LIMITS),
        _optimize("nested", 6000, allow_refragmentation=True, pipeline=TWO),
        _optimize("profile", 3000, profile="ranged@2"),
        _optimize("loose", 5000, relative_gap=0.05),
        _optimize("one-byte", 1),
        _optimize(
            "measured",
            32_768,
            measurements={"content": example("local-path-direct.csv")},
            save_as="from-a-trace",
        ),
        _optimize("infeasible", 9000, constraints={"max_fragment_bytes": 10, "max_fragments": 3}),
        _optimize("mistaken", 0, pipeline=MYRINET, strategy="quickest", surprise=1),
        Http("optimize/stored", "GET", "/optimizations/<optimize/auto>"),
        Http("optimize/list", "GET", "/optimizations?message_bytes=4096&limit=5"),
        Http("optimize/none", "GET", f"/optimizations/{'0' * 32}"),
        Http(
            "optimize/schedule-svg",
            "GET",
            "/ui/answers/<optimize/auto>/schedule.svg",
            form=Form.PAGE,
        ),
        Http(
            "optimize/schedule-csv",
            "GET",
            "/ui/answers/<optimize/auto>/schedule.csv",
            form=Form.TEXT,
        ),
        Http("optimize/schedule-json", "GET", "/ui/answers/<optimize/auto>/schedule.json"),
        *(
            Http(f"explain/{name}", "GET", f"/optimizations/<optimize/{name}>/explanation{query}")
            for name, query in (
                ("auto", ""),
                ("ranges", "?cheaper_by=0.2"),
                ("aggregate", ""),
                ("nested", ""),
                ("hierarchical", ""),
            )
        ),
    ]


def _others() -> list[Http]:
    sizes, wanted = (64, 128, 8192, 524288, 1048576), (2900, 4096)
    around = {"least_bytes": 64, "greatest_bytes": 1048576}
    first = {"content": measured_csv(*sizes)}
    return [
        _post("simulate/cut", "/simulate", {"pipeline": TWO, "fragment_bytes": [100, 200, 50]}),
        _post("simulate/ranges", "/simulate", {"profile": "ranged", "fragment_bytes": [1024] * 4}),
        _post(
            "simulate/levels",
            "/simulate",
            {"pipeline": TWO, "levels": [[100, 200], [50, 50, 100, 100]]},
        ),
        _post("simulate/mistaken", "/simulate", {"pipeline": TWO, "fragment_bytes": [0]}),
        _post(
            "compare/all",
            "/compare",
            {
                "pipeline": TWO,
                "message_bytes": [512, 2048],
                "strategies": [*Strategy],
                "time_limit_s": 600,
                "static_bytes": 1024,
                "allow_refragmentation": True,
            },
        ),
        _post(
            "compare/aggregate",
            "/compare",
            {
                "aggregate": AGGREGATE,
                "message_bytes": [4096],
                "strategies": ["auto", "fixed", "single", "ramp"],
                "constraints": LIMITS,
            },
        ),
        _post("plan/first", "/measurement-plans", around),
        _post("plan/next", "/measurement-plans", {**around, "measurements": first}),
        _post(
            "plan/decided",
            "/measurement-plans",
            {**around, "measurements": [first, {"content": measured_csv(*wanted)}]},
        ),
        _post("plan/mistaken", "/measurement-plans", {**around, "tolerance": 2}),
        Http("service/limits", "GET", "/limits"),
        Http("service/exports", "GET", "/exports"),
    ]


def _fits() -> list[Http]:
    direct = example("local-path-direct.csv")
    of_one = (
        ("direct", direct, "?save_as=measured"),
        ("direct-line", direct, "?method=ordinary&shape=line"),
        ("direct-weighted", direct, "?method=weighted&max_ranges=2"),
        ("direct-narrowed", direct, "?shape=narrowed&message_bytes=65536"),
        ("direct-group", direct, "?group=both:sequence:copy_in,crc32"),
        ("imb-pingpong", trace("imb-pingpong.txt"), ""),
        ("osu-latency", trace("osu-latency-v7-validated.txt"), ""),
        ("ucx-batch", trace("ucx-batch-files.csv"), ""),
        ("perftest-write-lat", trace("perftest-write-lat.txt"), ""),
        ("netgauge", trace("netgauge-loggp.out"), ""),
        ("simgrid", trace("simgrid-pingpong.csv"), "?plot=true"),
        ("message", measured_csv(64, 128, 1024, 8192, 65536), ""),
        ("logp", logp_csv(), "?plot=true"),
        ("junk", "bytes,copy_us\n64,1.5\n64,x\n128,2\n0,1\n", ""),
        ("unknown", "what is this?\n", ""),
    )
    several = {
        "measurements": [
            {"content": example("osu-latency.txt")},
            {"content": example("osu-bw.txt")},
        ]
    }
    return [
        *(Http(f"fit/{name}", "POST", f"/fit{query}", text=text) for name, text, query in of_one),
        _post("fit/several", "/fit?save_as=osu", several),
        *(
            Http(f"sent/{name}", "POST", "/ui/fits", text=text, form=Form.PAGE, kept=False)
            for name, text in (
                ("logp", logp_csv()),
                ("message", measured_csv(64, 128, 1024, 8192, 65536)),
            )
        ),
        Http("fit/stored", "GET", "/fits/<fit/direct>"),
        Http("fit/plot", "GET", "/fits/<fit/several>/plot"),
        Http("fit/plot-svg", "GET", "/ui/fits/<fit/several>/plot.svg", form=Form.PAGE),
    ]


def logp_csv() -> str:
    """Signatures of a machine that obeys LogP, without noise, and its round trips."""
    from tests.support.logp_machine import Machine

    machine = Machine(2.9, 3.3, 5.8, 4.6)
    rows = [
        f"16,{burst},{computation},{machine.burst_us(burst, computation) / burst:.4f}\n"
        for burst in (1, 2, 4, 8, 16, 32, 64)
        for computation in (0.0, 5.0, 10.0, 20.0)
    ]
    trips = [f"16,{n},{machine.round_trip_us}\n" for n in range(3)]
    return (
        "message_bytes,burst,computation_us,cost_us\n"
        + "".join(rows)
        + "\nmessage_bytes,repetition,round_trip_us\n"
        + "".join(trips)
    )


def _audits() -> list[Http]:
    around = {"least_bytes": 1024, "greatest_bytes": 4096, "time_limit_s": 60}
    steps = [{"from_bytes": 1, "size_bytes": None}, {"from_bytes": 2048, "size_bytes": 1024}]
    settings = "# ours\nUCX_RNDV_FRAG_SIZE=host:2048\n"
    return [
        _post(
            "audit/static",
            "/audit",
            {"pipeline": TWO, "setting": {"static_bytes": 2048}, "max_regret": 0.05, **around},
        ),
        _post(
            "audit/steps",
            "/audit",
            {
                "pipeline": TWO,
                "setting": {"steps": steps},
                "objective": "worst",
                "time_limit_s": 60,
                "mix": [{"message_bytes": 1024, "weight": 3}, {"message_bytes": 4096}],
            },
        ),
        _post(
            "audit/configuration",
            "/audit",
            {
                "profile": "ranged@2",
                "setting": {"configuration": {"target": "ucx", "content": settings}},
                "over": "bound",
                **around,
            },
        ),
        _post("audit/mistaken", "/audit", {"pipeline": MYRINET, "setting": {"whole": False}}),
    ]


def _tables() -> list[Http]:
    small = {"least_bytes": 100, "greatest_bytes": 8192, "relative_gap": 0.02}
    sizes = {"min_fragment_bytes": 64, "alignment_bytes": 64}
    return [
        _post("table/line", "/profiles/line/tables", small),
        _post("table/ranged", "/profiles/ranged@2/tables", {**small, "constraints": sizes}),
        *(
            Http(
                f"table/{name}-file", "GET", f"/tables/<table/{name}>?format=slt", form=Form.DIGEST
            )
            for name in ("line", "ranged")
        ),
        Http("table/ranged-twin", "GET", "/tables/<table/ranged>?format=json"),
        Http("table/list", "GET", "/profiles/ranged/tables"),
        Http("table/active", "GET", "/profiles/line/table"),
        Http("table/schedule", "GET", "/profiles/ranged@2/schedule?bytes=5000"),
        _post("table/mistaken", "/profiles/line/tables", {"least_bytes": 9, "greatest_bytes": 8}),
    ]


def _export_path(name: str) -> str:
    takes = {target.name: target.takes for target in TARGETS}[name]
    ladder = takes in (Takes.ONE_SIZE, Takes.LADDER)
    query = "?least_bytes=2048&greatest_bytes=4096" if ladder else ""
    return f"/profiles/ranged@2/exports/{name}{query}"


def _exports() -> list[Http]:
    return [
        *(
            Http(f"export/{target.name}", "GET", _export_path(target.name), form=Form.TEXT)
            for target in TARGETS
        ),
        Http(
            "export/no-stages",
            "GET",
            "/profiles/sums/exports/simgrid",
            form=Form.JSON,
        ),
    ]


def _jobs() -> list[Http]:
    return [
        _post("job/optimize", "/optimize", {"message_bytes": 9999, "pipeline": MYRINET}, job=True),
        _post(
            "job/compare",
            "/compare",
            {"pipeline": TWO, "message_bytes": [500, 900], "strategies": ["auto", "single"]},
            job=True,
        ),
        _post(
            "job/audit",
            "/audit",
            {
                "profile": "ranged@2",
                "setting": {"whole": True},
                "least_bytes": 1024,
                "greatest_bytes": 4096,
                "time_limit_s": 60,
            },
            job=True,
        ),
        _post(
            "job/table",
            "/profiles/ranged@2/tables",
            {"least_bytes": 100, "greatest_bytes": 4000, "relative_gap": 0.05},
            job=True,
        ),
        Http(
            "job/export",
            "GET",
            "/profiles/ranged@2/exports/mpich?least_bytes=4096&greatest_bytes=4096",
            job=True,
        ),
        _post(
            "job/failed",
            "/optimize",
            {
                "message_bytes": 9000,
                "pipeline": TWO,
                "constraints": {"max_fragment_bytes": 10, "max_fragments": 3},
            },
            job=True,
        ),
        Http("job/none", "GET", f"/jobs/{'0' * 32}"),
    ]


# --- pages ----------------------------------------------------------------------------------------


def _page(name: str, path: str, method: str = "GET", **more: Any) -> Http:
    return Http(f"page/{name}", method, path, form=Form.PAGE, **more)


def _pages() -> list[Http]:
    answer = "/ui/answers/<optimize/auto>"
    return [
        _page("workbench", "/"),
        _page("workbench-example", "/?example=myrinet-gam&bytes=64+KiB"),
        _page("workbench-trace", "/?example=local-path-direct"),
        _page("workbench-profile", "/?profile=ranged"),
        _page("workbench-names", "/ui/parts/profiles", htmx=True),
        _page(
            "workbench-mistaken",
            "/ui/optimize",
            "POST",
            fields=(
                ("source", "stages"),
                ("name", "a"),
                ("overhead", "-1"),
                ("cost", "x"),
                ("message", "4 QiB"),
            ),
        ),
        _page("docs", "/docs"),
        *(
            _page(f"answer-{name}", f"/ui/answers/<optimize/{name}>")
            for name in ("auto", "ranges", "aggregate", "nested", "measured", "limits")
        ),
        *(
            _page(f"answer-{part}", f"{answer}/parts/{part}", htmx=True)
            for part in ("timeline", "cut", "why", "counts", "sizes", "rivals")
        ),
        _page("answer-why-aggregate", "/ui/answers/<optimize/aggregate>/parts/why", htmx=True),
        _page("answer-report", f"{answer}/report.html"),
        _page("answer-none", f"/ui/answers/{'0' * 32}"),
        _page("answers", "/ui/answers"),
        _page("answers-found", "/ui/answers?strategy=fixed"),
        _page("compare", "/ui/compare?id=<optimize/auto>&id=<optimize/single>"),
        _page("compare-all", "/ui/compare?id=<optimize/auto>&id=<optimize/ranges>&all=1"),
        _page("compare-timeline", "/ui/compare/timeline?id=<optimize/auto>&id=<optimize/fixed>"),
        _page("audit", "/ui/audit"),
        _page("audit-form", "/ui/audit?profile=line&setting=8KiB"),
        _page("audit-mistaken", "/ui/audit?profile=line&setting=many&max_regret=x"),
        _page("audit-kept", "/ui/audits/<job/audit>"),
        _page("profiles", "/ui/profiles"),
        _page("profile-line", "/ui/profiles/line"),
        _page("profile-ranged", "/ui/profiles/ranged"),
        _page("profile-sums", "/ui/profiles/sums"),
        _page("profile-paper", "/ui/profiles/myrinet-gam"),
        _page("profile-measured", "/ui/profiles/measured"),
        _page("profile-none", "/ui/profiles/none-such"),
        _page("profile-table", "/ui/profiles/line/tables/<table/line>"),
        _page(
            "profile-table-mistaken",
            "/ui/profiles/line/tables",
            "POST",
            fields=(("greatest", "none"), ("relative_gap", "200")),
        ),
        _page("profile-export", "/ui/profiles/line/exports/ucx"),
        _page("profile-export-costs", "/ui/profiles/line/exports/simgrid"),
        _page("profile-export-mistaken", "/ui/profiles/line/exports/ucx?least_bytes=x"),
        *(_page(f"fit-{name}", f"/ui/fits/<sent/{name}>") for name in ("logp", "message")),
        *(_page(f"fit-{name}", f"/ui/fits/<fit/{name}>") for name in ("direct", "several")),
        _page("fit-charts", "/ui/fits/<fit/several>/parts/charts", htmx=True),
        _page(
            "fit-mistaken", "/ui/fits/<fit/direct>/again", "POST", fields=(("max_ranges", "17"),)
        ),
        *(
            _page(f"job-{name}", f"/ui/jobs/<job/{name}>")
            for name in ("optimize", "compare", "table", "export")
        ),
        _page("none", "/ui/no-such-view"),
    ]


HTTP: tuple[Http, ...] = (
    *_profiles(),
    *_fits(),
    *_optimizations(),
    *_others(),
    *_audits(),
    *_tables(),
    *_exports(),
    *_jobs(),
    *_pages(),
)


# --- the command line -----------------------------------------------------------------------------


def _command(name: str, *words: str, **more: Any) -> Command:
    return Command(f"cli/{name}", words, **more)


def _commands() -> list[Command]:
    myrinet, direct = "examples/myrinet-gam.json", "examples/local-path-direct.csv"
    patient = ("--time-limit", "60")
    two, some = "<folder>/two.json", ("--least", "1KiB", "--greatest", "4KiB")
    return [
        _command("optimize", "optimize", myrinet),
        _command("optimize-wide", "optimize", myrinet, environment={"COLUMNS": "120"}),
        _command("optimize-json", "optimize", myrinet, "--json", form=Form.JSON),
        _command("optimize-fixed", "optimize", myrinet, "--bytes", "64KiB", "--strategy", "fixed"),
        _command("optimize-aggregate", "optimize", "<folder>/aggregate.json", "--bytes", "4KiB"),
        _command("optimize-ranged", "optimize", "<folder>/ranged.json", "--bytes", "20000"),
        _command(
            "optimize-nested",
            *("optimize", two, "--bytes", "6000", "--allow-refragmentation", *patient),
        ),
        _command(
            "optimize-limits",
            *("optimize", myrinet, "--max-fragment-bytes", "1KiB", "--alignment-bytes", "64"),
        ),
        _command("optimize-measured", "optimize", direct, "--bytes", "32KiB"),
        _command("optimize-infeasible", "optimize", myrinet, "--max-fragment-bytes", "0"),
        _command("optimize-none", "optimize", "none-such", "--bytes", "4KiB"),
        _command(
            "optimize-timeline",
            *("optimize", myrinet, "--timeline", "<folder>/timeline.svg"),
            writes="timeline.svg",
            form=Form.PAGE,
        ),
        _command("compare", "compare", myrinet, "--bytes", "1KiB", "4KiB", *patient),
        _command("compare-measured", "compare", direct, "--bytes", "64KiB", *patient),
        _command("fit", "fit", direct, "--save-as", "local-path"),
        _command("fit-several", "fit", "examples/osu-latency.txt", "examples/osu-bw.txt"),
        _command("fit-logp", "fit", "<folder>/logp.csv"),
        _command("fit-json", "fit", direct, "--json", "--shape", "line", form=Form.JSON),
        _command("fit-unknown", "fit", "examples/README.md"),
        _command("table", "table", myrinet, *("--greatest", "4KiB", "--gap", "5%")),
        _command(
            "table-file",
            *("table", two, "--to", "9KiB", "--gap", "2%"),
            *("--output", "<folder>/two.slt"),
            writes="two.slt",
            form=Form.DIGEST,
        ),
        _command(
            "table-profile", "table", "local-path", "--to", "8KiB", "--gap", "5%", "--activate"
        ),
        _command("export", "export", two, "--target", "ucx", *some),
        _command("export-costs", "export", two, "--target", "simgrid"),
        _command("export-list", "export", "--list"),
        _command("audit", "audit", two, "--setting", "2KiB", *patient, *some),
        _command(
            "audit-steps",
            *(
                "audit",
                two,
                "--setting",
                "1:whole,2KiB:1KiB",
                "--max-regret",
                "2%",
                *patient,
                *some,
            ),
        ),
        _command("profiles-list", "profiles", "list"),
        _command("profiles-show", "profiles", "show", "local-path"),
        _command("profiles-save", "profiles", "save", "mine", "<folder>/ranged.json"),
        _command("profiles-revisions", "profiles", "revisions", "mine"),
        _command("profiles-tables", "profiles", "tables", "local-path"),
        _command("profiles-json", "profiles", "show", "mine", "--json", form=Form.JSON),
        _command("profiles-delete", "profiles", "delete", "mine"),
        _command("mistaken", "optimize", myrinet, "--strategy", "quickest"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
FILES: dict[str, Any] = {
    "aggregate.json": {"aggregate": AGGREGATE},
    "ranged.json": RANGED,
    "two.json": TWO,
}
QUESTIONS: tuple[Http | Command, ...] = (*(one for one in HTTP if one.kept), *COMMANDS)
