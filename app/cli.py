"""The command line: one module a command, in app/console. Wiring only.

Nothing heavy is imported before a command needs it, so that `sluice --help` answers at once.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from app.console.arguments import parse
from app.console.screen import Output, leave_reader
from app.errors import INTERNAL, exit_code
from domain.errors import SluiceError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, out of the table in app/errors.py."""
    words = sys.argv[1:] if argv is None else list(argv)
    output = Output.standard(wants_json="--json" in words)
    return _guarded(words, output)


def _guarded(words: Sequence[str], output: Output) -> int:
    try:
        return _run(parse(words), output)
    except SluiceError as error:
        output.error(error)
        return exit_code(error)
    except KeyboardInterrupt:
        output.note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return leave_reader()
    except Exception as defect:
        traceback.print_exc()
        output.note(f"this is a defect of Sluice: {type(defect).__name__}")
        return INTERNAL.exit_code


def _run(arguments: argparse.Namespace, output: Output) -> int:
    if arguments.command == "profiles":
        from app.console.profiles import profiles

        return profiles(arguments, output)
    if arguments.command == "keys":
        from app.console.profiles import keys

        return keys(arguments, output)
    if arguments.command == "fleet":
        from app.console.profiles import fleet
        from app.console.running import ended_by_signals

        with ended_by_signals():
            return fleet(arguments, output)
    if arguments.command == "serve":
        from app.serving import serve

        return serve(arguments, output)
    if arguments.command == "work":
        from app.serving import work

        return work(arguments, output)
    if arguments.command == "engine":
        from app.serving import engine

        return engine(arguments, output)
    if arguments.command in ("collect", "backup", "restore"):
        from app import serving

        upkeep = {"collect": serving.collect, "backup": serving.back_up, "restore": serving.restore}
        return upkeep[arguments.command](arguments, output)
    if arguments.command == "fit":
        from app.console.fit import fit

        return fit(arguments, output)
    if arguments.command == "compose":
        from app.console.fit import compose

        return compose(arguments, output)
    if arguments.command == "measure":
        from app.console.measure import measure
        from app.console.running import ended_by_signals

        with ended_by_signals():
            return measure(arguments, output)
    if arguments.command in ("verify", "tune"):
        from app.console import verify
        from app.console.running import ended_by_signals

        with ended_by_signals():
            return {"verify": verify.verify, "tune": verify.tune}[arguments.command](
                arguments, output
            )
    if arguments.command == "table":
        from app.console.table import table

        return table(arguments, output)
    if arguments.command == "apply":
        from app.console.apply import apply
        from app.console.running import ended_by_signals

        with ended_by_signals():
            return apply(arguments, output)
    if arguments.command == "audit":
        from app.console.audit import audit

        return audit(arguments, output)
    if arguments.command.startswith("layer"):
        from app.console import layer

        return {
            "layer": layer.layer,
            "layer count": layer.layer_count,
            "layer check": layer.layer_check,
        }[arguments.command](arguments, output)
    if arguments.command == "mover":
        from app.console.mover import mover
        from app.console.running import ended_by_signals

        with ended_by_signals():
            return mover(arguments, output)
    if arguments.command == "reproduce":
        from app.console.reproduce import reproduce

        return reproduce(arguments, output)
    if arguments.command == "hide":
        from app.console.models import hide

        return hide(arguments, output)
    if arguments.command in ("deliver", "thresholds"):
        from app.console import models

        verbs = {"deliver": models.deliver, "thresholds": models.thresholds}
        return verbs[arguments.command](arguments, output)
    if arguments.command == "export":
        from app.console.table import export

        return export(arguments, output)
    from app.console import commands

    return {
        "optimize": commands.optimize,
        "compare": commands.compare,
    }[arguments.command](arguments, output)


if __name__ == "__main__":
    sys.exit(main())
