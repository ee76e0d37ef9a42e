"""A question as a program in Python: with its standard library alone, or with clients/python."""

from __future__ import annotations

from collections.abc import Iterator
from pprint import pformat
from typing import Any

Question = dict[str, Any]


_WIDTH = 96


def plain_python_of(question: Question, base_url: str) -> str:
    """The same as `python_of` for any Python 3, with nothing to install."""
    lines = [
        "# Python 3; its standard library is enough.",
        "import json",
        "from urllib.request import Request, urlopen",
        "",
        f"question = {pformat(question, width=_WIDTH, sort_dicts=False)}",
        'headers = {"Content-Type": "application/json"}',
        f"request = Request({base_url + '/optimize'!r}, json.dumps(question).encode(), headers)",
        "with urlopen(request) as response:",
        "    answer = json.load(response)",
        'print(answer["fragment_bytes"])',
        'print(answer["latency_us"])',
    ]
    return "\n".join(lines) + "\n"


def python_of(question: Question, base_url: str) -> str:
    """A program that asks an OptimizeIn of `app.web.questions` and prints sizes and latency."""
    names = sorted(_imports(question))
    lines = [
        "# In a checkout of the project, once: pip install ./clients/python",
        f"from sluice_client import {', '.join(names)}",
        "",
        *_source(question),
        f"with Client({base_url!r}) as client:",
        "    answer = client.optimize(",
        f"        {question['message_bytes']},",
        *(f"        {given}," for given in _given(question)),
        "    )",
        "print(answer.fragment_bytes)",
        "print(answer.latency_us)",
    ]
    return "\n".join(lines) + "\n"


def _imports(question: Question) -> Iterator[str]:
    yield "Client"
    if "constraints" in question:
        yield "Constraints"
    stages = []
    if "pipeline" in question:
        yield "Pipeline"
        stages = question["pipeline"]["stages"]
    if "aggregate" in question:
        yield "Aggregate"
        stages = [question["aggregate"]["total"], question["aggregate"]["bottleneck"]]
    if stages:
        yield "Stage"
    if any("ranges" in stage for stage in stages):
        yield "FitRange"


def _source(question: Question) -> Iterator[str]:
    if "pipeline" in question:
        yield "pipeline = Pipeline("
        yield "    ("
        for stage in question["pipeline"]["stages"]:
            yield f"        {_stage(stage)},"
        yield "    ),"
        yield f"    delay_us={question['pipeline']['delay_us']!r},"
        yield ")"
    if "aggregate" in question:
        about = question["aggregate"]
        yield "aggregate = Aggregate("
        yield f"    total={_stage(about['total'])},"
        yield f"    bottleneck={_stage(about['bottleneck'])},"
        yield f"    delay_us={about['delay_us']!r},"
        yield ")"


def _stage(stage: Question) -> str:
    if "ranges" not in stage:
        costs = f"overhead_us={stage['overhead_us']!r}, ns_per_byte={stage['ns_per_byte']!r}"
        return f"Stage.of_line({stage['name']!r}, {costs})"
    ranges = ", ".join(
        f"FitRange({one['overhead_us']!r}, {one['ns_per_byte']!r}, {one['up_to_bytes']!r})"
        for one in stage["ranges"]
    )
    return f"Stage({stage['name']!r}, ({ranges},))"


def _given(question: Question) -> Iterator[str]:
    for name in ("pipeline", "aggregate"):
        if name in question:
            yield f"{name}={name}"
    for name in ("profile", "strategy", "static_bytes"):
        if name in question:
            yield f"{name}={question[name]!r}"
    if "constraints" in question:
        limits = ", ".join(f"{name}={value!r}" for name, value in question["constraints"].items())
        yield f"constraints=Constraints({limits})"
    if "allow_refragmentation" in question:
        yield "allow_refragmentation=True"
