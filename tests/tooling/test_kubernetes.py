"""The kustomize base, read by parsers alone: schemas of Kubernetes, names, commands and settings.

What only a cluster can show is not tried: that its network keeps to the policies, and its probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from app.console.arguments import parse
from app.container import MIN_WORKER_BYTES, Container, processes
from app.serving import GRACE_S
from app.settings import Settings
from tests.tooling.test_compose import variables_of_a_process

BASE = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
COMPONENT = "app.kubernetes.io/component"
VERSIONS = ("1.30", "1.37")
SECRETS = {"sluice-database": {"url"}, "sluice-certificates": {"ca.pem", "cert.pem", "key.pem"}}


def kustomization() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    return found


def resources(kind: str = "") -> dict[str, dict[str, Any]]:
    """What the base names, by its name; of one kind where that is given."""
    found = [
        one
        for file in kustomization()["resources"]
        for one in yaml.safe_load_all((BASE / file).read_text())
        if kind in ("", one["kind"])
    ]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each component, its pod's specification and its one container."""
    for one in resources("Deployment").values():
        spec = one["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        yield one["metadata"]["name"], spec, container


def plain_environment(container: Mapping[str, Any]) -> dict[str, str]:
    """Values of the ConfigMap, and the container's own, which win."""
    shared = {
        name: value
        for source in container["envFrom"]
        for name, value in resources("ConfigMap")[f"ConfigMap/{source['configMapRef']['name']}"][
            "data"
        ].items()
    }
    return shared | {one["name"]: one["value"] for one in container["env"] if "value" in one}


def test_every_variable_reaches_every_process() -> None:
    """Host and port are the image's, the database a secret of those that have one."""
    for name, _, container in pods():
        own = {one["name"] for one in container["env"]}
        missing = variables_of_a_process() - set(plain_environment(container)) - own
        expected = {"SLUICE_HOST", "SLUICE_PORT"}
        expected |= {"SLUICE_DATABASE_URL"} if name.startswith("engine") else set()
        assert missing == expected, name


def test_limits_leave_room_for_the_workers() -> None:
    """Of processors, memory and what is written to the node's disk, logs among it."""
    for name, spec, container in pods():
        limits = container["resources"]["limits"]
        assert set(limits) == {"cpu", "memory", "ephemeral-storage"}, name
        (tmp,) = (one for one in spec["volumes"] if one["name"] == "tmp")
        assert tmp["emptyDir"]["sizeLimit"] == "1Gi", name
        settings = Settings.from_environment(plain_environment(container))
        room = Container(float(limits["cpu"]), int(limits["memory"].removesuffix("Gi")) * 2**30)
        workers = settings.workers or room.workers(64)
        assert processes(workers) * MIN_WORKER_BYTES <= (room.workers_bytes or 0), name


def test_every_file_is_named_once_and_every_resource_has_a_name_of_its_own() -> None:
    files = {path.name for path in BASE.iterdir()}
    assert files == {"kustomization.yaml", *kustomization()["resources"]}
    documents = sum(
        len(list(yaml.safe_load_all((BASE / file).read_text())))
        for file in kustomization()["resources"]
    )
    assert len(resources()) == documents > 8


@pytest.mark.parametrize("version", VERSIONS)
def test_resources_are_what_kubernetes_takes(version: str) -> None:
    """To the last field: one that Kubernetes does not know is refused."""
    for one in resources().values():
        kubernetes_validate.validate(one, version, strict=True)
    (deployment, *_) = resources("Deployment").values()
    deployment["spec"]["template"]["spec"]["bogus"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, version, strict=True)


def test_selectors_find_their_pods() -> None:
    components = set()
    for one in resources("Deployment").values():
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"] == labels
        components.add(labels[COMPONENT])
    assert components == {"api", "work", "engine-scheduler", "engine-worker"}
    for one in resources("Service").values():
        assert one["spec"]["selector"][COMPONENT] == one["metadata"]["name"]
        names = {port["targetPort"] for port in one["spec"]["ports"]}
        (container,) = (
            container for name, _, container in pods() if name == one["metadata"]["name"]
        )
        assert names == {port["name"] for port in container["ports"]}
    for one in resources("PodDisruptionBudget").values():
        assert one["spec"]["selector"]["matchLabels"][COMPONENT] in components
    for one in resources("NetworkPolicy").values():
        assert one["spec"]["podSelector"]["matchLabels"][COMPONENT] == one["metadata"]["name"]


def test_each_container_runs_a_command_with_settings_that_hold() -> None:
    for name, spec, container in pods():
        words = container["args"]
        assert words[0] == "sluice"
        arguments = parse(words[1:])
        assert name in {"api", arguments.command, f"engine-{getattr(arguments, 'verb', '')}"}
        settings = Settings.from_environment(plain_environment(container))
        grace_s = spec["terminationGracePeriodSeconds"]
        if name == "api":
            assert grace_s > settings.drain_s + GRACE_S
        elif name != "engine-scheduler":
            assert grace_s > settings.work_drain_s
        assert (settings.engine == "dask") == (name == "work")
        if name != "api":
            assert urlsplit(settings.dask_address).scheme == "tls", name


def test_members_find_the_scheduler_by_its_service() -> None:
    addresses = {
        name: plain_environment(container).get("SLUICE_DASK_ADDRESS")
        for name, _, container in pods()
    }
    service = resources("Service")["Service/engine-scheduler"]
    port = service["spec"]["ports"][0]["port"]
    assert addresses["engine-scheduler"] == f"tls://0.0.0.0:{port}"
    assert addresses["work"] == addresses["engine-worker"] == f"tls://engine-scheduler:{port}"
    assert resources("Deployment")["Deployment/engine-scheduler"]["spec"]["replicas"] == 1


def test_secrets_are_those_that_are_asked_for_and_the_cluster_has_no_database() -> None:
    for name, spec, container in pods():
        asked = [one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one]
        assert {(one["name"], one["key"]) for one in asked} <= {("sluice-database", "url")}
        assert bool(asked) == (name in {"api", "work"})
        mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in spec["volumes"]}
        assert set(mounted) == set(volumes)
        files = {
            Path(text)
            for key, text in plain_environment(container).items()
            if key.startswith("SLUICE_DASK_TLS_") and text
        }
        if name == "api":
            assert files == set()
            continue
        assert {str(file.parent) for file in files} == {mounted["certificates"]}
        secret = volumes["certificates"]["secret"]["secretName"]
        assert {file.name for file in files} == SECRETS[secret]


def test_pods_are_hardened() -> None:
    for name, spec, container in pods():
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name  # SLUICE_PORT would be a service's
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"], name
        assert container["image"] in {one["name"] for one in kustomization()["images"]}


def test_the_cluster_is_reached_by_its_members_alone() -> None:
    policies = resources("NetworkPolicy")
    assert set(policies) == {"NetworkPolicy/engine-scheduler", "NetworkPolicy/engine-worker"}
    members = {"work", "engine-scheduler", "engine-worker"}
    for one in policies.values():
        assert one["spec"]["policyTypes"] == ["Ingress", "Egress"]
        for rule in one["spec"]["ingress"]:
            for source in rule["from"]:
                (expression,) = source["podSelector"]["matchExpressions"]
                assert expression["key"] == COMPONENT
                assert set(expression["values"]) <= members
