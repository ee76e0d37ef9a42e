"""sluice open: a page of the service, in the browser where there is one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.console.argument_parts import add_owner
from app.ui.grammar import Arguments, Command
from domain.errors import InvalidInput, NotFound, NotReady

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ui.terminal import Output
    from models.session import Store

_ADDRESS = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.ASCII)
_HAS_BROWSER = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")  # else a browser in the terminal would run
_ANSWERS_S = 2.0


def add_arguments(command: Command) -> None:
    """Add what is opened, and where the service is."""
    command.argument(
        "what",
        metavar="WHAT",
        is_optional=True,
        help="a profile's name, or an ID (default the workbench)",
    )
    command.option("--address", metavar="URL", help="of the service (SLUICE_PORT here, or 8080)")
    add_owner(command)


def run(arguments: Arguments, output: Output) -> int:
    """Open a page in the browser where there is one, and print its address."""
    import os
    import sys
    import webbrowser

    from app.console.stored import owned_store
    from app.settings import Settings

    settings = Settings.from_environment()
    service = arguments.address or f"http://127.0.0.1:{settings.port}{settings.root_path}"
    if _ADDRESS.fullmatch(service) is None:
        raise InvalidInput("expected an address, as http://127.0.0.1:8080", field="address")
    path = "/"
    if arguments.what is not None:
        with owned_store(arguments) as store:
            path = _page_of(store, arguments.what)
    address = service.rstrip("/") + path
    output.parts([address])
    if not _answers(service.rstrip("/") + "/healthz"):
        raise NotReady("no service answers there; sluice serve starts one")
    if sys.platform == "darwin" or any(os.environ.get(name) for name in _HAS_BROWSER):
        webbrowser.open(address)
    return 0


def _page_of(store: Store, name: str) -> str:
    """Return the path of the page of what has this identifier or name. Raises NotFound."""
    from contextlib import suppress

    from app.jobs.ledger import shown_job
    from app.questions.answers import get_answer
    from app.questions.fits import get_fit
    from app.questions.profiles import get_profile
    from domain.profile import ProfileReference
    from models.identifiers import IDENTIFIER

    if IDENTIFIER.fullmatch(name) is None:
        get_profile(store, ProfileReference.parse(name).name)
        return f"/ui/profiles/{name}"
    finders: dict[str, Callable[[Store, str], object]]
    finders = {"answers": get_answer, "jobs": shown_job, "fits": get_fit}
    for kind, find in finders.items():
        with suppress(NotFound):
            find(store, name)
            return f"/ui/{kind}/{name}"
    raise NotFound("there is no answer, job or fit", field="what", subject=name)


def _answers(address: str) -> bool:
    """Return whether a service answers at this address, whatever it says."""
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(address, timeout=_ANSWERS_S).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError, HTTPException):
        return False
    return True
