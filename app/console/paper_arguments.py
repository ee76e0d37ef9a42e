"""The grammar of the commands that stand on papers."""

from __future__ import annotations

from app.console.argument_parts import (
    Parser,
    Root,
    add,
    add_mpi,
    add_time_limit,
    counts,
    cpus,
    number,
    share,
    size,
    sizes,
    whole,
)

LAYER_VERBS = ("count", "check")


def add_of_papers(commands: Root) -> None:
    """Add all commands that stand on papers."""
    _add_layer_counts(commands)
    _add_mover(commands)
    _add_reproduce(commands)


def _add_layer_counts(commands: Root) -> None:
    count = add(commands, "layer count", "count an installed MPI's instructions under callgrind")
    _add_counting(count)
    count.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="sizes (8 64 256)")
    count.add_argument("--output", metavar="FILE", help="write the layer as JSON")
    check = add(commands, "layer check", "count again, and say what takes more instructions now")
    check.add_argument("baseline", metavar="BASELINE", help="a file of sluice model layer count")
    _add_counting(check)
    check.add_argument(
        "--max-more", type=share, default=0.01, metavar="SHARE", help="exit with 7 above it (1%%)"
    )


def _add_counting(parser: Parser) -> None:
    add_mpi(parser)
    parser.add_argument("--repetitions", type=whole, metavar="COUNT", help="of each call (8)")
    add_time_limit(parser, "default 120")


def _add_reproduce(commands: Root) -> None:
    parser = add(commands, "reproduce", "the numbers of a paper, published beside computed")
    parser.add_argument(
        "paper",
        metavar="PAPER",
        help="wang98, yocum97, strumpen94, culler96, karamcheti94 or all",
    )
    parser.add_argument("--only", metavar="ITEM", help="one table or figure")
    parser.add_argument(
        "--measure", action="store_true", help="measure strumpen94's figures on this machine"
    )
    parser.add_argument("--between", metavar="PLACE", help="there: namespaces, as a/b/10.0.0.2")
    parser.add_argument("--output", metavar="DIR", help="folder for CSV, SVG, HTML and JSON")


def _add_mover(commands: Root) -> None:
    parser = add(commands, "mover", "measure by the reference mover: stages, hiding, heat")
    parser.add_argument("what", metavar="WHAT", help="calibrate, exchange or heat")
    parser.add_argument("variant", metavar="VARIANT", nargs="?", help="one of them (all)")
    parser.add_argument("--bytes", type=sizes, metavar="SIZES", help="of a message, or messages")
    parser.add_argument("--fragments", type=counts, metavar="COUNTS", help="predict and measure")
    parser.add_argument("--fragment", type=size, metavar="SIZE", help="cut into these (4KiB)")
    parser.add_argument("--table", metavar="FILE", help="cut by this table instead")
    parser.add_argument("--calculation", type=number, metavar="US", help="of an iteration, in µs")
    parser.add_argument("--spin", action="store_true", help="calculate here, not elsewhere")
    parser.add_argument("--between", metavar="PLACE", help="namespaces, as a/b/10.0.0.2")
    parser.add_argument("--buffer", type=size, metavar="SIZE", help="of the sockets")
    for name, of in (("pack", "ns a byte of a sender"), ("unpack", "ns a byte of a receiver")):
        parser.add_argument(f"--{name}", type=number, metavar="NS", help=f"{of}'s own")
        parser.add_argument(f"--{name}-each", type=number, metavar="US", help="µs a fragment")
    parser.add_argument("--cpus", type=cpus, metavar="CPUS", help="of both ends, as 0,1")
    parser.add_argument("--repetitions", type=whole, metavar="COUNT", help="of each (20)")
    for name, most in (("columns", "64"), ("rows", "64"), ("steps", "50"), ("processes", "2")):
        parser.add_argument(f"--{name}", type=whole, metavar="COUNT", help=f"of heat ({most})")
    parser.add_argument("--output", metavar="FILE", help="stages as CSV, times, or the grid")
    parser.add_argument("--plot", metavar="FILE", help="draw the overlap into this SVG file")
