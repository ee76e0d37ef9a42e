"""The grammar of commands that stand on papers: layer, hide, deliver, thresholds, mover,
reproduce."""

from __future__ import annotations

from app.console.argument_parts import (
    Commands,
    Parser,
    add,
    add_constraints,
    add_mpi,
    add_time_limit,
    clock,
    counts,
    cpus,
    names,
    number,
    prices,
    rules,
    share,
    size,
    sizes,
    time_us,
)
from domain.messaging_layer import NetworkFeature

LAYER_VERBS = ("count", "check")


def add_of_papers(commands: Commands[Parser]) -> None:
    """Add all commands that stand on papers."""
    _add_layer(commands)
    _add_mover(commands)
    _add_reproduce(commands)
    _add_hide(commands)
    _add_deliver(commands)
    _add_thresholds(commands)


def _add_layer(commands: Commands[Parser]) -> None:
    parser = add(commands, "layer", "say what a messaging layer's software costs, by service")
    parser.add_argument(
        "layer", metavar="LAYER", help="a published one, as cmam-finite, or a document's file"
    )
    parser.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="message sizes")
    parser.add_argument(
        "--packet-words", type=counts, metavar="COUNTS", help="other packets, as 4,16 or 4..128"
    )
    parser.add_argument(
        "--features", type=names, metavar="NAMES", help=", ".join(NetworkFeature) + " (all)"
    )
    parser.add_argument(
        "--cycles", type=prices, metavar="CYCLES", help="of an instruction, as reg=1,mem=1,dev=5"
    )
    parser.add_argument("--clock", dest="clock_mhz", type=clock, metavar="CLOCK", help="as 33MHz")
    parser.add_argument("--mapping", metavar="NAME", help="a fragment is a packet or a transfer")
    parser.add_argument("--handshake", metavar="NAME", help="overlapped (default) or blocking")
    parser.add_argument("--between", metavar="FILE", help="stages between both ends")
    parser.add_argument("--wire", dest="wire_us", type=time_us, metavar="TIME", help="one-way trip")
    parser.add_argument(
        "--out-of-order", type=share, metavar="SHARE", help="packets out of order, as counted"
    )
    parser.add_argument("--tune", action="store_true", help="cut anew with each set of features")
    add_time_limit(parser, "default 10")
    parser.add_argument("--plot", metavar="OUT", help="draw bars by service into this SVG file")
    parser.add_argument("--save-as", metavar="PROFILE", help="store the stages under this name")

    count = add(commands, "layer count", "count an installed MPI's instructions under callgrind")
    _add_counting(count)
    count.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="sizes (8 64 256)")
    count.add_argument("--output", metavar="FILE", help="write the layer as JSON")
    check = add(commands, "layer check", "count again, and say what takes more instructions now")
    check.add_argument("baseline", metavar="BASELINE", help="a file of sluice layer count")
    _add_counting(check)
    check.add_argument(
        "--max-more", type=share, default=0.01, metavar="SHARE", help="exit with 7 above it (1%%)"
    )


def _add_counting(parser: Parser) -> None:
    add_mpi(parser)
    parser.add_argument("--repetitions", type=int, metavar="COUNT", help="of each call (8)")
    add_time_limit(parser, "default 120")


def _add_reproduce(commands: Commands[Parser]) -> None:
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


def _add_mover(commands: Commands[Parser]) -> None:
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
    parser.add_argument("--repetitions", type=int, metavar="COUNT", help="of each (20)")
    for name, most in (("columns", "64"), ("rows", "64"), ("steps", "50"), ("processes", "2")):
        parser.add_argument(f"--{name}", type=int, metavar="COUNT", help=f"of the solver ({most})")
    parser.add_argument("--output", metavar="FILE", help="stages as CSV, times, or the grid")
    parser.add_argument("--plot", metavar="FILE", help="draw the overlap into this SVG file")


def add_hidden_behind(parser: Parser) -> None:
    """Add what a message is hidden behind, and which stages run on a processor that calculates."""
    parser.add_argument("--calculation", type=number, metavar="US", help="of an iteration, in µs")
    parser.add_argument(
        "--hideable-fraction", type=share, metavar="SHARE", help="of the calculation (100%%)"
    )
    parser.add_argument(
        "--hiding-overhead", type=number, metavar="US", help="what hiding adds, in µs"
    )
    for side in ("sender", "receiver"):
        parser.add_argument(
            f"--{side}-stage",
            action="append",
            metavar="STAGE",
            help=f"runs on the {side}'s calculating processor; may be repeated",
        )
    parser.add_argument(
        "--both-ways", action="store_true", default=None, help="both ends are one processor"
    )


def _add_hide(commands: Commands[Parser]) -> None:
    parser = add(commands, "hide", "say what hiding a message behind a calculation gains")
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="file, - or profile")
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="size of the message")
    parser.add_argument("--messages", type=int, metavar="COUNT", help="one after the other (1)")
    parser.add_argument(
        "--train", action="store_true", default=None, help="right behind each other instead"
    )
    add_hidden_behind(parser)
    parser.add_argument("--instructions", type=number, metavar="COUNT", help="instead of that")
    parser.add_argument("--instructions-per-us", type=number, metavar="RATE", help="of these")
    parser.add_argument(
        "--streamed",
        action="store_true",
        default=None,
        help="fragments leave while the rest is calculated",
    )
    parser.add_argument("--min-gain", type=number, metavar="GAIN", help="show where it is reached")
    parser.add_argument("--processes", type=int, metavar="COUNT", help="curves from 1 to so many")
    parser.add_argument(
        "--communication",
        choices=("constant", "sqrt", "linear"),
        metavar="NAME",
        help="how messages grow with processes: constant (default), sqrt, linear",
    )
    for name in ("software", "hardware"):
        parser.add_argument(
            f"--{name}", type=number, metavar="RATIO", help=f"granularity of the {name}, no SOURCE"
        )
    parser.add_argument("--overhead", type=number, metavar="RATIO", help="with these: of hiding")
    parser.add_argument("--plot", metavar="FILE", help="draw into this SVG file")
    parser.add_argument(
        "--picture",
        choices=("run_time", "gain", "speedup"),
        metavar="NAME",
        help="run_time (default), gain or speedup",
    )
    add_constraints(parser)
    add_time_limit(parser, "default 10")


def _add_deliver(commands: Commands[Parser]) -> None:
    parser = add(commands, "deliver", "say when what arrives, by a rule for each stage")
    parser.add_argument("source", metavar="SOURCE", help="file, - or profile")
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="size of the message")
    parser.add_argument(
        "--rules",
        type=rules,
        required=True,
        metavar="RULES",
        help="one a stage, as eager,eager=512,static=1280: eager[=THRESHOLD[..MOST]], static=SIZE, "
        "planned=SIZE+SIZE.., store_and_forward, same, flow",
    )
    parser.add_argument("--timeline", metavar="FILE", help="draw the intervals into this SVG file")


def _add_thresholds(commands: Commands[Parser]) -> None:
    parser = add(commands, "thresholds", "price thresholds or pulse sizes over a grid")
    parser.add_argument("source", metavar="SOURCE", help="file, - or profile")
    parser.add_argument(
        "--bytes", type=sizes, metavar="SIZES", help="messages, as 8KiB or 1KiB..256KiB"
    )
    parser.add_argument("--rule", choices=("eager", "static"), metavar="NAME", help="or static")
    parser.add_argument(
        "--stages",
        type=counts,
        metavar="STAGES",
        help="those that vary by themselves, from 0, as 1,2 (all have the same size)",
    )
    parser.add_argument(
        "--sizes", type=sizes, metavar="SIZES", help="to try, as 128..8KiB (powers of two)"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the first message into this SVG file")
    add_time_limit(parser, "default 10")
