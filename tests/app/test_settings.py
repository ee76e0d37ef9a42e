"""Settings from the environment, and the table of errors."""

from __future__ import annotations

import pickle
from dataclasses import fields
from ipaddress import ip_network

import pytest

from app.console.checked import checked_settings
from app.errors import KINDS, exit_code, kind_of, pointer_of
from app.schemas.base import problem_out
from app.settings import Settings
from contract.problem import FieldProblemOut
from domain.errors import (
    FieldProblem,
    InvalidFields,
    InvalidInput,
    NotFound,
    Overloaded,
    SluiceError,
    StoreUnavailable,
)
from models.records import Keep


class TestSettings:
    def test_defaults(self) -> None:
        settings = Settings.from_environment({})
        assert settings == Settings()
        assert (settings.host, settings.port) == ("127.0.0.1", 8080)
        assert settings.max_fragments == 100_000
        assert settings.worker_count >= 1

    def test_each_variable_is_read(self) -> None:
        given = {
            "SLUICE_DATABASE_URL": "postgresql://db/x",
            "SLUICE_HOST": "0.0.0.0",
            "SLUICE_PORT": "9000",
            "SLUICE_MAX_FRAGMENTS": "7",
            "SLUICE_MAX_BODY_BYTES": "1000",
            "SLUICE_MAX_TRACE_BYTES": "2000",
            "SLUICE_WORKERS": "3",
            "SLUICE_LONG_WORKERS": "4",
            "SLUICE_WORKER_MEMORY_BYTES": str(2**30),
            "SLUICE_LOOKUP_MEMORY_BYTES": "0",
            "SLUICE_LOOKUP_REFRESH_S": "0",
            "SLUICE_RUN_JOBS": "0",
            "SLUICE_LEASE_S": "3",
            "SLUICE_DRAIN_S": "0",
            "SLUICE_WORK_DRAIN_S": "1",
            "SLUICE_MAX_CONNECTIONS_PER_ADDRESS": "9",
            "SLUICE_ROOT_PATH": "/tools/sluice/",
            "SLUICE_TRUSTED_PROXIES": "10.0.0.0/8, ::1",
            "SLUICE_LOG": "json",
            "SLUICE_TRACES": "http://collector:4318",
            "SLUICE_WORK_METRICS_PORT": "9100",
            "SLUICE_RETENTION": "jobs=30d/10000, answers=12h,keys=5",
            "SLUICE_AUTH": "proxy",
            "SLUICE_OWNER_REQUESTS_PER_S": "0",
            "SLUICE_OWNER_WAITING_JOBS": "5",
            "SLUICE_OWNER_STORED_BYTES": str(2**20),
            "SLUICE_ENGINE": "dask",
            "SLUICE_DASK_ADDRESS": "tls://scheduler:8786",
            "SLUICE_DASK_TLS_CA": "ca.pem",
            "SLUICE_DASK_TLS_CERT": "cert.pem",
            "SLUICE_DASK_TLS_KEY": "key.pem",
        }
        settings = Settings.from_environment(given)
        changed = [
            one.name
            for one in fields(Settings)
            if getattr(settings, one.name) != getattr(Settings(), one.name)
        ]
        assert len(changed) == len(given) == len(fields(Settings))
        assert settings.worker_count == 3
        assert settings.root_path == "/tools/sluice"
        assert settings.keeps == {
            "jobs": Keep(30 * 86_400.0, 10_000),
            "answers": Keep(12 * 3600.0),
            "keys": Keep(None, 5),
        }
        assert settings.trusted_networks == (ip_network("10.0.0.0/8"), ip_network("::1"))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SLUICE_ROOT_PATH", "sluice"),
            ("SLUICE_ROOT_PATH", "/a//b"),
            ("SLUICE_ROOT_PATH", '/a"b'),
            ("SLUICE_ROOT_PATH", "/a/../b"),
            ("SLUICE_ROOT_PATH", "//evil.example"),
            ("SLUICE_TRUSTED_PROXIES", "*"),
            ("SLUICE_LOG", "JSON"),
            ("SLUICE_TRACES", "collector:4318"),
            ("SLUICE_TRACES", "file:///etc"),
            ("SLUICE_RETENTION", "jobs"),
            ("SLUICE_RETENTION", "jobs=30x"),
            ("SLUICE_RETENTION", "jobs=-1d"),
            ("SLUICE_RETENTION", "jobs=/5"),
            ("SLUICE_RETENTION", "profiles=30d"),
            ("SLUICE_RETENTION", "jobs=30d,jobs=5"),
            ("SLUICE_AUTH", "yes"),
            ("SLUICE_AUTH", "KEYS"),
            ("SLUICE_TRUSTED_PROXIES", "10.0.0.1/8"),
            ("SLUICE_TRUSTED_PROXIES", "proxy.example"),
        ],
    )
    def test_what_is_no_path_and_no_network(self, name: str, value: str) -> None:
        with pytest.raises(InvalidInput, match=f"expected {name} to be") as refusal:
            Settings.from_environment({name: value})
        assert refusal.value.field == name

    def test_all_mistakes_are_named_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also those of what the solvers and the database read; never the database's address."""
        given = {
            "SLUICE_DATABASE_URL": "mysql://user:secret@db/x",
            "SLUICE_KERNELS": "fortran",
            "SLUICE_LEASE_S": "0",
            "SLUICE_WORKERS": "two",
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(InvalidFields) as refusal:
            checked_settings()
        assert refusal.value.detail == (
            "4 settings break rules: expected SLUICE_WORKERS to be a whole number; "
            "expected 1 <= SLUICE_LEASE_S <= 3600; "
            "database_url: expected a database URL that begins with sqlite: or postgresql:; "
            "SLUICE_KERNELS: expected one of auto, native, numpy"
        )

    def test_empty_counts_as_not_set(self) -> None:
        assert Settings.from_environment({"SLUICE_PORT": " "}) == Settings()

    @pytest.mark.parametrize("value", ["0", "1025", "-1", "two", "1.5"])
    def test_workers_for_long_work_are_at_least_one(self, value: str) -> None:
        with pytest.raises(InvalidInput, match="SLUICE_LONG_WORKERS") as refusal:
            Settings.from_environment({"SLUICE_LONG_WORKERS": value})
        assert refusal.value.field == "SLUICE_LONG_WORKERS"

    @pytest.mark.parametrize("value", ["x", "-1", "1.5", "70000", "１２", "9" * 40, "0x10"])
    def test_what_is_no_port(self, value: str) -> None:
        with pytest.raises(InvalidInput) as refusal:
            Settings.from_environment({"SLUICE_PORT": value})
        assert refusal.value.field == "SLUICE_PORT"


class TestTable:
    def test_every_error_has_a_row(self) -> None:
        """Those of the domain, of the store and of the entrances alike."""
        assert StoreUnavailable.code in KINDS
        pending, seen = [SluiceError], set()
        while pending:
            kind = pending.pop()
            pending += kind.__subclasses__()
            if kind.__module__.startswith(("domain", "models", "app")):
                seen.add(kind.code)
        assert seen == KINDS.keys()

    def test_statuses(self) -> None:
        assert kind_of("not_found").status == 404
        assert kind_of("conflict").status == 409
        assert kind_of("unheard_of").status == 500
        assert exit_code(NotFound("x")) not in (0, 1, exit_code(InvalidInput("x")))

    def test_the_document(self) -> None:
        document = problem_out(InvalidInput("too small", field="constraints.min"))
        assert document.type == "urn:sluice:problem:invalid-input"
        assert document.errors == (FieldProblemOut("/constraints/min", "too small"),)

    def test_pointers(self) -> None:
        assert pointer_of(["a/b", "c~d", "0"]) == "/a~1b/c~0d/0"
        assert len(pointer_of(["x" * 1000])) == 101

    def test_at_most_twenty_fields(self) -> None:
        problem = FieldProblem("/x", "rule")
        refusal = InvalidFields("many", problems=(problem,) * 50)
        assert len(problem_out(refusal).errors) == 20

    def test_errors_cross_processes(self) -> None:
        problem = FieldProblem("/x", "rule")
        for error in (InvalidFields("many", problems=(problem,)), Overloaded("busy")):
            copy = pickle.loads(pickle.dumps(error))
            assert (type(copy), copy.detail) == (type(error), error.detail)
            assert problem_out(copy) == problem_out(error)
