"""What measures stages and signatures, on a machine whose times are made up.

No service measures: its documents and its page are those of a fit of what was measured.
"""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.models import example
from tests.golden.stand_ins import ALONE, PATIENT

_TOKEN = "0123456789abcdef" * 2
_COPY = example("h100-copies/d2h.csv")

HTTP: tuple[Http, ...] = (
    Http("measure/fit", "POST", "/fit?save_as=copy&plot=true", text=_COPY),
    page("measure-sent", "/ui/fits", "POST", text=_COPY, kept=False),
    page("measure-fit", "/ui/fits/<page/measure-sent>"),
    page("measure-profile", "/ui/profiles/copy"),
    post(
        "measure/composed",
        "/compose",
        {
            "stages": [
                {"name": name, "measurements": {"content": example(f"h100-copies/{name}.csv")}}
                for name in ("d2h", "h2d")
            ],
            "save_as": "copies",
        },
    ),
)


def _measure(name: str, *words: str, **more: Any) -> Command:
    line = f"measure-{name}" if name else "measure"
    return command(line, "measure", *words, *PATIENT, environment=ALONE, **more)


def _commands() -> list[Command]:
    sizes, few = ("--bytes", "64..64KiB"), ("--bytes", "1KiB..4KiB")
    far = ("tcp", "--host", "10.0.0.2:7500", *few)
    return [
        _measure("", "memcpy", *sizes, "--save-as", "copy", leaves=("memcpy-stage.csv",)),
        _measure("list", "--list"),
        _measure("json", "crc32", *sizes, "--json", form=Form.JSON),
        _measure("cold", "memcpy", *few, "--cold", "--output", "cold.csv", leaves=("cold.csv",)),
        _measure("direct", "write-direct", "--bytes", "4KiB..64KiB", "--cpus", "0,1"),
        _measure("own", "--stage", "h2d=copy-it {bytes}", *few, leaves=("h2d-stage.csv",)),
        _measure(
            "plot",
            *("pipe", *sizes, "--plot", "<folder>/pipe.svg"),
            writes="pipe.svg",
            form=Form.PAGE,
        ),
        _measure("signature", "shm", "--what", "signature", leaves=("shm-signature.csv",)),
        _measure("signature-json", "mpi", "--bytes", "64,256", "--json", form=Form.JSON),
        _measure("far", *far, "--token", _TOKEN, leaves=("tcp-stage.csv",)),
        _measure("no-token", *far),
        _measure("listen", "--listen", "127.0.0.1:7500", "--token", _TOKEN),
        _measure("tool", "osu_latency", "--bytes", "1KiB..64KiB", "--output", "osu"),
        _measure("tool-none", "fio"),
        _measure("gpu-none", "d2h", *few),
        _measure("ucx-none", "ucx", "--what", "signature"),
        _measure("no-such", "nothing"),
        _measure("no-such-json", "nothing", "--json"),
        _measure("wrong-cpus", "memcpy", *few, "--cpus", "4000"),
        _measure("no-alignment", "write-direct", "--bytes", "5000"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
