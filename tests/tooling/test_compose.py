"""The compose file and the image: they start with nothing but a copied `.env.example`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from app.console.arguments import parse
from app.serving import GRACE_S
from app.settings import Settings
from tools import bootstrap

CLUSTER = {"cluster-work", "engine-scheduler", "engine-worker"}
HARDENING = ("read_only", "cap_drop", "security_opt", "tmpfs", "init")
ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(
    r"\$\{(?P<name>\w+)(?:(?P<operator>:?[-?+])(?P<argument>[^}]*))?\}|(?P<other>\$)"
)


def example_variables() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


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
    filled = filled_in(document, example_variables() if variables is None else variables)
    assert isinstance(filled, dict)
    return filled


def dockerfile_lines() -> list[str]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line and not line.startswith("#")]


def test_nothing_but_the_example_has_to_be_set() -> None:
    """Every variable has a default in the file or a value in `.env.example`."""
    assert set(compose()["services"]) == {
        "postgres",
        "sluice",
        "worker",
        *CLUSTER,
    }


def test_a_forgotten_env_file_is_said_by_name() -> None:
    """Without `.env` Compose stops at the one variable that is required."""
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
    assert (worker["profiles"], worker["command"]) == (["workers"], ["sluice", "work"])
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
        assert one["build"] == {"context": ".", "args": {"PACKAGES": "dask"}}, name
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


def test_settings_of_the_example_reach_the_service() -> None:
    """A value set in `.env`, also one that is commented out in the example, is passed on."""
    text = (ROOT / ".env.example").read_text()
    offered = set(re.findall(r"^#(SLUICE_\w+)=", text, flags=re.MULTILINE))
    variables = example_variables() | dict.fromkeys(offered, "7654321")
    service = compose(variables)["services"]["sluice"]
    for name in offered - {"SLUICE_PORT", "SLUICE_PUBLISH"}:
        assert service["environment"][name] == "7654321", name
    assert service["ports"] == ["7654321:7654321:8080"]


def test_every_setting_can_be_given_to_the_container() -> None:
    """A setting that the service reads and the compose file does not pass on could not be set."""
    asked: set[str] = set()

    class Watched(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return super().get(key, default)

    Settings.from_environment(Watched())
    assert asked
    assert asked - set(compose()["services"]["sluice"]["environment"]) == set()


def test_the_password_of_the_example_fits_into_a_url() -> None:
    """It becomes part of the database's URL as it stands."""
    assert re.fullmatch(r"[\w-]+", example_variables()["POSTGRES_PASSWORD"])


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
