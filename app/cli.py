"""The command line: a folder of app/verbs a command, or a module of app/console. Wiring only.

Nothing heavy is imported before a command needs it, so that `sluice --help` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from app.console.arguments import COMPLETE, own_words, parse
from app.console.completion import complete
from app.console.rows_advice import advise
from app.errors import INTERNAL, INTERRUPTED, KINDS, exit_code
from app.registry import VERBS
from app.ui.grammar import Arguments
from app.ui.terminal import Output, leave_reader
from domain.errors import SluiceError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_WRITTEN = KINDS["invalid_input"].exit_code  # as where a file that is named is full


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, out of the table in app/errors.py."""
    _open_closed_streams()
    if asked := os.environ.get(COMPLETE):  # by the script of a shell, at each TAB
        return _guarded(lambda: complete(asked), Output.standard(wants_json=False))
    words = sys.argv[1:] if argv is None else list(argv)
    output = Output.standard(wants_json="--json" in own_words(words))
    return _guarded(lambda: _advised(_parsed(words), output), output)


def _open_closed_streams() -> None:
    """Have a standard stream that was closed read as empty, and lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _guarded(run: Callable[[], int], output: Output) -> int:
    try:
        return run()
    except SluiceError as error:
        output.error(error)
        return exit_code(error)
    except KeyboardInterrupt:
        output.note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return leave_reader()
    except Exception as defect:
        if isinstance(defect, OSError) and defect.errno in _FULL:
            leave_reader()  # what it has not written yet it would try again at its end
            output.note(f"error: {os.strerror(defect.errno)}")
            return _NOT_WRITTEN
        traceback.print_exc()
        output.note(f"this is a defect of Sluice: {type(defect).__name__}")
        return INTERNAL.exit_code


def _advised(arguments: Arguments, output: Output) -> int:
    try:
        return _run(arguments, output)
    except SluiceError as refusal:
        advise(refusal, arguments)
        raise


def _parsed(words: Sequence[str]) -> Arguments:
    try:
        return parse(words)
    except SystemExit:
        sys.stdout.flush()  # help and version: where that fails it is said, as of any output
        raise


def _run(arguments: Arguments, output: Output) -> int:
    verb = VERBS.get(arguments.command)
    if verb is not None:
        code: int = verb.module("command").run(arguments, output)
        return code
    if arguments.command == "demo":
        from app.demo import main as demo

        return demo(["--once"] if arguments.once else [])
    from app.serving import serve

    return serve(arguments, output)


if __name__ == "__main__":
    sys.exit(main())
