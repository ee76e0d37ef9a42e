"""Questions about hiding a message behind a calculation."""

from __future__ import annotations

from typing import Any

from tests.app.serving import MYRINET
from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.models import LIMITS, TWO, example

_COPIES = {"sender": ["sender copy"], "receiver": [3]}
_FORM = "/ui/hiding?profile=myrinet-gam&message=4+KiB&calculation=120"


def _hide(name: str, **asked: Any) -> Http:
    body = {"message_bytes": 4096, "calculation_us": 120.0, "time_limit_s": 600, **asked}
    if not {"profile", "measurements"} & body.keys():
        body["pipeline"] = MYRINET
    return post(f"hide/{name}", "/hide", body)


HTTP: tuple[Http, ...] = (
    _hide("copies", host_stages=_COPIES, exchange="both_ways", min_gain=1.2),
    _hide("one-way", host_stages=_COPIES, hiding_overhead_us=500.0),
    _hide("streamed", calculation_us=100.0, hideable_fraction=0.25, streamed=True),
    _hide("train", messages=4, messages_are="train", calculation_us=50.0, host_stages=_COPIES),
    _hide("in-turn", messages=4, calculation_us=0.0),
    _hide("limits", constraints=LIMITS, host_stages=_COPIES),
    _hide("profile", profile="ranged@2", processes={"max_processes": 8, "communication": "sqrt"}),
    _hide("measured", measurements={"content": example("local-path-direct.csv")}),
    post(
        "hide/instructions",
        "/hide",
        {
            "pipeline": TWO,
            "message_bytes": 900,
            "instructions": 240.0,
            "instructions_per_us": 2.0,
            "processes": {"max_processes": 6, "communication": "exponent", "exponent": 0.25},
        },
    ),
    post(
        "hide/granularity",
        "/hide",
        {
            "granularity": {"software": 5.0, "hardware": 4.0, "overhead": 0.2},
            "hideable_fraction": 0.9,
            "min_gain": 1.5,
            "processes": {"max_processes": 5, "at": 2, "communication": "linear"},
        },
    ),
    _hide("mistaken", calculation_us=-1, messages=0, exchange="sideways", surprise=1),
    _hide("no-such-stage", host_stages={"sender": ["nowhere"]}),
    _hide("infeasible", constraints={"max_fragment_bytes": 10, "max_fragments": 3}),
    Http("hide/stored", "GET", "/hide/<hide/copies>"),
    Http("hide/none", "GET", f"/hide/{'0' * 32}"),
    post(
        "hide/job",
        "/hide",
        {"pipeline": TWO, "message_bytes": 5000, "calculation_us": 80.0},
        job=True,
    ),
    page("hide", "/ui/hiding"),
    page("hide-asked", f"{_FORM}&sender=0&receiver=receiver+copy&both_ways=1&min_gain=1.2"),
    page(
        "hide-streamed",
        f"{_FORM}&hideable=25+%25&streamed=1&processes=20&communication=sqrt",
    ),
    page("hide-mistaken", f"{_FORM}&hideable=300&processes=few&sender=9&min_gain=x"),
    page(
        "hide-refused", "/ui/hiding?profile=myrinet-gam&message=4+KiB&calculation=1&sender=nobody"
    ),
    page("hide-none", "/ui/hiding?profile=none-such&message=64&calculation=1"),
    page("hide-job", "/ui/jobs/<hide/job>"),
)


def _commands() -> list[Command]:
    myrinet, calculation = "examples/myrinet-gam.json", ("--calculation", "120")
    copies = ("--sender-stage", "0", "--receiver-stage", "receiver copy", "--both-ways")
    terms = ("--software", "5", "--hardware", "5", "--overhead", "0.2")
    return [
        command("hide", "model", "hide", myrinet, *calculation),
        command(
            "hide-copies", "model", "hide", myrinet, *calculation, *copies, "--min-gain", "1.2"
        ),
        command(
            "hide-wide",
            "model",
            "hide",
            myrinet,
            *calculation,
            *copies,
            environment={"COLUMNS": "120"},
        ),
        command(
            "hide-json", "model", "hide", myrinet, *calculation, *copies, "--json", form=Form.JSON
        ),
        command(
            "hide-streamed",
            *(
                "model",
                "hide",
                "myrinet-gam",
                "--bytes",
                "2KiB",
                "--calculation",
                "30",
                "--streamed",
            ),
            *("--hideable-fraction", "25%", "--hiding-overhead", "2"),
        ),
        command(
            "hide-train",
            *("model", "hide", myrinet, "--messages", "4", "--train", "--instructions", "100"),
            *("--instructions-per-us", "2", "--max-fragment-bytes", "2KiB"),
        ),
        command(
            "hide-measured",
            "model",
            "hide",
            "examples/local-path-direct.csv",
            "--bytes",
            "64KiB",
            *calculation,
        ),
        command(
            "hide-processes",
            *(
                "model",
                "hide",
                myrinet,
                *calculation,
                "--processes",
                "64",
                "--communication",
                "sqrt",
            ),
        ),
        command(
            "hide-granularity", "model", "hide", *terms, "--min-gain", "1.5", "--processes", "9"
        ),
        command(
            "hide-plot",
            *("model", "hide", myrinet, *calculation, *copies, "--plot", "<folder>/hide.svg"),
            writes="hide.svg",
            form=Form.PAGE,
        ),
        command(
            "hide-plot-gain",
            *("model", "hide", *terms, "--min-gain", "1.5", "--plot", "<folder>/gain.svg"),
            writes="gain.svg",
            form=Form.PAGE,
        ),
        command(
            "hide-plotted", "model", "hide", *terms, "--plot", "terms.svg", "--picture", "gain"
        ),
        command(
            "hide-infeasible", "model", "hide", myrinet, *calculation, "--max-fragment-bytes", "0"
        ),
        command("hide-no-size", "model", "hide", "myrinet-gam", *calculation),
        command("hide-refused", "model", "hide", myrinet, "--calculation", "-1", "--json"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
