"""SimGrid's SMPI: the costs of the calls MPI_Send, MPI_Isend and MPI_Recv, from fitted stages.

Source    SimGrid 3.32: src/smpi/internals/smpi_utils.cpp (parse_factor), smpi_host.cpp (osend,
          oisend, orecv), smpi_config.cpp, src/xbt/xbt_parse_units.cpp. A value is pieces
          `min_bytes:startup_s:s_per_byte`, separated by semicolons.
Exact     a piece holds for sizes above its first number up to and with the next piece's, which is
          how fit ranges end; decimals are the shortest that give back the fitted number.
Traps     first numbers are read by std::stoi: one of 2^31 ends SimGrid. strtod refuses what
          underflows. smpi/os and smpi/or are charged for messages below
          smpi/send-is-detached-thresh alone (src/smpi/mpi/smpi_request.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from xml.sax.saxutils import quoteattr

from domain.errors import InvalidInput
from domain.pipeline import Pipeline, Stage
from exports.targets.commentary import commentary
from exports.targets.target import ExportInput, Takes, Target, TargetOption

PROPERTIES = ("os", "ois", "or")
_UNCHANGED = "unchanged"
_MAX_INT = 2**31 - 1
_MIN_DOUBLE = Decimal("2.3e-308")  # strtod says ERANGE of what is smaller, and SimGrid ends
_STAGE = r"[^\x00-\x1f\x7f]{1,100}"
_THRESHOLD = rf"{_UNCHANGED}|[0-9]{{1,10}}"


def render(given: ExportInput) -> str:
    """The properties in the form that the options ask for. Raises InvalidInput."""
    properties = dict(_properties(given))
    if given.options["form"] == "cfg":
        head = commentary(given, TARGET) + "".join(f"# {note}\n" for note in _notes(given))
        return head + "".join(f"--cfg={name}:{value}\n" for name, value in properties.items())
    head = commentary(given, TARGET, prefix="  ")
    head += "".join(f"  {note}\n" for note in _notes(given))
    props = "".join(
        f"  <prop id={quoteattr(name)} value={quoteattr(value)}/>\n"
        for name, value in properties.items()
    )
    return f"<!--\n{head}-->\n<config>\n{props}</config>\n"


def _properties(given: ExportInput) -> Iterator[tuple[str, str]]:
    for name in PROPERTIES:
        at = _stage_of(given.pipeline, name, given.options[name])
        if at is not None:
            yield f"smpi/{name}", _value(given.pipeline.stages[at])
    threshold = given.options["detached_below"]
    if threshold != _UNCHANGED:
        if int(threshold) > _MAX_INT:
            raise InvalidInput(f"expected detached_below <= {_MAX_INT}", field="options")
        yield "smpi/send-is-detached-thresh", str(int(threshold))


def _stage_of(pipeline: Pipeline, option: str, wanted: str) -> int | None:
    """The index of the stage that an option names; None for no stage. Raises InvalidInput.

    The last stage of a pipeline of one is its first, and not counted twice.
    """
    count = len(pipeline)
    known: dict[str, int | None] = {str(number): number - 1 for number in range(1, count + 1)}
    known |= {"first": 0, "last": count - 1 if count > 1 else None, "none": None}
    if wanted in known:
        return known[wanted]
    found = [at for at, stage in enumerate(pipeline.stages) if stage.name == wanted]
    if len(found) == 1:
        return found[0]
    problem = "names more than one stage" if found else "names no stage of this pipeline"
    raise InvalidInput(
        f"{option} {problem}: expected first, last, none, a stage's name or its number, 1 to "
        f"{count}",
        field="options",
    )


def _value(stage: Stage) -> str:
    pieces, after = [], 0
    for part in stage.ranges:
        if after <= _MAX_INT:
            startup_s, s_per_byte = (
                _shifted(part.overhead_us, -6),
                _shifted(part.ns_per_byte, -9),
            )
            pieces.append(f"{after}:{startup_s}:{s_per_byte}")
        after = part.up_to_bytes or 0
    return ";".join(pieces)


def _shifted(value: float, digits: int) -> str:
    """The shortest decimal of the number, times a power of ten, exactly."""
    shifted = Decimal(repr(value)).scaleb(digits).normalize()
    return str(shifted) if shifted >= _MIN_DOUBLE else "0"


def _notes(given: ExportInput) -> Iterator[str]:
    pipeline = given.pipeline
    taken = {name: _stage_of(pipeline, name, given.options[name]) for name in PROPERTIES}
    for name, at in taken.items():
        yield f"smpi/{name}: {'not set' if at is None else f'stage {at + 1}'}"
    left = [str(at + 1) for at in range(len(pipeline)) if at not in taken.values()]
    if left or pipeline.delay_us:
        words = [f"stages {', '.join(left)}"] if left else []
        words += ["the delay"] if pipeline.delay_us else []
        yield from _folded(f"for the links of the platform: {' and '.join(words)}")
    if any(_has_far_ranges(pipeline.stages[at]) for at in taken.values() if at is not None):
        yield f"left out: fit ranges that begin above {_MAX_INT} bytes, which SimGrid cannot read"
    yield "SimGrid charges smpi/os and smpi/or for messages that are shorter than"
    yield "smpi/send-is-detached-thresh alone, 65536 bytes unless it is set"


def _folded(text: str, width: int = 90) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + len(word) >= width:
            yield line
            line = " "
        line = f"{line} {word}" if line else word
    yield line


def _has_far_ranges(stage: Stage) -> bool:
    return any((part.up_to_bytes or 0) > _MAX_INT for part in stage.ranges)


def _stage_option(name: str, default: str, call: str) -> TargetOption:
    meaning = (
        f"the stage whose costs {call} has: its name, its number from 1, first, last or none; "
        "the last of a pipeline of one stage is none"
    )
    return TargetOption(name, default, meaning, pattern=_STAGE)


TARGET = Target(
    name="simgrid",
    title="SimGrid SMPI: costs of MPI calls",
    takes=Takes.COSTS,
    render=render,
    suffix="xml",
    media_type="application/xml",
    suffixes={"cfg": "args"},
    grammar="SimGrid 3.32, src/smpi/internals/smpi_utils.cpp and smpi_host.cpp",
    options=(
        TargetOption(
            "form",
            "xml",
            "a <config> element for the platform file, or arguments of smpirun",
            choices=("xml", "cfg"),
        ),
        _stage_option("os", "first", "MPI_Send"),
        _stage_option("ois", "first", "MPI_Isend"),
        _stage_option("or", "last", "MPI_Recv"),
        TargetOption(
            "detached_below",
            _UNCHANGED,
            "smpi/send-is-detached-thresh in bytes: messages from here on are charged neither "
            "smpi/os nor smpi/or",
            pattern=_THRESHOLD,
        ),
    ),
    verified_by="SimGrid 3.32 (smpirun)",
)
