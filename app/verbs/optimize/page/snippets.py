"""What can be taken away of an answer: its question as C, Python and shell, and its files.

In C, equal neighbours are one run, so that long cuts stay short. Nothing that somebody named stands
in the code, but for the profile, whose name holds neither quotes nor backslashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from keyword import iskeyword
from pprint import pformat
from shlex import quote
from typing import TYPE_CHECKING, Any

from app.questions.answers import has_active_table
from app.verbs.optimize.page.question import json_lines, question_of
from app.verbs.optimize.page.schedule_csv import leaves_out_times

if TYPE_CHECKING:
    from contract.optimize import OptimizeOut
    from contract.profile import ProfileRevisionOut
    from models.session import Store


MAX_RUNS = 4096  # of equal neighbours in a program that is pasted

_SCHEDULE = """\
/* {about} */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

typedef struct run {{
    uint64_t count; /* fragments, one after the other */
    uint64_t bytes; /* of each */
}} run;

{arrays}

static void send_in_fragments(const run *runs, size_t length)
{{
    uint64_t offset = 0;
    for (size_t i = 0; i < length; i++)
        for (uint64_t k = 0; k < runs[i].count; k++) {{
            /* here: send `bytes` bytes of the message from `offset` on */
            printf("%" PRIu64 " %" PRIu64 "\\n", offset, runs[i].bytes);
            offset += runs[i].bytes;
        }}
}}

int main(void)
{{
{calls}
    return 0;
}}
"""

_TABLE = """\
/* {profile}: every message from its compiled table.

   The table:  curl -fsS {address} -o {file}
   To compile: cc -std=c11 lookup.c $(pkg-config --cflags --libs sluice) -o lookup */
#include <inttypes.h>
#include <stdio.h>

#include "sluice.h"

int main(void)
{{
    static sluice_table table;
    int code = sluice_table_open(&table, "{file}");
    if (code != SLUICE_OK) {{
        fprintf(stderr, "%s\\n", sluice_error_text(code));
        return 1;
    }}
    sluice_cut cut;
    uint64_t size = 0, offset = 0;
    code = sluice_cut_begin(&cut, &table, UINT64_C({message_bytes}));
    if (code != SLUICE_OK) {{
        fprintf(stderr, "%s\\n", sluice_error_text(code));
        return 1;
    }}
    while (sluice_cut_next(&cut, &size) == 1) {{
        /* here: send `size` bytes of the message from `offset` on */
        printf("%" PRIu64 " %" PRIu64 "\\n", offset, size);
        offset += size;
    }}
    sluice_table_close(&table);
    return 0;
}}
"""


def c_of_schedule(answer: OptimizeOut) -> str:
    """Return a program that prints offset and size of every fragment, by stage if these differ."""
    levels = _distinct(answer)
    names = ["runs"] if len(levels) == 1 else [f"stage_{n}_runs" for n in range(1, len(levels) + 1)]
    arrays = "\n".join(_array(name, cut) for name, cut in zip(names, levels, strict=True))
    calls = "\n".join(
        f"    send_in_fragments({name}, sizeof {name} / sizeof *{name});" for name in names
    )
    return _SCHEDULE.format(about=_about(answer), arrays=arrays, calls=calls)


def is_too_long(answer: OptimizeOut) -> bool:
    """Return whether the sizes are too many to be pasted."""
    return sum(1 for cut in _distinct(answer) for _ in groupby(cut)) > MAX_RUNS


def _distinct(answer: OptimizeOut) -> Sequence[Sequence[int]]:
    """Return the cut of each stage, or the one that all share."""
    levels: Sequence[Sequence[int]] = answer.levels or (answer.fragment_bytes,)
    return levels[:1] if all(cut == levels[0] for cut in levels) else levels


def c_of_table(profile: ProfileRevisionOut, message_bytes: int, base_url: str) -> str:
    """Return a program that looks a message up in the table of its profile, as a file beside it."""
    revision = profile.reference
    address = f"{base_url}/profiles/{revision}/table?format=slt"
    return _TABLE.format(
        profile=revision,
        address=_in_comment(quote(address)),
        file=f"{profile.name}.slt",
        message_bytes=message_bytes,
    )


def _about(answer: OptimizeOut) -> str:
    fragments, latency_us = answer.fragments, answer.latency_us
    noun = "fragment" if fragments == 1 else "fragments"
    return f"{answer.message_bytes} bytes in {fragments} {noun}: {latency_us:.6g} us."


def _array(name: str, cut: Sequence[int]) -> str:
    runs = [f"{{{len(list(members))}, {size}}}" for size, members in groupby(cut)]
    lines = [", ".join(runs[first : first + 6]) for first in range(0, len(runs), 6)]
    return f"static const run {name}[] = {{\n    " + ",\n    ".join(lines) + ",\n};"


def _in_comment(text: str) -> str:
    """Return the text without what would end the comment."""
    return text.replace("*/", "* /").replace("\\", "/")


# --- a question as a program in Python ------------------------------------------------------------


Question = dict[str, Any]


_WIDTH = 96


def plain_python_of(question: Question, base_url: str) -> str:
    """Return the same as `python_of` for any Python 3, with nothing to install."""
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
    """Return a program that asks what the panel asks, and prints sizes and latency."""
    names = sorted(_imports(question))
    lines = [
        "# In a checkout of the project, once: pip install './clients/python[client]'",
        f"from sluice_client import {', '.join(names)}",
        "",
        *_source(question),
        f"with Client({base_url!r}) as client:",
        "    answer = client.optimize(",
        f"        message_bytes={question['message_bytes']},",
        *(f"        {given}," for given in _given(question)),
        "    )",
        "print(answer.fragment_bytes)",
        "print(answer.latency_us)",
    ]
    return "\n".join(lines) + "\n"


def _imports(question: Question) -> Iterator[str]:
    yield "Client"
    if "constraints" in question:
        yield "ConstraintsIn"
    part, stages = "Stage", []
    if "pipeline" in question:
        yield "PipelineIn"
        stages = question["pipeline"]["stages"]
    if "aggregate" in question:
        yield "AggregateIn"
        about = question["aggregate"]
        part, stages = "Cost", [about["total"], about["bottleneck"]]
    if any("ranges" in stage for stage in stages):
        yield from (f"Ranges{part}In", "RangeIn")
    if any("ranges" not in stage for stage in stages):
        yield f"Line{part}In"
    if question.get("pipeline", {}).get("windows"):
        yield "WindowIn"


def _source(question: Question) -> Iterator[str]:
    if "pipeline" in question:
        yield "pipeline = PipelineIn("
        yield "    stages=["
        for stage in question["pipeline"]["stages"]:
            yield f"        {_part('Stage', stage)},"
        yield "    ],"
        yield f"    delay_us={question['pipeline']['delay_us']!r},"
        yield from _windows(question["pipeline"].get("windows", ()))
        yield ")"
    if "aggregate" in question:
        about = question["aggregate"]
        yield "aggregate = AggregateIn("
        yield f"    total={_part('Cost', about['total'])},"
        yield f"    bottleneck={_part('Cost', about['bottleneck'])},"
        yield f"    delay_us={about['delay_us']!r},"
        if about["total_is_uncut"]:
            yield "    total_is_uncut=True,"
        yield ")"
    if "fit" in question:
        yield f"fit = {pformat(question['fit'], width=_WIDTH, sort_dicts=False)}"


def _windows(windows: Sequence[Question]) -> Iterator[str]:
    if not windows:
        return
    yield "    windows=["
    for window in windows:
        # A keyword of Python has `_` behind it in the client.
        named = {f"{name}_" if iskeyword(name) else name: value for name, value in window.items()}
        yield f"        WindowIn({_keywords(named)}),"
    yield "    ],"


def _part(kind: str, part: Question) -> str:
    """Return a stage of a pipeline, or a cost of an aggregate, as a class of the client."""
    if "ranges" not in part:
        return f"Line{kind}In({_keywords(part)})"
    ranges = ", ".join(f"RangeIn({_keywords(each)})" for each in part["ranges"])
    others = _keywords({name: value for name, value in part.items() if name != "ranges"})
    return f"Ranges{kind}In({others}, ranges=[{ranges}])"


def _keywords(values: Question) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _given(question: Question) -> Iterator[str]:
    for name in ("pipeline", "aggregate", "fit"):
        if name in question:
            yield f"{name}={name}"
    for name in ("profile", "fit_id", "strategy", "static_bytes"):
        if name in question:
            yield f"{name}={question[name]!r}"
    if "constraints" in question:
        yield f"constraints=ConstraintsIn({_keywords(question['constraints'])})"
    if "allow_refragmentation" in question:
        yield "allow_refragmentation=True"


# --- everything that an answer can be taken away as -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to copy: `key` is its identifier in the page, `about` says what it needs."""

    key: str
    name: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file to download."""

    address: str
    name: str
    about: str


@dataclass(frozen=True, slots=True)
class TakeAway:
    """What templates/take_away.html is given. `picture` is what a PNG is made of, or nothing."""

    files: tuple[AnswerFile, ...]
    snippets: tuple[Snippet, ...]
    picture: str
    png_name: str


def take_away_of(store: Store, answer: OptimizeOut, base_url: str) -> TakeAway:
    """Return the same for an answer of this store."""
    profile = answer.profile
    has_table = profile is not None and has_active_table(
        store, profile.name, profile.revision, answer.message_bytes
    )
    return take_away(answer, base_url, has_table=has_table)


def take_away(answer: OptimizeOut, base_url: str, *, has_table: bool = False) -> TakeAway:
    """Return everything that an answer can be taken away as.

    `base_url` is the service's own address, without a slash at its end. `has_table`: the profile
    has an active compiled table that holds this message.
    """
    place = f"/ui/answers/{answer.id}"
    picture = f"{place}/schedule.svg" if answer.pipeline else ""
    return TakeAway(
        tuple(_files(answer, place)),
        tuple(_snippets(answer, base_url, has_table=has_table)),
        picture,
        f"{file_stem(answer.message_bytes, answer.id)}.png",
    )


def file_stem(message_bytes: int, id: str) -> str:
    """Return how files of an answer are named: safe in a header and on every disk."""
    return f"sluice-{message_bytes}-bytes-{id[-8:]}"


def _files(answer: OptimizeOut, place: str) -> Iterator[AnswerFile]:
    yield AnswerFile(f"{place}/report.html", "Report", "one page that stands alone, to print")
    yield AnswerFile(f"{place}/schedule.csv", "CSV", _format_csv_contents(answer))
    yield AnswerFile(f"{place}/schedule.json", "JSON", "the stored answer, byte for byte")
    if answer.pipeline:
        yield AnswerFile(f"{place}/schedule.svg", "SVG", "the timeline")


def _format_csv_contents(answer: OptimizeOut) -> str:
    if leaves_out_times(answer):
        return "fragments with offsets and sizes; of the many times when each begins and arrives"
    return "fragments with offsets, sizes and times"


def _snippets(answer: OptimizeOut, base_url: str, *, has_table: bool) -> Iterator[Snippet]:
    yield Snippet(
        "curl", "curl", "Asks the service the same question again.", curl_of(answer, base_url)
    )
    question = question_of(answer)
    yield Snippet(
        "python",
        "Python",
        "Any Python 3, with nothing to install.",
        plain_python_of(question, base_url),
    )
    yield Snippet(
        "client",
        "Python with the client",
        "The package sluice-client: pip install './clients/python[client]' in a checkout.",
        python_of(question, base_url),
    )
    if has_table and answer.profile:
        stated = "Looks every message up in the profile's compiled table, with libsluice."
        yield Snippet("c", "C", stated, c_of_table(answer.profile, answer.message_bytes, base_url))
        return
    if is_too_long(answer):
        address = f"{base_url}/optimizations/{answer.id}"
        stated = "So many sizes are a file rather than something to paste; this fetches them."
        yield Snippet("c", "C", stated, f"curl -fsS {quote(address)} -o schedule.json\n")
        return
    yield Snippet("c", "C", "The sizes, for this message; C11.", c_of_schedule(answer))


def curl_of(answer: OptimizeOut, base_url: str) -> str:
    """Return a command for a shell: its output is an OptimizeOut."""
    body = json_lines(question_of(answer))
    return (
        f"curl -sS {quote(base_url + '/optimize')} \\\n"
        "  -H 'content-type: application/json' \\\n"
        f"  --data-binary @- <<'END'\n{body}\nEND\n"
    )
