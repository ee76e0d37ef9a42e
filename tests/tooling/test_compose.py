"""The compose file and the image: they start with nothing but a password."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import fields
from inspect import getsource
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from app.console import checked
from app.console.arguments import parse
from app.container import Container, processes
from app.operations import tasks
from app.serving import GRACE_S
from app.settings import VERSION, Settings
from app.verbs.engine import command as engine
from tests.support.system import require_system
from tools import bootstrap

CLUSTER = {"cluster-work", "engine-scheduler", "engine-worker"}
HARDENING = ("read_only", "cap_drop", "security_opt", "tmpfs", "init")
PASSWORD = "0123abcd"  # of the form that the documented command makes
ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(
    r"\$\{(?P<name>\w+)(?:(?P<operator>:?[-?+])(?P<argument>[^}]*))?\}|(?P<other>\$)"
)


def example_variables() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def variables_of_a_process() -> set[str]:
    """What a service or a runner reads: settings, and what solves."""
    return {f"SLUICE_{one.name.upper()}" for one in fields(Settings)} | {"SLUICE_KERNELS"}


def variables_of_a_member() -> set[str]:
    """What the code of `sluice admin engine` asks the settings for, and what solves."""
    parts = (engine.run, checked.with_workers, tasks.cluster_options)
    asked = {name for one in parts for name in re.findall(r"settings\.(\w+)", getsource(one))}
    asked = {"workers" if name == "worker_count" else name for name in asked}
    found = {f"SLUICE_{name.upper()}" for name in asked - {"from_environment"}}
    assert found <= variables_of_a_process()
    return found | {"SLUICE_KERNELS"}


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Replace variables as Compose does; KeyError where it would stop or warn."""

    def value(match: re.Match[str]) -> str:
        if match["other"]:
            raise KeyError(f"a $ that is no variable at offset {match.start()}")
        found = variables.get(match["name"], "")
        if match["operator"] == ":-":
            return found or match["argument"]
        if not found:
            raise KeyError(match["name"])
        return found

    return VARIABLE.sub(value, text)


def filled_in(node: Any, variables: dict[str, str]) -> Any:
    """The document with its variables replaced; a text stays a text, also an empty one."""
    if isinstance(node, dict):
        return {key: filled_in(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [filled_in(value, variables) for value in node]
    return interpolated(node, variables) if isinstance(node, str) else node


def compose(variables: dict[str, str] | None = None) -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(document, dict)
    if variables is None:
        variables = {"POSTGRES_PASSWORD": PASSWORD}
    filled = filled_in(document, variables)
    assert isinstance(filled, dict)
    return filled


def dockerfile_lines() -> list[str]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line and not line.startswith("#")]


def test_nothing_but_a_password_has_to_be_set() -> None:
    """Every other variable has a default in the file; the example brings no password."""
    assert example_variables() == {}
    assert set(compose()["services"]) == {
        "postgres",
        "sluice",
        "worker",
        *CLUSTER,
    }


def test_a_forgotten_env_file_is_said_by_name() -> None:
    """Without a password Compose stops at the one variable that is required."""
    with pytest.raises(KeyError, match="POSTGRES_PASSWORD"):
        compose({})


def test_every_service_has_a_health_check_and_comes_back() -> None:
    """A service restarts whatever it exited with, and says whether it is well.

    The worker serves nothing that could be asked, not what the image's own check asks either.
    """
    services = compose()["services"]
    for name, service in services.items():
        assert service["restart"] in {"always", "unless-stopped"}, name
    for name in ("worker", *CLUSTER):
        assert services.pop(name)["healthcheck"] == {"disable": True}
    for name, service in services.items():
        assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name


def test_the_service_waits_for_a_healthy_database() -> None:
    """The schema is brought up to date at start, so PostgreSQL must answer by then."""
    services = compose()["services"]
    assert services["postgres"]["image"] == "postgres:17"
    assert services["sluice"]["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_data_outlive_the_containers() -> None:
    """What is mounted from a named volume is declared as one."""
    document = compose()
    mounted = {
        volume.split(":")[0]
        for service in document["services"].values()
        for volume in service.get("volumes", ())
        if not volume.startswith("./")
    }
    assert mounted == set(document["volumes"]) == {"postgres-data", "sluice-data"}


def test_the_service_accepts_the_settings_that_it_is_given() -> None:
    """The environment in the file makes valid settings that reach the database of the file."""
    services = compose()["services"]
    environment = services["sluice"]["environment"]
    settings = Settings.from_environment(environment)
    account = services["postgres"]["environment"]
    assert settings.database_url == (
        f"postgresql+psycopg://{account['POSTGRES_USER']}:{account['POSTGRES_PASSWORD']}"
        f"@postgres:5432/{account['POSTGRES_DB']}"
    )
    assert settings.host == "0.0.0.0"
    assert settings.auth == "keys"
    assert settings.workers == Settings().workers
    assert services["sluice"]["ports"] == [f"127.0.0.1:8080:{settings.port}"]


def test_a_worker_runs_jobs_of_the_same_database() -> None:
    """Beside the service where its profile is asked for; it has longer to stop than its jobs."""
    services = compose()["services"]
    worker, service = services["worker"], services["sluice"]
    assert (worker["profiles"], worker["command"]) == (["workers"], ["sluice", "admin", "work"])
    assert worker["image"] == service["image"]
    settings = Settings.from_environment(worker["environment"])
    assert settings.database_url == service["environment"]["SLUICE_DATABASE_URL"]
    assert int(worker["stop_grace_period"].removesuffix("s")) > settings.work_drain_s
    grace_s = int(service["stop_grace_period"].removesuffix("s"))
    assert grace_s > Settings.from_environment(service["environment"]).drain_s + GRACE_S
    assert [worker[name] for name in HARDENING] == [service[name] for name in HARDENING]


def test_a_cluster_has_its_own_network_and_no_database() -> None:
    """Where its profile is asked for: a scheduler, workers, and a runner that has both."""
    document = compose()
    services = {name: document["services"][name] for name in sorted(CLUSTER)}
    assert document["networks"] == {"engine": {"internal": True}}
    assert {name: one["networks"] for name, one in services.items()} == {
        "cluster-work": ["default", "engine"],
        "engine-scheduler": ["engine"],
        "engine-worker": ["engine"],
    }
    for name, one in services.items():
        assert one["profiles"] == ["cluster"], name
        base = document["services"]["sluice"]["build"]["args"]
        assert one["build"] == {"context": ".", "args": {**base, "PACKAGES": "dask"}}, name
        assert "ports" not in one, name
        assert one["volumes"] == ["./certificates:/run/certificates:ro"], name
        assert [one[key] for key in HARDENING] == [
            document["services"]["sluice"][key] for key in HARDENING
        ]
        settings = Settings.from_environment(one["environment"])
        assert int(one["stop_grace_period"].removesuffix("s")) > settings.work_drain_s, name
        assert urlsplit(settings.dask_address).scheme == "tls", name
        files = (settings.dask_tls_ca, settings.dask_tls_cert, settings.dask_tls_key)
        assert {str(Path(file).parent) for file in files} == {"/run/certificates"}, name
        assert (settings.engine == "dask") == (name == "cluster-work")
        assert ("SLUICE_DATABASE_URL" in one["environment"]) == (name == "cluster-work")
    scheduler = services["engine-scheduler"]["environment"]["SLUICE_DASK_ADDRESS"]
    members = {services[name]["environment"]["SLUICE_DASK_ADDRESS"] for name in CLUSTER}
    assert members == {scheduler, "tls://engine-scheduler:8786"}


@pytest.mark.parametrize("name", ["sluice", "worker", *sorted(CLUSTER)])
def test_what_a_service_runs_is_a_command(name: str) -> None:
    """The image's own command where none is given."""
    words = compose()["services"][name].get("command", ["sluice", "serve"])
    assert words[0] == "sluice"
    assert parse(words[1:]).command in {"serve", "work", "engine"}


@pytest.mark.parametrize("packages", ["run", "dask"])
def test_the_image_can_be_built_with_these_packages(packages: str) -> None:
    lines = dockerfile_lines()
    assert "ARG PACKAGES=run" in lines
    assert any("bootstrap.py ${PACKAGES}" in line for line in lines)
    for lock in bootstrap.LOCKS[packages]:
        assert any(line.startswith("COPY ") and lock in line.split() for line in lines), lock


@pytest.mark.parametrize("name", ["sluice", "worker", "cluster-work"])
def test_what_is_set_reaches_services_and_runners(name: str) -> None:
    """Each setting that the example offers, and none besides the database is only in the file."""
    text = (ROOT / ".env.example").read_text()
    offered = set(re.findall(r"^#(SLUICE_\w+)=", text, flags=re.MULTILINE))
    variables = {"POSTGRES_PASSWORD": PASSWORD} | dict.fromkeys(offered, "7654321")
    service = compose(variables)["services"][name]
    fixed = {"SLUICE_DATABASE_URL", "SLUICE_HOST", "SLUICE_PORT"}
    if name == "cluster-work":
        fixed |= {one for one in offered if "DASK" in one} | {"SLUICE_ENGINE"}
    assert set(service["environment"]) == variables_of_a_process()
    for variable in variables_of_a_process() - fixed:
        assert service["environment"][variable] == "7654321", variable
    assert service["mem_limit"] == service["cpus"] == "7654321"
    if name == "sluice":
        assert service["ports"] == ["7654321:7654321:8080"]


@pytest.mark.parametrize("name", ["engine-scheduler", "engine-worker"])
def test_what_members_of_a_cluster_read_reaches_them(name: str) -> None:
    """And no more: they have no password."""
    assert set(compose()["services"][name]["environment"]) == variables_of_a_member()


def test_the_table_of_the_documents_names_what_reaches_a_service() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    documented = set(re.findall(r"^`(SLUICE_\w+)` \|", text, flags=re.MULTILINE))
    assert documented | {"SLUICE_KERNELS"} == variables_of_a_process()


def test_every_container_has_limits() -> None:
    """Of memory, processors, processes and logs."""
    for name, service in compose()["services"].items():
        assert service["mem_limit"], name
        assert float(service["cpus"]) > 0.0, name
        assert service["pids_limit"] > 0, name
        assert service["logging"]["driver"] == "json-file", name
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name


def test_the_workers_of_a_container_fit_into_it() -> None:
    service = compose()["services"]["sluice"]
    room = Container(float(service["cpus"]), int(service["mem_limit"].removesuffix("g")) * 2**30)
    workers = room.workers(64)
    assert processes(workers) * room.worker_bytes(workers) <= (room.workers_bytes or 0)


def test_the_documented_command_makes_a_password_that_fits_into_a_url() -> None:
    """It becomes part of the database's URL as it stands; all that show it show the same."""
    command = """cp .env.example .env && echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)" >> .env"""
    for name in ("docker-compose.yml", ".env.example", "docs/operations.md"):
        assert command in (ROOT / name).read_text(), name
    require_system(which("openssl"), "openssl", "apt-get install openssl")
    made = subprocess.run(
        ["sh", "-c", 'echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)"'],
        capture_output=True,
        check=True,
        text=True,
    )
    assert re.fullmatch(r"POSTGRES_PASSWORD=[0-9a-f]{48}\n", made.stdout)


def test_the_image_does_not_run_as_root() -> None:
    """The last USER is a number other than 0, and no instruction after it undoes that."""
    users = [line.split()[1] for line in dockerfile_lines() if line.startswith("USER ")]
    assert [int(part) > 0 for part in users[-1].split(":")] == [True, True]


def test_the_image_asks_who_asks() -> None:
    """It listens beyond loopback, so that it would not start otherwise."""
    lines = [line for line in dockerfile_lines() if line.startswith("ENV ")]
    assert "SLUICE_HOST=0.0.0.0" in lines[-1]
    assert "SLUICE_AUTH=keys" in lines[-1]


def test_the_image_checks_its_health() -> None:
    """An engine without Compose learns of the service's health from the image alone."""
    checks = [line for line in dockerfile_lines() if line.startswith("HEALTHCHECK ")]
    assert len(checks) == 1
    assert "/healthz" in checks[0]


def test_the_image_says_what_it_is() -> None:
    """By the labels of the OCI; the base is what it was built on."""
    (line,) = (line for line in dockerfile_lines() if line.startswith("LABEL "))
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', line))
    assert labels["version"] == VERSION
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels["licenses"] == project["license"]
    assert (labels["base.name"], labels["revision"]) == ("${BASE}", "${REVISION}")
    assert {"title", "description"} < set(labels)


def test_one_command_names_the_bases_by_digest(tmp_path: Path) -> None:
    """The command of the documents, with a stand-in that answers as the registry would."""
    text = (ROOT / "docs" / "operations.md").read_text()
    (command,) = re.findall(r"```\n(for image in .*?)```", text, flags=re.DOTALL)
    digest = "sha256:" + "0" * 64
    for name, answer in (("docker", digest), ("git", "c0ffee")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {answer}\n")
        program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["sh", "-ec", command], cwd=tmp_path, env=environment, check=True)
    lines = (tmp_path / ".env").read_text().splitlines()
    services = compose(
        {"POSTGRES_PASSWORD": PASSWORD} | dict(line.split("=", 1) for line in lines)
    )["services"]
    assert services["postgres"]["image"] == f"postgres:17@{digest}"
    for name in ("sluice", "worker", *CLUSTER):
        arguments = services[name]["build"]["args"]
        assert arguments["BASE"] == f"python:3.13-slim@{digest}", name
        assert arguments["REVISION"] == "c0ffee", name
    (base,) = (line for line in dockerfile_lines() if line.startswith("ARG BASE="))
    assert base == f"ARG BASE={compose()['services']['sluice']['build']['args']['BASE']}"


def test_the_base_image_can_be_replaced() -> None:
    """Sites with a registry of their own name another base; no stage names one itself."""
    sources = [line.split()[1] for line in dockerfile_lines() if line.startswith("FROM ")]
    assert sources
    assert set(sources) == {"${BASE}"}


def test_what_is_copied_into_the_image_is_there() -> None:
    """A file named by COPY exists and is not left out by `.dockerignore`."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for line in dockerfile_lines():
        words = line.split()
        if words[0] == "COPY" and not words[1].startswith("--"):
            for source in words[1:-1]:
                assert (ROOT / source).exists(), source
                assert source not in ignored


@pytest.mark.parametrize("secret", [".env", ".git", "var"])
def test_secrets_and_data_stay_out_of_the_image(secret: str) -> None:
    """Passwords, history and databases of a checkout are not sent to the engine."""
    assert secret in (ROOT / ".dockerignore").read_text().splitlines()
