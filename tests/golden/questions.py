"""The questions whose answers are golden files, in the order in which they are asked."""

from __future__ import annotations

from typing import Any

from domain.solution import COMPARED, Strategy
from exports.targets.registry import TARGETS
from exports.targets.target import Takes
from tests.app.serving import MYRINET
from tests.golden.asked import Command, Form, Http, page, post
from tests.golden.commands import COMMANDS
from tests.golden.help import HELP
from tests.golden.mistakes import MISTAKES
from tests.golden.models import (
    AGGREGATE,
    LIMITS,
    RANGED,
    THREE,
    TWO,
    example,
    logp_csv,
    measured_csv,
    trace,
)
from tests.golden.verbs import HTTP_OF_VERBS

# --- the service ----------------------------------------------------------------------------------


def _optimize(name: str, message_bytes: int, **asked: Any) -> Http:
    body = {"message_bytes": message_bytes, "time_limit_s": 600, **asked}
    if not {"profile", "aggregate", "pipeline", "measurements"} & body.keys():
        body["pipeline"] = MYRINET
    return post(f"optimize/{name}", "/optimize", body)


def _profiles() -> list[Http]:
    return [
        post("profiles/line", "/profiles", {"name": "line", "pipeline": MYRINET}),
        post(
            "profiles/ranged",
            "/profiles",
            {"name": "ranged", "pipeline": RANGED, "detail": "made by hand: a < b"},
        ),
        post("profiles/sums", "/profiles", {"name": "sums", "aggregate": AGGREGATE}),
        Http("profiles/ranged-2", "PUT", "/profiles/ranged", {"pipeline": TWO, "detail": "two"}),
        post("profiles/ranged-back", "/profiles/ranged/current", {"revision": 1}),
        Http("profiles/revisions", "GET", "/profiles/ranged/revisions"),
        Http("profiles/list", "GET", "/profiles"),
        post("profiles/taken", "/profiles", {"name": "line", "pipeline": TWO}),
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
        for strategy in COMPARED
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
        post(
            "optimize/transfers",
            "/optimize",
            {
                "message_bytes": 64 << 20,
                "transfers": {"content": example("own-transfers.csv")},
                "uncertainty": {"current": {"repeat": 16 << 10}},
            },
        ),
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
    around = {"min_message_bytes": 64, "max_message_bytes": 1048576}
    first = {"content": measured_csv(*sizes)}
    return [
        post("simulate/cut", "/simulate", {"pipeline": TWO, "fragment_bytes": [100, 200, 50]}),
        post("simulate/ranges", "/simulate", {"profile": "ranged", "fragment_bytes": [1024] * 4}),
        post(
            "simulate/levels",
            "/simulate",
            {"pipeline": TWO, "levels": [[100, 200], [50, 50, 100, 100]]},
        ),
        post("simulate/mistaken", "/simulate", {"pipeline": TWO, "fragment_bytes": [0]}),
        post(
            "compare/all",
            "/compare",
            {
                "pipeline": TWO,
                "message_bytes": [512, 2048],
                "strategies": [*COMPARED],
                "time_limit_s": 600,
                "static_bytes": 1024,
                "allow_refragmentation": True,
            },
        ),
        post(
            "compare/aggregate",
            "/compare",
            {
                "aggregate": AGGREGATE,
                "message_bytes": [4096],
                "strategies": ["auto", "fixed", "single", "ramp"],
                "constraints": LIMITS,
            },
        ),
        post("plan/first", "/measurement-plans", around),
        post("plan/next", "/measurement-plans", {**around, "measurements": first}),
        post(
            "plan/decided",
            "/measurement-plans",
            {**around, "measurements": [first, {"content": measured_csv(*wanted)}]},
        ),
        post("plan/mistaken", "/measurement-plans", {**around, "tolerance": 2}),
        Http("service/limits", "GET", "/limits"),
        Http("service/exports", "GET", "/exports"),
        Http("service/openapi", "GET", "/openapi.json"),
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
        ("message", measured_csv(64, 128, 1024, 8192, 65536, deviation=0.001), ""),
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
        post("fit/several", "/fit?save_as=osu", several),
        *(
            Http(f"sent/{name}", "POST", "/ui/fits", text=text, form=Form.PAGE, kept=False)
            for name, text in (
                ("logp", logp_csv()),
                ("message", measured_csv(64, 128, 1024, 8192, 65536, deviation=0.001)),
            )
        ),
        Http("fit/stored", "GET", "/fits/<fit/direct>"),
        Http("fit/plot", "GET", "/fits/<fit/several>/plot"),
        Http("fit/plot-svg", "GET", "/ui/fits/<fit/several>/plot.svg", form=Form.PAGE),
    ]


def _audits() -> list[Http]:
    around = {"min_message_bytes": 1024, "max_message_bytes": 4096, "time_limit_s": 60}
    steps = [{"from_bytes": 1, "size_bytes": None}, {"from_bytes": 2048, "size_bytes": 1024}]
    settings = "# ours\nUCX_RNDV_FRAG_SIZE=host:2048\n"
    return [
        post(
            "audit/static",
            "/audit",
            {"pipeline": TWO, "setting": {"static_bytes": 2048}, "max_regret": 0.05, **around},
        ),
        post(
            "audit/steps",
            "/audit",
            {
                "pipeline": TWO,
                "setting": {"steps": steps},
                "objective": "worst",
                "time_limit_s": 60,
                "workload": [{"message_bytes": 1024, "weight": 3}, {"message_bytes": 4096}],
            },
        ),
        post(
            "audit/configuration",
            "/audit",
            {
                "profile": "ranged@2",
                "setting": {"configuration": {"target": "ucx", "content": settings}},
                "over": "bound",
                **around,
            },
        ),
        post("audit/mistaken", "/audit", {"pipeline": MYRINET, "setting": {"whole": False}}),
    ]


def _tables() -> list[Http]:
    small = {"min_message_bytes": 100, "max_message_bytes": 8192, "relative_gap": 0.02}
    sizes = {"min_fragment_bytes": 64, "alignment_bytes": 64}
    return [
        post("table/line", "/profiles/line/tables", small),
        post("table/ranged", "/profiles/ranged@2/tables", {**small, "constraints": sizes}),
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
        post(
            "table/mistaken",
            "/profiles/line/tables",
            {"min_message_bytes": 9, "max_message_bytes": 8},
        ),
    ]


def _export_path(name: str) -> str:
    takes = {target.name: target.takes for target in TARGETS}[name]
    size_steps = takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS)
    query = "?min_message_bytes=2048&max_message_bytes=4096" if size_steps else ""
    if takes is Takes.SIZE_STEPS:  # rules of Open MPI force an algorithm, which is to be named
        query += "&option=collective:reduce&option=algorithm:in-order_binary"
    return f"/profiles/ranged@2/exports/{name}{query}"


def _exports() -> list[Http]:
    return [
        *(
            Http(f"export/{target.name}", "GET", _export_path(target.name), form=Form.TEXT)
            for target in TARGETS
        ),
        Http(
            "export/total-and-bottleneck",
            "GET",
            "/profiles/sums/exports/mooncake?min_message_bytes=8192&max_message_bytes=8192",
            form=Form.TEXT,
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
        post("job/optimize", "/optimize", {"message_bytes": 9999, "pipeline": MYRINET}, job=True),
        post(
            "job/compare",
            "/compare",
            {"pipeline": TWO, "message_bytes": [500, 900], "strategies": ["auto", "single"]},
            job=True,
        ),
        post(
            "job/audit",
            "/audit",
            {
                "profile": "ranged@2",
                "setting": {"whole": True},
                "min_message_bytes": 1024,
                "max_message_bytes": 4096,
                "time_limit_s": 60,
            },
            job=True,
        ),
        post(
            "job/table",
            "/profiles/ranged@2/tables",
            {"min_message_bytes": 100, "max_message_bytes": 4000, "relative_gap": 0.05},
            job=True,
        ),
        Http(
            "job/export",
            "GET",
            "/profiles/ranged@2/exports/mpich?min_message_bytes=4096&max_message_bytes=4096",
            job=True,
        ),
        post(
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


def _pages() -> list[Http]:
    answer = "/ui/answers/<optimize/auto>"
    return [
        page("workbench", "/"),
        page("workbench-example", "/?example=myrinet-gam&bytes=64+KiB"),
        page("workbench-trace", "/?example=local-path-direct"),
        page("workbench-profile", "/?profile=ranged"),
        page("workbench-names", "/ui/parts/profiles", htmx=True),
        page(
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
        page("docs", "/docs"),
        *(
            page(f"answer-{name}", f"/ui/answers/<optimize/{name}>")
            for name in ("auto", "ranges", "aggregate", "nested", "measured", "limits")
        ),
        *(
            page(f"answer-{part}", f"{answer}/parts/{part}", htmx=True)
            for part in ("timeline", "cut", "why", "counts", "sizes", "alternatives")
        ),
        page("answer-why-aggregate", "/ui/answers/<optimize/aggregate>/parts/why", htmx=True),
        page("answer-report", f"{answer}/report.html"),
        page("answer-none", f"/ui/answers/{'0' * 32}"),
        page("answers", "/ui/answers"),
        page("answers-found", "/ui/answers?strategy=fixed"),
        page("compare", "/ui/compare?id=<optimize/auto>&id=<optimize/single>"),
        page("compare-all", "/ui/compare?id=<optimize/auto>&id=<optimize/ranges>&all=1"),
        page("compare-timeline", "/ui/compare/timeline?id=<optimize/auto>&id=<optimize/fixed>"),
        page("audit", "/ui/audit"),
        page("audit-form", "/ui/audit?profile=line&setting=8KiB"),
        page("audit-mistaken", "/ui/audit?profile=line&setting=many&max_regret=x"),
        page("audit-kept", "/ui/audits/<job/audit>"),
        page("profiles", "/ui/profiles"),
        page("profile-line", "/ui/profiles/line"),
        page("profile-ranged", "/ui/profiles/ranged"),
        page("profile-sums", "/ui/profiles/sums"),
        page("profile-paper", "/ui/profiles/myrinet-gam"),
        page("profile-measured", "/ui/profiles/measured"),
        page("profile-none", "/ui/profiles/none-such"),
        page("profile-table", "/ui/profiles/line/tables/<table/line>"),
        page(
            "profile-table-mistaken",
            "/ui/profiles/line/tables",
            "POST",
            fields=(("max_message", "none"), ("relative_gap", "200")),
        ),
        page("profile-export", "/ui/profiles/line/exports/ucx"),
        page("profile-export-costs", "/ui/profiles/line/exports/simgrid"),
        page("profile-export-mistaken", "/ui/profiles/line/exports/ucx?min_message_bytes=x"),
        *(page(f"fit-{name}", f"/ui/fits/<sent/{name}>") for name in ("logp", "message")),
        *(page(f"fit-{name}", f"/ui/fits/<fit/{name}>") for name in ("direct", "several")),
        page("fit-charts", "/ui/fits/<fit/several>/parts/charts", htmx=True),
        page("fit-mistaken", "/ui/fits/<fit/direct>/again", "POST", fields=(("max_ranges", "17"),)),
        page("compose", "/ui/compose"),
        page(
            "compose-mistaken",
            "/ui/compose",
            "POST",
            fields=(("name", "a"), ("trace", "size,time\n1,2\n"), ("processor", "cpu0")),
        ),
        *(
            page(f"job-{name}", f"/ui/jobs/<job/{name}>")
            for name in ("optimize", "compare", "table", "export")
        ),
        page("none", "/ui/no-such-view"),
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
    *HTTP_OF_VERBS,
)


QUESTIONS: tuple[Http | Command, ...] = (
    *(question for question in HTTP if question.kept),
    *COMMANDS,
    *MISTAKES,
    *HELP,
)
