"""The C header, compiled: its lookups are those of the plan table, to the byte."""

from __future__ import annotations

import random
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import decode, digest_of, encode
from exports.targets.c_header import TARGET
from exports.targets.target import ExportInput
from tests.clients.c_support import require_compiler
from tests.exports.given import given_for
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, PLAIN, a_line_pipeline, a_plan_table

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-pedantic")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
C11 = ("-std=c11", "-Wshadow", "-Wstrict-prototypes", "-x", "c")
CPP17 = ("-std=c++17", "-Wshadow", "-Wold-style-cast", "-x", "c++")
COMPILERS = {
    "gcc C11": ("gcc", *C11, *SANITIZERS),
    "gcc C++17": ("g++", *CPP17, "-O2"),
    "clang C11": ("clang", *C11, "-O2"),
    "clang C++17": ("clang++", *CPP17, *SANITIZERS),
}

# One program for all tables: "number of the table, message" in; the repeated size, the number of
# fragments and the fragments out. The iterator must agree, and a short array must stay untouched.
LOOKUP = """
static int lookup_@(uint64_t message)
{
    static uint64_t sizes[@_MAX_FRAGMENTS + 1];
    struct t@_cut cut;
    uint64_t size = 0;
    size_t fragments, i;
    sizes[0] = 77;
    fragments = t@_schedule(message, sizes, 0);
    if (sizes[0] != 77 || t@_schedule(message, sizes, T@_MAX_FRAGMENTS) != fragments)
        return 0;
    if (t@_begin(&cut, message) != fragments)
        return 0;
    printf("%llu %llu", big(t@_repeat(message)), big(fragments));
    for (i = 0; i < fragments; ++i) {
        if (!t@_next(&cut, &size) || size != sizes[i])
            return 0;
        printf(" %llu", big(size));
    }
    printf("\\n");
    return !t@_next(&cut, &size);
}
""".replace("[@_", "[T@_")
HEAD = """
#include <stdio.h>
{includes}
static unsigned long long big(uint64_t value) {{ return value; }}
"""
MAIN = """
int main(void)
{{
    unsigned table;
    unsigned long long message;
    while (scanf("%u %llu", &table, &message) == 2) {{
        int agreed = 0;
        switch (table) {{
{cases}
        default: break;
        }}
        if (!agreed)
            return 1;
    }}
    return 0;
}}
"""


def _export(
    table: PlanTable, options: dict[str, str] | None = None, *, profile: str = "lab-7"
) -> str:
    return TARGET.render(_given(table, options, profile=profile))


def _given(table: PlanTable, options: dict[str, str] | None, *, profile: str) -> ExportInput:
    file = encode(table, profile=profile, revision=3 if profile else 0)
    given = given_for(TARGET, options, pipeline=table.pipeline, profile=profile)
    return replace(given, table=decode(file), table_digest=digest_of(file), table_bytes=file)


@cache
def _tables() -> tuple[PlanTable, ...]:
    """Golden ones (alignment, limits, none to repeat, eight-byte positions) and random ones."""
    blocks = ((1, 1, 1), (2, 60, 2), (61, 5000, 9), (5001, 5001, 3), (5002, 10**6, 40))
    units = ((128, 900, 1), (901, 70_000, 7), (70_001, 2**24, 60))
    return (
        *(make() for make, _, _ in GOLDEN.values()),
        a_plan_table(blocks, seed=5),
        a_plan_table(units, limits=FragmentLimits(1, None, 16), seed=6),
        a_plan_table(((2**20, 2**31 - 1, 5),), seed=7),
        a_plan_table(((12, 12, 1),), limits=PLAIN, seed=8),
    )


def _messages() -> list[tuple[int, int]]:
    """Number of the table and message: every record's size and its neighbours, and random ones."""
    rng, asked = random.Random(11), []
    for number, table in enumerate(_tables()):
        edges = {cut.message_bytes for cut in table.cuts}
        edges |= {repeat.message_bytes for repeat in table.repeats}
        near = {size + step for size in edges for step in (-1, 0, 1)}
        random_ones = [
            rng.randint(table.min_message_bytes, table.max_message_bytes)
            for _ in range(count(5000))
        ]
        asked += [(number, size) for size in (*sorted(near), *random_ones)]
        asked += [(number, 0), (number, 2**64 - 1)]
    return asked


def _expected(table: PlanTable, message: int) -> str:
    if not table.min_message_bytes <= message <= table.max_message_bytes:
        return "0 0"
    sizes = table.cut_at(message)
    return " ".join(map(str, (table.repeated_size_at(message), len(sizes), *sizes)))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program and the headers of all tables."""
    folder = tmp_path_factory.mktemp("c_header")
    for number, table in enumerate(_tables()):
        (folder / f"t{number}.h").write_text(_export(table, {"prefix": f"t{number}"}))
    numbers = range(len(_tables()))
    program = [HEAD.format(includes="\n".join(f'#include "t{i}.h"' for i in numbers))]
    program += [LOOKUP.replace("@", str(i)) for i in numbers]
    cases = "\n".join(f"case {i}: agreed = lookup_{i}(message); break;" for i in numbers)
    path = folder / "program.c"
    path.write_text("".join([*program, MAIN.format(cases=cases)]))
    return path


@pytest.mark.parametrize("name", COMPILERS)
def test_it_compiles_without_a_warning_and_answers_as_the_plan_table(
    name: str, source: Path
) -> None:
    compiler, *options = COMPILERS[name]
    require_compiler(compiler, tuple(options))
    program = source.parent / name.replace(" ", "-").replace("+", "p")
    reported = subprocess.run(
        [compiler, *options, *WARNINGS, str(source), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert reported.returncode == 0, reported.stderr[:4000]
    asked = _messages()
    answered = subprocess.run(
        [str(program)],
        input="".join(f"{number} {message}\n" for number, message in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answered.returncode == 0, answered.stderr[:4000]
    expected = [_expected(_tables()[number], message) for number, message in asked]
    assert answered.stdout.splitlines() == expected


def test_the_same_table_gives_the_same_text() -> None:
    table = _tables()[1]
    assert _export(table) == _export(table)


def test_the_head_says_what_it_is() -> None:
    table = _tables()[1]
    head = _export(table).split("*/")[0]
    digest = digest_of(encode(table, profile="lab-7", revision=3))
    for stated in (
        "profile 'lab-7', revision 3",
        digest,
        f"messages of {table.min_message_bytes} to {table.max_message_bytes} bytes",
        "fragments of 64 to 4096 bytes, at most 9 of them",
        "every fragment but the last is a multiple of 64 bytes",
        "tolerance asked for: 0.1 %",
        "the schedule is at most 33.4 % over",
        "the repeated size at most 50 % over",
    ):
        assert stated in head


@pytest.mark.parametrize(
    ("profile", "prefix"),
    [
        ("lab-7", "sluice_lab_7"),
        ("7--a..b__c-", "sluice_7_a_b_c"),
        ("", "sluice_plan"),
        ("a" * 47 + "-" + "b" * 16, "sluice_" + "a" * 41),
        ("a" * 40 + "-" + "b" * 16, "sluice_" + "a" * 40),
    ],
)
def test_names_begin_with_the_profile(profile: str, prefix: str) -> None:
    text = _export(_tables()[0], profile=profile)
    assert f"#ifndef {prefix.upper()}_H\n" in text
    defined = re.findall(r"static (?:inline|const) \w+ (\w+)", text)
    assert len(defined) == 13
    assert all(name.startswith(f"{prefix}_") and "__" not in name for name in defined)


@pytest.mark.parametrize("prefix", ["7a", "A", "a__b", "a_", "_a", "a b", "a\n", "a" * 100])
def test_a_prefix_that_c_would_not_take_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidInput, match="expected prefix to match"):
        given_for(TARGET, {"prefix": prefix})


@pytest.mark.parametrize(
    "name",
    [
        "*/ int x;",
        "a\n*/#error broken",
        "/*",
        "end \\",
        "trigraph ??/",
        "*\\\n/",
        "\u2028*/",
        "*" * 90,
    ],
)
def test_no_stage_name_ends_the_comment(name: str, tmp_path: Path) -> None:
    require_compiler("gcc")
    pipeline = Pipeline((Stage(name, (FitRange(1.0, 2.0),)), *a_line_pipeline().stages))
    text = _export(a_plan_table(pipeline=pipeline))
    assert text.index("*/") < text.index("#ifndef")
    assert "#error" not in text[text.index("*/") :]
    path = tmp_path / "header.h"
    path.write_text(text)
    for trigraphs in ("-trigraphs", "-std=c11"):
        subprocess.run(
            ["gcc", "-fsyntax-only", "-Wall", "-Werror", trigraphs, "-x", "c", str(path)],
            check=True,
        )


def test_without_a_plan_table_there_is_no_header() -> None:
    given = given_for(TARGET)
    with pytest.raises(InvalidInput, match="expected a plan table"):
        TARGET.render(replace(given, table=None))
