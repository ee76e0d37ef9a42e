"""Programs in the place of those that measure a machine: their times are worked out, not taken.

    python -I -S tests/golden/programs.py PROGRAM WORD...

Every time deviates by up to two parts in a thousand, by a rule of its size and of how often it was
asked for, so that medians have intervals and fits have errors, the same on every machine. Variables
of the environment make the machine another one: TRANSFERS_TAKE so many times as long,
TRANSFERS_WAIT_NS before they start, TRANSFERS_DEVIATE so many times as much; and calls have a share
of INSTRUCTIONS_MORE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# ns each, and ns a byte; and whether the stage computes for as long as it takes.
COSTS = {
    "memcpy": (400.0, 0.08, True),
    "crc32": (300.0, 0.9, True),
    "pipe": (2500.0, 0.35, False),
    "tcp": (9000.0, 0.6, False),
    "write-sync": (90000.0, 1.1, False),
    "write-direct": (60000.0, 0.5, False),
}
LISTED = """\
stage\tmemcpy\ta copy in memory
stage\tcrc32\ta checksum over memory
stage\tpipe\ta pipe to another process
stage\ttcp\ta TCP connection over loopback
stage\twrite-sync\ta write into a file, and fdatasync
stage\twrite-direct\ta write past the page cache
stage\td2h\tnot here: there is no libcuda.so.1, which a GPU's driver brings
transport\tshm\tmessages in shared memory, to another process
transport\ttcp\tmessages over TCP, loopback or --host
"""
MPI = "MPICH Version: 4.0.2"
# Of functions whose services measuring/functions.toml has by their names: instructions of a call.
FUNCTIONS = (
    ("libmpi", "PMPI_Send", 90),
    ("libopen-pal", "opal_convertor_unpack", 30),
    ("mca_btl_vader", "mca_btl_vader_sendi", 60),
    ("mca_pml_ob1", "mca_pml_ob1_recv_request_progress_match", 45),
    ("libc", "__memcpy_avx_unaligned_erms", 25),
)
EAGER_BYTES = 1024  # a longer send waits for its receive


def starting(program: str) -> str:
    """Return a script that starts one of these, wherever it lies; `keep` starts what follows it."""
    return (
        "#!/bin/sh\n"
        'if [ "$1" = keep ]; then shift 2; exec "$@"; fi\n'
        f'exec "{sys.executable}" -I -S "{Path(__file__).resolve()}" {program} "$@"\n'
    )


def deviation(size: int, turn: int, most: float = 0.002) -> float:
    """Return what a time is multiplied by."""
    return 1.0 + most * ((3 * size.bit_length() + 2 * turn) % 5 - 2) / 2


# --- the probe ------------------------------------------------------------------------------------


def probe(words: Sequence[str]) -> int:
    """Answer as measuring/probe/main.c says."""
    if words[0] == "list":
        sys.stdout.write(LISTED)
        return 0
    answers = {"stage": stage, "transfer": transfer, "signature": signature}
    if words[0] == "listen":
        sys.stdout.write("# port: 7500\n# ready: listen\npeer 10.0.0.1: stage tcp\n")
        return 0
    name = words[1]
    head = ["# timer_ns: 25", *([f"# library: {MPI}"] if name == "mpi" else []), "# ready: yes"]
    sys.stdout.write("".join(f"{line}\n" for line in head))
    sys.stdout.flush()
    for answer in answers[words[0]](name):
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    return 0


def _stages(name: str) -> list[str]:
    return [one.partition(":")[0] for one in name.split(",")]


def stage(name: str) -> Iterator[str]:
    """Yield the time of each size that is asked for; the fourth of each is preempted."""
    each_ns, byte_ns, _ = COSTS[_stages(name)[0]]
    turns = dict[int, int]()
    for line in sys.stdin:
        size = int(line)
        turn = turns[size] = turns.get(size, -1) + 1
        time_ns = (each_ns + byte_ns * size) * deviation(size, turn)
        yield f"{size} {time_ns:.0f} {int(turn == 3)}"


def transfer(names: str) -> Iterator[str]:
    """Yield the latency of each message, and the times of each stage."""
    costs = [COSTS[name] for name in _stages(names)]
    share = float(os.environ.get("TRANSFERS_TAKE", "1"))
    wait_ns = float(os.environ.get("TRANSFERS_WAIT_NS", "0"))
    most = 0.002 * float(os.environ.get("TRANSFERS_DEVIATE", "1"))
    turns = dict[int, int]()
    for line in sys.stdin:
        message, size = map(int, line.split())
        turn = turns[size] = turns.get(size, -1) + 1
        whole, rest = divmod(message, size)
        ends, occupied = [0.0] * len(costs), [0.0] * len(costs)
        for fragment in [size] * whole + [rest] * (rest > 0):
            arrived = 0.0
            for place, (each_ns, byte_ns, _) in enumerate(costs):
                time_ns = (each_ns + byte_ns * fragment) * share * deviation(size, turn, most)
                arrived = ends[place] = max(arrived, ends[place]) + time_ns
                occupied[place] += time_ns
        pairs = [
            f"{time_ns:.0f}:{time_ns * (1.0 if computes else 0.2):.0f}"
            for time_ns, (_, _, computes) in zip(occupied, costs, strict=True)
        ]
        yield f"{message} {size} {wait_ns + ends[-1]:.0f} 0 {' '.join(pairs)}"


def signature(transport: str) -> Iterator[str]:
    """Yield the times of bursts, computations, round trips and receives of a LogP machine."""
    sys.path.insert(0, str(ROOT))
    from domain.logp_machine import LogPMachine

    machine = LogPMachine(send_us=0.4, receive_us=0.5, gap_us=0.7, wire_us=1.1)
    for turn, line in enumerate(sys.stdin):
        what, *numbers = line.split()
        if what == "compute":
            yield f"compute {numbers[0]} {numbers[0]} 0"
            continue
        messages, computation_ns = (int(numbers[0]), int(numbers[1])) if numbers else (1, 0)
        times_us = {"trip": machine.round_trip_us, "receive": machine.receive_us}
        time_us = times_us.get(what) or machine.burst_us(messages, computation_ns / 1000.0)
        time_ns = 1000.0 * time_us * deviation(messages, turn)
        yield f"{line.strip()} {time_ns:.0f} 0"


# --- an MPI, and valgrind -------------------------------------------------------------------------


def mpicc(words: Sequence[str]) -> int:
    """Compile nothing: the program is the probe that a library would have been put into."""
    if words == ["--version"]:
        sys.stdout.write("gcc (made up) 12.2.0\n")
        return 0
    made = Path(words[words.index("-o") + 1] if "-o" in words else "a.out")
    made.write_text(starting("probe"))
    made.chmod(0o755)
    return 0


def mpirun(words: Sequence[str]) -> int:
    """Become one of the ranks, which has the other's part as well."""
    if words != ["--version"]:
        os.execvp(words[2], list(words[2:]))
    sys.stdout.write("HYDRA build details: Version 4.0.2\n")
    return 0


def valgrind(words: Sequence[str]) -> int:
    """Write the dumps of callgrind, and print what measuring/count_mpi.c does."""
    if words == ["--version"]:
        sys.stdout.write("valgrind-3.19.0\n")
        return 0
    file = next(word for word in words if word.startswith("--callgrind-out-file="))
    folder = Path(file.partition("=")[2]).parent
    program = next(place for place, word in enumerate(words) if not word.startswith("-"))
    repetitions, sizes = int(words[program + 2]), list(map(int, words[program + 3 :]))
    sys.stdout.write(f"version {MPI}\nranks 2\n")
    for size in sizes:
        if size > EAGER_BYTES:
            sys.stdout.write(f"rendezvous {size}\n")
            continue
        for end in ("source", "destination"):
            for turn in range(repetitions):
                (folder / f"dump.{end}.{size}.{turn}").write_text(_dump(end, size, turn))
    return 0


def _dump(end: str, size: int, turn: int) -> str:
    """One call; a receive of 256 bytes waits in most of its repetitions."""
    share = 1.0 + float(os.environ.get("INSTRUCTIONS_MORE", "0"))
    waited = 400 * turn if (end, size) == ("destination", 256) else 0
    costs = [int(share * (count + size // 8)) for _, _, count in FUNCTIONS]
    costs[0] += waited + (112 if turn == 0 else 0)
    functions = "".join(
        f"\nob=/usr/lib/{library}.so.40\nfl=???\nfn={name}\n0 {cost} {cost // 4} {cost // 8}\n"
        for (library, name, _), cost in zip(FUNCTIONS, costs, strict=True)
    )
    reads, writes = sum(cost // 4 for cost in costs), sum(cost // 8 for cost in costs)
    return (
        f"# callgrind format\ndesc: Trigger: Client Request: {end} {size} {turn}\n"
        f"events: Ir Dr Dw\nsummary: {sum(costs)} {reads} {writes}\n{functions}"
    )


# --- a tool ---------------------------------------------------------------------------------------


def osu_latency(words: Sequence[str]) -> int:
    """Print what it printed on some machine."""
    traces = ROOT / "tests" / "data" / "traces"
    sys.stdout.write((traces / "osu-latency-v7-validated.txt").read_text())
    return 0


PROGRAMS = {
    "mpicc": mpicc,
    "mpirun": mpirun,
    "osu_latency": osu_latency,
    "probe": probe,
    "valgrind": valgrind,
}


def install(folder: Path) -> None:
    """Make a folder of all, for a search path; of a user's own programs too, which print their
    times: a copy, and a mover of 4 MiB that takes no parts of more than so many bytes.
    """
    folder.mkdir()
    texts = {name: starting(name) for name in PROGRAMS}
    texts["copy-it"] = '#!/bin/sh\necho "$((1500 + $1 / 10)) ns"\n'
    texts["move-it"] = (
        '#!/bin/sh\nif [ "$1" -gt "$2" ]; then echo "parts of $1 are too large" >&2; exit 2; fi\n'
        'echo "moved in $((20000 + $1 / 100 + 40 * (4194304 / $1))) us"\n'
    )
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


if __name__ == "__main__":
    sys.exit(PROGRAMS[sys.argv[1]](sys.argv[2:]))
