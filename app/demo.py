"""The demo: `python -m app.demo [--once]` starts the service and shows what it answers.

Everything that is shown came over HTTP from the service that is being started, on real input: a
measured trace and a published pipeline. It keeps serving until Ctrl-C, or stops with --once.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.console.reports import stages_table
from app.errors import exit_code
from app.schemas.answers import read_answer
from app.schemas.base import dump_json, parse_json, read_output
from app.schemas.stages import asked_pipeline, pipeline_out
from app.serving import check_access, listen, names_port, prepare_store, server
from app.settings import CHECKOUT, Settings
from app.ui.fit_parts import fit_parts
from app.ui.parts import Part, noted
from app.ui.terminal import Output, leave_reader
from app.verbs.compare.show import grid, notes
from app.verbs.optimize.show import schedule_parts
from contract.compare import CompareOut
from contract.fit import FitOut
from contract.optimize import OptimizeIn, OptimizeOut
from domain.errors import SluiceError
from domain.solution import COMPARED, Strategy
from domain.units import format_bytes

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PIPELINE_FILES = ("myrinet-gam.json", "myrinet-gam-64KiB.json")
TRACE_FILE = "local-path-direct.csv"
PROFILE = "local-path"
MEASURED_SIZES = (16 * 2**10, 128 * 2**10, 2**20)
STATIC_BYTES = 4096
_START_S = 120.0
_STOP_S = 30.0
_REQUEST_S = 120.0


class DemoFailed(SluiceError):
    """The service did not start, or refused what the demo asks."""


@dataclass(frozen=True, slots=True)
class Client:
    """Talks JSON to the service at this address."""

    address: str

    def post(self, path: str, body: bytes, *, content_type: str = "application/json") -> bytes:
        """Return the answer's body. Raises DemoFailed with the problem's detail."""
        request = urllib.request.Request(
            self.address + path, data=body, headers={"Content-Type": content_type}, method="POST"
        )
        # The service is on this machine: a proxy in the environment is not for it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_REQUEST_S) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as refusal:
            raise DemoFailed(f"POST {path} answered {refusal.code}: {_detail(refusal)}") from None
        except OSError as failure:
            raise DemoFailed(f"POST {path}: {failure}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    arguments = _parser().parse_args(argv)
    output = Output.standard(wants_json=False)
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        with running_service(output) as address:
            _show_all(Client(address), output)
            if not arguments.once:
                _serve_on(address, output)
    except SluiceError as error:
        output.error(error)
        return exit_code(error)
    except BrokenPipeError:
        return leave_reader()
    except KeyboardInterrupt:
        output.parts(["", "stopped"])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.demo", description=__doc__.split("\n")[0])
    parser.add_argument("--once", action="store_true", help="stop after printing")
    return parser


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


# --- the service ----------------------------------------------------------------------------------


@contextmanager
def running_service(output: Output) -> Iterator[str]:
    """Run the service in a thread of this process; yield its address, and leave nothing behind."""
    settings = Settings.from_environment()
    if settings.asks_who:  # what it shows needs no key: for this machine alone
        settings = replace(settings, auth="off")
    prepare_store(settings)
    listener = listen(settings, may_move=not names_port(os.environ))
    check_access(settings, listener.socket.getsockname()[0])
    if notice := listener.notice():
        output.parts([notice])
    output.parts([f"starting the service on {listener.address} ({_database(settings)}) ..."])
    running = server(settings, log_level="warning")
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener.socket]})
    thread.start()
    try:
        deadline_s = time.monotonic() + _START_S
        while not running.started:
            if not thread.is_alive() or time.monotonic() > deadline_s:
                raise DemoFailed("the service did not start; see the message above")
            time.sleep(0.05)
        yield listener.address
    finally:
        running.should_exit = True
        thread.join(_STOP_S)
        listener.socket.close()


def _database(settings: Settings) -> str:
    scheme, _, rest = settings.database_url.partition(":///")
    if not scheme.startswith("sqlite"):
        return "PostgreSQL"
    path = Path(rest)
    shown = path.relative_to(CHECKOUT) if path.is_relative_to(CHECKOUT) else path
    return f"SQLite in {shown}"


def _serve_on(address: str, output: Output) -> None:
    output.parts(
        [
            "",
            "The service goes on. Ctrl-C stops it.",
            f"  the page       {address}/    <- open it in a browser",
            f"  the interface  {address}/docs",
            f"  a lookup      curl '{address}/profiles/{PROFILE}/schedule?bytes=65536'",
        ]
    )
    while True:
        time.sleep(3600)


# --- what is shown --------------------------------------------------------------------------------


def _show_all(client: Client, output: Output) -> None:
    _title(output, "1. A published pipeline: Myrinet GAM (Wang et al. 1998, Table 1)")
    for place, name in enumerate(PIPELINE_FILES):
        body = (EXAMPLES / name).read_bytes()
        asked = parse_json(OptimizeIn, body).pipeline
        assert asked is not None
        pipeline = pipeline_out(asked_pipeline(asked))
        if place == 0:
            output.parts([stages_table(pipeline), ""])
        output.parts([f"> POST /optimize   examples/{name}", ""])
        _show_answer(client, output, client.post("/optimize", body))

    _title(output, "2. A measured pipeline: copies, CRC-32, loopback TCP and a disk")
    fitted = _fit(client, output)
    for size in MEASURED_SIZES:
        request = {"message_bytes": size, "profile": PROFILE}
        text = json.dumps(request)
        output.parts([f"> POST /optimize   {text}", ""])
        _show_answer(client, output, client.post("/optimize", text.encode()))
    revision = fitted.profile.revision if fitted.profile else 1
    output.parts([f"Stored: profile {PROFILE}, revision {revision}."])
    output.parts([f"Every answer above can be read again: {client.address}/optimizations"])


def _fit(client: Client, output: Output) -> FitOut:
    output.parts([f"> POST /fit?save_as={PROFILE}   examples/{TRACE_FILE}", ""])
    trace = (EXAMPLES / TRACE_FILE).read_bytes()
    body = client.post(f"/fit?save_as={PROFILE}", trace, content_type="text/csv")
    fitted = read_output(FitOut, body)
    output.parts([*fit_parts(fitted, width=output.out.width), ""])
    return fitted


def _show_answer(client: Client, output: Output, body: bytes) -> None:
    answer = read_answer(body)
    output.parts(schedule_parts(answer))
    output.parts(["", *noted(answer.warnings)])
    output.parts([f"What each strategy would have cost for {format_bytes(answer.message_bytes)}:"])
    output.parts([*_comparison(client, answer), ""])


def _comparison(client: Client, answer: OptimizeOut) -> Iterator[Part]:
    """Yield the table over every strategy that the service knows."""
    body = {
        "pipeline": answer.pipeline,
        "message_bytes": [answer.message_bytes],
        "strategies": [name for name in COMPARED if name is not Strategy.AUTO],
        "static_bytes": STATIC_BYTES,
    }
    rows = read_output(CompareOut, client.post("/compare", dump_json(body))).rows
    yield grid(rows)
    yield from notes(rows)


def _title(output: Output, text: str) -> None:
    line = ("━" if output.out.is_unicode else "=") * len(text)
    output.parts(["", text, line, ""])


def _detail(refusal: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(refusal)["detail"])
    except (ValueError, KeyError, TypeError):
        return str(refusal.reason)


if __name__ == "__main__":
    sys.exit(main())
