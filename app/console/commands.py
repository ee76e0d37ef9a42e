"""The store of a command, its fits, and the parts of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from app.console.files import TraceSource
from app.console.running import ticking_line
from app.settings import Settings
from app.text.units import quoted
from app.ui.terminal import Screen
from domain.errors import NotFound

if TYPE_CHECKING:
    from app.questions.fits import FittedTrace
    from models.session import Store

_NAMES = 1000  # of profiles, among which the one that was meant is looked for


# --- shared ---------------------------------------------------------------------------------------


def fit_source(source: TraceSource, settings: Settings, screen: Screen) -> FittedTrace:
    """Return the fit of a trace, as it is made where no options are given."""
    from app.questions.fits import fit_traces
    from app.questions.question import sizes_used_for
    from app.questions.traces import LoadedTrace
    from models.records import FitRequest

    with ticking_line(screen, "fitting"):
        return fit_traces(
            (LoadedTrace.of(source.content),),
            FitRequest(kinds=(None,)),
            sizes_used=sizes_used_for(None, fragment_cap=settings.max_fragments),
        )


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """Return the store, up to date and with the papers' profiles in it."""
    from app.questions.profiles import seed_paper_profiles
    from models.records import ChangedBy
    from models.session import create_store

    store = create_store(settings.database_url)
    try:
        store.upgrade()
        seed_paper_profiles(store)
        yield store.of(store.owner, ChangedBy("command line"))
    except NotFound as missing:
        raise _with_nearest(missing, store) from None
    finally:
        store.dispose()


def _with_nearest(missing: NotFound, store: Store) -> NotFound:
    """Return that there is no such profile, with the name that is nearly this one."""
    from app.questions.profiles import list_profiles

    if missing.field != "profile" or missing.subject is None:
        return missing
    names = [one.name for one in list_profiles(store, limit=_NAMES).profiles]
    near = get_close_matches(missing.subject, names, n=1)
    if not near or near[0] == missing.subject:
        return missing
    what = f"{missing.detail} {quoted(missing.subject)}"
    return NotFound(f"{what}; did you mean {near[0]}?", field=missing.field)


@contextmanager
def store_for(source: object, settings: Settings) -> Iterator[Store | None]:
    """Return the store where the source is in it; a question about a file opens none."""
    from app.questions.source import is_stored

    if is_stored(source):
        with opened_store(settings) as store:
            yield store
    else:
        yield None
