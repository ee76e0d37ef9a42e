"""A schedule as a program in C11: the sizes themselves, or a look-up in a compiled table.

Equal neighbours are one run, so that long cuts stay short. Nothing that somebody named stands in
the code, but for the profile, whose name holds neither quotes nor backslashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.schemas.base import ProfileRevisionOut
    from app.schemas.optimize import OptimizeOut

MOST_RUNS = 4096  # of equal neighbours in a program that is pasted

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
    """A program that prints offset and size of every fragment; a stage after the other where
    they cut differently.
    """
    levels = _distinct(answer)
    names = ["runs"] if len(levels) == 1 else [f"stage_{n}_runs" for n in range(1, len(levels) + 1)]
    arrays = "\n".join(_array(name, cut) for name, cut in zip(names, levels, strict=True))
    calls = "\n".join(
        f"    send_in_fragments({name}, sizeof {name} / sizeof *{name});" for name in names
    )
    return _SCHEDULE.format(about=_about(answer), arrays=arrays, calls=calls)


def is_too_long(answer: OptimizeOut) -> bool:
    """Whether the sizes are too many to be pasted."""
    return sum(1 for cut in _distinct(answer) for _ in groupby(cut)) > MOST_RUNS


def _distinct(answer: OptimizeOut) -> Sequence[Sequence[int]]:
    """The cut of each stage, or the one that all share."""
    levels: Sequence[Sequence[int]] = answer.levels or (answer.fragment_bytes,)
    return levels[:1] if all(cut == levels[0] for cut in levels) else levels


def c_of_table(profile: ProfileRevisionOut, message_bytes: int, base_url: str) -> str:
    """A program that looks a message up in the table of its profile, as a file beside it."""
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
    """Without what would end the comment."""
    return text.replace("*/", "* /").replace("\\", "/")
