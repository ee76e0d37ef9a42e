"""The version of this program, and its settings out of the environment."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from app.container import LONG_WORKERS, MAX_WORKER_BYTES, MIN_WORKER_BYTES, this_container
from contract.limits import MAX_REPORTED
from domain.errors import FieldProblem, InvalidFields, InvalidInput
from domain.problem import DEFAULT_FRAGMENT_CAP

if TYPE_CHECKING:
    from models.records import Keep

VERSION = "0.1.0"


# --- the environment, read once into frozen settings ----------------------------------------------


CHECKOUT = Path(__file__).resolve().parent.parent
# The distribution has every package below one, sluice: then a user's own folder holds the data.
IS_INSTALLED = "." in str(__package__)
MIB = 2**20

KEEP_ALL = "everything"  # in place of rules of retention: nothing is deleted
KEPT_KINDS = ("jobs", "answers", "tables", "traces", "keys", "changes")
# off: nobody is asked who he is, on loopback alone; open: nobody anywhere; keys: everybody has one;
# proxy: everybody has one, or a trusted proxy says who he is.
ENGINES = ("local", "dask")
AUTHS = ("off", "open", "keys", "proxy")

_ROOT_PATH = re.compile(r"(/[\w.~-]+)*", re.ASCII)
_ADDRESS = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.ASCII)
_UNITS_S = {"h": 3600.0, "d": 86_400.0}
_RULE = re.compile(
    r"(?P<kind>[a-z]+)=((?P<age>[0-9]{1,6}[hd])(/(?P<count>[0-9]{1,12}))?|(?P<only>[0-9]{1,12}))",
    re.ASCII,
)
_DOTS = re.compile(r"/\.{1,2}(/|$)")

Network: TypeAlias = IPv4Network | IPv6Network
Value = TypeVar("Value", int, str)


def data_folder() -> Path:
    """Return where the database is by default: `var` in a checkout, else the user's data folder."""
    if not IS_INSTALLED:
        return CHECKOUT / "var"
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "sluice"


def check_own_folder(folder: Path, *, field: str | None = None) -> None:
    """Raise InvalidInput unless a folder is this user's, and no other may put a file into it."""
    try:
        found = folder.stat()
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be used: {error.strerror}", field=field) from None
    if not stat.S_ISDIR(found.st_mode):
        raise InvalidInput(f"expected {folder} to be a folder", field=field)
    if found.st_uid != os.geteuid():
        raise InvalidInput(
            f"expected {folder} to be a folder of this user, not of user {found.st_uid}",
            field=field,
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidInput(
            f"expected {folder} to be writable by its user alone: chmod go-w {folder}",
            field=field,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator may set; sizes in bytes, times in seconds.

    `workers` 0 means one fewer than the cores, `worker_memory_bytes` 0 as much as there is room
    for; both follow the container. A service has `long_workers` more for work that may be long.
    `lease_s` is how long after its last sign of life
    others take over the jobs of a process. After SIGTERM a service answers on for `drain_s` while
    it says that it is not ready; `sluice admin work` lets its jobs go on for `work_drain_s`.
    `root_path` is the path below which a proxy offers the service, `trusted_proxies` the addresses
    and networks, with commas between them, that may say who a client is. `log` is the form of logs,
    "text" or "json"; `work_metrics_port` where `sluice admin work` tells metrics, 0 for nowhere;
    `traces` the address that spans are sent to, empty for none;
    `retention` what all keep from this start on, everything of kinds that it does not name, where
    it is not empty. `auth` is one
    of AUTHS; where it has everybody say who he is, an owner may ask `owner_requests_per_s` times
    each second (0: as often as he likes), and have `owner_waiting_jobs` jobs that wait. Whoever is
    asked or not, an owner stores `owner_stored_bytes` at most (0: any number). `engine` is
    one of ENGINES; with `dask` work runs in a cluster, whose scheduler is at `dask_address`; the
    files in PEM `dask_tls_ca`, `dask_tls_cert` and `dask_tls_key` say who belongs to it.
    """

    database_url: str = f"sqlite:///{data_folder() / 'sluice.db'}"
    host: str = "127.0.0.1"
    port: int = 8080
    max_fragments: int = DEFAULT_FRAGMENT_CAP
    max_body_bytes: int = 4 * MIB
    max_trace_bytes: int = 256 * MIB
    workers: int = 0
    long_workers: int = LONG_WORKERS
    worker_memory_bytes: int = 0
    lookup_memory_bytes: int = 64 * MIB
    lookup_refresh_s: int = 1
    run_jobs: bool = True
    lease_s: int = 15
    drain_s: int = 5
    work_drain_s: int = 120
    max_connections_per_address: int = 512
    root_path: str = ""
    trusted_proxies: str = ""
    log: str = "text"
    work_metrics_port: int = 0
    traces: str = ""
    retention: str = ""
    auth: str = "off"
    owner_requests_per_s: int = 1000
    owner_waiting_jobs: int = 1000
    owner_stored_bytes: int = 0
    engine: str = "local"
    dask_address: str = "tls://127.0.0.1:8786"
    dask_tls_ca: str = ""
    dask_tls_cert: str = ""
    dask_tls_key: str = ""

    @property
    def asks_who(self) -> bool:
        """Whether everybody has to say who he is."""
        return self.auth in ("keys", "proxy")

    @property
    def waiting_jobs_quota(self) -> int | None:
        """How many jobs of one owner may wait; None where all are one owner's."""
        return self.owner_waiting_jobs if self.asks_who else None

    @property
    def stored_bytes_quota(self) -> int | None:
        """How many bytes one owner may store; None for any number."""
        return self.owner_stored_bytes or None

    @property
    def worker_count(self) -> int:
        """How many child processes solve: `workers`, or one fewer than the cores, at least one,
        and no more than the container has room for.
        """
        return self.workers or this_container().workers(
            available_cores(), self.worker_memory_bytes, self.long_workers
        )

    @property
    def worker_memory(self) -> int:
        """How many bytes each worker may take: those that were set, or a share of the container.

        What runs in a cluster is not in this container.
        """
        if self.worker_memory_bytes or self.engine != "local":
            return self.worker_memory_bytes or MAX_WORKER_BYTES
        return this_container().worker_bytes(self.worker_count, self.long_workers)

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        also: Sequence[Callable[[Settings], object]] = (),
    ) -> Settings:
        """Return settings from SLUICE_* variables; an empty one counts as not set.

        Raises InvalidInput, which names all that break a rule, and what the checks in `also` raise.
        """
        given = _Variables(os.environ if environment is None else environment)
        defaults = cls()
        settings = cls(
            database_url=given.text("SLUICE_DATABASE_URL", defaults.database_url),
            host=given.text("SLUICE_HOST", defaults.host),
            port=given.number("SLUICE_PORT", defaults.port, minimum=0, maximum=65_535),
            max_fragments=given.number("SLUICE_MAX_FRAGMENTS", defaults.max_fragments),
            max_body_bytes=given.number("SLUICE_MAX_BODY_BYTES", defaults.max_body_bytes),
            max_trace_bytes=given.number("SLUICE_MAX_TRACE_BYTES", defaults.max_trace_bytes),
            workers=given.number("SLUICE_WORKERS", defaults.workers, minimum=0, maximum=1024),
            long_workers=given.number("SLUICE_LONG_WORKERS", defaults.long_workers, maximum=1024),
            worker_memory_bytes=given.number(
                "SLUICE_WORKER_MEMORY_BYTES",
                defaults.worker_memory_bytes,
                minimum=MIN_WORKER_BYTES,
                unset=0,
            ),
            lookup_memory_bytes=given.number(
                "SLUICE_LOOKUP_MEMORY_BYTES", defaults.lookup_memory_bytes, minimum=0
            ),
            lookup_refresh_s=given.number(
                "SLUICE_LOOKUP_REFRESH_S", defaults.lookup_refresh_s, minimum=0, maximum=3600
            ),
            run_jobs=bool(
                given.number("SLUICE_RUN_JOBS", int(defaults.run_jobs), minimum=0, maximum=1)
            ),
            lease_s=given.number("SLUICE_LEASE_S", defaults.lease_s, maximum=3600),
            drain_s=given.number("SLUICE_DRAIN_S", defaults.drain_s, minimum=0, maximum=3600),
            work_drain_s=given.number(
                "SLUICE_WORK_DRAIN_S", defaults.work_drain_s, minimum=0, maximum=86_400
            ),
            max_connections_per_address=given.number(
                "SLUICE_MAX_CONNECTIONS_PER_ADDRESS", defaults.max_connections_per_address
            ),
            root_path=given.path("SLUICE_ROOT_PATH"),
            trusted_proxies=given.networks("SLUICE_TRUSTED_PROXIES"),
            log=given.choice("SLUICE_LOG", ("text", "json")),
            work_metrics_port=given.number(
                "SLUICE_WORK_METRICS_PORT",
                defaults.work_metrics_port,
                minimum=0,
                maximum=65_535,
            ),
            traces=given.address("SLUICE_TRACES"),
            retention=given.retention("SLUICE_RETENTION"),
            auth=given.choice("SLUICE_AUTH", AUTHS),
            owner_requests_per_s=given.number(
                "SLUICE_OWNER_REQUESTS_PER_S",
                defaults.owner_requests_per_s,
                minimum=0,
                maximum=1_000_000,
            ),
            owner_waiting_jobs=given.number(
                "SLUICE_OWNER_WAITING_JOBS", defaults.owner_waiting_jobs
            ),
            owner_stored_bytes=given.number(
                "SLUICE_OWNER_STORED_BYTES",
                defaults.owner_stored_bytes,
                minimum=MIB,
                unset=0,
            ),
            engine=given.choice("SLUICE_ENGINE", ENGINES),
            dask_address=given.text("SLUICE_DASK_ADDRESS", defaults.dask_address),
            dask_tls_ca=given.text("SLUICE_DASK_TLS_CA", ""),
            dask_tls_cert=given.text("SLUICE_DASK_TLS_CERT", ""),
            dask_tls_key=given.text("SLUICE_DASK_TLS_KEY", ""),
        )
        refusals = given.refusals
        for check in also:
            try:
                check(settings)
            except InvalidInput as refusal:
                refusals.append(refusal)
        if refusals:
            raise _all_of(refusals)
        return settings

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        """The addresses and networks of `trusted_proxies`."""
        return networks_of(self.trusted_proxies)

    @property
    def keeps(self) -> Mapping[str, Keep]:
        """What of each kind is kept; kinds of which everything is are left out."""
        return keeps_of(self.retention)


def keeps_of(text: str) -> Mapping[str, Keep]:
    """Return what rules such as `answers=90d,jobs=30d/10000` keep; `everything` is a rule of its
    own. Raises ValueError.
    """
    from models.records import Keep

    if text.strip() == KEEP_ALL:
        return {}
    found: dict[str, Keep] = {}
    for rule in filter(None, map(str.strip, text.split(","))):
        match = _RULE.fullmatch(rule)
        if match is None or match["kind"] in found or match["kind"] not in KEPT_KINDS:
            raise ValueError(rule)
        age, count = match["age"], match["count"] or match["only"]
        age_s = None if age is None else float(age[:-1]) * _UNITS_S[age[-1]]
        found[match["kind"]] = Keep(age_s, None if count is None else int(count))
    return found


def networks_of(text: str) -> tuple[Network, ...]:
    """Return the addresses and networks of a list with commas. Raises ValueError."""
    return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())


def _all_of(refusals: Sequence[InvalidInput]) -> InvalidInput:
    """Return one error that says what all of these say."""
    if len(refusals) == 1:
        return refusals[0]
    said = "; ".join(map(_with_name, refusals))
    problems = tuple(FieldProblem(one.field or "", one.detail) for one in refusals[:MAX_REPORTED])
    return InvalidFields(f"{len(refusals)} settings break rules: {said}", problems=problems)


def _with_name(refusal: InvalidInput) -> str:
    name = refusal.field or ""
    return refusal.detail if name in refusal.detail else f"{name}: {refusal.detail}"


def available_cores() -> int:
    """Return the cores that this process may run on; a quota of time is the container's."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every Unix
        return os.cpu_count() or 1


class _Variables:
    """The variables that were given; `refusals` are those that break a rule."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.refusals: list[InvalidInput] = []

    def text(self, name: str, default: str) -> str:
        return self._environment.get(name, "").strip() or default

    def number(
        self,
        name: str,
        default: int,
        *,
        minimum: int = 1,
        maximum: int = 2**40,
        unset: int | None = None,
    ) -> int:
        """Return a number within these limits, or `unset`, which leaves it to the service."""
        raw = self._environment.get(name, "").strip()
        if not raw:
            return default
        if not (raw.isascii() and raw.isdigit() and len(raw) <= 15):
            return self._refused(name, f"expected {name} to be a whole number", default)
        if not minimum <= int(raw) <= maximum and int(raw) != unset:
            rule = f"expected {minimum} <= {name} <= {maximum}"
            return self._refused(name, rule if unset is None else f"{rule}, or {unset}", default)
        return int(raw)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of these words, the first where nothing is said."""
        raw = self.text(name, choices[0])
        if raw in choices:
            return raw
        return self._refused(name, f"expected {name} to be one of {', '.join(choices)}", choices[0])

    def path(self, name: str) -> str:
        """Return a path without a slash at its end: "" for the root itself."""
        raw = self.text(name, "").rstrip("/")
        if not _ROOT_PATH.fullmatch(raw) or _DOTS.search(raw):
            rule = f"expected {name} to be a path of letters, digits and -._~, such as /sluice"
            return self._refused(name, rule, "")
        return raw

    def address(self, name: str) -> str:
        raw = self.text(name, "")
        if raw and not _ADDRESS.fullmatch(raw):
            rule = f"expected {name} to be an address such as http://127.0.0.1:4318"
            return self._refused(name, rule, "")
        return raw

    def retention(self, name: str) -> str:
        raw = self.text(name, "")
        try:
            keeps_of(raw)
        except ValueError:
            rule = (
                f"expected {name} to be rules such as answers=90d,jobs=30d/10000 with commas, of "
                f"{', '.join(KEPT_KINDS)}: an age in h or d, a count, or both; or {KEEP_ALL}"
            )
            return self._refused(name, rule, "")
        return raw

    def networks(self, name: str) -> str:
        raw = self.text(name, "")
        try:
            return ",".join(map(str, networks_of(raw)))
        except ValueError:
            rule = f"expected {name} to be addresses or networks, such as 10.0.0.0/8, with commas"
            return self._refused(name, rule, "")

    def _refused(self, name: str, rule: str, default: Value) -> Value:
        self.refusals.append(InvalidInput(rule, field=name))
        return default
