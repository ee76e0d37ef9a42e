"""sluice fit: what only a terminal has: files, folders and standard input, fitted together or each
for itself; a picture in a file; and the commands of ucx_perftest that its tables do not name.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.ui.options import add_option, add_words, body_of_options
from app.ui.words import UNITS
from contract.declare import words_of
from contract.fit import FitQueryIn
from domain.errors import InconsistentInput, InvalidInput, SluiceError, UnreadableTrace

if TYPE_CHECKING:
    from app.console.fit import NamedFile
    from app.questions.fits import FittedTrace
    from app.settings import Settings
    from app.ui.terminal import Output
    from models.records import FitRequest

WORDS = words_of(FitQueryIn)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words of the request, and those of a terminal alone."""
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="trace, folder of traces, or -; several are measurements of one pipeline",
    )
    parser.add_argument(
        "--separately", action="store_true", help="fit each file for itself, not all together"
    )
    add_words(parser, WORDS)
    add_option(
        parser,
        "--message-bytes",
        UNITS["sizes"],
        "SIZES",
        "with shape narrowed: the message; with --test: of each file, in their order",
    )
    parser.add_argument("--plot", metavar="OUT", help="draw the fit into this SVG file")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Fit, store and draw where asked to, and print the fit or the fits."""
    from app.console.fit import check_targets, files_of, fit_together
    from app.settings import Settings
    from app.verbs.fit.request import fit_request

    request = fit_request(asked_of(arguments))
    if arguments.separately and (arguments.save_as or arguments.plot):
        raise InconsistentInput(
            "--separately makes several fits, and --save-as and --plot are for one",
            field="save_as" if arguments.save_as else "plot",
        )
    check_targets(arguments, arguments.sources)
    settings = Settings.from_environment()
    files = tuple(_ran(files_of(arguments.sources), arguments))
    if arguments.separately:
        return _fit_each(files, request, settings, output)
    return fit_together(files, arguments, request, settings, output)


def asked_of(arguments: argparse.Namespace) -> FitQueryIn:
    """Return the request; which test the files are of, their names say where nothing else does.

    Raises InvalidInput.
    """
    from app.console.files import test_in_names
    from app.verbs.fit.request import asked_in_words

    said = body_of_options(WORDS, arguments)
    sizes = arguments.message_bytes
    if sizes is None and "test" not in said:
        said["test"] = test_in_names(arguments.sources)
    elif sizes is not None and said.pop("test", None) is None:
        message_bytes, *more = sizes
        if more:
            raise InvalidInput("expected one message without --test", field="message_bytes")
        said["message_bytes"] = message_bytes
    return asked_in_words(said)


def _ran(files: Iterable[NamedFile], arguments: argparse.Namespace) -> Iterator[NamedFile]:
    """Yield the files with the commands of ucx_perftest that they are of, where those are said."""
    found, test, sizes = tuple(files), arguments.test, arguments.message_bytes
    if test is None or sizes is None:
        yield from found
        return
    if re.fullmatch("[a-z_]{2,40}", test) is None:
        raise InvalidInput("expected a test of ucx_perftest, as tag_lat", field="test")
    if len(found) not in (1, len(sizes)):
        raise InconsistentInput(
            "expected the message size of each file in --message-bytes, or those of all tables of "
            "the one file",
            field="message_bytes",
        )
    commands = [f"$ ucx_perftest HOST -t {test} -s {size}\n" for size in sizes]
    for place, file in enumerate(found):
        yield replace(file, ran=commands[place] if len(found) > 1 else "".join(commands))


def _fit_each(
    files: Sequence[NamedFile], request: FitRequest, settings: Settings, output: Output
) -> int:
    """Print a fit for every file; a refusal of one of them does not keep the others back."""
    from app.console.fit import fit_files
    from app.errors import exit_code
    from app.text.units import quoted

    codes = []
    for file in files:
        try:
            fitted = fit_files((file,), request, settings, output)
            if fitted is not None:
                _show_named(file.name, fitted, output)
                codes.append(0)
        except SluiceError as refusal:
            refusal.detail = f"{quoted(file.name)}: {refusal.detail}"
            output.error(refusal)
            codes.append(exit_code(refusal))
    if not codes:
        raise UnreadableTrace("no file in the folder is recognised", field="source")
    return next((code for code in codes if code), 0)


def _show_named(name: str, fitted: FittedTrace, output: Output) -> None:
    from app.console.fit import show_fit
    from app.schemas.base import dump_json
    from app.schemas.fits import fit_out
    from app.text.units import printable

    if output.wants_json:
        # One line a file; a name that is no text is shown as Python spells it.
        shown = name.encode(errors="backslashreplace").decode()
        output.document(dump_json({"source": shown, "fit": fit_out(fitted, None)}))
        return
    output.parts([f"── {printable(name)}"])
    show_fit(fitted, None, output)
    output.parts([""])
